"""Columns in the DataFrame API: operators and methods that build syntax trees, which are resolved later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kquery_spark.errors import PlanError, type_name
from kquery_spark.frontends.dataframe.literals import literal_node, type_text
from kquery_spark.frontends.sql import parse_expression, parse_type, to_sql
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.node import rewrite

if TYPE_CHECKING:
    from kquery_spark.frontends.dataframe.windows import WindowBuilder


@dataclass(frozen=True, eq=False)
class Column:
    """An expression over the columns of whatever DataFrame it is used with."""

    node: ast.Expression

    def __str__(self) -> str:
        return f"Column<{to_sql(self.node)}>"

    __repr__ = __str__

    def __bool__(self) -> bool:
        raise PlanError("a Column has no truth value; use & for AND, | for OR, ~ for NOT, with parentheses")

    # --- operators ------------------------------------------------------------------------------------

    def __add__(self, other: object) -> Column:
        return self._binary("+", other)

    def __radd__(self, other: object) -> Column:
        return lit(other)._binary("+", self)

    def __sub__(self, other: object) -> Column:
        return self._binary("-", other)

    def __rsub__(self, other: object) -> Column:
        return lit(other)._binary("-", self)

    def __mul__(self, other: object) -> Column:
        return self._binary("*", other)

    def __rmul__(self, other: object) -> Column:
        return lit(other)._binary("*", self)

    def __truediv__(self, other: object) -> Column:
        return self._binary("/", other)

    def __rtruediv__(self, other: object) -> Column:
        return lit(other)._binary("/", self)

    def __mod__(self, other: object) -> Column:
        return self._binary("%", other)

    def __rmod__(self, other: object) -> Column:
        return lit(other)._binary("%", self)

    def __neg__(self) -> Column:
        return call("negative", self)

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return self._binary("=", other)

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        return self._binary("<>", other)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: object) -> Column:
        return self._binary("<", other)

    def __le__(self, other: object) -> Column:
        return self._binary("<=", other)

    def __gt__(self, other: object) -> Column:
        return self._binary(">", other)

    def __ge__(self, other: object) -> Column:
        return self._binary(">=", other)

    def __and__(self, other: object) -> Column:
        return Column(ast.And((*_terms(self.node, ast.And), lit(other).node)))

    def __rand__(self, other: object) -> Column:
        return Column(ast.And((lit(other).node, self.node)))

    def __or__(self, other: object) -> Column:
        return Column(ast.Or((*_terms(self.node, ast.Or), lit(other).node)))

    def __ror__(self, other: object) -> Column:
        return Column(ast.Or((lit(other).node, self.node)))

    def __invert__(self) -> Column:
        return Column(ast.Not(self.node))

    def __pow__(self, other: object) -> Column:
        return call("power", self, other)

    def __rpow__(self, other: object) -> Column:
        return call("power", other, self)

    def __iter__(self) -> Any:
        raise PlanError("a Column cannot be iterated over; explode() makes rows of an array")

    def __contains__(self, item: object) -> bool:
        raise PlanError("a Column has no 'in'; use contains() for strings and isin() for lists of values")

    def __getitem__(self, key: object) -> Column:
        return Column(ast.Subscript(self.node, lit(key).node))

    def _binary(self, op: str, other: object) -> Column:
        return Column(ast.Binary(op, self.node, lit(other).node))

    # --- methods, with PySpark's names ------------------------------------------------------------------

    def alias(self, *names: str) -> Column:
        """Rename the column; a generator of several columns (``posexplode``) takes several names."""
        if len(names) == 1:
            return Column(ast.Aliased(self.node, names[0]))
        if not names:
            raise PlanError("alias() needs a name")
        return Column(ast.MultiAliased(self.node, names))

    name = alias

    def cast(self, dtype: Any) -> Column:
        """Convert to a type, which is an SQL string (``"decimal(10,2)"``) or one of PySpark's types."""
        return Column(ast.Cast(self.node, parse_type(type_text(dtype))))

    astype = cast

    def try_cast(self, dtype: Any) -> Column:
        """Convert, NULL where the value does not fit."""
        return Column(ast.Cast(self.node, parse_type(type_text(dtype)), is_try=True))

    def eqNullSafe(self, other: object) -> Column:
        """Equality in which NULL equals NULL."""
        return self._binary("<=>", other)

    def bitwiseAND(self, other: object) -> Column:
        """The bits set in both."""
        return self._binary("&", other)

    def bitwiseOR(self, other: object) -> Column:
        """The bits set in either."""
        return self._binary("|", other)

    def bitwiseXOR(self, other: object) -> Column:
        """The bits set in one of the two."""
        return self._binary("^", other)

    def isNaN(self) -> Column:
        """True if the value is NaN."""
        return call("isnan", self)

    def isNull(self) -> Column:
        """True if the value is NULL."""
        return Column(ast.IsNull(self.node))

    def isNotNull(self) -> Column:
        """True if the value is not NULL."""
        return Column(ast.IsNull(self.node, negated=True))

    def isin(self, *values: object) -> Column:
        """True if the value is one of several values, passed one by one or as one list."""
        items = values[0] if len(values) == 1 and isinstance(values[0], list | tuple | set) else values
        return Column(ast.InList(self.node, tuple(lit(v).node for v in items)))

    def between(self, low: object, high: object) -> Column:
        """``low <= value AND value <= high``."""
        return (self >= low) & (self <= high)

    def like(self, pattern: str) -> Column:
        """SQL LIKE."""
        return Column(ast.Like(self.node, lit(pattern).node))

    def ilike(self, pattern: str) -> Column:
        """SQL ILIKE."""
        return Column(ast.Like(self.node, lit(pattern).node, "ILIKE"))

    def rlike(self, pattern: str) -> Column:
        """True if a regular expression matches a part of the string."""
        return Column(ast.Like(self.node, lit(pattern).node, "RLIKE"))

    def startswith(self, other: object) -> Column:
        """True if the string starts with another one."""
        return call("startswith", self, other)

    def endswith(self, other: object) -> Column:
        """True if the string ends with another one."""
        return call("endswith", self, other)

    def contains(self, other: object) -> Column:
        """True if the string contains another one."""
        return call("contains", self, other)

    def substr(self, start: object, length: object) -> Column:
        """Part of the string, counted from 1."""
        return call("substr", self, start, length)

    def getField(self, name: str) -> Column:
        """A field of a struct."""
        return self[name]

    def getItem(self, key: object) -> Column:
        """An element of an array or a value of a map."""
        return self[key]

    def asc(self) -> SortOrder:
        """Ascending order, NULLs first."""
        return SortOrder(ast.SortItem(self.node, True, True))

    def desc(self) -> SortOrder:
        """Descending order, NULLs last."""
        return SortOrder(ast.SortItem(self.node, False, False))

    def asc_nulls_last(self) -> SortOrder:
        """Ascending order, NULLs last."""
        return SortOrder(ast.SortItem(self.node, True, False))

    def desc_nulls_first(self) -> SortOrder:
        """Descending order, NULLs first."""
        return SortOrder(ast.SortItem(self.node, False, True))

    asc_nulls_first = asc
    desc_nulls_last = desc

    def when(self, condition: Column, value: object) -> Column:
        """A further branch after ``when(...)``."""
        if not isinstance(self.node, ast.CaseExpression):
            raise PlanError("when() goes on from when(condition, value)")
        if self.node.otherwise is not None:
            raise PlanError("when() cannot be applied once otherwise() is applied")
        return Column(replace(self.node, branches=(*self.node.branches, _branch(condition, value))))

    def otherwise(self, value: object) -> Column:
        """The value when no condition of ``when(...)`` is true."""
        if not isinstance(self.node, ast.CaseExpression):
            raise PlanError("otherwise() goes on from when(condition, value)")
        if self.node.otherwise is not None:
            raise PlanError("otherwise() can only be applied once on a Column made by when()")
        return Column(replace(self.node, otherwise=lit(value).node))

    def filter(self, condition: Column) -> Column:
        """An aggregate of only the rows for which the condition is true."""
        return Column(replace(self._call("filter"), filter=condition.node))

    def over(self, window: WindowBuilder) -> Column:
        """The function over a window."""
        from kquery_spark.frontends.dataframe.windows import WindowBuilder  # imports this module

        if not isinstance(window, WindowBuilder):
            raise PlanError(f"over() takes a window as Window makes them, not {type_name(window)}")
        return Column(replace(self._call("over"), over=window.spec))

    def _call(self, method: str) -> ast.Call:
        if not isinstance(self.node, ast.Call):
            raise PlanError(f"{method}() belongs to a function call, not to {to_sql(self.node)}")
        return self.node


@dataclass(frozen=True)
class SortOrder:
    """One key of ``sort``."""

    item: ast.SortItem


def _terms(node: ast.Expression, kind: type[ast.And] | type[ast.Or]) -> tuple[ast.Expression, ...]:
    """The terms of a chain: ``a & b & c`` becomes a single AND with three terms."""
    return node.terms if isinstance(node, kind) else (node,)


def col(name: str) -> Column:
    """A column by name; ``"t.a"`` is column a of t, ``"*"`` all columns, backticks quote a name with dots."""
    if not isinstance(name, str):
        raise PlanError(
            f"a column is a name or a Column of kquery_spark, as kq.col() returns, not {type_name(name)}"
        )
    if name == "*":
        return Column(ast.Star())
    if name.endswith(".*"):
        return Column(ast.Star(tuple(name[:-2].split("."))))
    if "`" in name:
        return expr(name)
    return Column(ast.Name(tuple(name.split("."))))


def expr(text: str) -> Column:
    """An expression written in SQL; its nodes have no positions, because they would not refer to the query's string."""
    return Column(rewrite(parse_expression(text), lambda n: n if n.pos < 0 else replace(n, pos=-1)))


#: Another name for ``expr``, because ``kquery_spark.expr`` is the package of expressions.
sql_expr = expr


def lit(value: Any) -> Column:
    """A constant; a Column is returned unchanged."""
    if isinstance(value, Column):
        return value
    if isinstance(value, list | tuple):
        return Column(ast.Call(("array",), tuple(lit(v).node for v in value)))
    return Column(literal_node(value))


def when(condition: Column, value: object) -> Column:
    """Begin a CASE; add branches with ``.when(...)`` and ``.otherwise(...)``."""
    return Column(ast.CaseExpression(None, (_branch(condition, value),)))


def _branch(condition: Column, value: object) -> ast.When:
    if not isinstance(condition, Column):
        raise PlanError(f"when() takes a Column of kquery_spark as its condition, not {type_name(condition)}")
    return ast.When(condition.node, lit(value).node)


def call(name: str, *arguments: object, distinct: bool = False) -> Column:
    """Call a function by its SQL name; strings are constants."""
    return Column(ast.Call((name,), tuple(lit(a).node for a in arguments), distinct=distinct))


def to_column(value: Column | str) -> Column:
    """Convert a column, or a column name, to a Column."""
    return value if isinstance(value, Column) else col(value)


def exact_column(name: str) -> Column:
    """The column with exactly this name, in which dots are not separators."""
    return Column(ast.Name((name,)))


def flat(values: Sequence[Any]) -> tuple[Any, ...]:
    """Flatten arguments that are passed one by one or, as in PySpark, as one list."""
    return tuple(values[0]) if len(values) == 1 and isinstance(values[0], list | tuple) else tuple(values)


def sort_items(keys: Sequence[Column | SortOrder | str]) -> tuple[ast.SortItem, ...]:
    """Convert sort keys; a plain column is sorted in ascending order."""
    return tuple(k.item if isinstance(k, SortOrder) else to_column(k).asc().item for k in keys)

"""Expressions of the syntax tree, resolved and typed against a scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from kquery_spark.errors import ExecutionError, KQueryError, PlanError, SqlError, Unsupported
from kquery_spark.expr import Call, Case, Cast, Column, Expr, InList, Literal
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import chain, is_constant
from kquery_spark.frontends.sql.analyzer.calls import analyze_call
from kquery_spark.frontends.sql.analyzer.catalog import SessionFacts
from kquery_spark.frontends.sql.analyzer.conversions import Conversions
from kquery_spark.frontends.sql.analyzer.literals import BadLiteral, literal
from kquery_spark.frontends.sql.analyzer.name_resolution import find_name, resolve_name, shown_name
from kquery_spark.frontends.sql.analyzer.naming import column_name
from kquery_spark.frontends.sql.analyzer.scope import Names, Scope
from kquery_spark.frontends.sql.analyzer.subqueries import (
    OuterFrame,
    SubqueryAnalyzer,
    exists,
    in_subquery,
    outer_names,
    scalar_subquery,
)
from kquery_spark.frontends.sql.analyzer.temporal import months_of, temporal_arithmetic
from kquery_spark.frontends.sql.analyzer.types import arrow_type
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.frontends.sql.printer import to_sql
from kquery_spark.functions.registry import EvalMode
from kquery_spark.kernels.elements import is_array
from kquery_spark.logical import LogicalPlan
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kquery_spark.frontends.sql.ast.queries import Query

_OPERATORS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "%": "mod",
    "DIV": "div",
    "=": "eq",
    "==": "eq",
    "<>": "neq",
    "!=": "neq",
    "<": "lt",
    "<=": "lteq",
    ">": "gt",
    ">=": "gteq",
    "<=>": "eq_null_safe",
    "||": "concat",
    "&": "bitand",
    "|": "bitor",
    "^": "bitxor",
    "<<": "shiftleft",
    ">>": "shiftright",
    ">>>": "shiftrightunsigned",
}
_FIELDS = frozenset({"get_struct_field", "get_array_struct_fields"})
_UNARY = {"-": "negative", "~": "bitnot", "+": "positive"}


@dataclass
class ExpressionAnalyzer:
    """Turns syntax into expressions at one place of a query.

    ``aliases`` are earlier select items, which later ones may name. ``first`` are names that come before the scope's
    (a select list's, in ORDER BY and HAVING). ``place`` names the clause for errors; aggregates and window functions
    are refused unless ``aggregates`` and ``windows`` say so. ``plans`` have the scope's columns: columns that DataFrames
    gave are known by their lineage.
    """

    sql: str
    facts: SessionFacts
    names: Names
    scope: Scope
    subquery: SubqueryAnalyzer
    outer: OuterFrame | None = None
    aliases: Mapping[str, Expr | None] = field(default_factory=dict)
    first: Scope | None = None
    place: str = ""
    aggregates: bool = False
    windows: bool = False
    in_window: bool = False
    plans: tuple[LogicalPlan, ...] = ()
    named_windows: Mapping[str, ast.WindowSpec] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.convert = Conversions(self.facts)

    # --- entry points --------------------------------------------------------------------------------

    def expr(self, node: ast.Expression) -> Expr:
        """The resolved expression; SqlError at the innermost place that is wrong."""
        with self.at(node):
            return self._expr(node)

    def condition(self, node: ast.Expression, what: str) -> Expr:
        """A boolean."""
        made = self.expr(node)
        with self.at(node):
            return self.convert.boolean(made, what)

    def call(self, name: str, *args: Expr, mode: EvalMode | None = None) -> Expr:
        """A function with implicit casts."""
        return self.convert.call(name, *args, mode=mode)

    def fail(self, message: str, node: Node | None = None) -> NoReturn:
        """Raise at a node."""
        raise SqlError(message, self.sql, None if node is None or node.pos < 0 else node.pos)

    @contextmanager
    def at(self, node: Node) -> Iterator[None]:
        """Give errors that have no position this node's."""
        try:
            yield
        except SqlError:
            raise
        except (PlanError, Unsupported) as error:
            self.fail(str(error), node)

    # --- what the names of columns depend on: naming.Context -----------------------------------------

    def shown(self, node: ast.Name) -> str:
        """A name inside an automatic column name."""
        return shown_name(self, node)

    def shown_star(self) -> str:
        """``*`` inside an automatic column name: all columns."""
        return ", ".join(c.name for c in self.scope.visible)

    def dtype_of(self, node: ast.Expression) -> pa.DataType | None:
        """The type of an expression; None for one that has none by itself."""
        if isinstance(node, ast.IntervalLiteral) or months_of(self, node) is not None:
            return None
        return self.expr(node).dtype

    def window_of(self, window: ast.Window) -> ast.WindowSpec | None:
        """What a window's name stands for."""
        if isinstance(window, ast.WindowSpec):
            return window
        return self.named_windows.get(window.name)

    def outer_names(self, query: Query) -> list[str]:
        """The columns of the row around that a subquery reads, in Spark's order."""
        return outer_names(self, query)

    # --- everything else -----------------------------------------------------------------------------

    def _expr(self, node: ast.Expression) -> Expr:
        try:
            constant = literal(node, self.facts)
        except BadLiteral as bad:
            self.fail(f"[INVALID_TYPED_LITERAL] {bad}", node)
        if constant is not None:
            return constant
        match node:
            case ast.Name():
                return resolve_name(self, node)
            case ast.Aliased():
                return self.expr(node.expression)
            case ast.Field():
                return self.field(self.expr(node.base), node.name)
            case ast.Subscript():
                return self._subscript(self.expr(node.base), self.expr(node.index))
            case ast.Unary():
                return self._unary(node)
            case ast.Binary():
                return self._binary(node)
            case ast.And() | ast.Or():
                return self._chain(node)
            case ast.Not():
                return self.call("not", self.condition(node.operand, "NOT"))
            case ast.IsNull():
                return self.call("isnotnull" if node.negated else "isnull", self.expr(node.operand))
            case ast.IsBoolean():
                return self._is_boolean(node)
            case ast.IsDistinct():
                same = self.call("eq_null_safe", self.expr(node.left), self.expr(node.right))
                return same if node.negated else self.call("not", same)
            case ast.InList():
                made = self._in_list(self.expr(node.operand), [self.expr(i) for i in node.items])
                return self._negated(made, node.negated)
            case ast.Between():
                return self._negated(self._between(node), node.negated)
            case ast.Like():
                return self._like(node)
            case ast.LikeQuantified():
                return self._like_quantified(node)
            case ast.Case():
                return self._case(node)
            case ast.Cast():
                return self._cast(node)
            case ast.Exists():
                return exists(self, node)
            case ast.ScalarSubquery():
                return scalar_subquery(self, node)
            case ast.InSubquery():
                return self._negated(in_subquery(self, node), node.negated)
            case ast.Row():
                return self.struct(node.items)
            case ast.Call() | ast.Extract() | ast.Trim():
                return analyze_call(self, node)
            case ast.IntervalLiteral():
                raise Unsupported(
                    "Year-month intervals are supported only when added to dates or timestamps."
                )
            case ast.Star():
                self.fail("[INVALID_USAGE_OF_STAR_OR_REGEX] * cannot stand here", node)
        raise Unsupported(f"{to_sql(node)} is not supported.")

    def _negated(self, expr: Expr, negated: bool) -> Expr:
        return self.call("not", expr) if negated else expr

    def _subscript(self, base: Expr, index: Expr) -> Expr:
        if pa.types.is_map(base.dtype):
            return self.call("get_map_value", base, self.convert.cast(index, base.dtype.key_type))
        if pa.types.is_struct(base.dtype) and isinstance(index, Literal) and isinstance(index.value, str):
            return self.field(base, index.value)
        if not pa.types.is_list(base.dtype):
            raise PlanError(f"[INVALID_EXTRACT_BASE_FIELD_TYPE] {t.spark_name(base.dtype)} has no elements")
        return self.call("get_array_item", base, index)

    def _unary(self, node: ast.Unary) -> Expr:
        operand = self.expr(node.operand)
        name = _UNARY[node.op]
        if name == "negative" and isinstance(operand, Literal) and operand.dtype == t.NULL:
            return Literal(None, t.DOUBLE)
        return self.call(name, operand)

    def _binary(self, node: ast.Binary) -> Expr:
        if node.op in ("+", "-"):
            done = temporal_arithmetic(self, node)
            if done is not None:
                return done
        name = _OPERATORS.get(node.op)
        if name is None:
            raise Unsupported(f"The operator {node.op} is not supported.")
        left, right = self.expr(node.left), self.expr(node.right)
        if name == "concat":
            args: list[Expr] = []
            for side in (left, right):
                flat = isinstance(side, Call) and side.function == "concat"
                args += side.children if flat else [side]
            return self.call(name, *args)
        try:
            return self.call(name, left, right)
        except Unsupported:
            raise
        except PlanError as error:
            if str(error).startswith("["):
                raise
            kind = "DIFF_TYPES" if left.dtype != right.dtype else "WRONG_TYPE"
            self.fail(f"[DATATYPE_MISMATCH.BINARY_OP_{kind}] {error}", node)

    def _chain(self, node: ast.And | ast.Or) -> Expr:
        word = "and" if isinstance(node, ast.And) else "or"
        return chain(word, [self.condition(term, word.upper()) for term in node.terms])

    def _is_boolean(self, node: ast.IsBoolean) -> Expr:
        operand = self.condition(node.operand, "IS")
        if node.value is None:
            return self.call("isnotnull" if node.negated else "isnull", operand)
        return self._negated(self.call("eq_null_safe", operand, Literal(node.value, t.BOOL)), node.negated)

    def _in_list(self, operand: Expr, items: Sequence[Expr]) -> Expr:
        if not items:
            # false also of NULL, but of the operand's nullability
            return Case(
                ((Literal(False, t.BOOL), self.call("eq", operand, operand)),), Literal(False, t.BOOL)
            )
        operand, *values = self.convert.common([operand, *items], "IN")
        literals = [constant_of(v) for v in values]
        # Spark goes by the casts of the list, of which those of strings may be NULL
        unknown = any(
            v.nullable and c is not None and c.value is not None
            for v, c in zip(values, literals, strict=True)
        )
        plain = not t.is_nested(operand.dtype) and (operand.nullable or not unknown)
        if plain and all(v is not None for v in literals):
            return InList(operand, tuple(v for v in literals if v is not None))
        made: Expr | None = None
        for value in values:
            one = self.call("eq", operand, value)
            made = one if made is None else Call.of("or", made, one)
        assert made is not None
        return made

    def _between(self, node: ast.Between) -> Expr:
        operand = self.expr(node.operand)
        low = self.call("gteq", operand, self.expr(node.low))
        return Call.of("and", low, self.call("lteq", operand, self.expr(node.high)))

    def _like(self, node: ast.Like) -> Expr:
        args = [self.expr(node.operand), self.expr(node.pattern)]
        if node.escape is not None and node.escape != "\\":
            args.append(Literal(node.escape, t.STRING))
        return self._negated(self.call(node.kind.lower(), *args), node.negated)

    def _like_quantified(self, node: ast.LikeQuantified) -> Expr:
        operand = self.expr(node.operand)
        tests = [
            self._negated(self.call(node.kind.lower(), operand, self.expr(p)), node.negated)
            for p in node.patterns
        ]
        made = tests[0]
        for test in tests[1:]:
            made = Call.of("and" if node.quantifier == "ALL" else "or", made, test)
        return made

    def _case(self, node: ast.Case) -> Expr:
        operand = None if node.operand is None else self.expr(node.operand)
        conditions = []
        for when in node.branches:
            if operand is None:
                conditions.append(self.condition(when.condition, "WHEN"))
            else:
                with self.at(when.condition):
                    conditions.append(self.call("eq", operand, self.expr(when.condition)))
        results = [self.expr(when.result) for when in node.branches]
        return self.case(conditions, results, None if node.otherwise is None else self.expr(node.otherwise))

    def case(self, conditions: Sequence[Expr], results: Sequence[Expr], otherwise: Expr | None) -> Expr:
        """CASE with its values at one type."""
        every = [*results, *([] if otherwise is None else [otherwise])]
        values = self.convert.common(every, "CASE")
        pairs = tuple(zip(conditions, values[: len(results)], strict=True))
        return Case(pairs, None if otherwise is None else values[-1])

    def _cast(self, node: ast.Cast) -> Expr:
        target = arrow_type(node.type, self.facts.time_zone)
        if target is None:
            raise Unsupported(f"The type {to_sql(node.type)} is not supported.")
        operand = self.expr(node.operand)
        if operand.dtype == target:
            return operand
        if isinstance(operand, Literal) and operand.value is None:
            return Literal(None, target)
        made = self.convert.cast(operand, target, implicit=False)
        if node.is_try and isinstance(made, Cast):
            return Cast(made.child, made.to, EvalMode.TRY, made.tz)
        return made

    def field(self, base: Expr, name: str) -> Expr:
        """``base.name`` of a struct, or of each struct of an array."""
        dtype = base.dtype
        if pa.types.is_map(dtype):
            return self.call("get_map_value", base, Literal(name, t.STRING))
        of_each = is_array(dtype) and pa.types.is_struct(dtype.value_type)
        if of_each:
            dtype = dtype.value_type
        if not pa.types.is_struct(dtype):
            raise PlanError(f"[INVALID_EXTRACT_BASE_FIELD_TYPE] {t.spark_name(dtype)} has no field {name}")
        fold = self.facts.fold
        hits = [i for i in range(dtype.num_fields) if fold(dtype.field(i).name) == fold(name)]
        if not hits:
            have = ", ".join(f.name for f in dtype)
            raise PlanError(f"[FIELD_NOT_FOUND] there is no field {name}; the fields are {have}")
        if len(hits) > 1:
            raise PlanError(f"[AMBIGUOUS_REFERENCE_TO_FIELDS] there are several fields {name}")
        name = "get_array_struct_fields" if of_each else "get_struct_field"
        return self.call(name, base, Literal(hits[0], t.INT))

    def struct(self, items: Sequence[ast.Expression]) -> Expr:
        """A struct of expressions, its fields named as Spark names them."""
        args: list[Expr] = []
        for i, item in enumerate(items):
            made = self.expr(item)
            is_field = isinstance(made, Call) and made.function in _FIELDS
            match item:
                case ast.Name() if find_name(self, item.parts, None) is not None:
                    name = item.parts[-1]
                case ast.Name() | ast.Aliased():
                    name = column_name(item, self)
                case ast.Field(name=name) | ast.Subscript(index=ast.StringLiteral(value=name)) if is_field:
                    pass
                case _:
                    name = f"col{i + 1}"
            args += [Literal(name, t.STRING), made]
        return self.call("named_struct", *args)


def constant_of(expr: Expr) -> Literal | None:
    """The value of a constant expression; None for others and for constants that raise."""
    if isinstance(expr, Literal):
        return expr
    if isinstance(expr, Column) or not is_constant(expr):
        return None
    try:
        return evaluate_constant(expr)
    except (ExecutionError, KQueryError):
        return None

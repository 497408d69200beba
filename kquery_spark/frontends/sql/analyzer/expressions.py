"""Expressions of the syntax tree, resolved and typed against a scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from kquery_spark.errors import ExecutionError, KQueryError, PlanError, SqlError, Unsupported
from kquery_spark.expr import Call, Case, Cast, Column, Expr, InList, Literal, Named, walk
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import chain, is_constant
from kquery_spark.frontends.sql.analyzer.catalog import SessionFacts
from kquery_spark.frontends.sql.analyzer.conversions import Conversions
from kquery_spark.frontends.sql.analyzer.literals import BadLiteral, literal
from kquery_spark.frontends.sql.analyzer.scope import Found, Names, Scope
from kquery_spark.frontends.sql.analyzer.temporal import months_of, temporal_arithmetic
from kquery_spark.frontends.sql.analyzer.types import arrow_type
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.frontends.sql.printer import to_sql
from kquery_spark.functions.registry import EvalMode
from kquery_spark.logical import LogicalPlan, walk_plan
from kquery_spark.logical.lineage import lineage
from kquery_spark.logical.subqueries import Exists, InSubquery, OuterColumn, ScalarSubquery
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kquery_spark.frontends.sql.analyzer.scope import Relation
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
_UNARY = {"-": "negative", "~": "bitnot", "+": "positive"}

Lookup = Callable[[tuple[str, ...], int | None], Found | None]
SubqueryAnalyzer = Callable[["Query", "OuterFrame"], "Relation"]


@dataclass
class OuterFrame:
    """The row around a subquery: how names are found in it, and which of its values the subquery reads."""

    lookup: Lookup
    names: Names
    captured: dict[Expr, OuterColumn] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)

    def find(self, parts: tuple[str, ...], position: int | None) -> Found | None:
        """A name as the subquery sees it."""
        found = self.lookup(parts, position)
        if found is None:
            return None
        value = found.value
        if value not in self.captured:
            name = self.names.fresh(f"outer_{found.column}")
            self.captured[value] = OuterColumn(name, value.dtype, value.nullable)
            self.shown[name] = found.column
        return Found(self.captured[value], found.column, found.fields)

    @property
    def outer(self) -> tuple[Named, ...]:
        """What was read, as a Subquery holds it."""
        return tuple(Named(value, column.name) for value, column in self.captured.items())


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

    # --- names ---------------------------------------------------------------------------------------

    def find(self, parts: tuple[str, ...], position: int | None) -> Found | None:
        """What a name means here: columns, then earlier aliases of the select list, then the row around."""
        if self.first is not None:
            found = self._first(self.first, parts, position)
            if found is not None:
                return found
        found = self.scope.find(parts, self.sql, position)
        if found is None:
            found = self._alias(parts, position)
        if found is None and self.outer is not None:
            found = self.outer.find(parts, position)
        return found

    def _find_outside(self, parts: tuple[str, ...], position: int | None) -> Found | None:
        """What a name in a subquery means out here: earlier aliases of the select list mean nothing in there."""
        return replace(self, aliases={}).find(parts, position)

    def _first(self, first: Scope, parts: tuple[str, ...], position: int | None) -> Found | None:
        try:
            return first.find(parts, self.sql, position)
        except SqlError:
            if self.place != "ORDER BY":
                raise
            return None  # of two selected columns of a name, ORDER BY means neither: the input's may be meant

    def _alias(self, parts: tuple[str, ...], position: int | None) -> Found | None:
        key = self.facts.fold(parts[0])
        if key not in self.aliases:
            return None
        value = self.aliases[key]
        if self.in_window:
            raise SqlError(
                f"[UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_WINDOW] {parts[0]}, an alias of the select list, "
                "cannot be read in a window expression",
                self.sql,
                position,
            )
        if value is None:
            raise SqlError(
                f"[AMBIGUOUS_LATERAL_COLUMN_ALIAS] {parts[0]} names several columns of the select list",
                self.sql,
                position,
            )
        return Found(value, parts[0], parts[1:])

    def shown(self, node: ast.Name) -> str:
        """A name inside an automatic column name: without its qualifier."""
        found = self._by_origin(node) or self.scope.find(node.parts, self.sql, None)
        if found is None:
            if self._alias(node.parts, None) is not None:
                return f"lateralAliasReference({'.'.join(node.parts)})"
            found = None if self.outer is None else self.outer.find(node.parts, None)
        if found is None:
            return f"{node.parts[-1]}()"
        return ".".join((found.column, *found.fields))

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
        """See naming.Context: Spark finds them from the top of the subquery's plan down."""
        frame = OuterFrame(self._find_outside, self.names)
        plan = self.subquery(query, frame).plan
        exprs = (e for node in walk_plan(plan) for x in node.expressions for e in walk(x))
        return [frame.shown[e.name] for e in exprs if isinstance(e, OuterColumn) and e.name in frame.shown]

    def _name(self, node: ast.Name) -> Expr:
        found = self._by_origin(node)
        if found is None:
            found = self.find(node.parts, node.pos if node.pos >= 0 else None)
            self._check_origin(node, found)
        if found is None:
            if len(node.parts) == 1:
                from kquery_spark.frontends.sql.analyzer.calls import bare_call

                made = bare_call(self, node.parts[0])
                if made is not None:
                    return made
            self.unknown(node)
        value = found.value
        for name in found.fields:
            value = self.field(value, name)
        return value

    def _by_origin(self, node: ast.Name) -> Found | None:
        """The column of this very lineage, also where another has its name, or where it is not shown."""
        if not (node.origin and self.plans):
            return None
        fold = self.facts.fold
        same = [
            c
            for c in self.scope.columns
            if fold(c.name) == fold(node.parts[0]) and self._lineage(c.value) == node.origin
        ]
        for hidden in (False, True):
            values = list(dict.fromkeys(c.value for c in same if c.hidden == hidden))
            if values:
                return Found(values[0], node.parts[0], node.parts[1:]) if len(values) == 1 else None
        return None

    def _check_origin(self, node: ast.Name, found: Found | None) -> None:
        known = None if found is None or not node.origin else self._lineage(found.value)
        if known is not None and known != node.origin:
            raise PlanError(
                f"the column {node.parts[0]} of another DataFrame is not this one's {node.parts[0]}; "
                "give the frames names with alias() before the join"
            )

    def _lineage(self, value: Expr) -> str | None:
        if isinstance(value, Column):
            for plan in self.plans:
                if value.name in plan.schema.names:
                    return lineage(plan, value.name)
        return None

    def unknown(self, node: ast.Name) -> NoReturn:
        """Raise for a name nothing has."""
        raise SqlError(
            f"[UNRESOLVED_COLUMN.WITH{'' if self.scope.visible else 'OUT'}_SUGGESTION] there is no column "
            f"{'.'.join(node.parts)}; the columns are {self.scope.candidates()}",
            self.sql,
            node.pos if node.pos >= 0 else None,
        )

    def field(self, base: Expr, name: str) -> Expr:
        """``base.name`` of a struct."""
        dtype = base.dtype
        if pa.types.is_map(dtype):
            return self.call("get_map_value", base, Literal(name, t.STRING))
        if not pa.types.is_struct(dtype):
            raise PlanError(f"[INVALID_EXTRACT_BASE_FIELD_TYPE] {t.spark_name(dtype)} has no field {name}")
        fold = self.facts.fold
        hits = [i for i in range(dtype.num_fields) if fold(dtype.field(i).name) == fold(name)]
        if not hits:
            have = ", ".join(f.name for f in dtype)
            raise PlanError(f"[FIELD_NOT_FOUND] there is no field {name}; the fields are {have}")
        if len(hits) > 1:
            raise PlanError(f"[AMBIGUOUS_REFERENCE_TO_FIELDS] there are several fields {name}")
        return self.call("get_struct_field", base, Literal(hits[0], t.INT))

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
                return self._name(node)
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
                plan, outer = self._plan(node.query)
                return Exists(plan.plan, outer)
            case ast.ScalarSubquery():
                return self._scalar(node)
            case ast.InSubquery():
                return self._negated(self._in_subquery(node), node.negated)
            case ast.Row():
                return self.struct(node.items)
            case ast.Call() | ast.Extract() | ast.Trim():
                from kquery_spark.frontends.sql.analyzer.calls import analyze_call

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

    def struct(self, items: Sequence[ast.Expression]) -> Expr:
        """A struct of expressions, its fields named as Spark names them."""
        from kquery_spark.frontends.sql.analyzer.naming import column_name

        args: list[Expr] = []
        for i, item in enumerate(items):
            made = self.expr(item)
            is_field = isinstance(made, Call) and made.function == "get_struct_field"
            match item:
                case ast.Name() if self.find(item.parts, None) is not None:
                    name = item.parts[-1]
                case ast.Name() | ast.Aliased():
                    name = column_name(item, self)
                case ast.Field(name=name) | ast.Subscript(index=ast.StringLiteral(value=name)) if is_field:
                    pass
                case _:
                    name = f"col{i + 1}"
            args += [Literal(name, t.STRING), made]
        return self.call("named_struct", *args)

    # --- subqueries ----------------------------------------------------------------------------------

    def _plan(self, query: Query) -> tuple[Relation, tuple[Named, ...]]:
        frame = OuterFrame(self._find_outside, self.names)
        relation = self.subquery(query, frame)
        return relation, frame.outer

    def _scalar(self, node: ast.ScalarSubquery) -> Expr:
        relation, outer = self._plan(node.query)
        count = len(relation.scope.visible)
        if count != 1:
            self.fail(
                "[INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN] "
                f"a subquery used as a value must have one column, not {count}",
                node,
            )
        return ScalarSubquery(relation.plan, outer)

    def _in_subquery(self, node: ast.InSubquery) -> Expr:
        operands = node.operand.items if isinstance(node.operand, ast.Row) else (node.operand,)
        values = [self.expr(o) for o in operands]
        relation, outer = self._plan(node.query)
        columns = [c.value for c in relation.scope.visible]
        if len(columns) != len(values):
            self.fail(
                f"[DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH] IN compares {len(values)} value(s) with "
                f"{len(columns)} column(s)",
                node,
            )
        pairs = [self.convert.common([v, c], "IN") for v, c in zip(values, columns, strict=True)]
        plan = relation.plan
        if any(p[1] is not c for p, c in zip(pairs, columns, strict=True)) or len(plan.schema) != len(
            columns
        ):
            from kquery_spark.logical import Projection

            exprs = tuple(Named(p[1], self.names.fresh("in_value")) for p in pairs)
            plan = Projection(plan, exprs)
        return InSubquery(plan, outer, tuple(p[0] for p in pairs))


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

"""The names Spark gives columns that have no alias: the expression, written back in its own way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from kquery_spark.frontends.sql.analyzer.function_text import (
    PICKS,
    default_arguments,
    shown_function,
    special_text,
)
from kquery_spark.frontends.sql.analyzer.lambdas import LambdaContext, parameters_text
from kquery_spark.frontends.sql.analyzer.literal_text import literal_text
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.types import ArrayType, MapType, NamedType, StructType, TypeNode
from kquery_spark.frontends.sql.printer import to_sql
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.ast.queries import Query


class Context(Protocol):
    """What a name depends on besides the text."""

    def shown(self, node: ast.Name) -> str:
        """How a resolved name prints: without its qualifier."""

    def shown_star(self) -> str:
        """How ``*`` prints as the argument of ``count(DISTINCT *)``."""

    def dtype_of(self, node: ast.Expression) -> pa.DataType | None:
        """The type of an operand."""

    def window_of(self, window: ast.Window) -> ast.WindowSpec | None:
        """What a window's name stands for."""

    def outer_names(self, query: Query) -> list[str]:
        """The columns of the row around that a subquery reads, as often as it names them."""


def column_name(node: ast.Expression, context: Context) -> str:
    """The name of an output column."""
    match node:
        case ast.Aliased():
            return node.alias
        case ast.Name():
            shown = context.shown(node)
            return shown if shown.endswith("()") else node.parts[-1]
        case ast.Field() if _is_path(node.base):
            return node.name
        case ast.Cast(operand=ast.Name() as inner):
            # A cast of a column keeps the column's name; a struct's field is no column.
            shown = context.shown(inner)
            if "." not in shown and "(" not in shown:
                return inner.parts[-1]
    return _Writer(context).text(node)


def _is_path(node: ast.Expression) -> bool:
    """Whether fields of this are one dotted name: ``(a).b.c``."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Field) and _is_path(node.base))


class _Writer:
    def __init__(self, context: Context) -> None:
        self._context = context

    def text(self, node: ast.Expression) -> str:
        constant = literal_text(node)
        if constant is not None:
            return constant
        match node:
            case ast.Name():
                return self._context.shown(node)
            case ast.Lambda():
                body = _Writer(LambdaContext(self._context, node.parameters)).text(node.body)
                return f"lambdafunction({body}, {parameters_text(node.parameters)})"
            case ast.Aliased():
                return f"{self.text(node.expression)} AS {node.alias}"
            case ast.Star():
                return "1"
            case ast.Unary(op="-"):
                return f"(- {self.text(node.operand)})"
            case ast.Unary(op="+"):
                return f"(+ {self.text(node.operand)})"
            case ast.Unary():
                return f"{node.op}{self.text(node.operand)}"
            case ast.Binary():
                return self._binary(node)
            case ast.And():
                return self._chain(node.terms, "AND")
            case ast.Or():
                return self._chain(node.terms, "OR")
            case ast.Not():
                return f"(NOT {self.text(node.operand)})"
            case ast.IsNull():
                return f"({self.text(node.operand)} IS {'NOT ' if node.negated else ''}NULL)"
            case ast.IsBoolean():
                return self._is_boolean(node)
            case ast.IsDistinct():
                same = f"({self.text(node.left)} <=> {self.text(node.right)})"
                return same if node.negated else f"(NOT {same})"
            case ast.InList():
                return self._negated(
                    f"({self.text(node.operand)} IN ({self._list(node.items)}))", node.negated
                )
            case ast.InSubquery():
                inner = f"({self._compared(node.operand)} IN ({self._subquery('listquery', node.query)}))"
                return self._negated(inner, node.negated)
            case ast.Exists():
                return self._subquery("exists", node.query)
            case ast.ScalarSubquery():
                return self._subquery("scalarsubquery", node.query)
            case ast.Between():
                inner = f"between({self.text(node.operand)}, {self.text(node.low)}, {self.text(node.high)})"
                return self._negated(inner, node.negated)
            case ast.Like():
                return self._like(node)
            case ast.LikeQuantified(kind="LIKE"):
                word = "all" if node.quantifier.upper() == "ALL" else "any"
                return f"{'not' if node.negated else ''}like{word}({self.text(node.operand)})"
            case ast.Case():
                return self._case(node)
            case ast.Cast(type=ArrayType() | MapType() | StructType()):
                return self.text(node.operand)
            case ast.Cast():
                word = "TRY_CAST" if node.is_try else "CAST"
                return f"{word}({self.text(node.operand)} AS {type_text(node.type)})"
            case ast.Extract():
                return f"extract({node.field} FROM {self.text(node.source)})"
            case ast.Trim():
                return self._trim(node)
            case ast.Field():
                return f"{self.text(node.base)}.{node.name}"
            case ast.Subscript():
                base, index = self.text(node.base), self.text(node.index)
                return f"{base}.{index}" if self._picks_field(node) else f"{base}[{index}]"
            case ast.Row():
                return f"named_struct({', '.join(self._field(i, n) for i, n in enumerate(node.items, 1))})"
            case ast.Call():
                return self._call(node)
        return to_sql(node)

    def _picks_field(self, node: ast.Subscript) -> bool:
        """Whether a subscript names a field of a struct, or of every struct in an array."""
        if not isinstance(node.index, ast.StringLiteral):
            return False
        dtype = self._context.dtype_of(node.base) or t.NULL
        if pa.types.is_list(dtype) and not pa.types.is_map(dtype):
            dtype = dtype.value_type
        return bool(pa.types.is_struct(dtype))

    def _subquery(self, word: str, query: Query) -> str:
        return f"{word}({', '.join(self._context.outer_names(query))})"

    def _compared(self, node: ast.Expression) -> str:
        """What a subquery's rows are compared with: several values are a struct whose names show in quotes."""
        if not isinstance(node, ast.Row):
            return self.text(node)
        fields = []
        for i, item in enumerate(node.items):
            text = self.text(item)
            plain = isinstance(
                item, ast.Name | ast.Field | ast.StringLiteral | ast.IntegerLiteral | ast.DecimalLiteral
            )
            fields.append(f"'{text if plain else f'_{i}'}', {text}")
        return f"named_struct({', '.join(fields)})"

    def _field(self, place: int, node: ast.Expression) -> str:
        match node:
            case ast.Aliased():
                name = node.alias
            case ast.Name():
                name = node.parts[-1]
            case _:
                name = f"col{place}"
        return f"{name}, {self.text(node)}"

    def _list(self, nodes: tuple[ast.Expression, ...]) -> str:
        return ", ".join(self.text(n) for n in nodes)

    @staticmethod
    def _negated(text: str, negated: bool) -> str:
        return f"(NOT {text})" if negated else text

    def _chain(self, terms: tuple[ast.Expression, ...], word: str) -> str:
        text = self.text(terms[0])
        for term in terms[1:]:
            text = f"({text} {word} {self.text(term)})"
        return text

    def _binary(self, node: ast.Binary) -> str:
        left, right = self.text(node.left), self.text(node.right)
        if node.op in ("+", "-"):
            done = self._temporal(node, left, right)
            if done is not None:
                return done
        if node.op in ("*", "/") and _is_interval(node):
            return (
                f"({right} {node.op} {left})" if _is_interval(node.right) else f"({left} {node.op} {right})"
            )
        if node.op in ("<>", "!="):
            return f"(NOT ({left} = {right}))"
        if node.op == "||":
            return f"concat({left}, {right})"
        op = {"==": "=", "DIV": "div"}.get(node.op, node.op)
        return f"({left} {op} {right})"

    def _temporal(self, node: ast.Binary, left: str, right: str) -> str | None:
        """Sums with dates and timestamps, which Spark shows as the functions they become."""
        value, amount, shown, added = node.left, node.right, left, right
        kind = self._context.dtype_of(value)
        other = self._context.dtype_of(amount)
        if kind != t.DATE and not pa.types.is_timestamp(kind or t.NULL):
            if node.op == "-" or (other != t.DATE and not pa.types.is_timestamp(other or t.NULL)):
                return None
            value, amount, shown, added = amount, value, right, left
            kind, other = other, kind
        if isinstance(amount, ast.IntervalLiteral):
            if kind == t.DATE and amount.start == amount.end == "DAY":
                days = f"extractansiintervaldays({added})"
                return f"date_add({shown}, {days if node.op == '+' else f'(- {days})'})"
            return f"{shown} {node.op} {added}"
        if _is_interval(amount):
            return f"{shown} {node.op} {added}"
        if kind == t.DATE and other is not None and t.is_integral(other):
            return f"{'date_add' if node.op == '+' else 'date_sub'}({shown}, {added})"
        return None

    def _is_boolean(self, node: ast.IsBoolean) -> str:
        operand = self.text(node.operand)
        if node.value is None:
            return f"({operand} IS {'NOT ' if node.negated else ''}NULL)"
        return self._negated(f"({operand} <=> {'true' if node.value else 'false'})", node.negated)

    def _like(self, node: ast.Like) -> str:
        operand, pattern = self.text(node.operand), self.text(node.pattern)
        if node.kind == "LIKE":
            escape = "" if node.escape in (None, "\\") else f" ESCAPE '{node.escape}'"
            inner = f"{operand} LIKE {pattern}{escape}"
            return self._negated(inner, node.negated)
        inner = f"ilike({operand}, {pattern})" if node.kind == "ILIKE" else f"RLIKE({operand}, {pattern})"
        return self._negated(inner, node.negated)

    def _case(self, node: ast.Case) -> str:
        parts = ["CASE"]
        for when in node.branches:
            condition = self.text(when.condition)
            if node.operand is not None:
                condition = f"({self.text(node.operand)} = {condition})"
            parts.append(f"WHEN {condition} THEN {self.text(when.result)}")
        if node.otherwise is not None:
            parts.append(f"ELSE {self.text(node.otherwise)}")
        return " ".join([*parts, "END"])

    def _trim(self, node: ast.Trim) -> str:
        side = node.side.upper() or "BOTH"
        source = self.text(node.source)
        if node.characters is not None:
            return f"TRIM({side} {self.text(node.characters)} FROM {source})"
        return {"LEADING": f"ltrim({source})", "TRAILING": f"rtrim({source})"}.get(side, f"trim({source})")

    def _call(self, node: ast.Call) -> str:
        name = node.name[-1].lower()
        if name in ("first", "last", "any_value", *PICKS) and len(node.arguments) == 2:
            # Spark does not show whether NULLs are ignored
            node = replace(node, arguments=node.arguments[:1])
        texts = [self.text(a) for a in node.arguments]
        special = special_text(name, texts)
        if special is not None:
            return special
        arguments = ", ".join(texts)
        if node.distinct and isinstance(node.arguments[0], ast.Star):
            arguments = self._context.shown_star()
        arguments += default_arguments(name, len(node.arguments))
        shown = shown_function(name, ignores_nulls=node.nulls == "IGNORE")
        text = f"{shown}({'DISTINCT ' if node.distinct else ''}{arguments})"
        if node.filter is not None:
            text += f" FILTER (WHERE {self.text(node.filter)})"
        spec = None if node.over is None else self._context.window_of(node.over)
        if spec is not None:
            text += f" OVER ({self._window(spec, name, node)})"
        return text

    def _window(self, spec: ast.WindowSpec, name: str, call: ast.Call) -> str:
        parts = []
        if spec.partition_by:
            parts.append(f"PARTITION BY {self._list(spec.partition_by)}")
        if spec.order_by:
            keys = ", ".join(
                f"{self.text(s.expression)} {'ASC' if s.ascending else 'DESC'} "
                f"NULLS {'FIRST' if s.nulls_first else 'LAST'}"
                for s in spec.order_by
            )
            parts.append(f"ORDER BY {keys}")
        parts.append(self._frame(spec, name, call))
        return " ".join(parts)

    def _frame(self, spec: ast.WindowSpec, name: str, call: ast.Call) -> str:
        if spec.frame is not None:
            unit = spec.frame.unit
            key = spec.order_by[0].expression if spec.order_by and unit.upper() == "RANGE" else None
            low, high = (self._bound(bound, key) for bound in (spec.frame.start, spec.frame.end))
        elif name in ("row_number", "rank", "dense_rank", "percent_rank", "ntile"):
            unit, low, high = "ROWS", "UNBOUNDED PRECEDING", "CURRENT ROW"
        elif name == "cume_dist":
            unit, low, high = "RANGE", "UNBOUNDED PRECEDING", "CURRENT ROW"
        elif name in ("lag", "lead"):
            written = self.text(call.arguments[1]) if len(call.arguments) > 1 else "1"
            offset = f"-{written}" if name == "lag" else written
            unit, low, high = "ROWS", f"{offset} FOLLOWING", f"{offset} FOLLOWING"
        elif spec.order_by:
            unit, low, high = "RANGE", "UNBOUNDED PRECEDING", "CURRENT ROW"
        else:
            unit, low, high = "ROWS", "UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"
        return f"{unit} BETWEEN {low} AND {high}"

    def _bound(self, bound: ast.FrameBound, key: ast.Expression | None) -> str:
        if bound.offset is None:
            return bound.kind
        offset = self.text(bound.offset)
        if bound.kind == "PRECEDING":
            # Spark negates the offset, and shows that when it casts it to the key's type
            return f"(- {offset}) FOLLOWING" if self._is_cast(bound.offset, key) else f"{offset} PRECEDING"
        return f"{offset} FOLLOWING"

    def _is_cast(self, offset: ast.Expression, key: ast.Expression | None) -> bool:
        if key is None:
            return False
        given, wanted = self._context.dtype_of(offset), self._context.dtype_of(key)
        return given is not None and t.is_numeric(given) and t.is_numeric(wanted) and given != wanted


def type_text(node: TypeNode) -> str:
    """A type as Spark's ``DataType.sql`` writes it."""
    if isinstance(node, NamedType) and node.name.lower() in ("char", "varchar"):
        return "STRING"
    return to_sql(node).upper().replace(", ", ",")


def _is_interval(node: ast.Expression) -> bool:
    """Whether an expression is an interval by its own text: a literal, or arithmetic with one."""
    if isinstance(node, ast.Binary):
        return node.op in ("+", "-", "*", "/") and (_is_interval(node.left) or _is_interval(node.right))
    return isinstance(node, ast.IntervalLiteral)

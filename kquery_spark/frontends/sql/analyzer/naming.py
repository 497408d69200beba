"""The names Spark gives columns that have no alias: the expression, written back in its own way."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.types import TypeNode
from kquery_spark.frontends.sql.intervals import interval_to_sql
from kquery_spark.frontends.sql.printer import to_sql

Shown = Callable[[ast.Name], str]

# Functions that Spark shows in upper case, whichever way they were written.
_UPPER = frozenset({"power", "atan2", "log10", "cbrt", "sqrt", "exp", "expm1", "log2", "log1p"})


def column_name(node: ast.Expression, shown: Shown) -> str:
    """The name of an output column; ``shown`` says how a resolved name prints."""
    match node:
        case ast.Aliased():
            return node.alias
        case ast.Name():
            return node.parts[-1]
        case ast.Field():
            return node.name
    return _Writer(shown).text(node)


class _Writer:
    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def text(self, node: ast.Expression) -> str:
        match node:
            case ast.Name():
                return self._shown(node)
            case ast.Aliased():
                return f"{self.text(node.expression)} AS {node.alias}"
            case ast.StringLiteral():
                return node.value
            case ast.NullLiteral():
                return "NULL"
            case ast.BooleanLiteral():
                return "true" if node.value else "false"
            case ast.IntegerLiteral():
                return str(node.value)
            case ast.DecimalLiteral():
                return f"{node.value:f}"
            case ast.FloatingLiteral():
                return java_double(node.value)
            case ast.BinaryLiteral():
                return f"X'{node.value.hex().upper()}'"
            case ast.TypedLiteral():
                return f"{node.type.upper()} '{node.text}'"
            case ast.IntervalLiteral():
                return interval_to_sql(node)
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
                return self._negated(f"({self.text(node.operand)} IN (listquery()))", node.negated)
            case ast.Exists():
                return "exists()"
            case ast.ScalarSubquery():
                return "scalarsubquery()"
            case ast.Between():
                inner = f"between({self.text(node.operand)}, {self.text(node.low)}, {self.text(node.high)})"
                return self._negated(inner, node.negated)
            case ast.Like():
                return self._like(node)
            case ast.Case():
                return self._case(node)
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
                return f"{self.text(node.base)}[{self.text(node.index)}]"
            case ast.Row():
                return f"struct({self._list(node.items)})"
            case ast.Call():
                return self._call(node)
        return to_sql(node)

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
        if node.op in ("<>", "!="):
            return f"(NOT ({left} = {right}))"
        if node.op == "||":
            return f"concat({left}, {right})"
        op = {"==": "=", "DIV": "div"}.get(node.op, node.op)
        return f"({left} {op} {right})"

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
        arguments = self._list(node.arguments)
        if name == "if" and len(node.arguments) == 3:
            return f"(IF({arguments}))"
        shown = name.upper() if name in _UPPER else name
        text = f"{shown}({'DISTINCT ' if node.distinct else ''}{arguments})"
        if node.filter is not None:
            text += f" FILTER (WHERE {self.text(node.filter)})"
        if node.nulls == "IGNORE":
            text += " ignore nulls"
        if isinstance(node.over, ast.WindowSpec):
            text += f" OVER ({self._window(node.over, name)})"
        return text

    def _window(self, spec: ast.WindowSpec, name: str) -> str:
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
        parts.append(self._frame(spec, name))
        return " ".join(parts)

    def _frame(self, spec: ast.WindowSpec, name: str) -> str:
        if spec.frame is not None:
            unit, low, high = spec.frame.unit, self._bound(spec.frame.start), self._bound(spec.frame.end)
        elif name in ("row_number", "rank", "dense_rank", "percent_rank", "ntile"):
            unit, low, high = "ROWS", "UNBOUNDED PRECEDING", "CURRENT ROW"
        elif name == "cume_dist":
            unit, low, high = "RANGE", "UNBOUNDED PRECEDING", "CURRENT ROW"
        elif name in ("lag", "lead"):
            offset = "-1" if name == "lag" else "1"
            unit, low, high = "ROWS", f"{offset} FOLLOWING", f"{offset} FOLLOWING"
        elif spec.order_by:
            unit, low, high = "RANGE", "UNBOUNDED PRECEDING", "CURRENT ROW"
        else:
            unit, low, high = "ROWS", "UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"
        return f"{unit} BETWEEN {low} AND {high}"

    def _bound(self, bound: ast.FrameBound) -> str:
        if bound.offset is None:
            return bound.kind
        offset = self.text(bound.offset)
        if bound.kind == "PRECEDING":
            return f"(- {offset}) FOLLOWING" if not offset.isdigit() else f"{offset} PRECEDING"
        return f"{offset} FOLLOWING"


def type_text(node: TypeNode) -> str:
    """A type as Spark's ``DataType.sql`` writes it."""
    return to_sql(node).upper().replace(", ", ",")


def java_double(value: float) -> str:
    """A double as Java prints it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    size = abs(value)
    if value == 0 or 1e-3 <= size < 1e7:
        return repr(float(value))
    mantissa, exponent = f"{value:e}".split("e")
    digits = repr(float(value))
    if "e" in digits:
        mantissa, exponent = digits.split("e")
    else:
        sign, number, power = Decimal(digits).normalize().as_tuple()
        text = "".join(map(str, number))
        mantissa = f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}"
        exponent = str(int(power) + len(text) - 1)
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"

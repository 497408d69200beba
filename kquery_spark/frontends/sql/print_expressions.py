"""The part of the printer that converts expressions and types to SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import singledispatch

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import types as t
from kquery_spark.frontends.sql.ast import windows as window_ast
from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.frontends.sql.intervals import interval_to_sql
from kquery_spark.frontends.sql.keywords import OPERATORS, QUOTED_WHEN_PRINTED

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SUFFIX = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L", "float": "F", "double": "D"}
# What may stand beside an operator without parentheses.
_ATOMS = (
    e.NullLiteral,
    e.BooleanLiteral,
    e.StringLiteral,
    e.BinaryLiteral,
    e.Name,
    e.Field,
    e.Subscript,
    e.Row,
    e.Call,
    e.CaseExpression,
    e.Cast,
    e.Extract,
    e.Trim,
    e.ScalarSubquery,
)


@singledispatch
def render(node: Node) -> str:
    """SQL that parses to ``node`` again."""
    raise TypeError(f"{type(node).__name__} cannot be printed")


def name_to_sql(name: str) -> str:
    """A name, in backticks unless it can only be read as a name."""
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in QUOTED_WHEN_PRINTED:
        return name
    return "`" + name.replace("`", "``") + "`"


def names_to_sql(names: Iterable[str], separator: str = ", ") -> str:
    """Several names."""
    return separator.join(name_to_sql(name) for name in names)


def string_to_sql(text: str) -> str:
    """A quoted string."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def commas(nodes: Iterable[Node]) -> str:
    """Nodes separated by commas."""
    return ", ".join(render(node) for node in nodes)


def operand(node: Node) -> str:
    """A node beside an operator, in parentheses unless it needs none."""
    return render(node) if isinstance(node, _ATOMS) else f"({render(node)})"


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


# --- literals --------------------------------------------------------------------------------------


@render.register
def _(node: e.NullLiteral) -> str:
    return "NULL"


@render.register
def _(node: e.BooleanLiteral) -> str:
    return "TRUE" if node.value else "FALSE"


@render.register
def _(node: e.StringLiteral) -> str:
    return string_to_sql(node.value)


@render.register
def _(node: e.IntegerLiteral) -> str:
    return f"{node.value}{_SUFFIX[node.type]}"


@render.register
def _(node: e.DecimalLiteral) -> str:
    sign, digits = "-" if node.unscaled < 0 else "", str(abs(node.unscaled)).rjust(node.scale + 1, "0")
    if node.scale == 0:
        return f"{sign}{digits}BD"
    return f"{sign}{digits[: -node.scale]}.{digits[-node.scale :]}"


@render.register
def _(node: e.FloatingLiteral) -> str:
    return f"{node.value!r}{_SUFFIX[node.type]}"


@render.register
def _(node: e.BinaryLiteral) -> str:
    return f"X'{node.value.hex().upper()}'"


@render.register
def _(node: e.TypedLiteral) -> str:
    return f"{node.type.upper()} {string_to_sql(node.text)}"


@render.register
def _(node: e.IntervalLiteral) -> str:
    return interval_to_sql(node)


# --- names and access ------------------------------------------------------------------------------


@render.register
def _(node: e.Name) -> str:
    return names_to_sql(node.parts, ".")


@render.register
def _(node: e.Star) -> str:
    qualifier = names_to_sql(node.qualifier, ".") + "." if node.qualifier else ""
    excluded = ", ".join(names_to_sql(name, ".") for name in node.excluded)
    return f"{qualifier}*" + (f" EXCEPT ({excluded})" if excluded else "")


@render.register
def _(node: e.Field) -> str:
    return f"{operand(node.base)}.{name_to_sql(node.name)}"


@render.register
def _(node: e.Subscript) -> str:
    return f"{operand(node.base)}[{operand(node.index)}]"


@render.register
def _(node: e.Aliased) -> str:
    return f"{render(node.expression)} AS {name_to_sql(node.alias)}"


@render.register
def _(node: e.MultiAliased) -> str:
    return f"{render(node.expression)} AS ({names_to_sql(node.aliases)})"


# --- operators and predicates ----------------------------------------------------------------------


@render.register
def _(node: e.Unary) -> str:
    return f"{node.op}{operand(node.operand)}"


@render.register
def _(node: e.Binary) -> str:
    # Chains of one rank stay flat, so that long ones do not nest parentheses.
    flat = isinstance(node.left, e.Binary) and OPERATORS[node.left.op] == OPERATORS[node.op]
    left = render(node.left) if flat else operand(node.left)
    return f"{left} {node.op} {operand(node.right)}"


@render.register
def _(node: e.And) -> str:
    return " AND ".join(operand(term) for term in node.terms)


@render.register
def _(node: e.Or) -> str:
    return " OR ".join(operand(term) for term in node.terms)


@render.register
def _(node: e.Not) -> str:
    return f"NOT {operand(node.operand)}"


@render.register
def _(node: e.IsNull) -> str:
    return f"{operand(node.operand)} IS {_not(node.negated)}NULL"


@render.register
def _(node: e.IsBoolean) -> str:
    value = "UNKNOWN" if node.value is None else str(node.value).upper()
    return f"{operand(node.operand)} IS {_not(node.negated)}{value}"


@render.register
def _(node: e.IsDistinct) -> str:
    return f"{operand(node.left)} IS {_not(node.negated)}DISTINCT FROM {operand(node.right)}"


@render.register
def _(node: e.InList) -> str:
    return f"{operand(node.operand)} {_not(node.negated)}IN ({commas(node.items)})"


@render.register
def _(node: e.InSubquery) -> str:
    return f"{operand(node.operand)} {_not(node.negated)}IN ({render(node.query)})"


@render.register
def _(node: e.Between) -> str:
    bounds = f"{operand(node.low)} AND {operand(node.high)}"
    return f"{operand(node.operand)} {_not(node.negated)}BETWEEN {bounds}"


@render.register
def _(node: e.Like) -> str:
    escape = "" if node.escape is None else f" ESCAPE {string_to_sql(node.escape)}"
    return f"{operand(node.operand)} {_not(node.negated)}{node.kind} {operand(node.pattern)}{escape}"


@render.register
def _(node: e.LikeQuantified) -> str:
    kind = f"{_not(node.negated)}{node.kind} {node.quantifier}"
    return f"{operand(node.operand)} {kind} ({commas(node.patterns)})"


@render.register
def _(node: e.Exists) -> str:
    return f"EXISTS ({render(node.query)})"


@render.register
def _(node: e.ScalarSubquery) -> str:
    return f"({render(node.query)})"


# --- forms and calls -------------------------------------------------------------------------------


@render.register
def _(node: e.CaseExpression) -> str:
    operand_text = "" if node.operand is None else f" {render(node.operand)}"
    branches = "".join(f" WHEN {render(b.condition)} THEN {render(b.result)}" for b in node.branches)
    otherwise = "" if node.otherwise is None else f" ELSE {render(node.otherwise)}"
    return f"CASE{operand_text}{branches}{otherwise} END"


@render.register
def _(node: e.Cast) -> str:
    return f"{'TRY_CAST' if node.is_try else 'CAST'}({render(node.operand)} AS {render(node.type)})"


@render.register
def _(node: e.Extract) -> str:
    return f"EXTRACT({name_to_sql(node.field)} FROM {operand(node.source)})"


@render.register
def _(node: e.Trim) -> str:
    characters = "" if node.characters is None else f"{operand(node.characters)} "
    return f"TRIM({node.side} {characters}FROM {operand(node.source)})"


@render.register
def _(node: e.Row) -> str:
    return f"({commas(node.items)})"


@render.register
def _(node: e.Lambda) -> str:
    parameters = names_to_sql(node.parameters)
    return f"{parameters if len(node.parameters) == 1 else f'({parameters})'} -> {render(node.body)}"


@render.register
def _(node: e.NamedArgument) -> str:
    return f"{name_to_sql(node.name)} => {render(node.value)}"


@render.register
def _(node: e.DateTimeUnit) -> str:
    return node.unit


@render.register
def _(node: e.Call) -> str:
    # In backticks these names would lose their own syntax: aliases in struct, units in timestampadd.
    is_form = node.name[-1].upper() == "STRUCT" or any(isinstance(x, e.DateTimeUnit) for x in node.arguments)
    name = ".".join(node.name) if is_form and len(node.name) == 1 else names_to_sql(node.name, ".")
    text = f"{name}({'DISTINCT ' if node.distinct else ''}{commas(node.arguments)})"
    if node.within_group:
        text += f" WITHIN GROUP (ORDER BY {commas(node.within_group)})"
    if node.filter is not None:
        text += f" FILTER (WHERE {render(node.filter)})"
    if node.nulls is not None:
        text += f" {node.nulls} NULLS"
    return text if node.over is None else f"{text} OVER {render(node.over)}"


@render.register
def _(node: e.SortItem) -> str:
    text = render(node.expression) + ("" if node.ascending else " DESC")
    if node.nulls_first != node.ascending:
        text += " NULLS FIRST" if node.nulls_first else " NULLS LAST"
    return text


@render.register
def _(node: window_ast.WindowName) -> str:
    return name_to_sql(node.name)


@render.register
def _(node: window_ast.WindowSpec) -> str:
    parts = []
    if node.partition_by:
        parts.append(f"PARTITION BY {commas(node.partition_by)}")
    if node.order_by:
        parts.append(f"ORDER BY {commas(node.order_by)}")
    if node.frame is not None:
        parts.append(f"{node.frame.unit} BETWEEN {render(node.frame.start)} AND {render(node.frame.end)}")
    return f"({' '.join(parts)})"


@render.register
def _(node: window_ast.FrameBound) -> str:
    return node.kind if node.offset is None else f"{operand(node.offset)} {node.kind}"


# --- types -----------------------------------------------------------------------------------------


@render.register
def _(node: t.NamedType) -> str:
    return node.name + (f"({', '.join(map(str, node.parameters))})" if node.parameters else "")


@render.register
def _(node: t.ArrayType) -> str:
    return f"array<{render(node.element)}>"


@render.register
def _(node: t.MapType) -> str:
    return f"map<{render(node.key)}, {render(node.value)}>"


@render.register
def _(node: t.StructType) -> str:
    fields = (
        f"{name_to_sql(f.name)}: {render(f.type)}{'' if f.nullable else ' NOT NULL'}" for f in node.fields
    )
    return f"struct<{', '.join(fields)}>"


@render.register
def _(node: t.IntervalType) -> str:
    return f"interval {node.start}" + ("" if node.start == node.end else f" TO {node.end}")

"""Prints names, field access, predicates, subqueries, CASE and CAST in column names."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.frontends.sql.analyzer.naming.context import LAMBDA_VARIABLE, LambdaContext
from kquery_spark.frontends.sql.analyzer.naming.writer import PRINTERS, NameWriter, negated
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.queries import Query
from kquery_spark.frontends.sql.ast.types import ArrayType, MapType, NamedType, StructType, TypeNode
from kquery_spark.frontends.sql.printer import to_sql
from kquery_spark.types import names as t

# --- names and access ------------------------------------------------------------------------------


@PRINTERS.handles(ast.Name)
def name(writer: NameWriter, node: ast.Name) -> str:
    """A resolved name."""
    return writer.context.name_text(node)


@PRINTERS.handles(ast.Star)
def star(writer: NameWriter, node: ast.Star) -> str:
    """The ``*`` of ``count(*)``."""
    return "1"


@PRINTERS.handles(ast.Aliased)
def aliased(writer: NameWriter, node: ast.Aliased) -> str:
    """``x AS name``."""
    return f"{writer.text(node.expression)} AS {node.alias}"


@PRINTERS.handles(ast.Lambda)
def lambda_(writer: NameWriter, node: ast.Lambda) -> str:
    """``x -> body``, without the parameters' names."""
    body = NameWriter(LambdaContext(writer.context, node.parameters)).text(node.body)
    return f"lambdafunction({body}, {', '.join(LAMBDA_VARIABLE for _ in node.parameters)})"


@PRINTERS.handles(ast.Field)
def field(writer: NameWriter, node: ast.Field) -> str:
    """``base.name``."""
    return f"{writer.text(node.base)}.{node.name}"


@PRINTERS.handles(ast.Subscript)
def subscript(writer: NameWriter, node: ast.Subscript) -> str:
    """``base[index]``, or ``base.name`` if the subscript is the name of a field."""
    base, index = writer.text(node.base), writer.text(node.index)
    return f"{base}.{index}" if _is_field_access(writer, node) else f"{base}[{index}]"


def _is_field_access(writer: NameWriter, node: ast.Subscript) -> bool:
    """True if a subscript names a field of a struct, or of every struct in an array."""
    if not isinstance(node.index, ast.StringLiteral):
        return False
    dtype = writer.context.dtype_of(node.base) or t.NULL
    if pa.types.is_list(dtype) and not pa.types.is_map(dtype):
        dtype = dtype.value_type
    return bool(pa.types.is_struct(dtype))


@PRINTERS.handles(ast.Row)
def row(writer: NameWriter, node: ast.Row) -> str:
    """``(a, b)``, printed as a struct."""
    fields = (
        f"{_field_name(item, position)}, {writer.text(item)}" for position, item in enumerate(node.items, 1)
    )
    return f"named_struct({', '.join(fields)})"


def _field_name(node: ast.Expression, position: int) -> str:
    match node:
        case ast.Aliased():
            return node.alias
        case ast.Name():
            return node.parts[-1]
    return f"col{position}"


# --- predicates ------------------------------------------------------------------------------------


@PRINTERS.handles(ast.IsNull)
def is_null(writer: NameWriter, node: ast.IsNull) -> str:
    """``x IS [NOT] NULL``."""
    return f"({writer.text(node.operand)} IS {'NOT ' if node.negated else ''}NULL)"


@PRINTERS.handles(ast.IsBoolean)
def is_boolean(writer: NameWriter, node: ast.IsBoolean) -> str:
    """``x IS TRUE`` as a comparison; ``x IS UNKNOWN`` as IS NULL."""
    operand = writer.text(node.operand)
    if node.value is None:
        return f"({operand} IS {'NOT ' if node.negated else ''}NULL)"
    return negated(f"({operand} <=> {'true' if node.value else 'false'})", node.negated)


@PRINTERS.handles(ast.IsDistinct)
def is_distinct(writer: NameWriter, node: ast.IsDistinct) -> str:
    """``x IS DISTINCT FROM y`` as a comparison."""
    return negated(f"({writer.text(node.left)} <=> {writer.text(node.right)})", not node.negated)


@PRINTERS.handles(ast.InList)
def in_list(writer: NameWriter, node: ast.InList) -> str:
    """``x IN (a, b)``."""
    text = f"({writer.text(node.operand)} IN ({writer.comma_separated(node.items)}))"
    return negated(text, node.negated)


@PRINTERS.handles(ast.Between)
def between(writer: NameWriter, node: ast.Between) -> str:
    """``x BETWEEN low AND high`` as a call."""
    return negated(f"between({writer.comma_separated((node.operand, node.low, node.high))})", node.negated)


@PRINTERS.handles(ast.Like)
def like(writer: NameWriter, node: ast.Like) -> str:
    """LIKE as written; ILIKE and RLIKE as calls."""
    operand, pattern = writer.text(node.operand), writer.text(node.pattern)
    if node.kind == "LIKE":
        escape = "" if node.escape in (None, "\\") else f" ESCAPE '{node.escape}'"
        return negated(f"{operand} LIKE {pattern}{escape}", node.negated)
    function = "ilike" if node.kind == "ILIKE" else "RLIKE"
    return negated(f"{function}({operand}, {pattern})", node.negated)


@PRINTERS.handles(ast.LikeQuantified)
def like_quantified(writer: NameWriter, node: ast.LikeQuantified) -> str:
    """``x LIKE ANY (patterns)`` without the patterns; other kinds as written."""
    if node.kind != "LIKE":
        return to_sql(node)
    quantifier = "all" if node.quantifier.upper() == "ALL" else "any"
    return f"{'not' if node.negated else ''}like{quantifier}({writer.text(node.operand)})"


# --- subqueries ------------------------------------------------------------------------------------


@PRINTERS.handles(ast.InSubquery)
def in_subquery(writer: NameWriter, node: ast.InSubquery) -> str:
    """``x IN (query)``."""
    text = f"({_compared_values(writer, node.operand)} IN ({_subquery(writer, 'listquery', node.query)}))"
    return negated(text, node.negated)


@PRINTERS.handles(ast.Exists)
def exists(writer: NameWriter, node: ast.Exists) -> str:
    """``EXISTS (query)``."""
    return _subquery(writer, "exists", node.query)


@PRINTERS.handles(ast.ScalarSubquery)
def scalar_subquery(writer: NameWriter, node: ast.ScalarSubquery) -> str:
    """``(query)`` as a value."""
    return _subquery(writer, "scalarsubquery", node.query)


def _subquery(writer: NameWriter, word: str, query: Query) -> str:
    return f"{word}({', '.join(writer.context.captured_names(query))})"


def _compared_values(writer: NameWriter, node: ast.Expression) -> str:
    """Print the values that are compared with a subquery's rows; several values are a struct with quoted names."""
    if not isinstance(node, ast.Row):
        return writer.text(node)
    fields = []
    for i, item in enumerate(node.items):
        text = writer.text(item)
        names_itself = isinstance(
            item, ast.Name | ast.Field | ast.StringLiteral | ast.IntegerLiteral | ast.DecimalLiteral
        )
        fields.append(f"'{text if names_itself else f'_{i}'}', {text}")
    return f"named_struct({', '.join(fields)})"


# --- CASE and CAST ---------------------------------------------------------------------------------


@PRINTERS.handles(ast.CaseExpression)
def case(writer: NameWriter, node: ast.CaseExpression) -> str:
    """CASE; if it has an operand, the comparisons with it are printed."""
    parts = ["CASE"]
    for when in node.branches:
        condition = writer.text(when.condition)
        if node.operand is not None:
            condition = f"({writer.text(node.operand)} = {condition})"
        parts.append(f"WHEN {condition} THEN {writer.text(when.result)}")
    if node.otherwise is not None:
        parts.append(f"ELSE {writer.text(node.otherwise)}")
    return " ".join([*parts, "END"])


@PRINTERS.handles(ast.Cast)
def cast(writer: NameWriter, node: ast.Cast) -> str:
    """``CAST(x AS type)``; casts to nested types are not printed."""
    if isinstance(node.type, ArrayType | MapType | StructType):
        return writer.text(node.operand)
    word = "TRY_CAST" if node.is_try else "CAST"
    return f"{word}({writer.text(node.operand)} AS {type_text(node.type)})"


def type_text(node: TypeNode) -> str:
    """A type as Spark's ``DataType.sql`` writes it."""
    if isinstance(node, NamedType) and node.name.lower() in ("char", "varchar"):
        return "STRING"
    return to_sql(node).upper().replace(", ", ",")

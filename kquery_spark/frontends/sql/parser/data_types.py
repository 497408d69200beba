"""Data types in CAST, ``::``, and schema strings."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.frontends.sql.ast.types import (
    ArrayType,
    IntervalType,
    MapType,
    NamedType,
    StructField,
    StructType,
    TypeNode,
)
from kquery_spark.frontends.sql.parser.token_stream import TokenStream
from kquery_spark.frontends.sql.parser.tokens import Kind

#: Every name of a type that is not nested, and its canonical name.
TYPE_NAMES = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "BYTE": "tinyint",
    "SMALLINT": "smallint",
    "SHORT": "smallint",
    "INT": "int",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "LONG": "bigint",
    "FLOAT": "float",
    "REAL": "float",
    "DOUBLE": "double",
    "DECIMAL": "decimal",
    "DEC": "decimal",
    "NUMERIC": "decimal",
    "STRING": "string",
    "CHAR": "char",
    "CHARACTER": "char",
    "VARCHAR": "varchar",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
    "VOID": "void",
}
_NOT_SUPPORTED = frozenset({"TIME", "VARIANT", "GEOMETRY", "GEOGRAPHY"})
_YEAR_MONTH = ("YEAR", "MONTH")
_DAY_TIME = ("DAY", "HOUR", "MINUTE", "SECOND")


def parse_data_type(stream: TokenStream) -> TypeNode:
    """Read one type."""
    with stream.nested():
        token = stream.token
        if token.kind is not Kind.WORD:
            stream.fail_expected("a data type")
        if token.upper in ("ARRAY", "MAP", "STRUCT"):
            return _parse_nested_type(stream)
        if token.upper == "INTERVAL":
            return _parse_interval_type(stream)
        if token.upper in _NOT_SUPPORTED:
            stream.fail(f"the type {token.upper} is not supported")
        if token.upper not in TYPE_NAMES:
            stream.fail(f"{token.value} is not a data type")
        stream.advance()
        return _parse_parameters(stream, TYPE_NAMES[token.upper], token.pos)


def _parse_parameters(stream: TokenStream, name: str, pos: int) -> NamedType:
    parameters: tuple[int, ...] = ()
    parameters_pos = stream.token.pos
    if stream.take_op("("):
        parameters = stream.comma_separated(lambda tokens: tokens.integer("a number"))
        stream.expect_op(")")
    if name == "decimal":
        return NamedType(name, _decimal_parameters(stream, parameters, parameters_pos), pos=pos)
    if name in ("char", "varchar"):
        if len(parameters) != 1 or parameters[0] < 1:
            stream.fail(f"{name} needs a length, as in {name}(10)", pos)
    elif parameters:
        stream.fail(f"{name} takes no length", parameters_pos)
    if (
        name == "string"
        and stream.take_word("COLLATE")
        and stream.name("a collation").upper() != "UTF8_BINARY"
    ):
        stream.fail("collations other than UTF8_BINARY are not supported", pos)
    return NamedType(name, parameters, pos=pos)


def _decimal_parameters(stream: TokenStream, written: tuple[int, ...], pos: int) -> tuple[int, int]:
    """Return precision and scale; the defaults are 10 and 0."""
    if len(written) > 2:
        stream.fail("decimal takes a precision and a scale", pos)
    precision, scale = (*written, *(10, 0)[len(written) :])
    if not (1 <= precision <= 38 and scale <= precision):
        stream.fail("a decimal's precision is 1 to 38 and its scale not larger than that", pos)
    return precision, scale


def _parse_nested_type(stream: TokenStream) -> TypeNode:
    token = stream.advance()
    if token.upper == "STRUCT" and stream.take_op("<>"):
        return StructType((), pos=token.pos)
    if not stream.at_op("<"):
        stream.fail(f"{token.upper} needs its element types, as in {token.upper}<...>", token.pos)
    stream.advance()
    nested: TypeNode
    if token.upper == "ARRAY":
        nested = ArrayType(parse_data_type(stream), pos=token.pos)
    elif token.upper == "MAP":
        key = parse_data_type(stream)
        stream.expect_op(",")
        nested = MapType(key, parse_data_type(stream), pos=token.pos)
    else:
        no_fields = stream.at_op(">")
        nested = StructType(() if no_fields else stream.comma_separated(_parse_struct_field), pos=token.pos)
    _expect_closing_angle(stream)
    return nested


def _parse_struct_field(stream: TokenStream) -> StructField:
    pos = stream.token.pos
    name = stream.name("a field's name")
    stream.take_op(":")
    kind = parse_data_type(stream)
    nullable = not stream.take_word("NOT", "NULL")
    if stream.take_word("COMMENT"):
        if stream.token.kind is not Kind.STRING:
            stream.fail_expected("a string after COMMENT")
        stream.advance()
    return StructField(name, kind, nullable, pos=pos)


def _expect_closing_angle(stream: TokenStream) -> None:
    """Read one ``>``, even if the tokenizer combined it with the characters after it (``>>``, ``>=``)."""
    token = stream.token
    if token.kind is Kind.OP and token.value in (">>", ">>>", ">="):
        stream.tokens[stream.index] = replace(token, value=token.value[1:], pos=token.pos + 1)
        return
    stream.expect_op(">")


def _parse_interval_type(stream: TokenStream) -> IntervalType:
    pos = stream.advance().pos
    for units in (_YEAR_MONTH, _DAY_TIME):
        if not stream.at_any(units):
            continue
        start = end = stream.advance().upper
        if stream.at_word("TO"):
            stream.advance()
            if not stream.at_any(units) or units.index(stream.token.upper) <= units.index(start):
                stream.fail(f"unknown interval {start} TO {stream.token.value.upper()}")
            end = stream.advance().upper
        return IntervalType(start, end, pos=pos)
    stream.fail("an interval type needs its unit, as in INTERVAL DAY TO SECOND", pos)

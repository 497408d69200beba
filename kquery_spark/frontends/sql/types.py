"""Data types as they are written in CAST, ``::`` and schema strings."""

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
from kquery_spark.frontends.sql.cursor import Cursor
from kquery_spark.frontends.sql.tokens import Kind

#: Every spelling of a plain type and its canonical name.
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


class TypeParser(Cursor):
    """Reads data types."""

    def data_type(self) -> TypeNode:
        """Read one type."""
        with self.nested():
            token = self.token
            if token.kind is not Kind.WORD:
                self.fail_expected("a data type")
            if token.upper in ("ARRAY", "MAP", "STRUCT"):
                return self._nested_type()
            if token.upper == "INTERVAL":
                return self._interval_type()
            if token.upper in _NOT_SUPPORTED:
                self.fail(f"the type {token.upper} is not supported")
            if token.upper not in TYPE_NAMES:
                self.fail(f"{token.value} is not a data type")
            self.advance()
            return self._with_parameters(TYPE_NAMES[token.upper], token.pos)

    def _with_parameters(self, name: str, pos: int) -> NamedType:
        parameters: tuple[int, ...] = ()
        parameters_pos = self.token.pos
        if self.take_op("("):
            parameters = self.comma_separated(lambda: self.integer("a number"))
            self.expect_op(")")
        if name == "decimal":
            return NamedType(name, self._decimal_parameters(parameters, parameters_pos), pos=pos)
        if name in ("char", "varchar"):
            if len(parameters) != 1 or parameters[0] < 1:
                self.fail(f"{name} needs a length, as in {name}(10)", pos)
        elif parameters:
            self.fail(f"{name} takes no length", parameters_pos)
        if (
            name == "string"
            and self.take_word("COLLATE")
            and self.name("a collation").upper() != "UTF8_BINARY"
        ):
            self.fail("collations other than UTF8_BINARY are not supported", pos)
        return NamedType(name, parameters, pos=pos)

    def _decimal_parameters(self, written: tuple[int, ...], pos: int) -> tuple[int, int]:
        """Precision and scale, 10 and 0 where they are not written."""
        if len(written) > 2:
            self.fail("decimal takes a precision and a scale", pos)
        precision, scale = (*written, *(10, 0)[len(written) :])
        if not (1 <= precision <= 38 and scale <= precision):
            self.fail("a decimal's precision is 1 to 38 and its scale not larger than that", pos)
        return precision, scale

    def _nested_type(self) -> TypeNode:
        token = self.advance()
        if token.upper == "STRUCT" and self.take_op("<>"):
            return StructType((), pos=token.pos)
        if not self.at_op("<"):
            self.fail(f"{token.upper} needs its element types, as in {token.upper}<...>", token.pos)
        self.advance()
        nested: TypeNode
        if token.upper == "ARRAY":
            nested = ArrayType(self.data_type(), pos=token.pos)
        elif token.upper == "MAP":
            key = self.data_type()
            self.expect_op(",")
            nested = MapType(key, self.data_type(), pos=token.pos)
        else:
            no_fields = self.at_op(">")
            nested = StructType(() if no_fields else self.comma_separated(self._struct_field), pos=token.pos)
        self._close_angle()
        return nested

    def _struct_field(self) -> StructField:
        pos = self.token.pos
        name = self.name("a field's name")
        self.take_op(":")
        kind = self.data_type()
        nullable = not self.take_word("NOT", "NULL")
        if self.take_word("COMMENT"):
            if self.token.kind is not Kind.STRING:
                self.fail_expected("a string after COMMENT")
            self.advance()
        return StructField(name, kind, nullable, pos=pos)

    def _close_angle(self) -> None:
        """Read one ``>``, also when the tokenizer has glued it to the next ones."""
        token = self.token
        if token.kind is Kind.OP and token.value in (">>", ">>>", ">="):
            self.tokens[self.index] = replace(token, value=token.value[1:], pos=token.pos + 1)
            return
        self.expect_op(">")

    def _interval_type(self) -> IntervalType:
        pos = self.advance().pos
        for units in (_YEAR_MONTH, _DAY_TIME):
            if not self.at_any(units):
                continue
            start = end = self.advance().upper
            if self.at_word("TO"):
                self.advance()
                if not self.at_any(units) or units.index(self.token.upper) <= units.index(start):
                    self.fail(f"there is no interval {start} TO {self.token.value.upper()}")
                end = self.advance().upper
            return IntervalType(start, end, pos=pos)
        self.fail("an interval type needs its unit, as in INTERVAL DAY TO SECOND", pos)

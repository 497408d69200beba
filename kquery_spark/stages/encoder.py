"""Encodes a plan as a message of ``plan.proto``.

A message has one table per kind of value (strings, integers, types, ...) and a list of blocks. A block has consecutive
objects of one class, or consecutive lists. All values are stored as references into the tables or to earlier objects, so
shared values are written once. Blocks of many objects let the decoder check and create them column by column.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from kquery_spark.errors import SerializationError
from kquery_spark.stages import references as refs
from kquery_spark.stages.arrow_bytes import write_schema, write_table
from kquery_spark.stages.plan_pb2 import Block, EnumMember, Layout, PlanMessage
from kquery_spark.stages.serializable import registry


class Encoder:
    """Encodes one message. It has the tables so far, and the references of values that are already written."""

    def __init__(self) -> None:
        self._registry = registry()
        self._formats = self._registry.formats
        self._message = PlanMessage(version=refs.VERSION)
        self._seen: dict[object, int] = {}
        self._objects: dict[int, tuple[int, int]] = {}  # id -> (reference, depth)
        self._layouts: dict[type, int] = {}
        self._types: list[pa.DataType] = []
        self._count = 0
        self._block = -1  # layout of the open block
        self._start = 0  # its first object
        self._values: list[int] = []
        self._lengths: list[int] = []
        self._strings: list[str] = []
        self._integers: list[int] = []

    def message(self, value: object) -> PlanMessage:
        """Return the message for ``value``."""
        message = self._message
        message.root = self._reference(value) if self._parts(value) is None else self._tree(value)
        self._close()
        message.strings.extend(self._strings)
        message.integers.extend(self._integers)
        if self._types:
            message.types = write_schema(pa.schema([pa.field("", t) for t in self._types]))
        return message

    def _parts(self, value: object) -> tuple[Any, ...] | None:
        """Return the fields of an object or the items of a list; None for all other values."""
        if type(value) is tuple:
            return value
        class_format = self._formats.get(type(value))
        return None if class_format is None else class_format.values(value)

    def _unwritten_parts(self, parts: Iterable[Any]) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return the objects and lists among ``parts`` that are not written yet, with their own parts, in reverse order."""
        objects, formats = self._objects, self._formats
        pending = [
            (p, p if type(p) is tuple else formats[type(p)].values(p))
            for p in parts
            if (type(p) is tuple or type(p) in formats) and id(p) not in objects
        ]
        return pending[::-1]

    def _tree(self, root: object) -> int:
        """Write an object after everything inside of it. Its own stack allows plans that are deeper than Python's stack."""
        objects = self._objects
        stack: list[tuple[Any, tuple[Any, ...]]] = [(root, self._parts(root) or ())]
        while stack:
            value, parts = stack[-1]
            if id(value) in objects:
                stack.pop()
                continue
            inside = self._unwritten_parts(parts)
            if not inside:
                stack.pop()
                self._write(value, parts)
                continue
            stack += inside
            if len(inside) > 1 and type(value) is tuple:
                # Write the parts of all items before the items, so that both form long blocks: for the list of columns
                # (#a + 1, #b + 2), first both columns, then both literals, then both calls.
                stack += self._unwritten_parts(q for _, items in reversed(inside) for q in items)
            if len(stack) > refs.MAX_SIZE:
                raise SerializationError("the plan is too large or contains itself")
        return objects[id(root)][0]

    def _write(self, value: object, parts: tuple[Any, ...]) -> None:
        layout = 0 if type(value) is tuple else self._layout(type(value))
        objects = self._objects
        references, depth, newest = self._references(parts)
        if depth >= refs.MAX_DEPTH:
            raise SerializationError(f"the plan is nested more than {refs.MAX_DEPTH} deep")
        if layout == 0:
            # Equal lists are written once. Empty lists and partition values of files occur many times. If
            # ``setdefault`` returns the number of an older object, an equal list is already written.
            same = (refs.OBJECT, tuple(references))
            reference = self._seen.setdefault(same, self._count << 4 | refs.OBJECT)
            if reference >> 4 < self._count:
                objects[id(value)] = (reference, depth + 1)
                return
        if layout != self._block or newest >= self._start:
            self._close()
            self._block = layout
        self._values += references
        if layout == 0 or not parts:
            self._lengths.append(len(parts))
        objects[id(value)] = (self._count << 4 | refs.OBJECT, depth + 1)
        self._count += 1

    def _references(self, parts: tuple[Any, ...]) -> tuple[list[int], int, int]:
        """Return the references of an object's parts, the depth of the deepest part, and the number of the newest object."""
        objects, seen = self._objects, self._seen
        references, depth, newest = [], 0, -1
        for part in parts:
            if type(part) is str and part in seen:
                references.append(seen[part])
            elif id(part) in objects:
                reference, below = objects[id(part)]
                references.append(reference)
                depth = max(depth, below)
                newest = max(newest, reference >> 4)
            else:
                references.append(self._reference(part))
        return references, depth, newest

    def _close(self) -> None:
        """End the open block, because the next object has another layout or refers to an object in the block."""
        if self._start < self._count:
            block = Block(layout=self._block, values=self._values, lengths=self._lengths)
            self._message.blocks.append(block)
            self._values, self._lengths = [], []
        self._start = self._count

    def _layout(self, cls: type) -> int:
        number = self._layouts.get(cls)
        if number is None:
            class_format = self._formats[cls]
            self._message.layouts.append(Layout(type=class_format.name, fields=class_format.fields))
            number = self._layouts[cls] = len(self._layouts) + 1
        return number

    def _reference(self, value: Any) -> int:
        """Return the reference of a value that is not an object or a list; write it if it is new."""
        kind = type(value)
        if kind is str:
            return self._interned(value, refs.STRING, self._strings)
        if kind is bool:
            return refs.TRUE if value else refs.FALSE
        if value is None:
            return refs.NULL
        if kind is int:
            if -(1 << 63) <= value < 1 << 63:
                return self._interned(value, refs.INTEGER, self._integers)
            return self._intern_number(value, refs.BIG, self._message.big_integers)
        if kind is float:
            # By its bytes: 0.0 and -0.0 are equal, and NaN is not equal to itself.
            return self._intern_by_key((refs.DOUBLE, struct.pack("<d", value)), value, self._message.doubles)
        return self._rare_reference(value, kind)

    def _rare_reference(self, value: Any, kind: type) -> int:
        """Return the reference of a value whose type is rare in plans."""
        if kind is bytes:
            return self._intern_by_key((refs.BLOB, value), value, self._message.blobs)
        if kind is Decimal:
            return self._intern_number(value, refs.DECIMAL, self._message.decimals)
        if kind in self._registry.enum_names:
            # The class is part of the key: members of two string enums can be equal.
            member = EnumMember(type=self._registry.enum_names[kind], name=value.name)
            return self._intern_by_key((refs.ENUM, (kind, value)), member, self._message.enum_members)
        return self._arrow(value)

    def _arrow(self, value: Any) -> int:
        if isinstance(value, pa.DataType):
            # pyarrow ignores names inside of nested types when it compares them, but the names have to be written.
            nested = pa.types.is_nested(value)
            same = write_schema(pa.schema([pa.field("", value)])) if nested else (value.id, str(value))
            return self._intern_by_key((refs.TYPE, same), value, self._types)
        if isinstance(value, pa.Schema):
            reference = self._seen.get((refs.SCHEMA, id(value)))
            if reference is None:
                data = write_schema(value)
                reference = self._intern_by_key((refs.SCHEMA, data), data, self._message.schemas)
                self._seen[refs.SCHEMA, id(value)] = reference
            return reference
        if isinstance(value, pa.Table):
            reference = self._seen.get((refs.TABLE, id(value)))
            if reference is None:
                reference = self._intern_by_key(
                    (refs.TABLE, id(value)), write_table(value), self._message.tables
                )
            return reference
        raise SerializationError(
            f"{type(value).__module__}.{type(value).__qualname__} has no serialized form"
        )

    def _interned(self, value: Any, kind: int, table: list[Any]) -> int:
        reference = self._seen.get(value)
        if reference is None:
            reference = self._seen[value] = len(table) << 4 | kind
            table.append(value)
        return reference

    def _intern_by_key(self, key: tuple[int, object], value: Any, table: Any) -> int:
        """Write a value unless one with the same key is written. key: the kind, and what identifies the value.

        It is for values for which ``==`` is too coarse, or which can be equal to a value of another kind.
        """
        reference = self._seen.get(key)
        if reference is None:
            reference = self._seen[key] = len(table) << 4 | key[0]
            table.append(value)
        return reference

    def _intern_number(self, value: int | Decimal, kind: int, table: Any) -> int:
        """Write a number as a string."""
        digits = value.bit_length() // 3 if isinstance(value, int) else len(value.as_tuple().digits)
        if digits > refs.MAX_DIGITS:
            raise SerializationError(f"a number of more than {refs.MAX_DIGITS} digits has no serialized form")
        text = str(value)
        return self._intern_by_key((kind, text), text, table)

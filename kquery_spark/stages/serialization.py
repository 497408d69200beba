"""Plans to bytes and back, in the language-neutral form that ``plan.proto`` describes.

Reading is safe for bytes of any origin: only classes of the allow-list are instantiated, every field is checked
against its annotation, sizes are bounded, nothing recurses, and whatever is wrong is a SerializationError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from itertools import accumulate, pairwise, repeat
from typing import Any, TypeVar

import pyarrow as pa
from google.protobuf.message import DecodeError

from kquery_spark.errors import SerializationError
from kquery_spark.stages.arrow_forms import read_schema, read_table, write_schema, write_table
from kquery_spark.stages.plan_pb2 import Block, EnumMember, Layout, PlanMessage
from kquery_spark.stages.serializable import Form, register_serializable, registered_classes, registry

__all__ = ["ReadLimits", "from_bytes", "register_serializable", "registered_classes", "to_bytes"]

T = TypeVar("T")

VERSION = 1
MAX_BYTES = 1 << 30
# Objects inside objects; beyond this Python itself could not compare or print the plan.
MAX_DEPTH = 1000
# Objects and items of a plan written out as a tree: sharing must not make a small message a huge plan.
MAX_SIZE = 5_000_000
MAX_TOTAL = 50_000_000
_MAX_DIGITS = 4000  # of an integer or a decimal

_CONSTANT, _STRING, _INTEGER, _DOUBLE, _BLOB, _DECIMAL, _BIG, _ENUM, _TYPE, _SCHEMA, _TABLE, _OBJECT = range(
    12
)
_CONSTANTS = (None, False, True)
_NULL, _FALSE, _TRUE = (i << 4 | _CONSTANT for i in range(3))


def to_bytes(value: object) -> bytes:
    """Serialize a plan, an expression, a stage or a source; SerializationError names what cannot be."""
    try:
        data = _Encoder().message(value).SerializeToString()
    except (UnicodeEncodeError, ValueError) as error:
        raise SerializationError(f"cannot be written: {error}") from None
    if len(data) > MAX_BYTES:
        raise SerializationError(
            f"a plan of {len(data)} bytes is too large to ship; the limit is {MAX_BYTES}"
        )
    return data


@dataclass(frozen=True)
class ReadLimits:
    """What bytes may describe: sizes as of a tree, so that sharing cannot make a small message a huge plan.

    allows: whether an allow-listed class may occur. A ``UserCall`` runs code of its own when the plan is run and file
    sources read what they name, so bytes from others are read without these.
    """

    size: int = MAX_SIZE  # objects and items of one value
    total: int = MAX_TOTAL  # of all values together
    allows: Callable[[type], bool] = lambda cls: True


OWN_PLANS = ReadLimits()


def from_bytes(data: bytes, expected: type[T], limits: ReadLimits = OWN_PLANS) -> T:
    """What ``to_bytes`` wrote, which must be an ``expected``; SerializationError for anything else."""
    if len(data) > MAX_BYTES:
        raise SerializationError(f"{len(data)} bytes are too many for a plan; the limit is {MAX_BYTES}")
    try:
        message = PlanMessage.FromString(data)
    except DecodeError:
        raise SerializationError("these bytes are not a plan") from None
    if message.version != VERSION:
        raise SerializationError(f"plan format {message.version} is unknown; this version reads {VERSION}")
    value = _Decoder(message, limits).root(message.root)
    if not isinstance(value, expected):
        raise SerializationError(f"expected {expected.__name__}, the bytes hold {type(value).__name__}")
    return value


class _Encoder:
    """One message being written: its tables, and what was already written by identity or by value."""

    def __init__(self) -> None:
        self._registry = registry()
        self._forms = self._registry.forms
        self._message = PlanMessage(version=VERSION)
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
        message = self._message
        message.root = self._reference(value) if self._parts(value) is None else self._tree(value)
        self._close()
        message.strings.extend(self._strings)
        message.integers.extend(self._integers)
        if self._types:
            message.types = write_schema(pa.schema([pa.field("", t) for t in self._types]))
        return message

    def _parts(self, value: object) -> tuple[Any, ...] | None:
        """What is inside an object or a list; None for everything else."""
        if type(value) is tuple:
            return value
        form = self._forms.get(type(value))
        return None if form is None else form.values(value)

    def _inside(self, parts: Iterable[Any]) -> list[tuple[Any, tuple[Any, ...]]]:
        """The objects and lists among values that are yet to be written, last first, with their parts."""
        objects, forms = self._objects, self._forms
        pending = [
            (p, p if type(p) is tuple else forms[type(p)].values(p))
            for p in parts
            if (type(p) is tuple or type(p) in forms) and id(p) not in objects
        ]
        return pending[::-1]

    def _tree(self, root: object) -> int:
        """Write an object after everything inside it; a loop, for plans may be deeper than Python's stack."""
        objects = self._objects
        stack: list[tuple[Any, tuple[Any, ...]]] = [(root, self._parts(root) or ())]
        while stack:
            value, parts = stack[-1]
            if id(value) in objects:
                stack.pop()
                continue
            inside = self._inside(parts)
            if not inside:
                stack.pop()
                self._write(value, parts)
                continue
            stack += inside
            if len(inside) > 1 and type(value) is tuple:
                # The parts of all items before the items, so that both make long blocks.
                stack += self._inside(q for _, items in reversed(inside) for q in items)
            if len(stack) > MAX_SIZE:
                raise SerializationError("the plan is too large or contains itself")
        return objects[id(root)][0]

    def _write(self, value: object, parts: tuple[Any, ...]) -> None:
        layout = 0 if type(value) is tuple else self._layout(type(value))
        objects = self._objects
        references, depth, newest = self._references(parts)
        if depth >= MAX_DEPTH:
            raise SerializationError(f"the plan is nested more than {MAX_DEPTH} deep")
        if layout == 0:
            # Equal lists are one: empty ones, and the partition values of many files.
            same = (_OBJECT, tuple(references))
            reference = self._seen.setdefault(same, self._count << 4 | _OBJECT)
            if reference >> 4 < self._count:
                objects[id(value)] = (reference, depth + 1)
                return
        if layout != self._block or newest >= self._start:
            self._close()
            self._block = layout
        self._values += references
        if layout == 0 or not parts:
            self._lengths.append(len(parts))
        objects[id(value)] = (self._count << 4 | _OBJECT, depth + 1)
        self._count += 1

    def _references(self, parts: tuple[Any, ...]) -> tuple[list[int], int, int]:
        """The references of an object's parts, the depth of the deepest part, and the number of the newest object."""
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
        """End the open block: what follows is of another layout, or refers to objects in it."""
        if self._start < self._count:
            block = Block(layout=self._block, values=self._values, lengths=self._lengths)
            self._message.blocks.append(block)
            self._values, self._lengths = [], []
        self._start = self._count

    def _layout(self, cls: type) -> int:
        number = self._layouts.get(cls)
        if number is None:
            form = self._forms[cls]
            self._message.layouts.append(Layout(type=form.name, fields=form.fields))
            number = self._layouts[cls] = len(self._layouts) + 1
        return number

    def _reference(self, value: Any) -> int:
        """The reference of anything that is not an object."""
        kind = type(value)
        if kind is str:
            return self._interned(value, _STRING, self._strings)
        if kind is bool:
            return _TRUE if value else _FALSE
        if value is None:
            return _NULL
        if kind is int:
            if -(1 << 63) <= value < 1 << 63:
                return self._interned(value, _INTEGER, self._integers)
            return self._text(value, _BIG, self._message.big_integers)
        if kind is float:
            return self._added((_DOUBLE, struct.pack("<d", value)), value, self._message.doubles)
        return self._rare(value, kind)

    def _rare(self, value: Any, kind: type) -> int:
        """The reference of a value of the kinds that plans have few of."""
        if kind is bytes:
            return self._added((_BLOB, value), value, self._message.blobs)
        if kind is Decimal:
            return self._text(value, _DECIMAL, self._message.decimals)
        if kind in self._registry.enum_names:
            # The class is part of the key: members of two string enums can be equal.
            member = EnumMember(type=self._registry.enum_names[kind], name=value.name)
            return self._added((_ENUM, (kind, value)), member, self._message.enum_members)
        return self._arrow(value)

    def _arrow(self, value: Any) -> int:
        if isinstance(value, pa.DataType):
            # Names inside nested types are no part of their equality, but of what is written.
            nested = pa.types.is_nested(value)
            same = write_schema(pa.schema([pa.field("", value)])) if nested else (value.id, str(value))
            return self._added((_TYPE, same), value, self._types)
        if isinstance(value, pa.Schema):
            reference = self._seen.get((_SCHEMA, id(value)))
            if reference is None:
                data = write_schema(value)
                reference = self._added((_SCHEMA, data), data, self._message.schemas)
                self._seen[_SCHEMA, id(value)] = reference
            return reference
        if isinstance(value, pa.Table):
            reference = self._seen.get((_TABLE, id(value)))
            if reference is None:
                reference = self._added((_TABLE, id(value)), write_table(value), self._message.tables)
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

    def _added(self, key: tuple[int, object], value: Any, table: Any) -> int:
        """As ``_interned``, for what equality is too coarse for or another kind could be equal to."""
        reference = self._seen.get(key)
        if reference is None:
            reference = self._seen[key] = len(table) << 4 | key[0]
            table.append(value)
        return reference

    def _text(self, value: int | Decimal, kind: int, table: Any) -> int:
        digits = value.bit_length() // 3 if isinstance(value, int) else len(value.as_tuple().digits)
        if digits > _MAX_DIGITS:
            raise SerializationError(f"a number of more than {_MAX_DIGITS} digits has no serialized form")
        text = str(value)
        return self._added((kind, text), text, table)


class _Decoder:
    """One message being read: its tables as Python values, then its objects, block by block."""

    def __init__(self, message: PlanMessage, limits: ReadLimits) -> None:
        self._registry = registry()
        self._limits = limits
        layouts = [self._form(layout) for layout in message.layouts]
        self._objects: list[Any] = []
        self._depths: list[int] = []
        self._sizes: list[int] = []
        self._total = 0
        self._tables: list[Sequence[Any]] = [
            _CONSTANTS,
            message.strings,
            message.integers,
            message.doubles,
            message.blobs,
            [_number(Decimal, text) for text in message.decimals],
            [_number(int, text) for text in message.big_integers],
            [self._member(member) for member in message.enum_members],
            read_schema(message.types).types if message.types else [],
            [read_schema(data) for data in message.schemas],
            [read_table(data) for data in message.tables],
            self._objects,
        ]
        self._tables[_STRING : _BLOB + 1] = map(list, self._tables[_STRING : _BLOB + 1])
        for block in message.blocks:
            self._read(block, layouts)

    def _read(self, block: Block, layouts: Sequence[Form]) -> None:
        if block.layout > len(layouts):
            raise SerializationError(f"the plan refers to layout {block.layout} of {len(layouts)}")
        if block.layout:
            self._nodes(block, layouts[block.layout - 1])
        else:
            self._lists(block)

    def root(self, reference: int) -> Any:
        """The value of the message's own reference."""
        return self._values([reference])[0]

    def _form(self, layout: Layout) -> Form:
        form = self._registry.by_name.get(layout.type)
        if form is None:
            raise SerializationError(f"{layout.type[:80]!r} is not a class that a plan may contain")
        if not self._limits.allows(form.cls):
            raise SerializationError(f"a plan from elsewhere cannot have a {form.name}")
        names = tuple(layout.fields)
        if names != form.fields:
            own = ", ".join(form.fields)
            raise SerializationError(
                f"{form.name} is written with {', '.join(names)}; this version has {own}"
            )
        return form

    def _member(self, member: EnumMember) -> Enum:
        cls = self._registry.enums.get(member.type)
        constant = None if cls is None else cls.__members__.get(member.name)
        if constant is None:
            raise SerializationError(f"{member.type}.{member.name} is not a name that a plan may contain")
        return constant

    def _values(self, references: list[int]) -> list[Any]:
        tables = self._tables
        try:
            return [tables[r & 15][r >> 4] for r in references]
        except IndexError:
            raise SerializationError("the plan refers to a value that is not in it") from None

    def _account(self, references: list[int], lengths: Sequence[int]) -> None:
        """Bound depths and sizes of a block's objects, each of so many references, before making them."""
        if any(r & 15 == _OBJECT for r in references):
            sizes, depths = self._measured(references, lengths)
        else:
            sizes, depths = [n + 1 for n in lengths], [1] * len(lengths)
        self._total += sum(sizes)
        if max(depths, default=0) > MAX_DEPTH:
            raise SerializationError(f"the plan is nested more than {MAX_DEPTH} deep")
        if self._total > self._limits.total or max(sizes, default=0) > self._limits.size:
            raise SerializationError("the plan is too large")
        self._sizes += sizes
        self._depths += depths

    def _measured(self, references: list[int], lengths: Sequence[int]) -> tuple[list[int], list[int]]:
        """Sizes and depths of objects from those of the objects in them."""
        inside = [r >> 4 if r & 15 == _OBJECT else -1 for r in references]
        child_sizes = [1 if i < 0 else self._sizes[i] for i in inside]
        child_depths = [0 if i < 0 else self._depths[i] for i in inside]
        spans = list(pairwise(accumulate(lengths, initial=0)))
        sizes = [1 + sum(child_sizes[a:b]) for a, b in spans]
        depths = [1 + max(child_depths[a:b], default=0) for a, b in spans]
        return sizes, depths

    def _lists(self, block: Block) -> None:
        references, lengths = list(block.values), list(block.lengths)
        if sum(lengths) != len(references):
            raise SerializationError("the lengths of lists do not add up")
        values = self._values(references)
        self._account(references, lengths)
        self._objects += [tuple(values[a:b]) for a, b in pairwise(accumulate(lengths, initial=0))]

    def _nodes(self, block: Block, form: Form) -> None:
        references, width = list(block.values), len(form.fields)
        count = _node_count(block, form)
        values = self._values(references)
        self._account(references, [width] * count)
        columns = [values[i::width] for i in range(width)]
        for name, test, column in zip(form.fields, form.tests, columns, strict=True):
            if not test(column):
                raise SerializationError(f"{form.name}.{name} has a value of the wrong kind")
        try:
            rows = zip(*columns, strict=True) if width else repeat((), count)
            nodes = [form.cls(*row) for row in rows]
            if form.check is not None:
                for node in nodes:
                    form.check(node)
        except Exception as error:  # a constructor validates its arguments in whatever way it likes
            raise SerializationError(f"{form.name} cannot be made: {error}") from error
        self._objects += nodes


def _node_count(block: Block, form: Form) -> int:
    """How many nodes the values make; those without fields are counted by ``lengths``."""
    width = len(form.fields)
    if width:
        count, rest = divmod(len(block.values), width)
        fits = not rest and not block.lengths
    else:
        count = len(block.lengths)
        fits = not block.values and not any(block.lengths)
    if not fits:
        raise SerializationError(f"the number of values does not fit the {width} fields of {form.name}")
    return count


def _number(kind: Callable[[str], Any], text: str) -> Any:
    """A number from the one text that stands for it."""
    if len(text) <= _MAX_DIGITS + 32:
        try:
            number = kind(text)
        except (ValueError, ArithmeticError):
            number = None
        if number is not None and str(number) == text:
            return number
    raise SerializationError(f"{text[:40]!r} is not a number as plans have it")

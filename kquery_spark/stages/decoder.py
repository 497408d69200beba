"""Decodes a message of ``plan.proto`` into a plan. The bytes may come from anywhere; see ``serialization``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from itertools import accumulate, pairwise, repeat
from typing import Any

from kquery_spark.errors import SerializationError
from kquery_spark.run_control import check_run
from kquery_spark.stages import references as refs
from kquery_spark.stages.arrow_bytes import read_schema, read_table
from kquery_spark.stages.plan_pb2 import Block, EnumMember, Layout, PlanMessage
from kquery_spark.stages.serializable import ClassFormat, registry


@dataclass(frozen=True)
class ReadLimits:
    """Limits for decoded plans.

    Sizes count objects and list items as if nothing was shared: otherwise a small message with nested sharing could
    describe a huge plan. With a = (1, 1), b = (a, a), c = (b, b) and so on, 30 short lists stand for 2^30 numbers. allows:
    whether a class of the allow-list may occur. Untrusted plans must not have a ``UserCall``, which runs its own code, or a
    file source, which reads any file that it names.
    """

    size: int = refs.MAX_SIZE  # of a single value
    total: int = refs.MAX_TOTAL  # of all values together
    allows: Callable[[type], bool] = lambda cls: True


OWN_PLANS = ReadLimits()


class Decoder:
    """Decodes one message: first its tables of values, then its objects, block by block.

    Each object comes after the objects inside of it, and never in the same block. So all references of a block lead to
    objects that already exist, and nothing recurses. A reference to a later object is an IndexError, hence an error of the
    message.
    """

    def __init__(self, message: PlanMessage, limits: ReadLimits) -> None:
        self._registry = registry()
        self._limits = limits
        layouts = [self._format(layout) for layout in message.layouts]
        self._objects: list[Any] = []
        self._depths: list[int] = []
        self._sizes: list[int] = []
        self._total = 0
        # The order of the tables is that of the table numbers in ``references``.
        self._tables: list[Sequence[Any]] = [
            refs.CONSTANTS,
            message.strings,
            message.integers,
            message.doubles,
            message.blobs,
            [_parse_number(Decimal, text) for text in message.decimals],
            [_parse_number(int, text) for text in message.big_integers],
            [self._member(member) for member in message.enum_members],
            read_schema(message.types).types if message.types else [],
            [read_schema(data) for data in message.schemas],
            [read_table(data) for data in message.tables],
            self._objects,
        ]
        self._tables[refs.STRING : refs.BLOB + 1] = map(list, self._tables[refs.STRING : refs.BLOB + 1])
        for block in message.blocks:
            self._read(block, layouts)

    def _read(self, block: Block, layouts: Sequence[ClassFormat]) -> None:
        if block.layout > len(layouts):
            raise SerializationError(f"the plan refers to layout {block.layout} of {len(layouts)}")
        if block.layout:
            self._nodes(block, layouts[block.layout - 1])
        else:
            self._lists(block)

    def root(self, reference: int) -> Any:
        """Return the value for a reference of the message."""
        return self._values([reference])[0]

    def _format(self, layout: Layout) -> ClassFormat:
        class_format = self._registry.by_name.get(layout.type)
        if class_format is None:
            raise SerializationError(f"{layout.type[:80]!r} is not a class that a plan may contain")
        if not self._limits.allows(class_format.cls):
            raise SerializationError(f"a plan from outside cannot have a {class_format.name}")
        names = tuple(layout.fields)
        if names != class_format.fields:
            own = ", ".join(class_format.fields)
            raise SerializationError(
                f"{class_format.name} is written with {', '.join(names)}; this version has {own}"
            )
        return class_format

    def _member(self, member: EnumMember) -> Enum:
        cls = self._registry.enums.get(member.type)
        constant = None if cls is None else cls.__members__.get(member.name)
        if constant is None:
            raise SerializationError(f"{member.type}.{member.name} is not a name that a plan may contain")
        return constant

    def _values(self, references: list[int]) -> list[Any]:
        tables = self._tables
        try:
            return [tables[reference & 15][reference >> 4] for reference in references]
        except IndexError:
            raise SerializationError("the plan refers to a value that is not in it") from None

    def _account(self, references: list[int], lengths: Sequence[int]) -> None:
        """Check depths and sizes of a block's objects before they are created. lengths: the references of each object."""
        if any(reference & 15 == refs.OBJECT for reference in references):
            sizes, depths = self._measure(references, lengths)
        else:
            sizes, depths = [n + 1 for n in lengths], [1] * len(lengths)
        self._total += sum(sizes)
        if max(depths, default=0) > refs.MAX_DEPTH:
            raise SerializationError(f"the plan is nested more than {refs.MAX_DEPTH} deep")
        if self._total > self._limits.total or max(sizes, default=0) > self._limits.size:
            raise SerializationError("the plan is too large")
        self._sizes += sizes
        self._depths += depths

    def _measure(self, references: list[int], lengths: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the sizes and depths of objects, computed from those of the objects inside of them."""
        inside = [reference >> 4 if reference & 15 == refs.OBJECT else -1 for reference in references]
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

    def _nodes(self, block: Block, class_format: ClassFormat) -> None:
        references, width = list(block.values), len(class_format.fields)
        count = _node_count(block, class_format)
        values = self._values(references)
        self._account(references, [width] * count)
        columns = [values[i::width] for i in range(width)]
        for name, test, column in zip(class_format.fields, class_format.tests, columns, strict=True):
            if not test(column):
                raise SerializationError(f"{class_format.name}.{name} has a value of the wrong kind")
        try:
            rows = zip(*columns, strict=True) if width else repeat((), count)
            nodes = []
            for row in rows:
                check_run()  # a constructor may walk the whole tree below it, so a large plan can take long
                nodes.append(class_format.cls(*row))
            if class_format.check is not None:
                for node in nodes:
                    class_format.check(node)
        except Exception as error:  # a constructor may raise any exception for invalid arguments
            raise SerializationError(f"{class_format.name} cannot be created: {error}") from error
        self._objects += nodes


def _node_count(block: Block, class_format: ClassFormat) -> int:
    """Return the number of nodes in a block. Nodes without fields have no values, so they are counted by ``lengths``."""
    width = len(class_format.fields)
    if width:
        count, rest = divmod(len(block.values), width)
        fits = not rest and not block.lengths
    else:
        count = len(block.lengths)
        fits = not block.values and not any(block.lengths)
    if not fits:
        raise SerializationError(
            f"the number of values does not fit the {width} fields of {class_format.name}"
        )
    return count


def _parse_number(kind: Callable[[str], Any], text: str) -> Any:
    """Parse a number. Only the canonical string of each number is accepted, so ``+1`` and ``01`` are errors."""
    if len(text) <= refs.MAX_DIGITS + 32:
        try:
            number = kind(text)
        except (ValueError, ArithmeticError):
            number = None
        if number is not None and str(number) == text:
            return number
    raise SerializationError(f"{text[:40]!r} is not a number in canonical form")

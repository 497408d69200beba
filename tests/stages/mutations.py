"""Mutations of bytes and of plan messages, from one seeded generator."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from google.protobuf.message import DecodeError

from kquery_spark.stages.plan_pb2 import PlanMessage
from kquery_spark.stages.serializable import registry

_OBJECT = 11
_INTERESTING = (0, 1, 15, 16, 2**7, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


# --- any bytes ----------------------------------------------------------------------------------------------


def flip_bits(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A few bits are turned."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        if changed:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def set_bytes(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A run of bytes becomes 0, 0xFF or noise: lengths and counts become huge."""
    at, length = chance.randrange(len(data) + 1), chance.randrange(1, 12)
    fill = chance.choice((b"\x00" * length, b"\xff" * length, chance.randbytes(length)))
    return data[:at] + fill + data[at + length :]


def truncate(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The message ends early."""
    return data[: chance.randrange(len(data) + 1)]


def cut_out(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Some bytes in the middle are missing."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.randrange(1, 40) :]


def insert(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Bytes too many in the middle: noise, or a copy of some of the message."""
    at, start = chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)
    piece = chance.choice((chance.randbytes(chance.randrange(1, 20)), data[start : start + 200]))
    return data[:at] + piece + data[at:]


def splice(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The start of one message and the end of another."""
    other = chance.choice(others)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def append(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Two whole messages, which protobuf reads as one with the fields of both."""
    return data + chance.choice(others)


def repeat(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The same message many times over: every repeated field is duplicated."""
    return data * chance.choice((2, 3, 10, 50))


BYTES: tuple[Mutation, ...] = (flip_bits, set_bytes, truncate, cut_out, insert, splice, append, repeat)


# --- plan messages, whose framing stays valid ------------------------------------------------------------------


def _edited(edit: Callable[[random.Random, PlanMessage], None]) -> Mutation:
    def mutation(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
        try:
            message = PlanMessage.FromString(data)
            edit(chance, message)
        except (DecodeError, IndexError, ValueError, OverflowError):
            return data
        return message.SerializeToString()

    mutation.__name__ = edit.__name__.removeprefix("_")
    return mutation


def _numbers(chance: random.Random) -> int:
    return chance.choice((chance.choice(_INTERESTING), chance.randrange(400), chance.getrandbits(64)))


def _references(chance: random.Random, message: PlanMessage) -> None:
    """Fields refer to other values: of another kind, of another class, later ones, missing ones."""
    for _ in range(chance.choice((1, 1, 2, 5))):
        block = chance.choice(message.blocks)
        at = chance.randrange(len(block.values))
        near = block.values[at] + chance.choice((-16, 16, -1, 1, 32))
        block.values[at] = chance.choice((_numbers(chance), max(near, 0), chance.choice(block.values)))


def _root(chance: random.Random, message: PlanMessage) -> None:
    message.root = chance.choice((_numbers(chance), chance.randrange(60) << 4 | _OBJECT))


def _blocks(chance: random.Random, message: PlanMessage) -> None:
    """Blocks are dropped, duplicated, swapped, or said to be of another class."""
    at = chance.randrange(len(message.blocks))
    match chance.randrange(4):
        case 0:
            del message.blocks[at]
        case 1:
            message.blocks.add().CopyFrom(message.blocks[at])
        case 2:
            other = message.blocks[chance.randrange(len(message.blocks))]
            other.CopyFrom(message.blocks[at])
        case _:
            message.blocks[at].layout = chance.choice((chance.randrange(len(message.layouts) + 2), 2**32 - 1))


def _lengths(chance: random.Random, message: PlanMessage) -> None:
    """Counts that are huge, or that add up to the right number in another way."""
    lists = [block for block in message.blocks if block.lengths]
    block = chance.choice(lists or list(message.blocks))
    if chance.randrange(2):
        block.lengths.extend([chance.choice((0, 1, 2**31, 2**32 - 1))] * chance.choice((1, 3, 10_000)))
    else:
        block.lengths[chance.randrange(len(block.lengths))] = _numbers(chance) % 2**32


def _layouts(chance: random.Random, message: PlanMessage) -> None:
    """Another allow-listed class, with its own fields or those of before; or a class of Python's."""
    layout = chance.choice(message.layouts)
    names = sorted(registry().by_name)
    outside = (
        "os.system",
        "subprocess.Popen",
        "builtins.eval",
        "pickle.loads",
        "kquery_spark.functions.user.run",
    )
    layout.type = chance.choice((chance.choice(names), chance.choice(outside)))
    if chance.randrange(2) and layout.type in registry().by_name:
        layout.ClearField("fields")
        layout.fields.extend(registry().by_name[layout.type].fields)


def _scalars(chance: random.Random, message: PlanMessage) -> None:
    """Other strings, numbers and enum members."""
    strings = (
        "",
        "\x00",
        "x" * 10_000,
        "__class__",
        "../../etc/passwd",
        "user",
        "system",
        "\udcff"[:0],
        "sum",
        "rank",
    )
    match chance.randrange(6):
        case 0 if message.strings:
            message.strings[chance.randrange(len(message.strings))] = chance.choice(strings)
        case 1 if message.integers:
            message.integers[chance.randrange(len(message.integers))] = chance.choice(
                (-1, 2**63 - 1, -(2**63), 10**9)
            )
        case 2:
            message.decimals.append(
                chance.choice(("1E+999999999", "NaN", "9" * 100_000, "1_0", "0E-6176", "sNaN"))
            )
        case 3:
            message.big_integers.append(chance.choice(("9" * 1_000_000, "0x10", "-0", "9" * 4000, "1e9")))
        case 4 if message.enum_members:
            member = chance.choice(message.enum_members)
            member.name = chance.choice(("__class__", "mro", "ANSI", "LEFT", "SINGLE", ""))
        case _:
            message.blobs.append(
                chance.choice((b"", b"\x80\x04cos\nsystem\n(S'true'\ntR.", b"\x00" * 100_000))
            )


def _arrow(chance: random.Random, message: PlanMessage) -> None:
    """Arrow schemas and streams inside a valid frame are mutated as bytes."""
    mutation = chance.choice(BYTES[:5])
    places: list[tuple[str, int]] = [("schemas", i) for i in range(len(message.schemas))]
    places += [("tables", i) for i in range(len(message.tables))] * 3
    name, at = chance.choice([*places, ("types", 0)])
    if name == "types":
        message.types = mutation(chance, message.types, ())
    else:
        rows = getattr(message, name)
        rows[at] = mutation(chance, rows[at], ())


def _nested(chance: random.Random, message: PlanMessage) -> None:
    """Lists in lists, thousands deep."""
    depth = chance.choice((10, 999, 1001, 5000))
    count = sum(_objects(message))
    message.blocks.add(layout=0, values=[0], lengths=[1])
    for level in range(depth):
        message.blocks.add(layout=0, values=[(count + level) << 4 | _OBJECT], lengths=[1])
    message.root = (count + depth) << 4 | _OBJECT


def _shared(chance: random.Random, message: PlanMessage) -> None:
    """Every list holds the one before many times: a small message that describes a plan of any size."""
    count, width = sum(_objects(message)), chance.choice((2, 3, 40, 1000))
    message.blocks.add(layout=0, values=[0], lengths=[1])
    for level in range(chance.choice((5, 15, 21, 60))):
        message.blocks.add(layout=0, values=[(count + level) << 4 | _OBJECT] * width, lengths=[width])


def _objects(message: PlanMessage) -> list[int]:
    widths = [len(registry().by_name[x.type].fields) for x in message.layouts if x.type in registry().by_name]
    if len(widths) < len(message.layouts):
        raise ValueError("a layout that is not of the allow-list")
    return [
        len(b.lengths) if not b.layout or not widths[b.layout - 1] else len(b.values) // widths[b.layout - 1]
        for b in message.blocks
    ]


PLANS: tuple[Mutation, ...] = tuple(
    map(_edited, (_references, _root, _blocks, _lengths, _layouts, _scalars, _arrow, _nested, _shared))
)


def mutate(
    chance: random.Random, corpus: Sequence[bytes], mutations: Sequence[Mutation]
) -> tuple[str, bytes]:
    """A message with one to three mutations, and their names."""
    data, names = chance.choice(corpus), []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        mutation = chance.choice(mutations)
        data = mutation(chance, data, corpus)
        names.append(mutation.__name__)
    return "+".join(names), data

"""Bytes that are no plan, or one that lies, are refused: they run no code, take no memory, and raise nothing else."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from enum import Enum
from typing import Any

import pyarrow as pa
import pytest

from kquery_spark.errors import SerializationError
from kquery_spark.expr import Call, Column, Literal, UserCall
from kquery_spark.functions.user import user_function
from kquery_spark.logical import Filter, LogicalPlan, Scan
from kquery_spark.physical.operators import FilterExec, PhysicalPlan, ReadExec
from kquery_spark.planner import plan_query
from kquery_spark.sources.base import Source
from kquery_spark.stages import plan_pb2
from kquery_spark.stages.graph import build_stages
from kquery_spark.stages.serializable import registry
from kquery_spark.stages.serialization import ReadLimits, from_bytes, to_bytes
from tests.stages.hostile import read_hostile, watch
from tests.stages.plans import CONFIGS, DOUBLE, LOGICAL, LONG, MEMORY, TABLE, A


def edited(value: Any, edit: Any) -> bytes:
    message = plan_pb2.PlanMessage.FromString(to_bytes(value))
    edit(message)
    return message.SerializeToString()


def layout_of(message: Any, name: str) -> Any:
    return next(layout for layout in message.layouts if layout.type == name)


def block_of(message: Any, name: str) -> Any:
    names = [layout.type for layout in message.layouts]
    return next(b for b in message.blocks if b.layout == names.index(name) + 1)


SMALL = FilterExec(
    ReadExec("in", pa.schema([("a", LONG)])), Call.of("gt", A, Literal(1.5, DOUBLE), dtype=pa.bool_())
)

EDITS: dict[str, tuple[Any, str]] = {
    "a later version": (lambda m: setattr(m, "version", 2), "format 2 is unknown"),
    "no version": (lambda m: setattr(m, "version", 0), "format 0 is unknown"),
    "an unknown class": (lambda m: setattr(layout_of(m, "ReadExec"), "type", "subprocess.Popen"), "not a class"),
    "a base class": (lambda m: setattr(layout_of(m, "ReadExec"), "type", "PhysicalPlan"), "not a class"),
    "a missing field": (lambda m: layout_of(m, "FilterExec").fields.pop(), "is written with"),
    "an unknown field": (lambda m: layout_of(m, "FilterExec").fields.append("hook"), "is written with"),
    "a renamed field": (lambda m: layout_of(m, "FilterExec").fields.__setitem__(0, "__class__"), "is written with"),
    "an unknown enum": (lambda m: setattr(m.enum_members[0], "type", "Signals"), "not a name"),
    "an unknown member": (lambda m: setattr(m.enum_members[0], "name", "__class__"), "not a name"),
    "an unknown function": (lambda m: m.strings.__setitem__(list(m.strings).index("gt"), "system"), "system"),
    "a value too few": (lambda m: block_of(m, "FilterExec").values.pop(), "number of values"),
    "a wrong kind": (lambda m: block_of(m, "ReadExec").values.__setitem__(0, 0), "wrong kind"),
    "an operator where an expression belongs": (
        lambda m: block_of(m, "FilterExec").values.__setitem__(1, block_of(m, "FilterExec").values[0]),
        "FilterExec.condition has a value of the wrong kind",
    ),
    "a list where a node belongs": (
        lambda m: block_of(m, "FilterExec").values.__setitem__(0, block_of(m, "Call").values[1]),
        "FilterExec.child has a value of the wrong kind",
    ),
    "itself as a child": (lambda m: block_of(m, "FilterExec").values.__setitem__(0, 10**6 << 4 | 11), "not in it"),
    "an unknown kind": (lambda m: block_of(m, "FilterExec").values.__setitem__(0, 15), "not in it"),
    "a huge index": (lambda m: block_of(m, "FilterExec").values.__setitem__(0, 2**64 - 5), "not in it"),
    "an unknown layout": (lambda m: setattr(m.blocks[0], "layout", 99), "layout 99"),
    "lengths that do not add up": (lambda m: m.blocks.add(layout=0, lengths=[3]), "add up"),
    "a root that is not there": (lambda m: setattr(m, "root", 99 << 4 | 11), "not in it"),
    "a root of another class": (lambda m: setattr(m, "root", 0 << 4 | 0), "expected"),
    "broken types": (lambda m: setattr(m, "types", b"\x00" * 40), "Arrow schema"),
    "broken schemas": (lambda m: m.schemas.__setitem__(0, m.schemas[0][:20]), "Arrow schema"),
    "a decimal that is none": (lambda m: m.decimals.append("1_0"), "not a number"),
    "a huge integer": (lambda m: m.big_integers.append("9" * 10**6), "not a number"),
    "an integer that is none": (lambda m: m.big_integers.append(" 12"), "not a number"),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(EDITS))
def test_messages_that_lie_are_refused(case: str) -> None:
    edit, message = EDITS[case]
    with pytest.raises(SerializationError, match=re.escape(message)):
        from_bytes(edited(SMALL, edit), PhysicalPlan)


def test_bytes_of_something_else_and_other_classes_are_refused() -> None:
    import pickle

    for data in (
        b"",
        b"\xff" * 50,
        b"PAR1",
        pickle.dumps(SMALL),
        to_bytes(SMALL)[:-3],
        to_bytes(SMALL) + b"\x07",
    ):
        with pytest.raises(SerializationError):
            from_bytes(data, PhysicalPlan)
    with pytest.raises(SerializationError, match="expected a plan of type LogicalPlan, not FilterExec"):
        from_bytes(to_bytes(SMALL), LogicalPlan)


def test_a_node_that_refuses_its_arguments_is_a_serialization_error() -> None:
    def edit(message: Any) -> None:
        message.strings[list(message.strings).index("a")] = "nowhere"

    with pytest.raises(SerializationError, match="cannot be created"):
        from_bytes(edited(Filter(Scan("t", MEMORY), Call.of("isnull", Column("a", LONG))), edit), LogicalPlan)


def test_sharing_cannot_blow_a_small_message_up() -> None:
    value: Any = (1,)
    for _ in range(60):
        value = (value, value)
    data = to_bytes(value)
    assert len(data) < 2000
    with pytest.raises(SerializationError, match="too large"):
        from_bytes(data, tuple)


def stream(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def out_of_bounds() -> bytes:
    indices = pa.array([0, 7], pa.int32())
    return stream(pa.table({"d": pa.DictionaryArray.from_arrays(indices, pa.array(["x"]), safe=False)}))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (stream(pa.table({"a": [0] * 100_000}), compression="zstd"), "not compressed"),
        (
            stream(pa.table({"d": pa.array(["x"] * 9).dictionary_encode()}), compression="lz4"),
            "not compressed",
        ),
        (out_of_bounds(), "Arrow stream"),
        (stream(TABLE)[:300], "Arrow stream"),
        (b"", "Arrow stream"),
    ],
)
def test_rows_that_lie_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(SerializationError, match=message):
        from_bytes(edited(MEMORY, lambda m: m.tables.__setitem__(0, data)), Source)


class Spy(pa.ExtensionType):
    read = 0

    def __init__(self) -> None:
        super().__init__(pa.int64(), "tests.spy")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> pa.DataType:
        cls.read += 1
        return cls()


def test_extension_types_run_no_code() -> None:
    pa.register_extension_type(Spy())
    try:
        table = pa.table({"a": pa.ExtensionArray.from_storage(Spy(), pa.array([1]))})
        schema, rows, before = table.schema.serialize().to_pybytes(), stream(table), Spy.read
        for edit in (lambda m: m.schemas.__setitem__(0, schema), lambda m: setattr(m, "types", schema)):
            with pytest.raises(SerializationError, match="extension"):
                from_bytes(edited(SMALL, edit), PhysicalPlan)
        with pytest.raises(SerializationError, match="extension"):
            from_bytes(edited(MEMORY, lambda m: m.tables.__setitem__(0, rows)), Source)
        assert Spy.read == before
        with pytest.raises(SerializationError, match="extension"):
            to_bytes(Column("a", pa.list_(Spy())))
    finally:
        pa.unregister_extension_type("tests.spy")


@pytest.mark.parametrize("seed", range(8))
def test_mutated_bytes_give_a_plan_or_an_error_but_nothing_else(seed: int) -> None:
    chance = random.Random(seed)
    originals = [
        to_bytes(v)
        for v in (SMALL, MEMORY, build_stages(plan_query(LOGICAL["Aggregate"], CONFIGS[2]), CONFIGS[2]))
    ]
    refused = 0
    for _ in range(400):
        data = bytearray(chance.choice(originals))
        for _ in range(chance.choice([1, 1, 2, 5])):
            at = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    data[at] ^= 1 << chance.randrange(8)
                case 2:
                    del data[at : at + chance.randrange(1, 9)]
                case _:
                    data[at:at] = chance.randbytes(chance.randrange(1, 9))
        try:
            value = from_bytes(bytes(data), object)
        except SerializationError:
            refused += 1
        else:
            assert (
                value is None
                or type(value) in registry().formats
                or isinstance(
                    value,
                    tuple | pa.DataType | pa.Schema | pa.Table | str | int | float | bytes | Decimal | Enum,
                )
            )
    assert refused > 100


@pytest.mark.parametrize("seed", [11, 12])
def test_hostile_messages_end_in_our_error_or_a_valid_plan(seed: int) -> None:
    report = read_hostile(1000, seed)
    assert not report.findings, report
    assert report.outcomes["refused"] > 500 and report.outcomes["decoded"] > 50


def test_the_watch_over_hostile_messages_sees_side_effects() -> None:
    import subprocess

    with watch().watching() as events:
        subprocess.run(["true"], check=True)
        compile("1", "<test>", "eval")
    assert any(e.startswith("subprocess.Popen") for e in events) and any(
        e.startswith("compile") for e in events
    )


def test_functions_and_files_of_others_are_refused_wherever_they_are() -> None:
    function = user_function(len, "bigint")
    call = UserCall(function.name, (A,), LONG, True, function.code)
    plan = Filter(Scan("t", MEMORY), Call.of("eq", call, Literal(1, LONG)))
    limits = ReadLimits(allows=lambda cls: cls is not UserCall)
    with pytest.raises(SerializationError, match="cannot have a UserCall"):
        from_bytes(to_bytes(plan), LogicalPlan, limits)
    assert from_bytes(to_bytes(plan), LogicalPlan) == plan


def test_plans_of_others_can_be_given_a_size() -> None:
    plan = Filter(Scan("t", MEMORY), Call.of("gt", A, Literal(1, LONG)))
    for limits in (ReadLimits(size=5), ReadLimits(total=5)):
        with pytest.raises(SerializationError, match="too large"):
            from_bytes(to_bytes(plan), LogicalPlan, limits)

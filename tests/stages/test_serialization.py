"""Plans as bytes: every class round-trips, exactly, and bytes that are no plan are refused."""

from __future__ import annotations

import dataclasses
import random
import re
import struct
import types
import typing
from decimal import Decimal
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SerializationError
from kquery_spark.expr import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expr,
    InList,
    Literal,
    Named,
    SortKey,
    WindowCall,
)
from kquery_spark.expr.windows import UP_TO_PEERS
from kquery_spark.functions.aggregate_registry import aggregate_functions
from kquery_spark.functions.registry import functions
from kquery_spark.logical import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Generator,
    Input,
    Join,
    JoinKind,
    Limit,
    LogicalPlan,
    Projection,
    Scan,
    SetKind,
    SetOperation,
    SingleRow,
    Sort,
    Union,
    Window,
    WindowGroupLimit,
)
from kquery_spark.logical.join import JoinKey
from kquery_spark.physical.operators import FilterExec, PhysicalPlan, ReadExec, ScanExec
from kquery_spark.planner import plan_query
from kquery_spark.sources import orc_footer_pb2
from kquery_spark.sources.base import DataFile, Source, Split
from kquery_spark.sources.memory import memory_source
from kquery_spark.sources.parquet import ParquetSource
from kquery_spark.stages import plan_pb2, serialization
from kquery_spark.stages.graph import build_stages
from kquery_spark.stages.serializable import register_serializable, registry
from kquery_spark.stages.serialization import from_bytes, to_bytes

LONG, INT, STRING, DOUBLE = pa.int64(), pa.int32(), pa.string(), pa.float64()
TABLE = pa.table({"a": pa.array([1, 2, None], LONG), "s": pa.array(["x", None, "y"], STRING)})
MEMORY = memory_source(TABLE)
A = Column("a", LONG)


def same(left: Any, right: Any) -> bool:
    """Equality that tells 0.0 from -0.0 and False from 0, and finds NaN equal to itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack("<d", left) == struct.pack("<d", right)
    if isinstance(left, Decimal):
        return left.as_tuple() == right.as_tuple()
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, pa.Schema):
        return left.equals(right, check_metadata=True)
    if dataclasses.is_dataclass(left):
        return all(same(getattr(left, f.name), getattr(right, f.name)) for f in dataclasses.fields(left))
    return bool(left == right)


def round_trip(value: Any) -> Any:
    back = from_bytes(to_bytes(value), type(value))
    assert same(back, value), f"{value!r} came back as {back!r}"
    return back


QUICK: dict[str, Any] = {
    "max_examples": 15,
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.explicit, Phase.generate),
}

# --- every class --------------------------------------------------------------------------------------------------

TYPES = st.sampled_from(
    [
        pa.bool_(), pa.int8(), INT, LONG, DOUBLE, STRING, pa.binary(), pa.date32(), pa.null(),
        pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us"), pa.duration("us"), pa.decimal128(38, 18),
        pa.list_(pa.field("element", STRING, nullable=False)), pa.map_(STRING, LONG),
        pa.struct([pa.field("x", LONG, nullable=False), pa.field("y", pa.list_(DOUBLE))]),
        pa.dictionary(pa.int32(), STRING),
    ]
)  # fmt: skip
SCHEMAS = st.lists(TYPES, max_size=4).map(
    lambda found: pa.schema(
        [
            pa.field(f"c{i}", t, i % 2 == 0 or pa.types.is_null(t), {"k": "v"} if i else None)
            for i, t in enumerate(found)
        ]
    )
)
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(2**200), 2**200), st.floats(), st.binary(max_size=20),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.decimals(), st.tuples(st.integers(), st.none()),
)  # fmt: skip
BASES: dict[type, list[type]] = {
    base: [c for c in registry().forms if issubclass(c, base)]
    for base in (Expr, LogicalPlan, PhysicalPlan, Source)
}


@cache
def values_of(annotation: Any, depth: int) -> st.SearchStrategy[Any]:
    """Values for an annotation; nothing but leaves below ``depth``."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any:
        return PLAIN
    if origin in (typing.Union, types.UnionType):
        return st.one_of([values_of(a, depth) for a in arguments])
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values_of(arguments[0], depth), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*[values_of(a, depth) for a in arguments])
    simple: dict[Any, st.SearchStrategy[Any]] = {
        type(None): st.none(), bool: st.booleans(), int: st.integers(-(2**63), 2**63 - 1), float: st.floats(),
        str: st.text(st.characters(exclude_categories=["Cs"]), max_size=8), bytes: st.binary(max_size=8),
        pa.DataType: TYPES, pa.Schema: SCHEMAS, pa.Table: st.just(TABLE),
        LogicalPlan: st.sampled_from([LOGICAL[name] for name in sorted(LOGICAL)]),
    }  # fmt: skip
    if annotation in simple:
        return simple[annotation]
    if annotation in BASES:
        leaves = {Expr: [Column, Literal], PhysicalPlan: [ReadExec], Source: BASES[Source]}[annotation]
        return st.sampled_from(BASES[annotation] if depth > 0 else leaves).flatmap(
            lambda c: instances(c, depth - 1)
        )
    if issubclass(annotation, Enum):
        return st.sampled_from(list(annotation))
    return instances(annotation, depth)


@cache
def instances(cls: type, depth: int = 1) -> st.SearchStrategy[Any]:
    if issubclass(cls, LogicalPlan):
        return st.just(LOGICAL[cls.__name__])
    hints = typing.get_type_hints(cls)
    given_fields = {f.name: values_of(hints[f.name], depth) for f in dataclasses.fields(cls) if f.init}
    if cls is Call:
        given_fields["function"] = st.sampled_from(sorted(functions()))
    if cls in (AggregateCall, WindowCall):
        given_fields["function"] = st.sampled_from(sorted(aggregate_functions()))
    if "table" in given_fields and hints["table"] is Any:
        given_fields["table"] = st.just(TABLE)
    return st.builds(cls, **given_fields)


def _logical() -> dict[str, LogicalPlan]:
    scan = Scan("t", MEMORY, ("a", "s"), (Call.of("gt", A, Literal(1, LONG)),))
    other = Projection(scan, (Named(A, "b"), Named(Cast(A, STRING), "text")))
    b = Column("b", LONG)
    join = Join(scan, other, JoinKind.LEFT, (JoinKey(A, b, True),), Call.of("lt", A, b))
    total = Named(
        AggregateCall.of("sum", A, condition=InList(A, (Literal(1, LONG), Literal(2, LONG)))), "total"
    )
    made = [
        scan, other, join, Aggregate(join, (Named(b, "b"),), (total,)), Input("input", scan.schema, "k"),
        Filter(join, Call.of("isnotnull", A)), Sort(join, (SortKey(A, False, False),)), Limit(scan, None, 3),
        Union((scan, Filter(scan, Literal(True, pa.bool_())))),
        Window(scan, (Named(WindowCall.of("sum", A, frame=UP_TO_PEERS), "w"),), (A,), (SortKey(A, False, False),)),
        WindowGroupLimit(scan, (A,), (SortKey(A),), "rank", 3), SetOperation(scan, scan, SetKind.EXCEPT, True),
        Expand(scan, ((A, Literal(None, LONG)), (A, A)), ("x", "y")),
        Generate(scan, Generator.REPLICATE, (A,), (), required=("s",)), SingleRow(scan),
    ]  # fmt: skip
    return {type(plan).__name__: plan for plan in made}


LOGICAL = _logical()


def house_classes() -> list[type]:
    """Every concrete class below the plan bases, found without the allow-list's help."""
    found, waiting = [], [Expr, LogicalPlan, PhysicalPlan, Source]
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        if cls not in BASES and not cls.__module__.startswith("tests") and cls.__module__ != __name__:
            found.append(cls)
    return sorted(set(found), key=lambda c: c.__name__)


@pytest.mark.parametrize("cls", house_classes(), ids=lambda c: c.__name__)
def test_every_plan_class_is_on_the_allow_list(cls: type) -> None:
    assert cls in registry().forms or getattr(cls, "__abstractmethods__", None), f"{cls} cannot be serialized"


@pytest.mark.parametrize("name", sorted(registry().by_name))
def test_every_class_round_trips(name: str) -> None:
    cls = registry().by_name[name].cls
    if issubclass(cls, LogicalPlan):
        assert name in LOGICAL, f"give {name} an example in _logical()"
        round_trip(LOGICAL[name])
        return

    @settings(**QUICK)
    @given(instances(cls))
    def check(value: Any) -> None:
        round_trip(value)

    check()


@pytest.mark.parametrize("name", sorted(registry().enums))
def test_every_enum_member_round_trips(name: str) -> None:
    members = tuple(registry().enums[name])
    assert from_bytes(to_bytes(members), tuple) == members


# --- exactness ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, 1, -1, 2**63 - 1, -(2**63), 2**63, -(2**64), 10**37, 0.0, -0.0, 1.0, float("nan"),
        float("inf"), struct.unpack("<d", b"\x01\x02\x03\x04\x05\x06\xf8\xff")[0], 5e-324, "", "é\0\U0001f600", b"",
        b"\xff\x00", Decimal("0"), Decimal("-0"), Decimal("0.00"), Decimal("1E+10"), Decimal("-12345678901234567890.12"),
        Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"),
    ],
)  # fmt: skip
def test_literals_are_exact(value: Any) -> None:
    round_trip(Literal(value, STRING))


def test_equal_values_of_different_kinds_stay_apart() -> None:
    round_trip(
        (0, 0.0, -0.0, False, Decimal(0), Decimal("0.0"), "0", b"0", 1, True, 1.0, "", b"", None, (), ((),))
    )


def test_names_and_nullability_inside_nested_types_are_kept() -> None:
    kinds = (
        pa.list_(pa.field("item", LONG)),
        pa.list_(pa.field("element", LONG)),
        pa.list_(pa.field("item", LONG, False)),
    )
    back = round_trip(tuple(Column("c", k) for k in kinds))
    assert [c.type.value_field for c in back] == [k.value_field for k in kinds]


def test_rows_of_a_memory_source_come_along_with_its_identity() -> None:
    back = round_trip(MEMORY)
    assert back.table.equals(TABLE)
    assert back.token == MEMORY.token


def test_what_is_shared_stays_shared_and_is_written_once() -> None:
    big = memory_source(pa.table({"a": list(range(100_000))}))
    scans = tuple(ScanExec(i, "t", big, ("a",)) for i in range(10))
    back = round_trip(scans)
    assert len({id(s.source) for s in back}) == 1
    assert len(to_bytes(scans)) < 1_000_000


def test_many_files_are_compact() -> None:
    files = tuple(
        DataFile(f"/data/d={i % 50}/part-{i:05}.parquet", 10**7 + i, 10**12 + i, (f"{i % 50}", i))
        for i in range(10_000)
    )
    source = ParquetSource(files, pa.schema([("a", LONG), ("d", STRING), ("n", LONG)]), ("d", "n"))
    assert len(to_bytes(round_trip(source))) < 1_000_000


def deep(levels: int) -> Expr:
    made: Expr = Column("c", pa.bool_())
    for _ in range(levels):
        made = Cast(made, pa.bool_())
    return made


def test_deep_plans_round_trip_and_deeper_ones_are_refused_on_both_sides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expr = from_bytes(to_bytes(deep(serialization.MAX_DEPTH - 1)), Expr)
    levels = 0
    while isinstance(expr, Cast):
        expr, levels = expr.child, levels + 1
    assert levels == serialization.MAX_DEPTH - 1
    with pytest.raises(SerializationError, match="deep"):
        to_bytes(deep(serialization.MAX_DEPTH))
    with monkeypatch.context() as patched:
        patched.setattr(serialization, "MAX_DEPTH", 10**6)
        data = to_bytes(deep(20_000))
    with pytest.raises(SerializationError, match="deep"):
        from_bytes(data, Expr)


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, object(), Literal([1], STRING), Literal("\ud800", STRING), A.__class__, len]
)
def test_what_has_no_form_is_named_when_writing(value: Any) -> None:
    with pytest.raises(SerializationError):
        to_bytes(value)


# --- plans of the planner -----------------------------------------------------------------------------------------

CONFIGS = [
    EngineConfig(),
    EngineConfig(small_bytes=0),
    EngineConfig(small_bytes=0, broadcast_bytes=0, parallelism=3),
]


@pytest.mark.parametrize("config", CONFIGS, ids=["one task", "broadcast", "shuffle"])
@pytest.mark.parametrize("name", sorted(LOGICAL))
def test_physical_plans_and_stages_round_trip(name: str, config: EngineConfig) -> None:
    plan = plan_query(LOGICAL[name], config)
    assert round_trip(plan) == plan
    graph = build_stages(plan, config)
    assert str(round_trip(graph)) == str(graph)
    for stage in graph.stages:
        assert round_trip(stage) == stage


@settings(**QUICK | {"max_examples": 40})
@given(
    st.lists(
        st.sampled_from(["filter", "project", "aggregate", "join", "sort", "limit", "union"]), max_size=6
    ),
    st.sampled_from(CONFIGS),
)
def test_planned_random_logical_plans_round_trip(steps: list[str], config: EngineConfig) -> None:
    plan: LogicalPlan = Scan("t", MEMORY)
    for i, step in enumerate(steps):
        key = plan.column(plan.schema.names[0])
        match step:
            case "filter":
                plan = Filter(plan, Call.of("gt", key, Literal(i, LONG)))
            case "project":
                plan = Projection(plan, (Named(Call.of("add", key, Literal(i, LONG)), f"p{i}"),))
            case "aggregate":
                plan = Aggregate(
                    plan, (Named(key, key.name),), (Named(AggregateCall.of("sum", key), f"s{i}"),)
                )
            case "join":
                other = Projection(Scan("t", MEMORY), (Named(A, f"j{i}"),))
                plan = Join(plan, other, JoinKind.LEFT, (JoinKey(key, other.column(f"j{i}")),))
            case "sort":
                plan = Sort(plan, (SortKey(key),))
            case "limit":
                plan = Limit(plan, 10 + i)
            case _:
                plan = Union((plan, plan))
    assert round_trip(plan) == plan
    physical = plan_query(plan, config)
    assert round_trip(physical) == physical
    assert round_trip(build_stages(physical, config))


# --- hostile bytes ------------------------------------------------------------------------------------------------


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
    with pytest.raises(SerializationError, match="expected LogicalPlan, the bytes hold FilterExec"):
        from_bytes(to_bytes(SMALL), LogicalPlan)


def test_a_node_that_refuses_its_arguments_is_a_serialization_error() -> None:
    def edit(message: Any) -> None:
        message.strings[list(message.strings).index("a")] = "nowhere"

    with pytest.raises(SerializationError, match="cannot be made"):
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
                or type(value) in registry().forms
                or isinstance(
                    value,
                    tuple | pa.DataType | pa.Schema | pa.Table | str | int | float | bytes | Decimal | Enum,
                )
            )
    assert refused > 100


# --- registration, and the message definition ---------------------------------------------------------------------


def test_a_source_of_ones_own_has_to_be_registered() -> None:
    @dataclasses.dataclass(frozen=True)
    class Mine(Source):
        path: str
        options: tuple[tuple[str, str], ...] = ()

        @property
        def schema(self) -> pa.Schema:
            return pa.schema([("a", LONG)])

        def splits(self) -> list[Split]:
            return []

        def read(self, split: Split, columns: Any) -> Any:
            return iter(())

    Mine.__annotations__.update(path=str, options=tuple[tuple[str, str], ...])
    scan = ScanExec(0, "t", Mine("here", (("k", "v"),)), ("a",))
    with pytest.raises(SerializationError, match="Mine has no serialized form"):
        to_bytes(scan)
    assert register_serializable(Mine) is Mine
    assert register_serializable(Mine) is Mine
    assert round_trip(scan) == scan


def test_only_what_can_be_written_can_be_registered() -> None:
    class Plain:
        pass

    @dataclasses.dataclass(frozen=True)
    class Odd:
        handle: Any

    Odd.__annotations__["handle"] = dict
    for cls in (Plain, Source, Odd):
        with pytest.raises(SerializationError):
            register_serializable(cls)


@pytest.mark.parametrize(
    "generated_code", [plan_pb2, orc_footer_pb2], ids=lambda m: m.__name__.rsplit(".")[-1]
)
def test_the_generated_code_is_of_its_definition(generated_code: Any) -> None:
    text = Path(generated_code.__file__.replace("_pb2.py", ".proto")).read_text()
    written = {}
    for name, body in re.findall(r"^message (\w+) \{(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        written[name] = {
            (m[2], int(m[3]), m[1], m[0] == "repeated ")
            for m in re.findall(r"^  (repeated |optional )?(\w+) (\w+) = (\d+)", body, re.MULTILINE)
        }
    descriptor = generated_code.DESCRIPTOR
    proto = descriptor_pb2.FileDescriptorProto()
    descriptor.CopyToProto(proto)
    kinds = {1: "double", 4: "uint64", 9: "string", 12: "bytes", 13: "uint32", 18: "sint64"}
    generated = {
        m.name: {
            (f.name, f.number, kinds.get(f.type) or f.type_name.split(".")[-1], f.label == 3) for f in m.field
        }
        for m in proto.message_type
    }
    assert generated == written

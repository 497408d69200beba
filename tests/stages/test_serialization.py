"""Plans as bytes: every class round-trips, exactly; only what was registered has a written form."""

from __future__ import annotations

import dataclasses
import re
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SerializationError
from kquery_spark.expr import AggregateCall, Call, Cast, Column, Expr, Literal, Named, SortKey
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Limit,
    LogicalPlan,
    Projection,
    Scan,
    Sort,
    Union,
)
from kquery_spark.logical.appended_columns import AppendsColumns
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import BinaryPlan, UnaryPlan
from kquery_spark.physical.operators import PhysicalPlan, ScanExec
from kquery_spark.physical.operators.base import BinaryExec, UnaryExec
from kquery_spark.physical.operators.python_exec import PythonExec
from kquery_spark.planner import plan_query
from kquery_spark.sources import orc_footer_pb2
from kquery_spark.sources.base import DataFile, Source, Split
from kquery_spark.sources.memory import memory_source
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.stages import plan_pb2, references
from kquery_spark.stages.graph import build_stages
from kquery_spark.stages.serializable import register_serializable, registry
from kquery_spark.stages.serialization import from_bytes, to_bytes
from tests.stages.plan_values import BASES, instances
from tests.stages.plans import CONFIGS, LOGICAL, LONG, MEMORY, STRING, TABLE, A


def same(left: Any, right: Any) -> bool:
    """Equality that distinguishes 0.0 from -0.0 and False from 0, and finds NaN equal to itself."""
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
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.explicit, Phase.generate),
}

# --- every class --------------------------------------------------------------------------------------------------


def house_classes() -> list[type]:
    """Every concrete class below the plan bases, found without the allow-list's help."""
    found, waiting = [], [Expr, LogicalPlan, PhysicalPlan, Source]
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        if (
            cls not in (*BASES, UnaryPlan, BinaryPlan, AppendsColumns, UnaryExec, BinaryExec, PythonExec)
            and not cls.__module__.startswith("tests")
            and cls.__module__ != __name__
        ):
            found.append(cls)
    return sorted(set(found), key=lambda c: c.__name__)


@pytest.mark.parametrize("cls", house_classes(), ids=lambda c: c.__name__)
def test_every_plan_class_is_on_the_allow_list(cls: type) -> None:
    assert cls in registry().formats or getattr(cls, "__abstractmethods__", None), (
        f"{cls} cannot be serialized"
    )


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
    expr = from_bytes(to_bytes(deep(references.MAX_DEPTH - 1)), Expr)
    levels = 0
    while isinstance(expr, Cast):
        expr, levels = expr.child, levels + 1
    assert levels == references.MAX_DEPTH - 1
    with pytest.raises(SerializationError, match="deep"):
        to_bytes(deep(references.MAX_DEPTH))
    with monkeypatch.context() as patched:
        patched.setattr(references, "MAX_DEPTH", 10**6)
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


@pytest.mark.parametrize("config", CONFIGS, ids=["one task", "broadcast", "shuffle"])
@pytest.mark.parametrize("name", sorted(LOGICAL.keys() - {"LateralJoin"}))  # a rule makes a join of it
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
    kinds = {
        1: "double",
        4: "uint64",
        8: "bool",
        9: "string",
        12: "bytes",
        13: "uint32",
        17: "sint32",
        18: "sint64",
    }
    generated = {
        m.name: {
            (f.name, f.number, kinds.get(f.type) or f.type_name.split(".")[-1], f.label == 3) for f in m.field
        }
        for m in proto.message_type
    }
    assert generated == written

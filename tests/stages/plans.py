"""Plans that the tests of their written form share: one of every logical class, and a table in memory."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import AggregateCall, Call, Cast, Column, InList, Literal, Named, SortKey, WindowCall
from kquery_spark.expr.windows import UP_TO_PEERS
from kquery_spark.logical import (
    Aggregate,
    CogroupPython,
    EvalPython,
    Expand,
    Filter,
    Generate,
    Generator,
    GroupPython,
    Input,
    Join,
    JoinKind,
    LastRound,
    LateralJoin,
    LateralQuery,
    Limit,
    LogicalPlan,
    MapPython,
    Projection,
    Recursion,
    RecursionLimits,
    Scan,
    SetKind,
    SetOperation,
    SingleRow,
    Sort,
    TablePython,
    Union,
    Window,
    WindowGroupLimit,
    WindowPython,
)
from kquery_spark.logical.cogroup_python import CogroupSide
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.sources.memory import memory_source

LONG, INT, STRING, DOUBLE = pa.int64(), pa.int32(), pa.string(), pa.float64()
TABLE = pa.table({"a": pa.array([1, 2, None], LONG), "s": pa.array(["x", None, "y"], STRING)})
MEMORY = memory_source(TABLE)
A = Column("a", LONG)


def _logical() -> dict[str, LogicalPlan]:
    scan = Scan("t", MEMORY, ("a", "s"), (Call.of("gt", A, Literal(1, LONG)),))
    other = Projection(scan, (Named(A, "b"), Named(Cast(A, STRING), "text")))
    b = Column("b", LONG)
    join = Join(scan, other, JoinKind.LEFT, (JoinKey(A, b, True),), Call.of("lt", A, b))
    total = Named(
        AggregateCall.of("sum", A, condition=InList(A, (Literal(1, LONG), Literal(2, LONG)))), "total"
    )
    rounds = LastRound("r", pa.schema([("c", LONG), ("d", STRING)]))
    calls = PythonCalls(pa.schema([("v", LONG)]), ("f(#a)",), b"code", 10)
    made = [
        scan, other, join, Aggregate(join, (Named(b, "b"),), (total,)), Input("input", scan.schema, "k"),
        Filter(join, Call.of("isnotnull", A)), Sort(join, (SortKey(A, False, False),)), Limit(scan, None, 3),
        Union((scan, Filter(scan, Literal(True, pa.bool_())))),
        Window(scan, (Named(WindowCall.of("sum", A, frame=UP_TO_PEERS), "w"),), (A,), (SortKey(A, False, False),)),
        WindowGroupLimit(scan, (A,), (SortKey(A),), "rank", 3), SetOperation(scan, scan, SetKind.EXCEPT, True),
        LateralJoin(other, LateralQuery(scan, (Named(b, "outer_b"),)), JoinKind.LEFT), rounds,
        Recursion(scan, rounds, "r", RecursionLimits(5, None, 10)),
        EvalPython(scan, (A,), calls, ("s",)), GroupPython(scan, (Named(A, "a"),), (A,), calls, True), MapPython(scan, (A,), calls),
        CogroupPython(scan, other, CogroupSide((A,), (A,)), CogroupSide((b,), (b,)), calls),
        WindowPython(scan, (A,), (SortKey(A),), (UP_TO_PEERS,), (A,), calls, ("s",)),
        TablePython(scan, (A,), calls, (A,), (SortKey(A),), ()),
        Expand(scan, ((A, Literal(None, LONG)), (A, A)), ("x", "y")),
        Generate(scan, Generator.REPLICATE, (A,), (), required=("s",)), SingleRow(scan),
    ]  # fmt: skip
    return {type(plan).__name__: plan for plan in made}


LOGICAL = _logical()

CONFIGS = [
    EngineConfig(),
    EngineConfig(small_bytes=0),
    EngineConfig(small_bytes=0, broadcast_bytes=0, parallelism=3),
]

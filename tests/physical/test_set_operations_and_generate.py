from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from kquery_spark.expr import AggregateCall, Call, Expr
from kquery_spark.logical import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Generator,
    LogicalPlan,
    Projection,
    SetKind,
    SetOperation,
    Window,
)
from kquery_spark.optimizer import optimize
from kquery_spark.physical import pairs
from kquery_spark.physical.operators import GenerateExec, TaskContext
from kquery_spark.types import names as t
from tests.physical.harness import (
    assert_like_spark,
    batches_of,
    c,
    call,
    execute,
    lit,
    named,
    read,
    register,
    scan,
)
from tests.physical.test_window import ROWS, WHOLE_PARTITION, WindowCall

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")
LEFT = pa.table(
    {
        "a": pa.array([1, 1, 1, 2, None, None, 3, 4], pa.int32()),
        "b": ["x", "x", "y", None, "z", "z", "w", "w"],
        "f": [0.0, -0.0, NAN, 1.0, None, None, 2.0, 2.0],
    }
)
RIGHT = pa.table(
    {
        "p": pa.array([1, 2, None, 3, 3, 1, 9], pa.int32()),
        "q": ["x", None, "z", "w", "w", "y", "x"],
        "r": [0.0, 1.0, None, 2.0, 2.0, NAN, 0.0],
    }
)
NESTED = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "xs": pa.array([[1, None, 3], [], None, [4]], pa.list_(pa.int64())),
        "ss": pa.array([["a"], ["b", None], None, []], pa.list_(pa.string())),
        "m": pa.array([[("k", 1), ("j", None)], [], None, [("z", 5)]], pa.map_(pa.string(), pa.int32())),
        "st": pa.array(
            [[{"p": 1, "q": "x"}, {"p": None, "q": "y"}], None, [], [None, {"p": 2, "q": None}]],
            pa.list_(pa.struct([("p", pa.int64()), ("q", pa.string())])),
        ),
    }
)


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession) -> None:
    register(spark, setl=LEFT, setr=RIGHT, nested=NESTED, win=ROWS)


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("kind", list(SetKind))
def test_set_operations(kind: SetKind, every: bool, spark: SparkSession) -> None:
    word = f"{kind.upper()}{' ALL' if every else ''}"
    assert_like_spark(
        spark,
        f"SELECT * FROM setl {word} SELECT * FROM setr",
        SetOperation(scan(LEFT), scan(RIGHT), kind, every),
    )
    plan = SetOperation(scan(LEFT), scan(RIGHT), kind, every)
    low = Filter(plan, call("lt", c(plan, "a"), lit(3, t.INT)))
    assert_like_spark(spark, f"SELECT * FROM (SELECT * FROM setl {word} SELECT * FROM setr) WHERE a < 3", low)


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("column", ["xs", "ss", "m"])
@pytest.mark.parametrize("generator", [Generator.EXPLODE, Generator.POSEXPLODE])
def test_explode(generator: Generator, column: str, outer: bool, spark: SparkSession) -> None:
    child = scan(NESTED, rows_each=2)
    names = (["pos"] if generator is Generator.POSEXPLODE else []) + (["k", "v"] if column == "m" else ["v"])
    plan = Generate(child, generator, (c(child, column),), tuple(names), outer, ("id",))
    view = f"LATERAL VIEW {'OUTER ' if outer else ''}{generator}({column}) g AS {', '.join(names)}"
    assert_like_spark(spark, f"SELECT id, {', '.join(names)} FROM nested {view}", plan)


@pytest.mark.parametrize("outer", [False, True])
def test_inline(outer: bool, spark: SparkSession) -> None:
    child = scan(NESTED, rows_each=2)
    plan = Generate(child, Generator.INLINE, (c(child, "st"),), ("p", "q"), outer, ("id",))
    view = f"LATERAL VIEW {'OUTER ' if outer else ''}inline(st) g AS p, q"
    assert_like_spark(spark, f"SELECT id, p, q FROM nested {view}", plan)


def test_stack(spark: SparkSession) -> None:
    child = scan(LEFT, rows_each=5)
    args = (c(child, "a"), c(child, "b"), lit(7, t.INT), lit("t", t.STRING), c(child, "a"))
    plan = Generate(child, Generator.STACK, args, ("u", "v"), required=("f",))
    assert_like_spark(
        spark, "SELECT f, u, v FROM setl LATERAL VIEW stack(3, a, b, 7, 't', a) g AS u, v", plan
    )


GENERATORS = {
    Generator.EXPLODE: ("n", ["v"]),
    Generator.POSEXPLODE: ("m", ["pos", "k", "v"]),
    Generator.INLINE: ("st", ["p"]),
    Generator.STACK: ("id", ["v"]),
    Generator.REPLICATE: ("id", []),
}


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("generator", list(GENERATORS))
def test_rows_are_generated_in_batches_of_limited_size(
    generator: Generator, outer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten input rows generate 0 to 9 rows each, at most 12 in a batch. A row is only divided if it is replicated."""
    counts, limit = range(10), 12
    table = pa.table(
        {
            "id": pa.array(counts, pa.int64()),
            "n": pa.array([list(range(i)) for i in counts], pa.list_(pa.int64())),
            "m": pa.array([[(j, j) for j in range(i)] for i in counts], pa.map_(pa.int64(), pa.int64())),
            "st": pa.array(
                [[{"p": j} for j in range(i)] for i in counts], pa.list_(pa.struct([("p", pa.int64())]))
            ),
        }
    )
    child = scan(table)
    argument, names = GENERATORS[generator]
    args = (c(child, argument),) * (5 if generator is Generator.STACK else 1)
    logical = Generate(child, generator, args, tuple(names), outer, ("id",))
    plan = GenerateExec(read(table), generator, args, outer, ("id",), logical.schema)
    want, _ = execute(plan, {"t": table}, rows=10)
    monkeypatch.setattr(pairs, "MAX_PAIRS", limit)
    task = TaskContext(inputs={"t": lambda: iter(batches_of(table))})
    batches = list(plan.run(task))
    assert pa.Table.from_batches([b.to_arrow() for b in batches], schema=plan.schema).equals(want)
    assert len(batches) > 3 and max(b.num_rows for b in batches) <= limit + outer


def test_copies_of_one_row_are_output_in_batches_of_limited_size() -> None:
    table = pa.table({"id": pa.array([5_000_000], pa.int64()), "s": ["x"]})
    child = scan(table)
    args = (c(child, "id"),)
    plan = GenerateExec(read(table), Generator.REPLICATE, args, False, ("s",), pa.schema([table.field("s")]))
    batches = plan.run(TaskContext(inputs={"t": lambda: iter(batches_of(table))}))
    sizes = [batch.num_rows for batch in batches]
    assert sum(sizes) == 5_000_000 and max(sizes) <= pairs.MAX_PAIRS


SETS = {
    "ROLLUP (g, b)": [(True, True), (True, False), (False, False)],
    "CUBE (g, b)": [(True, True), (True, False), (False, True), (False, False)],
    "GROUPING SETS ((g), (b), (b))": [(True, False), (False, True), (False, True)],
}


@pytest.mark.parametrize("text", list(SETS))
def test_grouping_sets_are_expanded_rows(text: str, spark: SparkSession) -> None:
    child = scan(ROWS)
    null_g, null_b = lit(None, t.STRING), lit(None, t.BOOL)
    projections: list[tuple[Expr, ...]] = []
    for place, (g, b) in enumerate(SETS[text]):
        bits = lit((0 if g else 2) + (0 if b else 1), t.LONG)
        one: tuple[Expr, ...] = (
            c(child, "o"),
            c(child, "g") if g else null_g,
            c(child, "b") if b else null_b,
            bits,
        )
        projections.append((*one, lit(place if "SETS" in text else 0, t.LONG)))
    expand = Expand(child, tuple(projections), ("o", "g", "b", "gid", "pos"))
    keys = tuple(named(c(expand, n), n) for n in ("g", "b", "gid", "pos"))
    grouped = Aggregate(
        expand,
        keys,
        (
            named(AggregateCall.of("sum", c(expand, "o")), "s"),
            named(AggregateCall.of("count", c(expand, "o"), distinct=True), "d"),
        ),
    )
    plan = Projection(grouped, tuple(named(c(grouped, n), n) for n in ("g", "b", "gid", "s", "d")))
    assert_like_spark(
        spark, f"SELECT g, b, grouping_id(), sum(o), count(DISTINCT o) FROM win GROUP BY {text}", plan
    )


def wide(plan: LogicalPlan) -> list[str]:
    """Columns the scans of the optimized plan read."""
    done = optimize(plan)
    found: list[str] = []

    def visit(node: LogicalPlan) -> None:
        if not node.children:
            found.extend(node.schema.names)
        for child in node.children:
            visit(child)

    visit(done)
    return found


def test_columns_and_filters_move_through_the_new_nodes(spark: SparkSession) -> None:
    child = scan(ROWS)
    over = Window(
        child,
        (
            named(WindowCall.of("sum", c(child, "o"), frame=WHOLE_PARTITION), "total"),
            named(WindowCall.of("max", c(child, "d"), frame=WHOLE_PARTITION), "m"),
        ),
        (c(child, "g"),),
    )
    some = Filter(
        over,
        Call.of(
            "and", call("eq", c(over, "g"), lit("a", t.STRING)), call("gt", c(over, "id"), lit(3, t.INT))
        ),
    )
    shown = Projection(some, (named(c(some, "id"), "id"), named(c(some, "total"), "total")))
    sql = "SELECT id, total FROM (SELECT *, sum(o) OVER (PARTITION BY g) AS total FROM win) WHERE g = 'a' AND id > 3"
    assert_like_spark(spark, sql, shown)
    assert sorted(wide(shown)) == ["g", "id", "o"]
    text = str(optimize(shown))
    assert text.index("Window") < text.index("'a'") and text.index("#id > 3") < text.index("Window")

    child = scan(NESTED)
    made = Generate(child, Generator.EXPLODE, (c(child, "xs"),), ("v",))
    some = Filter(
        made,
        Call.of("and", call("lt", c(made, "id"), lit(4, t.INT)), call("gt", c(made, "v"), lit(1, t.LONG))),
    )
    shown = Projection(some, (named(c(some, "v"), "v"),))
    assert_like_spark(
        spark, "SELECT v FROM nested LATERAL VIEW explode(xs) AS v WHERE id < 4 AND v > 1", shown
    )
    assert sorted(wide(shown)) == ["xs"]

    both = SetOperation(scan(LEFT), scan(RIGHT), SetKind.EXCEPT)
    some = Filter(both, call("eq", c(both, "b"), lit("x", t.STRING)))
    assert str(optimize(some)).count("'x'") == 2

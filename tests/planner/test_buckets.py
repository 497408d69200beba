"""Bucketed inputs are joined, grouped and windowed without a shuffle, and every way of running gives the same rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Call, InList, Literal, Named, SortKey, WindowCall
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    LogicalPlan,
    Projection,
    Scan,
    Sort,
    Union,
    Window,
)
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.pruning import prune
from kquery_spark.optimizer import optimize
from kquery_spark.planner import plan_query
from kquery_spark.runtime.local import LocalExecutor
from kquery_spark.sources.bucketing import BucketSpec, bucketed_files
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.stages import build_stages

BUCKETED = EngineConfig(parallelism=2, small_bytes=0, broadcast_bytes=0, split_bytes=20_000)
ONE_TASK = EngineConfig(small_bytes=1 << 40)
RNG = np.random.default_rng(11)


def bucketed_scan(directory: Path, name: str, rows: pa.Table, columns: tuple[str, ...], count: int) -> Scan:
    """The rows as a table that Spark could have bucketed, with two files in each bucket."""
    context = kq.ExecutionContext()
    context.register_arrow("rows", rows)
    numbers = context.sql(f"SELECT pmod(hash({', '.join(columns)}), {count}) AS b FROM rows").to_arrow()["b"]
    (directory / name).mkdir()
    for bucket in range(count):
        mine = rows.filter(pa.compute.equal(numbers, bucket))
        for part in range(2):
            half = mine.slice(part * (mine.num_rows // 2), mine.num_rows // 2 + part)
            pq.write_table(half, directory / name / f"part-0000{part}-x_{bucket:05d}.c000.snappy.parquet")
    source = parquet_source([str(directory / name)])
    bucketing = bucketed_files(BucketSpec(columns, count), [file.path for file in source.files])
    return Scan(name, replace(source, bucketing=bucketing))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scan]:
    """a and b by their first columns into 8 and 4 buckets, c into 3; two and other by two columns into 4; plain: none."""
    directory: Path = tmp_path_factory.mktemp("bucketed")

    def rows(prefix: str, count: int) -> pa.Table:
        key = RNG.integers(0, 300, count)
        strings = np.array(["x", "yy", "zzz"])[RNG.integers(0, 3, count)]
        return pa.table(
            {
                f"{prefix}k": pa.array(key, mask=key == 7),
                f"{prefix}s": pa.array(strings, mask=strings == "yy"),
                f"{prefix}v": np.arange(count),
            }
        )

    by_key = {name: rows(name, count) for name, count in (("a", 4000), ("b", 2500), ("c", 1000))}
    scans = {
        name: bucketed_scan(directory, name, by_key[name], (f"{name}k",), count)
        for name, count in (("a", 8), ("b", 4), ("c", 3))
    }
    for name, count in (("d", 3000), ("e", 2000)):
        scans[name] = bucketed_scan(directory, name, rows(name, count), (f"{name}k", f"{name}s"), 4)
    return scans


def stages(plan: LogicalPlan, config: EngineConfig = BUCKETED) -> int:
    return len(build_stages(plan_query(optimize(plan), config), config).stages)


def rows_of(plan: LogicalPlan, config: EngineConfig) -> list[tuple[object, ...]]:
    physical = plan_query(optimize(plan), config)
    table = LocalExecutor(build_stages(physical, config), config).table()
    return sorted(zip(*(c.to_pylist() for c in table.columns), strict=True), key=repr)


def join(tables: dict[str, Scan], left: str, right: str, kind: JoinKind, columns: str = "k") -> Join:
    one, other = tables[left], tables[right]
    keys = tuple(JoinKey(one.column(left + c), other.column(right + c)) for c in columns)
    return Join(one, other, kind, keys, exists="found" if kind is JoinKind.EXISTENCE else "")


@pytest.mark.parametrize("kind", list(JoinKind))
@pytest.mark.parametrize(
    ("sides", "columns", "expected"),
    [
        ("ab", "k", 1),  # 8 and 4 buckets go together
        ("ab", "ks", 1),  # a further key
        ("de", "ks", 1),
        ("de", "sk", 1),
        ("de", "k", 3),  # rows with equal keys are in several buckets
        ("ac", "k", 2),  # neither 8 nor 3 can be cut into the other: the rows of c go to the buckets of a
        ("ca", "k", 2),
        ("ad", "ks", 2),
    ],
)
def test_joins(tables: dict[str, Scan], kind: JoinKind, sides: str, columns: str, expected: int) -> None:
    plan = join(tables, *sides, kind, columns)
    assert stages(plan) == expected
    assert rows_of(plan, BUCKETED) == rows_of(plan, ONE_TASK)


@pytest.mark.parametrize(
    ("table", "columns", "expected"),
    [("a", "k", 1), ("a", "ks", 1), ("a", "s", 2), ("d", "ks", 1), ("d", "sk", 1), ("d", "k", 2)],
)
def test_groups_and_windows(tables: dict[str, Scan], table: str, columns: str, expected: int) -> None:
    scan = tables[table]
    value = scan.column(f"{table}v")
    keys = tuple(Named(scan.column(table + c), c) for c in columns)
    distinct = AggregateCall.of("count", scan.column(f"{table}s"), distinct=True)
    totals = (Named(AggregateCall.of("sum", value), "total"), Named(distinct, "strings"))
    grouped = Aggregate(scan, keys, totals[:1])
    number = Named(WindowCall.of("row_number"), "number")
    window = Window(scan, (number,), tuple(k.expr for k in keys), (SortKey(value),))
    for plan in (grouped, window):
        assert stages(plan) == expected, plan
        assert rows_of(plan, BUCKETED) == rows_of(plan, ONE_TASK)
    assert rows_of(Aggregate(scan, keys, totals), BUCKETED) == rows_of(
        Aggregate(scan, keys, totals), ONE_TASK
    )


def test_what_is_above_a_join_of_buckets(tables: dict[str, Scan]) -> None:
    joined = join(tables, "a", "b", JoinKind.LEFT)
    count = (Named(AggregateCall.of("count"), "n"),)
    by_left = Aggregate(joined, (Named(joined.column("ak"), "k"),), count)
    by_padded = Aggregate(joined, (Named(joined.column("bk"), "k"),), count)
    renamed = Projection(tables["b"], (Named(tables["b"].column("bk"), "x"),))
    again = Join(by_left, renamed, JoinKind.INNER, (JoinKey(by_left.column("k"), renamed.column("x")),))
    ordered = Sort(by_left, (SortKey(by_left.column("k")),))
    for plan, expected in ((by_left, 1), (by_padded, 2), (again, 1), (ordered, 2)):
        assert stages(plan) == expected, plan
        assert rows_of(plan, BUCKETED) == rows_of(plan, ONE_TASK)


def test_the_last_sort_of_bucketed_rows_is_not_one_by_ranges(tables: dict[str, Scan]) -> None:
    scan = tables["a"]
    totals = (Named(AggregateCall.of("sum", scan.column("av")), "total"),)
    grouped = Aggregate(scan, (Named(scan.column("ak"), "k"),), totals)
    plan = optimize(Sort(grouped, (SortKey(grouped.column("k")),)))
    config = replace(BUCKETED, driver_bytes=0)
    physical = plan_query(plan, config, shared_sort=True)
    keys = LocalExecutor(build_stages(physical, config), config).table()["k"].to_pylist()
    assert keys == sorted(keys, key=lambda k: (k is not None, k))


def test_inputs_of_a_union_share_the_tasks(tables: dict[str, Scan]) -> None:
    inputs = [
        Projection(tables[n], (Named(tables[n].column(f"{n}k"), "k"), Named(tables[n].column(f"{n}v"), "v")))
        for n in ("a", "b", "c")
    ]
    union = Union(tuple(inputs))
    totals = (Named(AggregateCall.of("sum", union.column("v")), "total"),)
    plan = Aggregate(union, (Named(union.column("k"), "k"),), totals)
    assert rows_of(plan, BUCKETED) == rows_of(plan, ONE_TASK)


def test_too_few_or_uneven_buckets_are_shuffled(tables: dict[str, Scan]) -> None:
    plan = join(tables, "a", "b", JoinKind.INNER)
    assert stages(plan, replace(BUCKETED, parallelism=4)) == 1
    assert stages(plan, replace(BUCKETED, parallelism=8)) == 2
    assert stages(plan, replace(BUCKETED, parallelism=16)) == 3
    few = Filter(tables["a"], InList(tables["a"].column("ak"), (Literal(3, pa.int64()),)))
    grouped = Aggregate(few, (Named(few.column("ak"), "k"),), (Named(AggregateCall.of("count"), "n"),))
    assert rows_of(grouped, BUCKETED) == rows_of(grouped, ONE_TASK)


def test_filters_leave_buckets_out(tables: dict[str, Scan]) -> None:
    key, value = tables["a"].column("ak"), tables["a"].column("av")
    five, nothing = Literal(5, pa.int64()), Literal(None, pa.int64())
    one = Call.of("eq", key, five)
    other = Call.of("eq", value, five)
    for condition, buckets in (
        (one, 1),
        (Call.of("eq", five, key), 1),
        (Call.of("eq_null_safe", key, nothing), 1),
        (Call.of("isnull", key), 1),
        (InList(key, (five, Literal(6, pa.int64()), Literal(8, pa.int64()))), 3),
        (Call.of("and", one, other), 1),
        (Call.of("or", one, other), 8),
        (Call.of("or", one, Call.of("isnull", key)), 2),
        (Call.of("lt", key, five), 8),
    ):
        source = tables["a"].source
        splits = source.splits()
        assert source.bucketing is not None
        left = {source.bucketing.files[split.file] for split in prune(replace(source), [condition])}
        assert len(left) <= buckets, condition
        if buckets == 8:
            assert len({source.bucketing.files[s.file] for s in splits}) == 8
        plan = Filter(tables["a"], condition)
        assert rows_of(plan, BUCKETED) == rows_of(plan, ONE_TASK)
    by_two = Call.of("eq", tables["d"].column("dk"), five)
    assert rows_of(Filter(tables["d"], by_two), BUCKETED) == rows_of(Filter(tables["d"], by_two), ONE_TASK)


@pytest.mark.parametrize("name", ["part-0.parquet", "part_x.parquet", "part_00008.parquet"])
def test_a_file_that_is_in_no_bucket(name: str) -> None:
    spec = BucketSpec(("k",), 8)
    assert bucketed_files(spec, ["/t/a_b_00003", "/t_9/x_1_7.c000.zstd.parquet"]).files == (3, 7)
    with pytest.raises(Unsupported, match=name):
        bucketed_files(spec, [f"/t_00001/{name}"])

"""The worked examples about types and sources, with the answers they state."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SourceError
from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.orc.source import orc_source
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.types.batch import Batch

MANY_TASKS = EngineConfig(parallelism=4, small_bytes=-1, split_bytes=1)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (pa.bool_(), "boolean"), (pa.int8(), "tinyint"), (pa.int16(), "smallint"), (pa.int32(), "int"),
        (pa.int64(), "bigint"), (pa.uint8(), "smallint"), (pa.uint16(), "int"), (pa.uint32(), "bigint"),
        (pa.uint64(), "decimal(20,0)"), (pa.float32(), "float"), (pa.float64(), "double"), (pa.string(), "string"),
        (pa.large_string(), "string"), (pa.string_view(), "string"), (pa.binary(), "binary"), (pa.date32(), "date"),
        (pa.timestamp("us", "UTC"), "timestamp"), (pa.timestamp("us"), "timestamp_ntz"),
        (pa.duration("us"), "interval day to second"), (pa.decimal128(9, 2), "decimal(9,2)"),
        (pa.list_(pa.int64()), "array<bigint>"), (pa.struct([("x", pa.int32())]), "struct<x:int>"),
        (pa.map_(pa.string(), pa.int64()), "map<string,bigint>"),
    ],
)  # fmt: skip
def test_arrow_types_have_their_spark_types_and_keep_their_values(given: pa.DataType, name: str):
    context = kq.ExecutionContext()
    schema = pa.schema([pa.field("may", given), pa.field("must", pa.int32(), nullable=False)])
    context.register_arrow("t", pa.table([pa.nulls(2, given), pa.array([1, 2], pa.int32())], schema=schema))
    frame = context.table("t")
    assert frame.dtypes == [("may", name), ("must", "int")]
    assert [f.nullable for f in frame.schema] == [True, False]  # nullability is a part of a field
    assert frame.collect() == [{"may": None, "must": 1}, {"may": None, "must": 2}]


def test_the_largest_unsigned_values_stay_what_they_are():
    context = kq.ExecutionContext()
    columns = {f"u{b}": pa.array([2**b - 1], getattr(pa, f"uint{b}")()) for b in (8, 16, 32, 64)}
    context.register_arrow("t", pa.table(columns))
    found = context.sql("SELECT u8 + u16 AS a, u32 + 0 AS b, u64 AS c FROM t").collect()
    assert found == [{"a": 255 + 65535, "b": 2**32 - 1, "c": 2**64 - 1}]


def test_intervals_are_added_to_columns():
    context = kq.ExecutionContext()
    table = {
        "d": [dt.date(2024, 1, 31)],
        "ts": [dt.datetime(2024, 1, 31, 10)],
        "i": pa.array([3_600_000_000], pa.duration("us")),
    }
    context.register_arrow("t", pa.table(table))
    found = context.sql(
        "SELECT d + INTERVAL '1' MONTH AS a, d - INTERVAL '1' DAY AS b, ts + INTERVAL '1' DAY AS c, ts - i AS e,"
        " d + INTERVAL '1-1' YEAR TO MONTH AS f FROM t"
    )
    assert found.collect() == [
        {
            "a": dt.date(2024, 2, 29),
            "b": dt.date(2024, 1, 30),
            "c": dt.datetime(2024, 2, 1, 10),
            "e": dt.datetime(2024, 1, 31, 9),
            "f": dt.date(2025, 2, 28),
        }
    ]


@dataclass(frozen=True)
class Countdown(Source):
    """A source of a user's own: ``n``, ``n - 1`` ... 1 and their squares; it notes what it was asked for."""

    asked: ClassVar[list[tuple[str, ...]]] = []
    n: int

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field("x", pa.int64(), False), pa.field("square", pa.int64(), False)])

    def splits(self) -> list[Split]:
        return [Split(0, (0,), self.n, 16 * self.n)]

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        self.asked.append(tuple(columns))
        x = pa.array(range(self.n, 0, -1), pa.int64())
        made = {"x": x, "square": pa.array([v.as_py() ** 2 for v in x], pa.int64())}
        schema = pa.schema([self.schema.field(c) for c in columns])
        yield Batch(schema, tuple(made[c] for c in columns), self.n)


def test_a_source_of_ones_own_is_asked_for_the_columns_of_the_query():
    context = kq.ExecutionContext()
    context.register_source("t", Countdown(3))
    Countdown.asked.clear()
    assert context.sql("SELECT square FROM t").collect() == [{"square": 9}, {"square": 4}, {"square": 1}]
    assert context.table("t").collect()[0] == {"x": 3, "square": 9}
    # no column and all columns are different things, and rows without columns are still counted
    assert context.sql("SELECT count(*) AS n FROM t").collect() == [{"n": 3}]
    assert Countdown.asked == [("square",), ("x", "square"), ()]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("PERMISSIVE", [{"id": 1, "name": "a"}, {"id": None, "name": "b"}, {"id": 3, "name": None}]),
        ("DROPMALFORMED", [{"id": 1, "name": "a"}]),
        ("FAILFAST", None),
    ],
)
def test_malformed_csv_rows_by_mode(mode: str, expected: list[dict[str, Any]] | None, tmp_path: Path):
    (tmp_path / "t.csv").write_text("id,name\n1,a\nx,b\n3\n")
    context = kq.ExecutionContext()
    context.register_csv("t", tmp_path / "t.csv", schema="id int, name string", mode=mode)
    if expected is None:
        with pytest.raises(Exception, match="MALFORMED_RECORD"):
            context.table("t").collect()
    else:
        assert context.table("t").collect() == expected


@pytest.mark.parametrize("config", [EngineConfig(), MANY_TASKS], ids=["one task", "many tasks"])
def test_every_row_group_is_read_exactly_once(config: EngineConfig, tmp_path: Path):
    for number in range(3):
        rows = pa.table({"x": range(100 * number, 100 * number + 100)})
        pq.write_table(rows, tmp_path / f"{number}.parquet", row_group_size=7)
    context = kq.ExecutionContext(config=config)
    context.register_parquet("t", tmp_path)
    assert sum(len(s.pieces) for s in parquet_source([str(tmp_path)]).splits()) == 3 * 15
    assert sorted(r["x"] for r in context.table("t").collect()) == list(range(300))
    assert context.sql("SELECT count(*) AS n, sum(x) AS s FROM t").collect() == [{"n": 300, "s": 44850}]


def test_row_groups_that_cannot_match_are_not_read(tmp_path: Path):
    pq.write_table(pa.table({"x": range(100)}), tmp_path / "t.parquet", row_group_size=10)
    context = kq.ExecutionContext()
    context.register_parquet("t", tmp_path / "t.parquet")
    frame = context.sql("SELECT x FROM t WHERE x BETWEEN 42 AND 51")
    assert "splits=2" in frame.explain()  # 40 to 49 and 50 to 59
    assert [r["x"] for r in frame.collect()] == list(range(42, 52))
    nothing = context.sql("SELECT x FROM t WHERE x > 1000")
    assert "splits=0" in nothing.explain() and nothing.collect() == []


def test_every_stripe_of_orc_is_read_exactly_once(tmp_path: Path):
    rows = pa.table({"x": np.random.default_rng(1).permutation(200_000)})
    orc.write_table(rows, tmp_path / "t.orc", stripe_size=64 * 1024, batch_size=1024)
    splits = orc_source([str(tmp_path / "t.orc")]).splits()
    assert len(splits) > 1
    context = kq.ExecutionContext(config=MANY_TASKS)
    context.register_orc("t", tmp_path / "t.orc")
    found = context.sql("SELECT count(*) AS n, count(DISTINCT x) AS d, max(x) AS m FROM t").collect()
    assert found == [{"n": 200_000, "d": 200_000, "m": 199_999}]


def test_json_is_nested(tmp_path: Path):
    lines = [
        {"id": 1, "who": {"name": "Ann", "tags": ["x", "y"]}},
        {"id": 2, "who": None},
        {"who": {"name": "Bo"}},
    ]
    (tmp_path / "t.json").write_text("\n".join(map(json.dumps, lines)))
    context = kq.ExecutionContext()
    context.register_json("t", tmp_path / "t.json")
    found = context.sql("SELECT id, who.name AS name, who.tags[1] AS tag FROM t").collect()
    assert found == [
        {"id": 1, "name": "Ann", "tag": "y"},
        {"id": 2, "name": None, "tag": None},
        {"id": None, "name": "Bo", "tag": None},
    ]


def test_as_many_tasks_as_asked_for_however_many_files(tmp_path: Path):
    for number in range(40):
        pq.write_table(pa.table({"x": [number]}), tmp_path / f"{number}.parquet")
    for parallelism in (2, 3):
        context = kq.ExecutionContext(config=EngineConfig(parallelism=parallelism, small_bytes=-1))
        context.register_parquet("t", tmp_path)
        frame = context.sql("SELECT count(*) AS n, sum(x) AS s FROM t")
        assert f"stage-1: {parallelism} task(s)" in frame.explain()
        assert frame.collect() == [{"n": 40, "s": 780}]


def test_a_file_changed_since_the_plan_is_an_error_not_another_answer(tmp_path: Path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "t.parquet")
    context = kq.ExecutionContext()
    context.register_parquet("t", tmp_path / "t.parquet")
    frame = context.table("t")
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="changed"):
        frame.collect()

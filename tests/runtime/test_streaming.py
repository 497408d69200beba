"""Results batch by batch in this process: order, errors, and that unread batches are not computed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import ExecutionError
from kquery_spark.sources.base import Source, Split
from kquery_spark.types.batch import Batch
from tests.conftest import worker_environment

SCHEMA = pa.schema([pa.field("x", pa.int64(), False)])


@dataclass(frozen=True)
class Counted(Source):
    """``pieces`` splits of ten batches of a hundred numbers; ``made`` holds the first number of each batch read."""

    columnar: ClassVar[bool] = True
    pieces: int
    made: list[int] = field(default_factory=list, compare=False)

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA

    def splits(self) -> list[Split]:
        return [Split(0, (i,), 1000, 2**30) for i in range(self.pieces)]

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        for start in range(split.pieces[0] * 1000, (split.pieces[0] + 1) * 1000, 100):
            self.made.append(start)
            yield Batch.from_arrow(
                pa.record_batch([pa.array(range(start, start + 100))], schema=SCHEMA), SCHEMA
            )


def context(pieces: int, **config: Any) -> tuple[kq.ExecutionContext, Counted]:
    made = kq.ExecutionContext(config=EngineConfig(**{"parallelism": 2, "batch_rows": 100, **config}))
    source = Counted(pieces)
    made.register_source("numbers", source)
    return made, source


def test_batches_come_in_the_order_of_the_whole_result():
    ctx, _ = context(5)
    frame = ctx.sql("SELECT x, x % 3 AS r, x FROM numbers WHERE x % 2 = 0")
    reader = frame.to_reader()
    assert reader.schema == frame.to_arrow().schema
    assert reader.schema.names == ["x", "r", "x"] and not reader.schema.field(0).nullable
    assert reader.read_all().equals(frame.to_arrow())


def test_nothing_runs_before_it_is_asked_for_and_little_ahead():
    ctx, source = context(50)
    with ctx.table("numbers").to_reader() as reader:
        assert source.made == []
        assert reader.read_next_batch()["x"][0].as_py() == 0
        time.sleep(0.5)
        # two tasks, a few batches each, and what they hold in hand
        assert 1 <= len(source.made) <= 20
    del reader  # waits for the tasks
    before = len(source.made)
    time.sleep(0.5)
    assert len(source.made) == before, "a deleted reader stops the tasks"


def test_stages_before_the_last_one_run_whole():
    ctx, source = context(5)
    frame = ctx.sql("SELECT x % 10 AS k, count(*) AS n FROM numbers GROUP BY x % 10 ORDER BY k")
    assert frame.to_reader().read_all().to_pydict() == {"k": list(range(10)), "n": [500] * 10}
    assert len(source.made) == 50


def test_an_error_comes_after_the_rows_before_it():
    ctx, _ = context(3)
    reader = ctx.sql("SELECT 1 / (x - 1550) AS y FROM numbers").to_reader()
    rows = 0
    with pytest.raises(ExecutionError, match="DIVIDE_BY_ZERO"):
        while True:
            rows += reader.read_next_batch().num_rows
    assert 1000 <= rows <= 1500


def test_an_abandoned_reader_leaves_no_thread():
    ctx, _ = context(50)
    before = set(threading.enumerate())
    reader = ctx.table("numbers").to_reader()
    reader.read_next_batch()
    started = set(threading.enumerate()) - before
    assert started
    del reader
    for thread in started:
        thread.join(30)
    assert not any(thread.is_alive() for thread in started)


ENDS = {
    "a closed reader": "with reader:\n    print(reader.read_next_batch().num_rows)",
    "an error": "print(reader.read_next_batch().num_rows)\nraise KeyError",
    "an idle thread": "print(ThreadPoolExecutor(1).submit(reader.read_next_batch).result().num_rows)",
    "a daemon": """
def read():
    print(reader.read_next_batch().num_rows, flush=True)
    read_one.set()
    time.sleep(100)
threading.Thread(target=read, daemon=True).start()
read_one.wait()
""",
    "a thread that goes on": """
def read():
    print(reader.read_next_batch().num_rows)
    read_one.set()
    time.sleep(1)  # the main thread ends
    print(reader.read_all().num_rows)
threading.Thread(target=read).start()
read_one.wait()
""",
}
EXIT = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np, pyarrow as pa
import kquery_spark as kq
ctx = kq.ExecutionContext()
ctx.register_arrow("t", pa.table({"a": np.arange(4_000_000)}))
reader = ctx.sql("SELECT a + 1 AS b FROM t").to_reader()
read_one = threading.Event()
"""


@pytest.mark.parametrize("end", ENDS)
def test_python_exits_before_all_batches_of_a_reader_are_read(end):
    done = subprocess.run(
        [sys.executable, "-c", EXIT + ENDS[end]], env={**os.environ, **worker_environment()},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == (1 if end == "an error" else 0), done.stderr
    first, *rest = map(int, done.stdout.split())
    assert 0 < first < 1_000_000
    assert rest == ([4_000_000 - first] if end == "a thread that goes on" else [])


def test_no_rows_have_a_schema_too():
    ctx, _ = context(1)
    table = ctx.sql("SELECT x FROM numbers WHERE x < 0").to_reader().read_all()
    assert table.num_rows == 0 and table.schema == SCHEMA


def test_a_frame_is_an_arrow_stream():
    ctx, _ = context(2)
    frame = ctx.sql("SELECT sum(x) AS s FROM numbers")
    assert pa.table(frame).to_pydict() == {"s": [sum(range(2000))]}
    other = kq.ExecutionContext()
    other.register_arrow("theirs", ctx.table("numbers"))
    assert other.sql("SELECT sum(x) AS s FROM theirs").collect() == [{"s": sum(range(2000))}]
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.from_arrow(pa.RecordBatchReader.from_stream(ctx.table("numbers")))
    assert relation.max("x").fetchall() == [(1999,)]
    other.register_arrow("theirs", duckdb.sql("SELECT 7 AS x, 'a' AS s"))
    assert other.table("theirs").collect() == [{"x": 7, "s": "a"}]


def test_polars_reads_a_frame():
    polars = pytest.importorskip("polars")
    ctx, _ = context(2)
    frame = polars.DataFrame(ctx.table("numbers"))
    assert frame.height == 2000
    assert frame["x"].max() == 1999


def test_on_spark_the_stream_is_the_result(spark: Any):
    ctx = kq.ExecutionContext(spark)
    ctx.register_arrow("numbers", pa.table({"x": [1, 2, 3]}))
    assert ctx.sql("SELECT sum(x) AS s FROM numbers").to_reader().read_all().to_pydict() == {"s": [6]}

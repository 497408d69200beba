"""Limits on what a run produces: it stops before the memory is taken, whichever operator or function would take it."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.physical import pairs
from kquery_spark.physical.windows import aggregates, sliding
from kquery_spark.run_control import LimitReached, RunCancelled, RunControl, call_under, needs_small_batches
from tests.support.memory import MEGABYTES, peak_memory

ROWS = 6_000
TABLE = pa.table(
    {
        "k": pa.array([1] * ROWS),
        "i": pa.array(range(ROWS), pa.int32()),
        "n": pa.array([10_000] * ROWS, pa.int32()),
        "text": pa.array(["some text of no length to speak of"] * ROWS),
        "letters": pa.array(["a" * 1000] * ROWS),
        "list": pa.array([["a", "b", "c"]] * ROWS, pa.list_(pa.string())),
    }
)
LONG = pa.table({"k": pa.array([1] * 300), "page": pa.array(["x" * 100_000] * 300)})

EXPLODING = {
    "hash join": "SELECT a.text, b.text AS t FROM t AS a JOIN t AS b ON a.k = b.k",
    "join whose condition drops the pairs": "SELECT a.i FROM t AS a JOIN t AS b ON a.k = b.k AND a.i + b.i < 0",
    "cross join": "SELECT a.i, b.text FROM t AS a CROSS JOIN t AS b",
    "non-equi join": "SELECT a.i, b.i AS j FROM t AS a JOIN t AS b ON a.i < b.i + 100000",
    "full join": "SELECT a.i, b.i AS j FROM t AS a FULL JOIN t AS b ON a.k = b.k",
    "semi join": "SELECT a.i FROM t AS a LEFT SEMI JOIN t AS b ON a.k = b.k AND a.i <> b.i - 1000000",
    "join of long strings": "SELECT a.page, b.page AS p FROM long AS a JOIN long AS b ON a.k = b.k",
    "three joins": "SELECT count(*) AS c FROM t AS a JOIN t AS b ON a.k = b.k JOIN t AS c ON b.k = c.k",
    "explode of a sequence": "SELECT i, explode(sequence(1, n)) AS e FROM t",
    "sequence": "SELECT size(sequence(1, n)) AS s FROM t",
    "repeat": "SELECT length(repeat(text, n)) AS l FROM t",
    "space": "SELECT length(space(n)) AS l FROM t",
    "lpad": "SELECT length(lpad(text, n, 'ab')) AS l FROM t",
    "rpad of a fixed width": "SELECT length(rpad(text, 9999)) AS l FROM t CROSS JOIN (SELECT i AS j FROM t WHERE i < 10)",
    "array_repeat": "SELECT size(array_repeat(text, n)) AS s FROM t",
    "array_join": "SELECT array_join(list, repeat('x', 100000)) AS l FROM t",
    "replace": "SELECT replace(letters, 'a', 'a hundred letters and more of them, again and again and again') AS l FROM t",
    "regexp_replace": "SELECT regexp_replace(letters, '[ab]', 'a hundred letters and more of them, again and again') AS l FROM t",
    "replace by columns": "SELECT replace(concat(letters, i), 'a', text) AS l FROM t",
    "literal": "SELECT repeat('x', 1000000) AS l, i FROM t",
    "concat of a literal": "SELECT length(concat(text, repeat('x', 1000000))) AS l FROM t",
    "CASE of a literal": "SELECT CASE WHEN i > 5 THEN repeat('x', 1000000) ELSE text END AS l FROM t",
    "nested calls": "SELECT length(concat(a, a, a, a, a, a, a, a)) AS l FROM (SELECT concat(letters, letters, letters, letters, "
    "letters, letters, letters, letters) AS a FROM t)",
    "lambda": "SELECT size(transform(sequence(1, 1000), x -> concat(page, x))) AS s FROM long",
    "list over a window": "SELECT size(collect_list(text) OVER (PARTITION BY k)) AS s FROM t",
    "growing lists over a window": "SELECT size(collect_list(text) OVER (PARTITION BY k ORDER BY i)) AS s FROM t",
    "first of a window": "SELECT first_value(repeat(page, 10)) OVER (PARTITION BY k ORDER BY page) AS s FROM long",
}  # fmt: skip


def context() -> kq.ExecutionContext:
    made = kq.ExecutionContext(config=EngineConfig(parallelism=2))
    made.register_arrow("t", TABLE)
    made.register_arrow("long", LONG)
    return made


@pytest.mark.parametrize("name", EXPLODING)
def test_it_stops_before_the_memory_is_taken(name: str):
    frame = context().sql(EXPLODING[name])
    control = RunControl(max_rows=20_000_000, max_bytes=128 * MEGABYTES, small_batches=True)
    with peak_memory() as peak, pytest.raises(LimitReached):
        control.controlled(frame.to_arrow)()
    assert peak.nbytes < 300 * MEGABYTES


def test_within_its_limits_a_run_gives_the_same():
    frame = context().sql(
        "SELECT a.k, count(*) AS c, max(repeat(a.text, 3)) AS m, sum(size(sequence(0, a.i % 10))) AS s "
        "FROM t AS a JOIN (SELECT * FROM t WHERE i < 20) AS b ON a.k = b.k WHERE a.i > 0 GROUP BY a.k"
    )
    control = RunControl(max_rows=20_000_000, max_bytes=1024 * MEGABYTES)
    assert control.controlled(frame.to_arrow)().equals(frame.to_arrow())
    assert control.rows > 20 * ROWS and control.nbytes > 0
    with pytest.raises(LimitReached):
        RunControl(max_rows=control.rows // 2).controlled(frame.to_arrow)()


def test_a_run_within_another_has_small_batches_if_the_other_does():
    for small_batches in (True, False):
        control = RunControl(small_batches=small_batches)
        assert call_under(control, needs_small_batches) == small_batches
        assert call_under(RunControl(within=control), needs_small_batches) == small_batches


def test_a_semi_join_of_one_key_makes_no_pairs():
    ctx = kq.ExecutionContext(config=EngineConfig(parallelism=1, disabled_rules=()))
    many = pa.table({"k": np.ones(100_000, np.int64), "i": np.arange(100_000)})
    ctx.register_arrow("few", many.slice(0, 50_000))
    ctx.register_arrow("many", many)
    for kind, rows in (("SEMI", 50_000), ("ANTI", 0)):
        with peak_memory() as peak:
            table = ctx.sql(f"SELECT f.i FROM few AS f LEFT {kind} JOIN many AS m ON f.k = m.k").to_arrow()
        assert table.num_rows == rows
        assert peak.nbytes < 300 * MEGABYTES


def test_a_cancelled_run_stops_and_leaves_no_thread():
    control = RunControl()
    frame = context().sql(
        "SELECT count(*) AS c FROM t AS a JOIN t AS b ON a.k = b.k JOIN t AS c ON b.k = c.k"
    )
    threads = set(threading.enumerate())
    timer = threading.Timer(0.5, control.cancel, ["by the test"])
    timer.start()
    with pytest.raises(RunCancelled, match="by the test"):
        control.controlled(frame.to_arrow)()
    timer.join()
    assert set(threading.enumerate()) <= threads


@pytest.mark.parametrize("call", ["percentile(i, 0.5)", "max_by(i, i)"])
def test_a_cancelled_run_stops_while_window_frames_are_computed(call: str, monkeypatch: pytest.MonkeyPatch):
    """The frames are expanded in slices, or merged in steps. The run is cancelled in the second one."""
    control, steps = RunControl(), 0

    def step(*args: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 2:
            control.cancel("by the test")
        return original(*args)

    monkeypatch.setattr(pairs, "MAX_PAIRS", 10_000)
    module, name = (aggregates, "Groups") if call.startswith("percentile") else (sliding, "merge_pairs")
    original = getattr(module, name)
    monkeypatch.setattr(module, name, step)
    frame = context().sql(f"SELECT {call} OVER (ORDER BY i ROWS 100 PRECEDING) AS c FROM t")
    with pytest.raises(RunCancelled, match="by the test"):
        control.controlled(frame.to_arrow)()
    assert steps <= 3


def test_one_failing_task_stops_the_others():
    ctx = kq.ExecutionContext(config=EngineConfig(parallelism=2, small_bytes=0, split_bytes=1))
    ctx.register_arrow("t", TABLE)
    started = time.monotonic()
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        ctx.sql(
            "SELECT sum(x) AS s FROM (SELECT 1 / (i - 3) AS x FROM t UNION ALL "
            "SELECT count(*) AS x FROM t AS a JOIN t AS b ON a.k = b.k JOIN t AS c ON b.k = c.k)"
        ).to_arrow()
    assert time.monotonic() - started < 30


def test_a_stopped_run_holds_nothing():
    control = RunControl(max_rows=20_000_000, max_bytes=64 * MEGABYTES, small_batches=True)
    frame = context().sql("SELECT a.text, b.text AS t FROM t AS a JOIN t AS b ON a.k = b.k")
    gc.collect()
    before = pa.total_allocated_bytes()
    error: Any = None
    with pytest.raises(LimitReached) as raised:
        control.controlled(frame.to_arrow)()
    del raised, error
    gc.collect()
    assert pa.total_allocated_bytes() - before < MEGABYTES


ENDLESS = "SELECT count(*) AS c FROM t AS a JOIN t AS b ON a.k = b.k JOIN t AS c ON b.k = c.k JOIN t AS d ON c.k = d.k"


@pytest.mark.parametrize("way", ["whole", "stream"])
def test_ctrl_c_stops_a_run_without_spark(way: str):
    frame = context().sql(ENDLESS)
    interrupted: list[float] = []

    def interrupt() -> None:
        time.sleep(1)
        interrupted.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            frame.to_arrow() if way == "whole" else frame.to_reader().read_all()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - interrupted[0] < 2
    assert not [t for t in threading.enumerate() if t.name.startswith("kquery-task")]
    assert context().sql("SELECT count(*) AS c FROM t").to_arrow().to_pydict() == {"c": [ROWS]}

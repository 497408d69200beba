"""Run by test_peak_memory.py: runs one operator, or a reduce task, over many rows with a memory budget.

Prints the largest growth of the process in megabytes, the number of rows, and whether anything was spilled.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import AggregateCall, Column, Named, SortKey, WindowCall
from kquery_spark.expr.windows import UP_TO_ROW
from kquery_spark.logical import JoinKind
from kquery_spark.logical.join import JoinKey
from kquery_spark.physical.operators import (
    AggregateExec,
    BuildSide,
    JoinExec,
    Phase,
    ReadExec,
    SortExec,
    TaskContext,
    WindowExec,
)
from kquery_spark.runtime.heap import fit_worker_heap
from kquery_spark.runtime.spark.worker import RowExchange, StageRun, tune_process
from kquery_spark.stages.graph import Stage
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch

STEP = 1 << 17
ROWS = 4_000_000
LEFT, RIGHT = (pa.schema([(f"{p}k", pa.int64()), (f"{p}v", pa.int64())]) for p in ("", "r"))
K, V = Column("k", t.LONG), Column("v", t.LONG)


def rows_of(schema, count=ROWS, bits=40):
    rng = np.random.default_rng(1)
    for start in range(0, count, STEP):
        n = min(STEP, count - start)
        keys = np.arange(start, start + n) * 7919 % ROWS
        yield Batch(schema, (pa.array(keys), pa.array(rng.integers(0, 1 << bits, n))), n)


def plan_of(kind):
    read = ReadExec("l", LEFT)
    if kind == "aggregate":
        total = Named(AggregateCall.of("sum", V), "s")
        return AggregateExec(read, (Named(K, "k"),), (total,), Phase.SINGLE)
    if kind == "sort":
        return SortExec(read, (SortKey(V),))
    if kind == "window":
        running = Named(WindowCall.of("sum", V, frame=UP_TO_ROW), "w")
        return WindowExec(read, (running,), (K,), (SortKey(V),))
    keys = (JoinKey(K, Column("rk", t.LONG)),)
    both = pa.schema([*LEFT, *RIGHT])
    return JoinExec(read, ReadExec("r", RIGHT), JoinKind.INNER, keys, None, BuildSide.RIGHT, both)


def payload_rows():
    """Yield what a reduce task of a join receives: first all payloads of the probe side, then those of the build side."""
    for tag, schema in enumerate((LEFT, RIGHT)):
        for batch in rows_of(schema, bits=62):
            yield StageRun(None, None, RowExchange(tag, {}))._payload(0, batch)


class LastContext:
    """A task meter that only stores the context of the task, which has the metrics."""

    def add(self, stage, context, sent):
        self.context = context


def run_reduce_task(plan, config):
    """Run the plan as a reduce task over payloads. Returns the number of rows, and whether anything was spilled."""
    stage, meter = Stage("stage-3", plan, None, (), ("l", "r")), LastContext()
    run = StageRun(stage, config, RowExchange(2, {"l": 0, "r": 1}), meter)
    rows = sum(batch.num_rows for batch in run(payload_rows()))
    return rows, any(m.extra.get("spilled_bytes") for m in meter.context.metrics.values())


def run_operator(plan, config):
    """Run the plan over batches. Returns the number of rows, and whether the operator spilled."""
    task = TaskContext(config=config, inputs={"l": lambda: rows_of(LEFT), "r": lambda: rows_of(RIGHT)})
    rows = sum(batch.num_rows for batch in plan.run(task))
    return rows, task.metrics_of(plan).extra.get("spilled_bytes", 0) > 0


def megabytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(field))


def main(kind, budget):
    config = EngineConfig(memory_bytes=int(budget) << 20)
    tune_process()
    fit_worker_heap(config.memory_bytes)
    plan = plan_of(kind)
    sum(batch.num_rows for batch in rows_of(LEFT, 4 * STEP))
    before = megabytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM counts from now on
    run = run_reduce_task if kind == "shuffle" else run_operator
    rows, spilled = run(plan, config)
    print(megabytes("VmHWM") - before, rows, spilled)


if __name__ == "__main__":
    main(*sys.argv[1:])

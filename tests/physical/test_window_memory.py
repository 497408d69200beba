"""Windows whose results repeat lists and long strings: memory is bounded by the input and a batch of the results."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Column, Frame, Literal, Named, SortKey, WindowCall
from kquery_spark.expr.windows import UP_TO_PEERS, UP_TO_ROW, WHOLE_PARTITION
from kquery_spark.physical.operators import TaskContext, WindowExec
from kquery_spark.types import names as t
from tests.physical.harness import batches_of, read
from tests.support.memory import MEGABYTES, peak_memory

N = 12_000
ID, K, S = Column("id", t.LONG), Column("k", t.LONG), Column("s", t.STRING)


def table(long: int) -> pa.Table:
    """A partition of N rows. One row has a string of ``long`` bytes."""
    strings = ["z" * long, *(f"name {i}" for i in range(1, N))]
    return pa.table({"id": np.arange(N), "k": np.arange(N) // 2, "s": strings})


def check(call: WindowCall, rows: pa.Table, config: EngineConfig, order: tuple[SortKey, ...]) -> None:
    plan = WindowExec(read(rows), (Named(call, "w"),), (), order)
    task = TaskContext(config=config, inputs={"t": lambda: iter(batches_of(rows, 1000))})
    seen = nbytes = 0
    with peak_memory() as peak:
        for batch in plan.run(task):
            seen += batch.num_rows
            nbytes += batch.columns[-1].nbytes
            del batch
    assert seen == N
    assert nbytes > 500 * MEGABYTES
    assert peak.nbytes < 250 * MEGABYTES


@pytest.mark.parametrize("frame", [WHOLE_PARTITION, UP_TO_ROW, UP_TO_PEERS], ids=["whole", "row", "peers"])
@pytest.mark.parametrize("function", ["collect_list", "listagg"])
def test_lists_of_all_rows(function: str, frame: Frame) -> None:
    args = [ID] if function == "collect_list" else [S, Literal(", and ", t.STRING)]
    call = WindowCall.of(function, *args, frame=frame)
    check(call, table(1), EngineConfig(), (SortKey(ID),))


PICKING = {
    "max": WindowCall.of("max", S, frame=UP_TO_ROW),
    "max of the partition": WindowCall.of("max", S),
    "max_by": WindowCall.of("max_by", S, S, frame=UP_TO_ROW),
    "min_by": WindowCall.of("min_by", S, ID, frame=UP_TO_PEERS),
    "first_value": WindowCall.of("first_value", S, frame=UP_TO_ROW),
    "first": WindowCall.of("first", S),
    "first_ignore_nulls": WindowCall.of("first_ignore_nulls", S, frame=UP_TO_PEERS),
}


@pytest.mark.parametrize("name", list(PICKING))
@pytest.mark.parametrize("is_on_disk", [False, True], ids=["memory", "disk"])
def test_a_long_string_that_all_rows_repeat(
    name: str, is_on_disk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    config = EngineConfig(memory_bytes=200_000) if is_on_disk else EngineConfig()
    check(PICKING[name], table(100_000), config, (SortKey(ID),))


def test_a_long_default() -> None:
    call = WindowCall.of("lead", S, Literal(9000, t.INT), Literal("x" * 100_000, t.STRING))
    check(call, table(1), EngineConfig(), (SortKey(ID),))

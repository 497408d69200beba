"""Spark's Python daemon for test_cluster.py: its workers can hold one task of a stage, so that the test can kill what runs it.

The test arms the directory that ``HOLD_VARIABLE`` names for a kind of stage. The first task of that kind that has read a part of its
input announces itself there, with its process and its numbers in Spark, and waits until it is killed or released.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HOLD_VARIABLE = "KQUERY_TEST_HOLD"
MAP, REDUCE = "map", "reduce"
_MAX_HOLD_SECONDS = 60


def hold(directory: Path, kind: str) -> None:
    """Announce this task and wait, if the directory is armed for its kind of stage and no other task was first."""
    from pyspark import TaskContext

    with contextlib.suppress(FileNotFoundError):
        os.rename(directory / kind, directory / "taken")  # one task wins
        context = TaskContext.get()
        assert context is not None
        task = {"pid": os.getpid(), "task": context.taskAttemptId(), "stage": context.stageId()}
        (directory / "begun").write_text(json.dumps(task))
        os.rename(directory / "begun", directory / "running")
        deadline = time.monotonic() + _MAX_HOLD_SECONDS
        while not (directory / "released").exists() and time.monotonic() < deadline:
            time.sleep(0.01)


def held(batches: Iterator[Any], kind: str = REDUCE) -> Iterator[Any]:
    """The same batches, with a possible hold after the first one."""
    directory = Path(os.environ[HOLD_VARIABLE])
    for number, batch in enumerate(batches):
        yield batch
        if number == 0:
            hold(directory, kind)


def hold_tasks_of_the_engine() -> None:
    """Let tasks of the engine hold: of map stages after their first output, of reduce stages after their first input."""
    from kquery_spark.runtime.spark.worker import StageRun

    run = StageRun.__call__

    def call(self: StageRun, batches: Iterator[Any]) -> Iterator[Any]:
        if self.stage.is_map:
            return held(run(self, batches), MAP)
        return run(self, held(batches) if self.rows.sources else batches)

    StageRun.__call__ = call  # type: ignore[method-assign]


if __name__ == "__main__":
    from kquery_spark.runtime.spark import daemon

    if "KQUERY_SPARK_WORKER" in os.environ:
        hold_tasks_of_the_engine()
    daemon.main()

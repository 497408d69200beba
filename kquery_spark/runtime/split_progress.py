"""Shows the progress bar of a query that runs in this process: the number of splits that its scans have read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kquery_spark.config.engine import EngineConfig
from kquery_spark.physical.operators import ScanExec
from kquery_spark.physical.operators.base import walk_operators
from kquery_spark.progress import progress
from kquery_spark.run_control import RunControl
from kquery_spark.stages.graph import Stage


@contextmanager
def split_progress(stages: Sequence[Stage], config: EngineConfig, control: RunControl) -> Iterator[None]:
    """Show how many splits of the stages have been read while the ``with`` block runs under ``control``."""
    with progress("kquery", "splits", None, lambda: control.splits, config.progress) as shown:
        if shown.is_shown:
            shown.total = sum(_split_count(stage) for stage in stages)
        yield


def _split_count(stage: Stage) -> int:
    return sum(
        scan.piece_count(task.as_dict().get(scan.scan_id, ()))
        for scan, _ in walk_operators(stage.plan)
        if isinstance(scan, ScanExec)
        for task in stage.tasks
    )

"""The pipelines suite: about 30 DataFrame jobs as people write them, which read CSV, JSON, and Parquet files."""

from __future__ import annotations

from pathlib import Path

from benchmarks.pipelines import data
from benchmarks.suites.base import Query, Suite, Table


def _make(root: Path, scale: float) -> tuple[Table, ...]:
    return data.generate(root / f"pipelines-{scale:g}", scale)


def _queries() -> tuple[Query, ...]:
    from benchmarks.pipelines import cleaning, outputs, reports, windows

    modules = (cleaning, reports, windows, outputs)
    return tuple(Query(step.name, "", step=step) for module in modules for step in module.STEPS.all)


PIPELINES = Suite(
    "pipelines", "jobs in the DataFrame API; scale 1 is 10 million order lines and clicks", _make, _queries
)

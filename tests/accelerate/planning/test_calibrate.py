"""``kquery-spark calibrate`` measures every constant that it says it measures, and removes its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kquery_spark.accelerate import calibrate as calibrate_module
from kquery_spark.accelerate.calibrate import calibrate
from kquery_spark.config.cost import CostModel

MEASURED = (
    "planning_seconds",
    "stage_seconds",
    "result_row_seconds",
    "handed_value_seconds",
    "decoded_byte_seconds",
    "step_row_seconds",
    "spark_sort_row_seconds",
    "sort_row_seconds",
)


def test_the_constants_are_measured(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate_module, "_REPEATS", 1)
    (tmp_path / "other.txt").write_text("stays")
    model, default = calibrate(spark, str(tmp_path), rows=20_000), CostModel()
    for name in MEASURED:
        assert getattr(model, name) != getattr(default, name), name
    assert model.arrow_value_seconds == default.arrow_value_seconds
    assert CostModel().with_settings(model.settings()).settings() == model.settings()
    assert [path.name for path in tmp_path.iterdir()] == ["other.txt"]

"""Tests which settings of a session make the engine look for Delta tables."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kquery_spark.spark_bridge.relations import catalog_snapshot


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, False),
        ({"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}, True),
        # Unity Catalog replaces Delta's catalog
        (
            {
                "spark.sql.catalog.spark_catalog": "io.unitycatalog.spark.UCSingleCatalog",
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            },
            True,
        ),
    ],
)
def test_delta_is_recognized_by_its_catalog_or_its_extension(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], expected: bool
) -> None:
    def session_values(conf: Any, jvm: Any, names: Sequence[str], unset: str) -> list[str]:
        return [given.get(name, unset) for name in names]

    monkeypatch.setattr(catalog_snapshot, "session_values", session_values)
    bridge = SimpleNamespace(conf=None, jvm=None)
    assert catalog_snapshot._has_delta(bridge) is expected

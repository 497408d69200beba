"""The engine uses the largest parallelism that Spark had in the session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kquery_spark.spark_bridge.session.bridge import Bridge
from tests.conftest import settings


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "local-cluster[2,4,2048]"])
def test_the_cores_of_a_cluster_are_read_again(
    spark: Any, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    context = spark.sparkContext
    monkeypatch.setattr(context, "master", master)
    bridge = Bridge(spark)
    assert bridge.config().parallelism == context.defaultParallelism
    for cores in (200, 2):  # idle executors are removed
        monkeypatch.setattr(bridge, "_cluster", SimpleNamespace(defaultParallelism=lambda c=cores: c))
        assert bridge.config().parallelism == 200
    with settings(spark, {"spark.kquery.parallelism": "7"}):
        assert bridge.config().parallelism == 7


def test_the_cores_of_this_machine_are_read_once(spark: Any) -> None:
    bridge = Bridge(spark)
    assert bridge._cluster is None
    assert bridge.config().parallelism == spark.sparkContext.defaultParallelism

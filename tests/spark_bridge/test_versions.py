"""The bridge looks at the version of Spark before it looks at anything else of it."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import FallbackWarning, Unsupported
from kquery_spark.spark_bridge.session import bridge as session_module
from kquery_spark.spark_bridge.session.versions import SUPPORTED, minor_version, patch_version, spark_api


@pytest.mark.parametrize(
    "version", [*SUPPORTED, "4.3.0", "4.3.1-SNAPSHOT", "4.2.7-amzn-1", "3.5.2-amzn-1", "4.0.0.dev0"]
)
def test_supported_versions(version: str) -> None:
    assert spark_api(version).dataset.endswith("Dataset")


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("3.5.2-amzn-1", (3, 5)),
        ("4.0.0.dev0", (4, 0)),
        ("4.10.0", (4, 10)),
        ("14.3.x-scala2.12", (3, 5)),
        ("15.4.x-scala2.12", (3, 5)),
        ("16.4.x-photon-scala2.13", (3, 5)),
        ("17.3.x-cpu-ml-scala2.13", (4, 0)),
        ("12.2.x-scala2.12", (12, 0)),
        ("nightly", None),
    ],
)
def test_releases_of_vendors_versions(text: str, release: tuple[int, int] | None) -> None:
    assert minor_version(text) == release


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("3.5.2-amzn-1", (3, 5, 2)),
        ("4.1.10", (4, 1, 10)),
        ("4.0.0.dev0", (4, 0, 0)),
        ("3.5", (3, 5, 0)),
        ("15.4.3-scala2.12", (3, 5, 0)),
        ("nightly", None),
    ],
)
def test_patches_of_vendors_versions(text: str, release: tuple[int, int, int] | None) -> None:
    assert patch_version(text) == release


@pytest.mark.parametrize(
    "version", ["2.4.8", "3.4.4", "4.4.0", "4.10.0", "5.0.0", "12.2.x-scala2.12", "nightly"]
)
def test_another_version_is_declined_in_one_sentence(version: str) -> None:
    with pytest.raises(Unsupported, match=rf"knows Spark 3\.5 to 4\.3, and this session runs {version}$"):
        spark_api(version)


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of an unknown version of Spark."""
    monkeypatch.setattr(session_module, "spark_api", lambda _: spark_api("5.0.0"))
    monkeypatch.setattr(session_module, "_bridges", {})


@pytest.mark.usefixtures("unknown")
def test_a_query_stays_with_a_spark_that_is_not_known(spark: Any) -> None:
    frame = spark.range(3)
    with pytest.warns(FallbackWarning, match=r"this session runs 5\.0\.0"):
        assert frame.transform(kquery_plan) is frame


@pytest.mark.usefixtures("unknown")
def test_enabling_a_spark_that_is_not_known_changes_nothing(spark: Any) -> None:
    with pytest.warns(FallbackWarning, match=r"Spark runs the queries of this session: .* runs 5\.0\.0"):
        kq.enable(spark)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert spark.range(3).count() == 3

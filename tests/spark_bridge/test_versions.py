"""The bridge looks at the version of Spark before it looks at anything else of it."""

from __future__ import annotations

from typing import Any

import pytest

from kquery_spark import kquery_plan
from kquery_spark.errors import FallbackWarning, KQueryError
from kquery_spark.spark_bridge import session as session_module
from kquery_spark.spark_bridge.versions import SUPPORTED, check_version


@pytest.mark.parametrize("version", [*SUPPORTED, "4.3.0", "4.3.1-SNAPSHOT", "4.2.7-amzn-1"])
def test_supported_versions(version: str) -> None:
    assert check_version(version) is None


@pytest.mark.parametrize("version", ["3.5.6", "4.0.0", "4.1.0-preview3"])
def test_an_old_spark_is_an_error_that_says_what_is_needed(version: str) -> None:
    with pytest.raises(KQueryError, match=rf"needs Spark 4\.2 or later, and this session runs {version}"):
        check_version(version)


@pytest.mark.parametrize("version", ["4.4.0", "4.10.0", "5.0.0"])
def test_a_newer_spark_is_said_to_be_untested(version: str) -> None:
    assert f"this session runs {version}" in str(check_version(version))


def test_a_query_stays_with_a_spark_that_is_too_old(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "check_version", lambda _: check_version("3.5.6"))
    monkeypatch.setattr(session_module, "_bridges", {})
    frame = spark.range(3)
    with pytest.warns(FallbackWarning, match=r"needs Spark 4\.2"):
        assert frame.transform(kquery_plan) is frame

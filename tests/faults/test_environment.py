"""Surroundings that processes do not choose: no home directory, a strict umask, settings that change under a planned query."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.conftest import settings, worker_environment

QUERY = textwrap.dedent(
    """
    import os, sys, tempfile
    import pyarrow as pa, pyarrow.parquet as pq
    os.umask(int(sys.argv[2], 8))
    import kquery_spark as kq
    from kquery_spark.config.engine import EngineConfig
    directory = sys.argv[1]
    for i in range(3):
        os.umask(0o077)
        pq.write_table(pa.table({"k": [j % 1000 for j in range(50_000)], "v": list(range(50_000))}), f"{directory}/{i}.parquet")
        os.umask(int(sys.argv[2], 8))
    context = kq.ExecutionContext(config=EngineConfig(memory_bytes=64 << 10))
    context.register_parquet("t", directory)
    rows = context.sql("SELECT k, count(DISTINCT v) AS n FROM t GROUP BY k ORDER BY n DESC, k LIMIT 3").to_arrow()
    print(rows.to_pylist())
    """
)


@pytest.mark.parametrize(("home", "umask"), [(None, "777"), ("/nowhere", "077"), ("/proc", "000")])
def test_no_home_and_any_umask(tmp_path: Path, home: str | None, umask: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    environment.update(worker_environment())
    if home is not None:
        environment["HOME"] = home
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", QUERY, str(tmp_path), umask],
        env=environment, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip() == str([{"k": k, "n": 50} for k in range(3)])


def outcome(frame: Any) -> Any:
    try:
        return sorted(map(repr, frame.collect()))
    except Exception as error:
        return type(error).__name__, getattr(error, "getCondition", lambda: None)()


CHANGES = {
    "the time zone": ({"spark.sql.session.timeZone": "Asia/Tokyo"}, "date_trunc('day', t) AS x"),
    "times as text": ({"spark.sql.session.timeZone": "Asia/Tokyo"}, "CAST(t AS string) AS x"),
    "ANSI mode": ({"spark.sql.ansi.enabled": "false"}, "10 div (v - 5) AS x"),
    "casts": ({"spark.sql.ansi.enabled": "false"}, "CAST(concat('a', v) AS int) AS x"),
    "overflow": ({"spark.sql.ansi.enabled": "false"}, "v + 9223372036854775807 AS x"),
    "names": ({"spark.sql.caseSensitive": "true"}, "V AS x"),
    "partitions": ({"spark.sql.shuffle.partitions": "7"}, "v AS x"),
    "the engine's settings": ({"spark.kquery.smallBytes": "0", "spark.kquery.splitBytes": "1k"}, "v AS x"),
    "the engine switched off": ({"spark.kquery.enabled": "false"}, "v AS x"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_settings_that_change_between_plan_and_action(spark: Any, tmp_path: Path, change: str) -> None:
    given, expression = CHANGES[change]
    path = str(tmp_path / "t")
    rows = spark.range(50).selectExpr("id AS v", "timestamp_seconds(id * 10000) AS t", "id % 3 AS k")
    rows.repartition(3).write.parquet(path)
    frame = spark.read.parquet(path).selectExpr("k", expression).groupBy("k", "x").count()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kq.FallbackWarning)
        fast = kquery_plan(frame, when="always")
        with settings(spark, given):
            assert outcome(fast) == outcome(frame)
        again = kquery_plan(frame, when="always")
        assert outcome(again) == outcome(frame)

"""``kq.enable`` imports the planner in a thread. This must not change what a program does."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kquery_spark as kq

_API = "kquery_spark.accelerate.api"


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    try:
        yield spark
    finally:
        kq.disable(spark)


def run_python(code: str, *args: str) -> None:
    subprocess.run([sys.executable, "-c", code, *args], check=True, timeout=120)


def test_the_module_of_enable_does_not_import_the_planner():
    planner = ("kquery_spark.accelerate.planning", "kquery_spark.frontends.", "kquery_spark.optimizer")
    run_python(
        "import sys, kquery_spark.accelerate.enable;"
        f"assert not [name for name in sys.modules if name.startswith({planner!r})]"
    )


def test_the_thread_imports_the_planner():
    run_python(
        "import sys, threading;"
        "from kquery_spark.accelerate.preload import import_planner_in_background;"
        "import_planner_in_background(); import_planner_in_background();"
        "threads = [t for t in threading.enumerate() if t.name == 'kquery-import'];"
        "[t.join() for t in threads];"
        f"assert len(threads) == 1 and {_API!r} in sys.modules"
    )


def test_a_program_that_forks_during_the_import_can_import_the_same_modules(tmp_path: Path):
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(1)\nis_complete = True\n")
    run_python(
        "import os, signal, sys, time\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from kquery_spark.accelerate import preload\n"
        "preload._MODULES = ('slow',)\n"
        "preload.import_planner_in_background()\n"
        "time.sleep(0.1)\n"
        "assert not hasattr(sys.modules['slow'], 'is_complete')\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    signal.alarm(20)\n"
        "    import slow\n"
        "    os._exit(0 if slow.is_complete else 1)\n"
        "sys.exit(os.waitpid(child, 0)[1])\n",
        str(tmp_path),
    )


def test_enable_works_where_no_thread_can_start():
    run_python(
        "import threading\n"
        "from kquery_spark.accelerate.preload import import_planner_in_background\n"
        "def start(thread):\n"
        "    raise RuntimeError('no thread can start')\n"
        "threading.Thread.start = start\n"
        "import_planner_in_background()\n"
    )


def test_spark_runs_the_actions_if_the_planner_cannot_be_imported(
    enabled: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, _API, None)
    kq.enable(enabled)
    with pytest.warns(kq.FallbackWarning, match="the engine could not be imported: ModuleNotFoundError"):
        assert enabled.range(3).count() == 3
    kq.enable(enabled, fallback="error")
    with pytest.raises(ModuleNotFoundError, match=_API):
        enabled.range(3).count()


def test_with_never_no_action_needs_the_planner(enabled: SparkSession, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, _API, None)
    kq.enable(enabled, when="never")
    with warnings.catch_warnings():
        warnings.simplefilter("error", kq.FallbackWarning)
        assert enabled.range(3).count() == 3
        enabled.sql("CREATE TABLE never_planned USING parquet AS SELECT 1 AS a")
        enabled.sql("DROP TABLE never_planned")


def test_spark_runs_statements_that_write_if_the_planner_cannot_be_imported(
    enabled: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    enabled.sql("CREATE OR REPLACE TEMPORARY VIEW numbers AS SELECT id FROM range(3)")
    monkeypatch.setitem(sys.modules, _API, None)
    kq.enable(enabled)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query = enabled.sql("SELECT * FROM numbers")
    with pytest.warns(kq.FallbackWarning, match="could not be imported"):
        enabled.sql("CREATE TABLE copied_numbers USING parquet AS SELECT * FROM numbers")
    try:
        kq.disable(enabled)
        assert enabled.table("copied_numbers").count() == query.count() == 3
    finally:
        enabled.sql("DROP TABLE copied_numbers")

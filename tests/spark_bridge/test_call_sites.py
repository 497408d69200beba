"""Spark's stages and queries are named by the user's line, and no property of the thread is left behind."""

from __future__ import annotations

import importlib.util
import re
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark import traceback_utils
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark.qualify.event_files import EventReader, find_logs
from kquery_spark.spark_bridge.ui import call_sites
from tests.support.event_logs import logged_events

PACKAGE = Path(kq.__file__).parent
PROPERTIES = ("callSite.short", "callSite.long", "spark.job.description")


@pytest.fixture
def logged(spark, tmp_path):
    """``logged(run)``: the names of the last stages of jobs, and the descriptions of queries, that ``run`` causes."""

    def names(run) -> tuple[list[str], list[str]]:
        before = [spark.sparkContext.getLocalProperty(name) for name in PROPERTIES]
        path = tmp_path / f"log-{len(list(tmp_path.iterdir()))}"
        with logged_events(spark, path, compress="false", rolling_enabled="false"):
            run()
        assert [spark.sparkContext.getLocalProperty(name) for name in PROPERTIES] == before
        (log,) = find_logs(path)
        events = list(EventReader(log))
        jobs = [e["Stage Infos"] for e in events if e["Event"] == "SparkListenerJobStart"]
        started = [e for e in events if e["Event"].endswith("SparkListenerSQLExecutionStart")]
        queries = [
            e["description"] for e in started if not e["sparkPlanInfo"]["nodeName"].startswith("kquery")
        ]
        return [max(infos, key=lambda i: i["Stage ID"])["Stage Name"] for infos in jobs], queries

    return names


@pytest.fixture(scope="module")
def data(spark, tmp_path_factory) -> str:
    path = str(tmp_path_factory.mktemp("data") / "t")
    spark.range(5000).selectExpr("id", "id % 7 AS k").repartition(4).write.parquet(path)
    return path


def here(action: str) -> str:
    return rf"{action} at {re.escape(__file__)}:\d+"


@pytest.mark.parametrize("action", ["collect", "toPandas", "take", "tail"])
def test_an_accelerated_action_is_named_by_its_line(spark, data, logged, action):
    fast = spark.read.parquet(data).groupBy("k").agg(F.sum("id")).transform(kq.kquery_plan, when="always")
    # as a query that is too large for the driver
    fast._kquery.placement = replace(fast._kquery.placement, driver=None)
    arguments = (3,) if action in ("take", "tail") else ()
    stages, _ = logged(lambda: getattr(fast, action)(*arguments))
    assert stages
    assert all(re.fullmatch(here(action), name) for name in stages), stages


@pytest.mark.parametrize("when", ["always", "never"])
@pytest.mark.parametrize("action", ["collect", "toPandas"])
def test_in_an_enabled_session_too(spark, data, logged, action, when):
    query = spark.read.parquet(data).groupBy("k").agg(F.collect_list("id"), F.count("*"))
    query = query if when == "always" else spark.read.parquet(data).sample(0.5, seed=1)
    kq.enable(spark)
    try:
        stages, queries = logged(lambda: getattr(query, action)())
    finally:
        kq.disable(spark)
    assert [name for name in (*stages, *queries) if str(PACKAGE) in name] == []
    assert [name for name in queries if name.startswith("action at")] == []
    if when == "never":
        assert stages
        assert all(re.fullmatch(here(action), name) for name in stages), stages


def test_a_description_of_the_user_stays(spark, data, logged):
    fast = spark.read.parquet(data).groupBy("k").count().transform(kq.kquery_plan, when="always")
    fast._kquery.placement = replace(fast._kquery.placement, driver=None)
    spark.sparkContext.setJobDescription("nightly totals")
    try:
        _, queries = logged(fast.collect)
    finally:
        spark.sparkContext.setJobDescription(None)
    assert queries == ["nightly totals"]


def test_pyspark_names_what_no_line_of_the_user_started(monkeypatch):
    assert call_sites.user_call_site().file == __file__
    monkeypatch.setattr(call_sites, "_is_library", lambda file: True)
    monkeypatch.setattr(call_sites, "_is_called_by_package", lambda: True)
    assert call_sites.user_call_site() is None
    assert call_sites._skipping_package(lambda: "what PySpark found")() == "what PySpark found"


def test_a_second_import_of_the_module_does_not_replace_its_own_function(spark):
    """Otherwise a reload in a notebook would make the function call itself, in every action of Spark."""
    spec = importlib.util.spec_from_file_location("second_import", call_sites.__file__)
    second = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(second)
    call_sites.name_by_user_code()
    before = traceback_utils.first_spark_call
    second.name_by_user_code()
    assert traceback_utils.first_spark_call is before


def test_nothing_is_replaced_in_a_pyspark_without_the_function(monkeypatch):
    monkeypatch.delattr(traceback_utils, "first_spark_call")
    call_sites.name_by_user_code()
    assert not hasattr(traceback_utils, "first_spark_call")
    monkeypatch.delitem(sys.modules, traceback_utils.__name__)
    call_sites.name_by_user_code()
    assert traceback_utils.__name__ not in sys.modules


@pytest.mark.parametrize(
    "found", [None, ("count", "job.py", 1), traceback_utils.CallSite("count", "job.py", 1)]
)
def test_no_action_fails_because_of_its_name(monkeypatch, found):
    """Another PySpark may pass arguments or return another class, and a bug in this module may raise an error."""
    calls = []

    def find(*args, **kwargs):
        calls.append((args, kwargs))
        return found

    named = call_sites._skipping_package(find)
    assert named(1, depth=2) is found  # the package is not on the stack
    monkeypatch.setattr(call_sites, "_is_called_by_package", lambda: True)
    assert isinstance(named(1, depth=2), type(found))
    monkeypatch.delattr(call_sites, "_is_library")
    assert named(1, depth=2) is found
    assert calls == [((1,), {"depth": 2})] * 3


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/env/lib/python3.12/site-packages/company/job.py", False),
        ("/home/me/job.py", False),
        ("<ipython-input-3>", False),
        ("<frozen runpy>", True),
        (threading.__file__, True),
        (kq.__file__, True),
    ],
)
def test_installed_code_of_the_user_is_not_a_library(file, library):
    assert call_sites._is_library(file) is library

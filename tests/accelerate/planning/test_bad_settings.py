"""Settings that a session has and that cannot be right: they never break a query, and the user is warned once."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.config.cost import COST_PREFIX, CostModel
from kquery_spark.config.engine import PREFIX, RULES, EngineConfig
from kquery_spark.config.names import format_value, setting_values
from kquery_spark.config.tolerant import read_tolerantly, unknown_settings
from kquery_spark.errors import ConfigError, ConfigWarning
from kquery_spark.optimizer import optimizer
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, error_class
from tests.conftest import settings, worker_environment

DEFAULTS = {**setting_values(EngineConfig(), PREFIX), **setting_values(CostModel(), COST_PREFIX)}
BAD_VALUES = ("lots", "-1", "1.5g", "²", "9" * 5000, "\n", "nan")


@pytest.fixture(scope="module")
def rows(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("bad_settings") / "t")
    spark.range(300).selectExpr("id AS v", "id % 3 AS k").repartition(2).write.parquet(path)
    return path


def grouped(spark: Any, path: str) -> Any:
    """A new session, because each warns once, and a query in it."""
    return spark.newSession().read.parquet(path).groupBy("k").count()


def config_warnings(caught: list[warnings.WarningMessage]) -> list[str]:
    assert not [w for w in caught if issubclass(w.category, kq.FallbackWarning)]
    return [str(w.message) for w in caught if issubclass(w.category, ConfigWarning)]


@pytest.mark.parametrize("enabled", [False, True])
def test_every_bad_setting_warns_once_and_has_its_default(spark: Any, rows: str, enabled: bool) -> None:
    frame = grouped(spark, rows)
    session = frame.sparkSession
    for name in DEFAULTS:
        session.conf.set(name, "!")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if enabled:
            kq.enable(session, when="always")
        try:
            for _ in range(2):
                fast = frame if enabled else kquery_plan(frame, when="always")
                assert sorted(fast.collect()) == [(0, 100), (1, 100), (2, 100)]
        finally:
            kq.disable(session)
    messages = config_warnings(caught)
    assert len(messages) == len(DEFAULTS)
    for name, message in zip(DEFAULTS, messages, strict=True):
        assert message.startswith(f"{name} must be ")
        assert "not '!'; the default, " in message
    assert {w.filename for w in caught if issubclass(w.category, ConfigWarning)} == {__file__}


def test_a_misspelled_name_warns_once_with_the_nearest_one(spark: Any, rows: str) -> None:
    frame = grouped(spark, rows)
    session = frame.sparkSession
    for name, nearest in (
        ("enabeld", "enabled"),
        ("batchrows", "batchRows"),
        ("cost.stageSecond", "cost.stageSeconds"),
    ):
        with settings(session, {f"{PREFIX}{name}": "1"}), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                assert execution_of(kquery_plan(frame, when="always")) is not None
        (message,) = config_warnings(caught)
        assert (
            f"unknown setting '{PREFIX}{name}', which has no effect; the nearest name is {PREFIX}{nearest}"
            in message
        )


def test_good_settings_beside_a_bad_one_hold(spark: Any, rows: str) -> None:
    frame = grouped(spark, rows)
    changes = {f"{PREFIX}enabled": "false", f"{PREFIX}batchRows": "lots"}
    with settings(frame.sparkSession, changes), pytest.warns(ConfigWarning, match="batchRows"):
        assert execution_of(kquery_plan(frame, when="always")) is None


@pytest.mark.parametrize("value", BAD_VALUES)
def test_values_that_no_number_may_have(value: str) -> None:
    for name, default in DEFAULTS.items():
        if isinstance(default, bool) or not isinstance(default, int | float):
            continue
        read = read_tolerantly({name: value}, EngineConfig(), CostModel())
        assert (read.config, read.costs) == (EngineConfig(), CostModel())
        assert len(read.problems) == 1, name
        assert len(read.problems[0]) < 300
        with pytest.raises(ConfigError, match=name):
            EngineConfig().with_settings({name: value})
            CostModel().with_settings({name: value})


def test_defaults_are_allowed_values() -> None:
    given = {name: format_value(name, value) for name, value in DEFAULTS.items()}
    read = read_tolerantly(given, EngineConfig(), CostModel())
    assert (read.config, read.problems) == (EngineConfig(), ())
    assert not unknown_settings([*DEFAULTS, "spark.sql.ansi.enabled"])
    assert [rule.__name__ for rule in optimizer.RULES] == list(RULES)
    assert len(fields(EngineConfig)) + len(fields(CostModel)) == len(DEFAULTS)


@pytest.mark.parametrize("name", ["batchRows", "parallelism", "splitBytes", "payloadBytes"])
def test_zero_where_something_is_divided_or_cut_by_it(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be a whole number from 1 to"):
        EngineConfig().with_settings({PREFIX + name: "0"})


# Spark reads these switches without case and spaces, and gives them as they were written.
SPELLINGS = {
    "ANSI mode": ({"spark.sql.ansi.enabled": " TRUE "}, "v + 9223372036854775807"),
    "no ANSI mode": ({"spark.sql.ansi.enabled": "False "}, "v + 9223372036854775807"),
    "case": ({"spark.sql.caseSensitive": "TRUE "}, "V"),
    "equal keys": ({"spark.sql.mapKeyDedupPolicy": "last_win"}, "to_json(map(concat('a', k), 1, concat('a', k), v))"),
}  # fmt: skip


@pytest.mark.parametrize("case", SPELLINGS)
def test_switches_of_spark_in_unusual_spellings(spark: Any, rows: str, case: str) -> None:
    changes, expression = SPELLINGS[case]

    def outcome(accelerate: bool) -> Any:
        try:
            frame = spark.read.parquet(rows).selectExpr("k", f"{expression} AS x").groupBy("k", "x").count()
            return sorted((kquery_plan(frame, when="always") if accelerate else frame).collect())
        except SPARK_ERRORS as error:
            return error_class(error)

    with settings(spark, changes):
        assert outcome(True) == outcome(False)


SUBMIT = str(Path(sysconfig.get_path("scripts")) / "spark-submit")
SUBMITTED = """
import sys, warnings
from pyspark.sql import SparkSession
import kquery_spark as kq
spark = kq.configure(SparkSession.builder).getOrCreate()
spark.range(100).selectExpr("id % 2 AS k", "id AS v").write.parquet(sys.argv[1])
kq.enable(spark, when="always")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    rows = spark.read.parquet(sys.argv[1]).groupBy("k").sum("v").orderBy("k").collect()
print("ROWS", [tuple(row) for row in rows], sorted(type(w.message).__name__ for w in caught
    if issubclass(w.category, UserWarning)))
"""


def test_bad_settings_in_the_properties_file_of_a_job(tmp_path: Path) -> None:
    job, properties = tmp_path / "job.py", tmp_path / "job.conf"
    job.write_text(SUBMITTED)
    properties.write_text(
        "spark.master=local[1]\nspark.ui.enabled=false\nspark.sql.shuffle.partitions=1\nspark.sql.ansi.enabled= TRUE\n"
        "spark.kquery.smallBytes=1.5g\nspark.kquery.cost.stageSeconds=\nspark.kquery.enabeld=false\nspark.task.cpus=1\n"
    )
    run = subprocess.run(
        [SUBMIT, "--properties-file", str(properties), str(job), str(tmp_path / "t")],
        env=environment(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    line = next(line for line in run.stdout.splitlines() if line.startswith("ROWS"))
    assert line == "ROWS [(0, 2450), (1, 2500)] ['ConfigWarning', 'ConfigWarning']"


def environment() -> dict[str, str]:
    """The environment of a job in which the engine's own variables have values that it never gives them."""
    return {
        **os.environ,
        **worker_environment(),
        "KQUERY_SPARK_WORKER": "junk",
        "KQUERY_SPARK_PYTHON": "/no/python",
    }

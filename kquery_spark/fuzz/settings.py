"""Session settings for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from kquery_spark.config.engine import PREFIX, EngineConfig
from kquery_spark.optimizer.rules.constant_folding import constant_folding
from kquery_spark.spark_bridge.session.settings import EXCLUDED_RULES_SETTING

LENIENT = {"spark.sql.ansi.enabled": "false"}
TIME_ZONE = "spark.sql.session.timeZone"
UNCOMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Spark interprets its expressions: the same answers, without compiling classes for a few rows."""

COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "CODEGEN_ONLY"}
IN_DRIVER = {f"{PREFIX}driverBytes": str(EngineConfig().driver_bytes)}
"""Small queries run in threads of this process, not in Spark's workers."""


@contextlib.contextmanager
def applied(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings; what was set before comes back."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def is_ansi(settings: Mapping[str, str]) -> bool:
    """Whether values out of range raise errors."""
    return settings.get("spark.sql.ansi.enabled") != "false"


def engine_config(settings: Mapping[str, str]) -> EngineConfig:
    """What the settings mean to the engine without Spark."""
    own = {name: value for name, value in settings.items() if name.startswith(PREFIX)}
    config = EngineConfig(parallelism=2).with_settings(own)
    return (
        replace(config, disabled_rules=(constant_folding.__name__,))
        if EXCLUDED_RULES_SETTING in settings
        else config
    )

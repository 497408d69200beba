"""Temporary session settings, and what they mean for the engine without Spark."""

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
"""Spark interprets its expressions: the results are the same, but no classes are compiled for a few rows."""

COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "CODEGEN_ONLY"}
IN_DRIVER = {f"{PREFIX}driverBytes": str(EngineConfig().driver_bytes)}
"""Small queries run in threads of this process instead of in Spark's workers."""


@contextlib.contextmanager
def applied(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Apply settings to the session while the ``with`` block runs, and restore the previous ones."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def is_ansi(settings: Mapping[str, str]) -> bool:
    """Return True unless the settings disable ANSI mode, in which values out of range raise errors."""
    return settings.get("spark.sql.ansi.enabled") != "false"


def engine_config(settings: Mapping[str, str]) -> EngineConfig:
    """Return the configuration of the engine without Spark for these session settings."""
    own = {name: value for name, value in settings.items() if name.startswith(PREFIX)}
    config = EngineConfig(parallelism=2).with_settings(own)
    return (
        replace(config, disabled_rules=(constant_folding.__name__,))
        if EXCLUDED_RULES_SETTING in settings
        else config
    )

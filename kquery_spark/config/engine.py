"""Declares the engine's settings, which come from ``spark.kquery.*`` or from Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any

from kquery_spark.config.cost import COST_PREFIX
from kquery_spark.config.names import LARGEST_INTEGER, choices_of, key_of, quoted, range_of, setting
from kquery_spark.errors import ConfigError

PREFIX = "spark.kquery."
DEFAULT_MAX_MEMORY_BYTES = 1 << 30  # the largest budget of a task if memory_bytes is not set
DEFAULT_REQUEST_SECONDS = 60
_INTEGER = re.compile(r"([0-9]{1,19})([kmg]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
# With more cores, Python workers are faster than the driver's threads, which wait for the interpreter lock.
_MAX_CORES_OF_RAISED_LIMITS = 4
_MAX_TASKS = 100_000  # each costs the driver some kilobytes, and a Spark job with more hardly starts
RULES = (
    *("subquery_to_join", "constant_folding", "associative_operators", "predicate_simplification"),
    *("unwrap_casts", "merge_projections", "remove_sorts", "outer_to_inner", "merged_aggregates"),
    *("predicate_pushdown", "implied_conditions", "join_conditions", "join_order", "late_semi_joins"),
    *("limit_pushdown", "projection_pushdown", "variant_field_pruning", "top_k_bounds", "inner_to_semi"),
    *("common_subexpressions", "shared_aggregates"),
)
"""The names of the optimizer's rules, in their order. A test compares them with the optimizer's list."""


@dataclass(frozen=True)
class EngineConfig:
    """All settings of the engine with their defaults and descriptions."""

    enabled: bool = setting(True, "Whether the engine is used at all.")
    parallelism: int = setting(
        2,
        "Number of tasks that run at the same time. In a Spark session: its cores.",
        allowed=(1, _MAX_TASKS),
    )
    batch_rows: int = setting(128 * 1024, "Maximum number of rows of a batch.", allowed=(1, 2**31 - 1))
    broadcast_bytes: int = setting(
        128 * 1024 * 1024,
        "A join whose build side is estimated to be smaller than this is a broadcast join, without a shuffle.",
    )
    small_bytes: int = setting(
        8 * 1024 * 1024,
        "A query whose scans read fewer bytes than this runs as one task. Opening a file counts as 64 KiB.",
    )
    split_bytes: int = setting(
        256 * 1024 * 1024, "Bytes of a scan that one task reads.", allowed=(1, LARGEST_INTEGER)
    )
    shuffle_partitions: int = setting(
        0, "Number of reduce tasks. 0: chosen from parallelism and sizes.", allowed=(0, _MAX_TASKS)
    )
    payload_bytes: int = setting(
        8 * 1024 * 1024, "Size of the pieces in which rows are shuffled.", allowed=(1, 2**31 - 1)
    )
    memory_bytes: int = setting(
        0,
        "State that a task may hold before it spills. 0: computed from the memory of its container, at most 1 GiB.",
    )
    build_cache_bytes: int = setting(
        512 * 1024 * 1024,
        "Build sides of broadcast joins that a worker caches for later tasks and queries. 0: none.",
        key="keptBytes",
    )
    sort_rows: int = setting(
        10_000_000, "Maximum number of rows of one task of the last sort; Spark sorts larger results."
    )
    driver_bytes: int = setting(
        8 * 1024 * 1024,
        "If an action collects the result and the last stage is one task that reads fewer bytes than this, the stage runs "
        "in the driver. 0: never. Under a local master with up to four cores, the default is 64m.",
    )
    thread_bytes: int = setting(
        32 * 1024 * 1024,
        "If an action collects the result and the query's scans read fewer bytes than this, the whole query runs in threads "
        "of the driver. 0, or `driverBytes=0`: never. Under a local master with up to four cores, the default is 128m.",
    )
    request_seconds: int = setting(
        DEFAULT_REQUEST_SECONDS,
        "Seconds that one request to an object store or HDFS may take, including its retries. After that, the query falls "
        "back to Spark. 0: no limit.",
    )
    compiled: bool = setting(True, "Whether kernels that numba compiles may be used if they are ready.")
    log: str = setting(
        "off",
        "`info`: write one line to Python's log for each query and action (`kq.on_query` registers callbacks).",
        choices=("off", "info"),
    )
    progress: bool = setting(
        True,
        "Whether runs of more than two seconds in this process, and `verify`, `bench` and `fuzz`, show a progress bar on a "
        "terminal or in a notebook.",
    )
    ui_metrics: bool = setting(
        True,
        "Whether the engine's operators appear in Spark's UI and event log, as separate executions in the SQL tab.",
    )
    disabled_rules: tuple[str, ...] = setting(
        (), "Optimizer rules to switch off, separated by commas.", choices=RULES
    )

    @classmethod
    def for_local_master(cls, cores: int) -> EngineConfig:
        """Return the defaults under a local master.

        With few cores, the driver runs larger queries than on a cluster: Spark's tasks would run on its cores anyway.
        """
        if cores > _MAX_CORES_OF_RAISED_LIMITS:
            return cls(parallelism=cores)
        return cls(parallelism=cores, driver_bytes=64 << 20, thread_bytes=128 << 20)

    @property
    def max_driver_bytes(self) -> int:
        """Queries that read more bytes than this do not run in the driver."""
        return max(self.driver_bytes, self.thread_bytes) if self.driver_bytes else 0

    def setting_names(self) -> list[str]:
        """Return the full names of all settings (``spark.kquery.batchRows`` ...)."""
        return [PREFIX + key_of(f) for f in fields(self)]

    def with_settings(self, settings: Mapping[str, str]) -> EngineConfig:
        """Apply ``spark.kquery.*`` settings; raises ConfigError with the allowed values for an invalid setting."""
        by_name = {key_of(f): f for f in fields(self)}
        changes: dict[str, object] = {}
        for key, value in settings.items():
            if not key.startswith(PREFIX) or key.startswith(COST_PREFIX):
                continue
            setting_field = by_name.get(key.removeprefix(PREFIX))
            if setting_field is None:
                known = ", ".join(sorted(PREFIX + n for n in by_name))
                raise ConfigError(f"unknown setting {key}; the settings are {known}")
            changes[setting_field.name] = _parse(key, value, setting_field)
        return replace(self, **changes)  # type: ignore[arg-type]


def _parse(key: str, string: str, setting_field: Field[Any]) -> object:
    """Parse the value of a setting; raises ConfigError with the allowed values."""
    default, choices = setting_field.default, choices_of(setting_field)
    word = string.strip()
    if isinstance(default, tuple):
        return _parse_names(key, word, choices)
    if isinstance(default, bool):
        choices = ("true", "false")
    if choices:
        if word.lower() not in choices:
            raise ConfigError(f"{key} must be {' or '.join(choices)}, not {quoted(string)}")
        return word.lower() == "true" if isinstance(default, bool) else word.lower()
    match = _INTEGER.fullmatch(word)
    least, most = range_of(setting_field)
    value = -1 if match is None else int(match[1]) * _UNITS[match[2].lower()]
    if not least <= value <= most:
        raise ConfigError(
            f"{key} must be a whole number from {least} to {most} (k, m and g are understood), not {quoted(string)}"
        )
    return value


def _parse_names(key: str, string: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(part.strip() for part in string.split(",") if part.strip())
    for name in names:
        if name not in choices:
            raise ConfigError(f"{key} must be some of {', '.join(choices)}, not {quoted(name)}")
    return names

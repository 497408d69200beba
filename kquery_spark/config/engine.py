"""The engine's settings, read from ``spark.kquery.*`` or given in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any

from kquery_spark.config.cost import COST_PREFIX
from kquery_spark.config.names import LARGEST_INTEGER, camel_case, choices_of, range_of, setting, shortened
from kquery_spark.errors import ConfigError

PREFIX = "spark.kquery."
DEFAULT_MAX_MEMORY_BYTES = 1 << 30  # of a task whose memory nobody has set
DEFAULT_REQUEST_SECONDS = 60
_INTEGER = re.compile(r"([0-9]{1,19})([kmg]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_MOST_TASKS = 100_000  # each costs the driver some kilobytes, and a Spark job with more hardly starts
RULES = (
    *("subquery_to_join", "constant_folding", "associative_operators", "predicate_simplification"),
    *("unwrap_casts", "merge_projections", "remove_sorts", "outer_to_inner", "merged_aggregates"),
    *("predicate_pushdown", "join_conditions", "join_order", "late_semi_joins", "limit_pushdown"),
    *("projection_pushdown", "variant_field_pruning", "top_k_bounds", "inner_to_semi"),
    *("common_subexpressions", "shared_aggregates"),
)
"""The names of the optimizer's rules, in their order. A test compares them with the optimizer's."""


@dataclass(frozen=True)
class EngineConfig:
    """Every setting with its default and what it means."""

    enabled: bool = setting(True, "Whether the engine is used at all.")
    parallelism: int = setting(
        2, "Tasks that run at once. In a Spark session: its cores.", allowed=(1, _MOST_TASKS)
    )
    batch_rows: int = setting(128 * 1024, "Rows that a batch is cut to.", allowed=(1, 2**31 - 1))
    broadcast_bytes: int = setting(
        128 * 1024 * 1024,
        "The build side of a join that is estimated to be smaller is replicated to every task, without a shuffle.",
    )
    small_bytes: int = setting(8 * 1024 * 1024, "A query whose scans read less runs as one task.")
    split_bytes: int = setting(
        256 * 1024 * 1024, "Bytes of a scan that a task gets.", allowed=(1, LARGEST_INTEGER)
    )
    shuffle_partitions: int = setting(
        0, "Reduce tasks. 0: as parallelism and sizes ask.", allowed=(0, _MOST_TASKS)
    )
    payload_bytes: int = setting(8 * 1024 * 1024, "Size of a shuffled piece.", allowed=(1, 2**31 - 1))
    memory_bytes: int = setting(
        0,
        "State that a task may hold before it spills. 0: what its container leaves to Python, at most 1 GiB.",
    )
    kept_bytes: int = setting(
        512 * 1024 * 1024,
        "Build sides of replicated joins that a worker keeps for its next tasks and queries. 0: none.",
    )
    sort_rows: int = setting(10_000_000, "Rows that a task of the last sort gets at most; Spark sorts more.")
    driver_bytes: int = setting(
        8 * 1024 * 1024,
        "A last stage of one task that takes in less runs in the driver, when an action brings the result there. 0: never.",
    )
    thread_bytes: int = setting(
        32 * 1024 * 1024,
        "All of a query whose last stage runs in the driver, and whose scans read less, runs there, by threads. 0: never.",
    )
    request_seconds: int = setting(
        DEFAULT_REQUEST_SECONDS,
        "Seconds that one request to an object store or HDFS may take, with its retries. After that, Spark "
        "runs the query. 0: no limit.",
    )
    compiled: bool = setting(True, "Whether kernels compiled by numba may be used where they are at hand.")
    log: str = setting(
        "off",
        "`info`: one line in Python's log for each query and action (`kq.on_query` for callbacks).",
        choices=("off", "info"),
    )
    progress: bool = setting(
        True,
        "Whether runs of more than two seconds in this process, and `verify`, `bench` and `fuzz`, show a bar on a terminal "
        "or in a notebook.",
    )
    ui_metrics: bool = setting(
        True,
        "Whether the engine's operators appear in Spark's UI and event log, as executions of their own in the SQL tab.",
    )
    disabled_rules: tuple[str, ...] = setting(
        (), "Optimizer rules that are switched off, with commas between.", choices=RULES
    )

    def setting_names(self) -> list[str]:
        """The full names of all settings (``spark.kquery.batchRows`` ...)."""
        return [PREFIX + camel_case(f.name) for f in fields(self)]

    def with_settings(self, settings: Mapping[str, str]) -> EngineConfig:
        """Apply ``spark.kquery.<camelCaseName>`` settings; ConfigError names a bad one and what is allowed."""
        by_name = {camel_case(f.name): f for f in fields(self)}
        changes: dict[str, object] = {}
        for key, text in settings.items():
            if not key.startswith(PREFIX) or key.startswith(COST_PREFIX):
                continue
            setting_field = by_name.get(key.removeprefix(PREFIX))
            if setting_field is None:
                known = ", ".join(sorted(PREFIX + n for n in by_name))
                raise ConfigError(f"there is no setting {key}; the settings are {known}")
            changes[setting_field.name] = _parse(key, text, setting_field)
        return replace(self, **changes)  # type: ignore[arg-type]


def _parse(key: str, text: str, setting_field: Field[Any]) -> object:
    """The value of a setting; ConfigError says which values are allowed."""
    default, choices = setting_field.default, choices_of(setting_field)
    word = text.strip()
    if isinstance(default, tuple):
        return _parse_names(key, word, choices)
    if isinstance(default, bool):
        choices = ("true", "false")
    if choices:
        if word.lower() not in choices:
            raise ConfigError(f"{key} must be {' or '.join(choices)}, not {shortened(text)}")
        return word.lower() == "true" if isinstance(default, bool) else word.lower()
    match = _INTEGER.fullmatch(word)
    least, most = range_of(setting_field)
    value = -1 if match is None else int(match[1]) * _UNITS[match[2].lower()]
    if not least <= value <= most:
        raise ConfigError(
            f"{key} must be a whole number from {least} to {most} (k, m and g are understood), not {shortened(text)}"
        )
    return value


def _parse_names(key: str, text: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if name not in choices:
            raise ConfigError(f"{key} must be some of {', '.join(choices)}, not {shortened(name)}")
    return names

"""The engine's settings, read from ``spark.kquery.*`` or given in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from kquery_spark.config.cost import COST_PREFIX
from kquery_spark.config.names import camel_case
from kquery_spark.errors import ConfigError

PREFIX = "spark.kquery."
DEFAULT_MAX_MEMORY_BYTES = 1 << 30  # of a task whose memory nobody has set


@dataclass(frozen=True)
class EngineConfig:
    """Every setting with its default.

    parallelism: tasks that run at once (cores). batch_rows: rows a batch is cut to. broadcast_bytes: a build side
    estimated below this is replicated to every task. small_bytes: a query whose scans read less runs as one task.
    split_bytes: scan bytes a task gets. shuffle_partitions: reduce tasks (0: as parallelism and sizes ask).
    payload_bytes: size of a shuffled piece. memory_bytes: state a task may hold before it spills (0: what its
    container leaves to Python, see ``config.memory``, and at most 1 GiB). kept_bytes: build
    sides of replicated joins that a worker keeps for its next tasks and queries (0: none). sort_rows: rows that a task
    of the last sort gets at most, or Spark sorts them. driver_bytes: a last stage of one task that takes in less runs
    in the driver when an action brings the result there (0: never). thread_bytes: so does all of a query whose last
    stage does and whose scans read less, by threads (0: never). compiled: whether kernels compiled by numba may be used
    where they are at hand. disabled_rules: optimizer rules switched off.
    """

    enabled: bool = True
    parallelism: int = 2
    batch_rows: int = 128 * 1024
    broadcast_bytes: int = 128 * 1024 * 1024
    small_bytes: int = 8 * 1024 * 1024
    split_bytes: int = 256 * 1024 * 1024
    shuffle_partitions: int = 0
    payload_bytes: int = 8 * 1024 * 1024
    memory_bytes: int = 0
    kept_bytes: int = 512 * 1024 * 1024
    sort_rows: int = 10_000_000
    driver_bytes: int = 8 * 1024 * 1024
    thread_bytes: int = 32 * 1024 * 1024
    compiled: bool = True
    disabled_rules: tuple[str, ...] = ()

    def setting_names(self) -> list[str]:
        """The full names of all settings (``spark.kquery.batchRows`` ...)."""
        return [PREFIX + camel_case(f.name) for f in fields(self)]

    def with_settings(self, settings: Mapping[str, str]) -> EngineConfig:
        """Apply ``spark.kquery.<camelCaseName>`` settings; ConfigError names a bad one and what is allowed."""
        names = {camel_case(f.name): f.name for f in fields(self)}
        changes: dict[str, object] = {}
        for key, text in settings.items():
            if not key.startswith(PREFIX) or key.startswith(COST_PREFIX):
                continue
            name = names.get(key.removeprefix(PREFIX))
            if name is None:
                known = ", ".join(sorted(PREFIX + n for n in names))
                raise ConfigError(f"there is no setting {key}; the settings are {known}")
            changes[name] = _parse(key, text, getattr(self, name))
        return replace(self, **changes)  # type: ignore[arg-type]


def _parse(key: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{key} must be true or false, not {text!r}")
        return text.lower() == "true"
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    units = {"k": 2**10, "m": 2**20, "g": 2**30}
    lowered = text.lower().removesuffix("b")
    factor = units.get(lowered[-1:], 1)
    digits = lowered[:-1] if factor > 1 else lowered
    if not digits.isdigit():
        raise ConfigError(f"{key} must be a whole number (k, m and g are understood), not {text!r}")
    return int(digits) * factor

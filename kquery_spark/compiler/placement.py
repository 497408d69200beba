"""Where the tasks of a query run, as far as its physical plan and its stages depend on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kquery_spark.config.engine import EngineConfig

DRIVER_KEPT_BYTES = 64 << 20
"""Of build sides that stay in the driver for further queries."""
_MIN_THREADED_BYTES = 1 << 20  # a query that reads fewer bytes is one task


@dataclass(frozen=True)
class Placement:
    """What the taker of the rows promises, and who runs the tasks.

    keeps_task_order: the rows of a task are taken before those of the next one, so that several tasks may share the last
    sort of an ordered result; otherwise one task does it. threads: how many threads of the driver run the tasks; None:
    Spark's tasks or the threads of a context do, as the settings say.
    """

    keeps_task_order: bool = True
    threads: int | None = None

    def settings(self, config: EngineConfig) -> EngineConfig:
        """The engine's settings for tasks that run here."""
        if self.threads is None:
            return config
        cache_bytes = min(config.kept_bytes, DRIVER_KEPT_BYTES)
        return replace(
            config, parallelism=self.threads, small_bytes=_MIN_THREADED_BYTES, kept_bytes=cache_bytes
        )


IN_TASK_ORDER = Placement()
IN_ANY_ORDER = Placement(keeps_task_order=False)

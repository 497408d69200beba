"""The placement of a query: where its tasks run, to the extent that the physical plan depends on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kquery_spark.config.engine import EngineConfig

DRIVER_BUILD_CACHE_BYTES = 64 << 20
"""The most bytes of build sides that the driver caches for later queries."""
_MIN_THREADED_BYTES = 1 << 20  # a query in the driver that reads fewer bytes runs in one task


@dataclass(frozen=True)
class Placement:
    """Where tasks run, and whether the consumer preserves their order.

    keeps_task_order: the consumer reads all rows of a task before those of the next task, so several tasks may share the
    final sort. Otherwise a single task sorts. threads: the number of driver threads that run the tasks; None if they run in
    Spark's executors or in a ``LocalExecutor`` of a context, where the settings determine the parallelism.
    """

    keeps_task_order: bool = True
    threads: int | None = None

    def settings(self, config: EngineConfig) -> EngineConfig:
        """Return the engine's settings for this placement."""
        if self.threads is None:
            return config
        cache_bytes = min(config.build_cache_bytes, DRIVER_BUILD_CACHE_BYTES)
        return replace(
            config, parallelism=self.threads, small_bytes=_MIN_THREADED_BYTES, build_cache_bytes=cache_bytes
        )


IN_TASK_ORDER = Placement()
IN_ANY_ORDER = Placement(keeps_task_order=False)

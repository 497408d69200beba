"""Event logs of what happens in a session that has none of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def logged_events(spark: Any, directory: Path, **settings: str) -> Iterator[None]:
    """A listener beside those of the session, which writes what happens to a log of its own."""
    context, jvm = spark.sparkContext, spark.sparkContext._jvm
    conf = context._jsc.sc().conf().clone()
    for name, value in settings.items():
        conf.set(f"spark.eventLog.{name.replace('_', '.')}", value)
    directory.mkdir()
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "app-1",
        jvm.scala.Option.empty(),
        jvm.java.net.URI(f"file:{directory}"),
        conf,
        context._jsc.hadoopConfiguration(),
    )
    listener.start()
    context._jsc.sc().addSparkListener(listener)
    try:
        yield
    finally:
        context._jsc.sc().listenerBus().waitUntilEmpty()
        context._jsc.sc().removeSparkListener(listener)
        listener.stop()

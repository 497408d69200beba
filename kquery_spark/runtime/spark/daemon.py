"""Spark's Python daemon with the engine imported, for ``spark.python.daemon.module``.

Workers are forked from the daemon, so they start with Arrow, numpy and the engine loaded instead of importing them once
each, and the garbage collector, which PySpark calls after every task, leaves them alone. Needs this package to be
installed wherever workers run; without it the daemon is PySpark's own.
"""

from __future__ import annotations

import contextlib

from kquery_spark.config.processor import sort_quickly


def main() -> None:
    """Import, then serve as ``pyspark.daemon`` does."""
    sort_quickly()
    with contextlib.suppress(ImportError):
        import pyspark.worker  # noqa: F401

        from kquery_spark.runtime.spark.worker import settle

        settle()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()

"""Prints lines on the stderr of the JVM."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext


def print_by_jvm(line: str) -> None:
    """Print a line on the stderr of this process's JVM; starts a JVM if there is none."""
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    jvm.java.lang.System.err.println(line)

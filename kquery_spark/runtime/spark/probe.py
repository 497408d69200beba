"""Checks once per application whether the Python workers of a cluster can run the engine.

A worker without this package would make every task fail. By then it would be too late to fall back, because Spark's plan
already contains the engine's tasks.
"""

from __future__ import annotations

import platform
import re
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql.types import StringType, StructField, StructType

from kquery_spark.spark_bridge.frames.arrow_collection import collect_batches
from kquery_spark.spark_bridge.plan.catalyst_plans import STAGE_FUNCTION, StagePlanBuilder
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS
from kquery_spark.spark_bridge.session.interpreter import interpreter_of
from kquery_spark.spark_bridge.ui.job_descriptions import job_description

_VERSION = str(sys.modules["kquery_spark"].__version__)
_MAX_PROBE_TASKS = 16  # the probe runs one task per core, up to this number
_FACTS = ("executable", "python", "pyarrow", "kquery_spark", "error", "hdfs")
_SCHEMA = StructType([StructField(name, StringType()) for name in _FACTS])
# Errors of a worker that does not start or fails before it runs the probe.
_PYTHON_WORKER_ERRORS = re.compile(
    r"Error from python worker|Cannot run program|PythonException|PySpark\w*Error|\w+Error: |Python worker"
)
_RAISED = re.compile(
    r"^\s*(\w[\w.]*(?:Error|Exception)\b[^\n]*|[^\n]*Cannot run program[^\n]*)", re.MULTILINE
)
_CANCELLED = re.compile(r"cancel", re.IGNORECASE)


@dataclass(frozen=True)
class Workers:
    """The result of the check. problem: one sentence that says why the workers cannot run the engine; None if they can.

    have_hdfs_client: whether all workers have the HDFS client.
    """

    problem: str | None = None
    have_hdfs_client: bool = True


_answers: weakref.WeakKeyDictionary[SparkContext, dict[str, Workers]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def worker_problem(bridge: Bridge) -> str | None:
    """Return one sentence that says why Spark's Python workers cannot run the engine; None if they can."""
    return _workers(bridge).problem


def workers_have_hdfs_client(bridge: Bridge) -> bool:
    """True if Spark's Python workers have the HDFS client. Call this only if this process has it."""
    return _workers(bridge).have_hdfs_client


def _workers(bridge: Bridge) -> Workers:
    """Return the cached result of the check. The first call on a cluster runs a job with a short task per core, at most 16.

    On a local master, workers have the interpreter of this process, so no check is needed.
    """
    context = bridge.spark.sparkContext
    interpreter = interpreter_of(context)
    if interpreter.proven:
        return Workers()
    with _lock:
        answers = _answers.setdefault(context, {})
        if interpreter.executable in answers:
            return answers[interpreter.executable]
        try:
            rows = _run_probe(bridge)
            workers = Workers(_difference(rows), all(row["hdfs"] for row in rows))
        except SPARK_ERRORS as error:
            text = str(error)
            workers = Workers(
                f"Spark's Python workers ({interpreter.executable}) cannot run the engine: {_cause(text)}"
            )
            if _CANCELLED.search(text) or not _PYTHON_WORKER_ERRORS.search(text):
                return workers  # not cached: the next query may not have this problem
        answers[interpreter.executable] = workers
        return workers


def _run_probe(bridge: Bridge) -> list[dict[str, str]]:
    """Return the facts (see ``_FACTS``) that each probed worker reports."""
    context = bridge.spark.sparkContext
    plans = StagePlanBuilder(bridge)
    numbers = plans.numbers(max(1, min(context.defaultParallelism, _MAX_PROBE_TASKS)))
    frame = plans.frame(
        plans.map_in_arrow(
            numbers, versions_of_worker, _SCHEMA, plans.attributes(_SCHEMA), f"{STAGE_FUNCTION}probe"
        )
    )
    with job_description(context, "kquery: versions of Python workers"):
        batches = collect_batches(frame)
    return [row for batch in batches for row in batch.to_pylist()]


def versions_of_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Report the facts of a worker. It may lack this package, so this is pickled by value and has its own imports."""
    import platform
    import sys

    import pyarrow

    version, error, client = "", "", ""
    try:
        import kquery_spark.runtime.spark.worker  # noqa: F401

        version = str(sys.modules["kquery_spark"].__version__)
        from kquery_spark.sources.hadoop.hdfs import CLIENT, has_client

        client = CLIENT if has_client() else ""
    except ImportError as missing:
        error = str(missing)
    facts = (sys.executable, platform.python_version(), pyarrow.__version__, version, error, client)
    names = ("executable", "python", "pyarrow", "kquery_spark", "error", "hdfs")
    for _ in batches:
        yield pyarrow.RecordBatch.from_pylist([dict(zip(names, facts, strict=True))])


versions_of_worker.__module__ = "__main__"  # makes cloudpickle send the code instead of a reference


def _difference(workers: Sequence[dict[str, str]]) -> str | None:
    """Describe the first worker that differs from this process; None if all are alike."""
    ours = {
        "executable": sys.executable,
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "kquery_spark": _VERSION,
    }
    for theirs in workers:
        where = f"Spark's Python workers ({theirs['executable']})"
        if theirs["error"]:
            return (
                f"{where} cannot import what this process ({sys.executable}) can: {theirs['error']}; "
                f"install kquery-spark {_VERSION} where they run."
            )
        if _compared(theirs) != _compared(ours):
            return f"{where} have {_named(theirs)}, where this process ({sys.executable}) has {_named(ours)}."
    return None


def _compared(facts: dict[str, str]) -> tuple[str, ...]:
    """Return the versions that have to be equal: Python and Arrow without patch levels, and this package."""
    return (*(".".join(facts[n].split(".")[:2]) for n in ("python", "pyarrow")), facts["kquery_spark"])


def _named(facts: dict[str, str]) -> str:
    return f"Python {facts['python']}, pyarrow {facts['pyarrow']} and kquery_spark {facts['kquery_spark']}"


def _cause(text: str) -> str:
    """Return the line of Spark's error that names the cause: the last Python error, otherwise the first line."""
    lines = _RAISED.findall(text.split("\n\tat ", 1)[0])
    line = lines[-1] if lines else text.strip().split("\n", 1)[0]
    return str(line).strip()[:300]

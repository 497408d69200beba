"""Estimates the number of rows that Spark passes to the engine, by Spark's statistics or by the leaves of the plan.

Spark has no statistics for an RDD or for a table behind JDBC, and then reports a size of eight exabytes; for a join it
multiplies both sides. Neither number is fit to decide where a query runs, so the leaves are examined instead.
"""

from __future__ import annotations

from typing import Any

from kquery_spark.spark_bridge.jvm.calls import Jvm

UNKNOWN_ROWS = 1_000_000.0  # the estimate for a leaf without statistics
_IMPLAUSIBLE_BYTES = 1e15
_ROW_BYTES, _VALUE_BYTES = 8.0, 12.0
_BATCH_ROWS = 1024  # PySpark pickles a list in batches of at most this number of rows
_MAX_LINEAGE_RDDS = 20  # maximum number of parent RDDs to search for the one that contains the rows
_EXECUTION = "org.apache.spark.sql.execution."
_RDD_LEAVES = frozenset({f"{_EXECUTION}LogicalRDD", f"{_EXECUTION}ExternalRDD"})
_PARALLELIZED = "org.apache.spark.rdd.ParallelCollectionRDD"
_PYTHON = "org.apache.spark.api.python.PythonRDD"


def expected_rows(plan: Any, jvm: Jvm) -> float:
    """Estimate the number of rows of a Spark plan, given its JVM object."""
    leaves = plan.collectLeaves()
    count = leaves.length()
    rows = _counted_rows(plan)
    if rows is None and count == 1:
        leaf = leaves.apply(0)
        rows = _counted_rows(leaf)  # statistics of a leaf, which Spark may not use for the nodes above it
        if rows is None:
            rows = _rows_by_size(plan)
        if rows is None:
            rows = _rows_of_leaf(leaf, jvm)
    elif rows is None:
        # assume that a join matches one row for each row of its largest side; a union has the rows of all children
        rows = sum(_rows_of_leaf(leaves.apply(i), jvm) for i in range(count))
    most = plan.maxRows()
    return min(rows, float(most.get())) if most.isDefined() else rows


def _rows_of_leaf(leaf: Any, jvm: Jvm) -> float:
    rows = _counted_rows(leaf)
    if rows is None:
        rows = _rows_by_size(leaf)
    if rows is None and jvm.class_name(leaf) in _RDD_LEAVES:
        rows = _rows_of_rdd(leaf, jvm)
    return UNKNOWN_ROWS if rows is None else rows


def _counted_rows(plan: Any) -> float | None:
    """Return the row count from Spark's statistics, which cached DataFrames and analyzed tables have."""
    count = plan.stats().rowCount()
    return float(str(count.get())) if count.isDefined() else None


def _rows_by_size(plan: Any) -> float | None:
    """Estimate the rows from the size that Spark expects; None if Spark has no statistics."""
    size = float(str(plan.stats().sizeInBytes()))
    return None if size > _IMPLAUSIBLE_BYTES else size / _row_bytes(plan)


def _row_bytes(plan: Any) -> float:
    return _ROW_BYTES + _VALUE_BYTES * float(plan.output().length())


def _rows_of_rdd(leaf: Any, jvm: Jvm) -> float | None:
    """Estimate the rows of an RDD that is a parallelized list or that Spark stores; None for other RDDs."""
    rdd, pickled = leaf.rdd(), False
    stored = _stored_bytes(rdd)
    if stored:
        return stored / _row_bytes(leaf)
    for _ in range(_MAX_LINEAGE_RDDS):
        kind = jvm.class_name(rdd)
        if kind == _PARALLELIZED:
            return _rows_of_parallelized(rdd, _row_bytes(leaf) if pickled else None, jvm)
        pickled = pickled or kind == _PYTHON
        above = rdd.dependencies()
        if above.length() != 1:
            return None
        rdd = above.apply(0).rdd()
    return None


def _stored_bytes(rdd: Any) -> float:
    """Return the bytes of an RDD in Spark's storage, such as a local checkpoint; 0 if it is not stored."""
    if not rdd.getStorageLevel().isValid():
        return 0.0
    number = rdd.id()
    infos = rdd.sparkContext().getRDDStorageInfo()
    return sum((float(info.memSize() + info.diskSize()) for info in infos if info.id() == number), 0.0)


def _rows_of_parallelized(rdd: Any, row_bytes: float | None, jvm: Jvm) -> float:
    """Estimate the rows of a parallelized list by its last slice, which is one of the largest.

    row_bytes: the size of a row, if the elements are batches of pickled rows.
    """
    slices = rdd.partitions()
    count = len(slices)
    values = slices[count - 1].values()
    elements = float(values.length())
    if row_bytes is None:
        return count * elements
    length = jvm.static_function("java.lang.reflect.Array", "getLength", "java.lang.Object")
    size = sum(map(int, jvm.map_strings(values, length)))
    return count * min(elements * _BATCH_ROWS, size / row_bytes)

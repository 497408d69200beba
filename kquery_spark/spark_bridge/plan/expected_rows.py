"""How many rows Spark hands over: its own statistics where they say something, else what the leaves of the plan show.

Spark knows nothing of an RDD or of a table behind JDBC, and then says that it takes eight exabytes; a join multiplies its
sides. Neither number may decide where a query runs.
"""

from __future__ import annotations

from typing import Any

from kquery_spark.spark_bridge.jvm.calls import Jvm

UNKNOWN_ROWS = 1_000_000.0  # for a leaf without statistics
_IMPLAUSIBLE_BYTES = 1e15
_ROW_BYTES, _VALUE_BYTES = 8.0, 12.0
_BATCH_ROWS = 1024  # PySpark pickles a list in batches of at most so many
_MAX_LINEAGE_RDDS = 20  # RDDs to look through for the one that holds the rows
_EXECUTION = "org.apache.spark.sql.execution."
_RDD_LEAVES = frozenset({f"{_EXECUTION}LogicalRDD", f"{_EXECUTION}ExternalRDD"})
_PARALLELIZED = "org.apache.spark.rdd.ParallelCollectionRDD"
_PYTHON = "org.apache.spark.api.python.PythonRDD"


def expected_rows(plan: Any, jvm: Jvm) -> float:
    """About how many rows a plan of Spark's gives, by the plan's JVM object."""
    leaves = plan.collectLeaves()
    count = leaves.length()
    rows = _counted(plan)
    if rows is None and count == 1:
        leaf = leaves.apply(0)
        rows = _counted(leaf)  # of a leaf and not of what is above, if Spark makes no use of it
        if rows is None:
            rows = _by_size(plan)
        if rows is None:
            rows = _of_leaf(leaf, jvm)
    elif rows is None:
        # a join finds one row of the others for each of the largest side's, a union has the rows of all
        rows = sum(_of_leaf(leaves.apply(i), jvm) for i in range(count))
    most = plan.maxRows()
    return min(rows, float(most.get())) if most.isDefined() else rows


def _of_leaf(leaf: Any, jvm: Jvm) -> float:
    rows = _counted(leaf)
    if rows is None:
        rows = _by_size(leaf)
    if rows is None and jvm.class_name(leaf) in _RDD_LEAVES:
        rows = _of_rdd(leaf, jvm)
    return UNKNOWN_ROWS if rows is None else rows


def _counted(plan: Any) -> float | None:
    """The rows that Spark has counted, as of a cached DataFrame or a table that was analyzed."""
    count = plan.stats().rowCount()
    return float(str(count.get())) if count.isDefined() else None


def _by_size(plan: Any) -> float | None:
    """The rows that the size Spark expects is worth; None where Spark knows nothing."""
    size = float(str(plan.stats().sizeInBytes()))
    return None if size > _IMPLAUSIBLE_BYTES else size / _row_bytes(plan)


def _row_bytes(plan: Any) -> float:
    return _ROW_BYTES + _VALUE_BYTES * float(plan.output().length())


def _of_rdd(leaf: Any, jvm: Jvm) -> float | None:
    """The rows of a list that was parallelized, or that Spark stores; None where they come from elsewhere."""
    rdd, pickled = leaf.rdd(), False
    stored = _stored_bytes(rdd)
    if stored:
        return stored / _row_bytes(leaf)
    for _ in range(_MAX_LINEAGE_RDDS):
        kind = jvm.class_name(rdd)
        if kind == _PARALLELIZED:
            return _of_parallelized(rdd, _row_bytes(leaf) if pickled else None, jvm)
        pickled = pickled or kind == _PYTHON
        above = rdd.dependencies()
        if above.length() != 1:
            return None
        rdd = above.apply(0).rdd()
    return None


def _stored_bytes(rdd: Any) -> float:
    """Bytes of an RDD in Spark's storage, as a local checkpoint's are; 0 where it is not there."""
    if not rdd.getStorageLevel().isValid():
        return 0.0
    number = rdd.id()
    infos = rdd.sparkContext().getRDDStorageInfo()
    return sum((float(info.memSize() + info.diskSize()) for info in infos if info.id() == number), 0.0)


def _of_parallelized(rdd: Any, row_bytes: float | None, jvm: Jvm) -> float:
    """By the last slice, which has no fewer elements than others; row_bytes: they are batches of so large pickled rows."""
    slices = rdd.partitions()
    count = len(slices)
    values = slices[count - 1].values()
    elements = float(values.length())
    if row_bytes is None:
        return count * elements
    length = jvm.function(jvm.handle("java.lang.reflect.Array", "getLength", "java.lang.Object"))
    size = sum(map(int, jvm.strings(jvm.mapped(values, length))))
    return count * min(elements * _BATCH_ROWS, size / row_bytes)

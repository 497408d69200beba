"""Expressions and operators whose results depend on the partition of a row and its position there.

An accelerated part returns its rows in other partitions than Spark's plan, so it must not be below one of these.
"""

from __future__ import annotations

from kquery_spark.frontends.catalyst.file_columns import INPUT_FILE_COLUMNS, named_relation
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

_NUMBERED = "is computed from the partition that Spark's own plan has a row in"
_SEEDED = "draws a sequence of its own for each of Spark's partitions"
_FILES = "names the file that Spark reads at the moment"
_EXPRESSIONS = {
    "MonotonicallyIncreasingID": ("monotonically_increasing_id", _NUMBERED),
    "SparkPartitionID": ("spark_partition_id", _NUMBERED),
    "Rand": ("rand", _SEEDED),
    "Randn": ("randn", _SEEDED),
    "RandStr": ("randstr", _SEEDED),
    "Uniform": ("uniform", _SEEDED),
    "Uuid": ("uuid", _SEEDED),
    "Shuffle": ("shuffle", _SEEDED),
    "InputFileName": ("input_file_name", _FILES),
    "InputFileBlockStart": ("input_file_block_start", _FILES),
    "InputFileBlockLength": ("input_file_block_length", _FILES),
}

NONDETERMINISTIC = {cls: name for cls, (name, how) in _EXPRESSIONS.items() if how != _FILES}
"""The functions that may return another value each time a row is computed, by their class in Spark's plans."""


def _names_own_files(part: CatalystNode, node: CatalystNode) -> bool:
    """Return whether the result depends on the file only, and the files are directly below the node."""
    return part.cls in INPUT_FILE_COLUMNS and named_relation(node) is not None


def partition_dependence(node: CatalystNode) -> str | None:
    """Return the reason why the rows below a plan node must stay in Spark's partitions; None if there is none."""
    if node.cls == "Sample":
        return f"A sample {_SEEDED}, so what is below it falls back to Spark."
    for top in node.expressions():
        for part in top.walk():
            name, how = _EXPRESSIONS.get(part.cls, ("", ""))
            # if the user has not set a seed, any random numbers are right
            if name and not part.fields.get("hideSeed") and not _names_own_files(part, node):
                return f"{name} {how}, so what is below it falls back to Spark."
    return None

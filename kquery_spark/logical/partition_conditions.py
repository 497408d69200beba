"""Evaluates conditions on partition columns: each is true either for all rows of a partition directory or for none.

Spark evaluates these conditions for every partition directory before it reads a file, whatever else the query does with the
rows. Two consequences are visible to users. First, a condition that raises an error raises it also for a directory without
rows. Second, other conditions never see the rows of a directory that was pruned.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Expr, Literal, columns_of
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import can_raise, is_constant, is_deterministic
from kquery_spark.expr.traverse import substitute, walk
from kquery_spark.sources.base import DataFile, Source
from kquery_spark.types import names as t

_MAX_PARTITIONS = 5000  # evaluating the condition takes some ten microseconds of planning for each

PartitionValues = tuple[Any, ...]


def partition_values_read(source: Source, condition: Expr) -> list[PartitionValues] | None:
    """Return, for each file, the values of the columns that the condition reads, in the order of their names.

    None if the condition reads a column that is not a partition column, or if it is not deterministic.
    """
    columns, partitions = _partitions(source)
    return _values_read(columns, partitions, condition)


def _partitions(source: Source) -> tuple[Sequence[str], list[PartitionValues]]:
    """Return the partition columns of a source and their values for each file; both empty without partition columns."""
    columns: Sequence[str] = getattr(source, "partition_columns", ())
    if not columns:
        return (), []
    files: Sequence[DataFile] = getattr(source, "files", ())
    return columns, [file.partition for file in files]


def _values_read(
    columns: Sequence[str], partitions: Sequence[PartitionValues], condition: Expr
) -> list[PartitionValues] | None:
    """Do the work of ``partition_values_read``. partitions: the values of all ``columns`` for each file."""
    names = sorted(columns_of(condition))
    if not names or not set(names) <= set(columns) or not is_deterministic(condition):
        return None
    positions = [columns.index(name) for name in names]
    return [tuple(partition[p] for p in positions) for partition in partitions]


def evaluate_by_partition(
    condition: Expr, values: Sequence[PartitionValues]
) -> dict[PartitionValues, bool | None]:
    """Evaluate the condition once for each distinct combination of values of its columns (in the order of their names).

    Raises ExecutionError if the condition does, and Unsupported if the engine cannot evaluate it ahead of the query.
    """
    distinct_values = list(dict.fromkeys(values))
    if len(distinct_values) > _MAX_PARTITIONS:
        raise Unsupported(
            f"a condition on more than {_MAX_PARTITIONS} partition directories is not supported"
        )
    columns = {e.name: e for e in walk(condition) if isinstance(e, Column)}
    names = sorted(columns)
    # 0.0 and -0.0 are equal as keys of a dictionary, but a condition can tell them apart, for example by a cast to string.
    if any(t.is_fractional(column.dtype) for column in columns.values()) and _has_both_zeros(values):
        raise Unsupported("a condition on partition values 0.0 and -0.0 is not supported")
    verdicts: dict[PartitionValues, bool | None] = {}
    for each in distinct_values:
        literals = {n: Literal(v, columns[n].dtype) for n, v in zip(names, each, strict=True)}
        with_values = substitute(condition, literals)
        if not is_constant(with_values):
            raise Unsupported("a user-defined function of partition columns is not supported")
        verdicts[each] = evaluate_constant(with_values).value
    return verdicts


def passing_partitions(
    columns: Sequence[str], partitions: Sequence[PartitionValues], conditions: Sequence[Expr]
) -> list[int]:
    """Return the positions of the partitions that pass all conditions that read partition columns only.

    partitions: the values of all partition columns, in the order of ``columns``. The conditions are evaluated left to right,
    as Spark does. Raises the ExecutionError that Spark raises for a partition, and Unsupported if the engine cannot know it.
    """
    remaining, dropped = list(range(len(partitions))), set[int]()
    for condition in conditions:
        values = _values_read(columns, partitions, condition)
        if values is None:
            continue
        verdicts = evaluate_by_partition(condition, [values[i] for i in remaining])
        # FALSE AND x is FALSE without evaluating x. NULL AND x needs x, so later conditions still see these partitions
        # and can raise for them; they are dropped at the end.
        remaining = [i for i in remaining if verdicts[values[i]] is not False]
        dropped.update(i for i in remaining if verdicts[values[i]] is None)
    return [i for i in remaining if i not in dropped]


def _has_both_zeros(values: Iterable[PartitionValues]) -> bool:
    signs = {math.copysign(1, v) for each in values for v in each if isinstance(v, float) and v == 0}
    return len(signs) > 1


def check_partition_conditions(source: Source, conditions: Sequence[Expr]) -> None:
    """Raise the ExecutionError that Spark raises for a partition when it evaluates these conditions left to right.

    conditions: the terms of the filter directly above the scan. Raises Unsupported if the engine cannot know the error.
    """
    columns, partitions = _partitions(source)
    terms = [c for c in conditions if _values_read(columns, partitions, c) is not None]
    if any(can_raise(c) for c in terms):
        passing_partitions(columns, partitions, terms)

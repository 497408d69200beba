"""Partition pruning: conditions on partition columns alone hold for all rows of a partition directory or for none.

Spark evaluates them for every directory before it reads a file, independent of the other conditions. So their errors are
raised even for a directory without rows, and other conditions never see the rows of a pruned directory.
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

_MAX_DIRECTORIES = 5000  # each takes some ten microseconds of planning

Values = tuple[Any, ...]


def directory_values(source: Source, condition: Expr) -> list[Values] | None:
    """The values of the columns that the condition reads, in order of their names, in the directory of each file.

    None where it reads other columns than those of directories, or is not always the same for the same values.
    """
    columns, directories = _directories(source)
    return _values_read(columns, directories, condition)


def _directories(source: Source) -> tuple[Sequence[str], list[Values]]:
    """The partition columns of a source, and their values for each file; none of a source without such columns."""
    columns: Sequence[str] = getattr(source, "partition_columns", ())
    if not columns:
        return (), []
    files: Sequence[DataFile] = getattr(source, "files", ())
    return columns, [file.partition for file in files]


def _values_read(
    columns: Sequence[str], directories: Sequence[Values], condition: Expr
) -> list[Values] | None:
    """As ``directory_values``; directories: the values of all ``columns`` for each file."""
    names = sorted(columns_of(condition))
    if not names or not set(names) <= set(columns) or not is_deterministic(condition):
        return None
    positions = [columns.index(name) for name in names]
    return [tuple(directory[p] for p in positions) for directory in directories]


def decided(condition: Expr, values: Sequence[Values]) -> dict[Values, bool | None]:
    """What the condition says of each combination of values of its columns.

    Raises ExecutionError as the condition does; Unsupported for conditions that are not decided here.
    """
    different = list(dict.fromkeys(values))
    if len(different) > _MAX_DIRECTORIES:
        raise Unsupported(
            f"conditions on more than {_MAX_DIRECTORIES} directories are not decided one by one"
        )
    columns = {e.name: e for e in walk(condition) if isinstance(e, Column)}
    names = sorted(columns)
    if any(t.is_fractional(column.dtype) for column in columns.values()) and _has_both_zeros(values):
        raise Unsupported("conditions on directories of 0.0 and of -0.0 are decided by Spark")
    verdicts: dict[Values, bool | None] = {}
    for each in different:
        literals = {n: Literal(v, columns[n].dtype) for n, v in zip(names, each, strict=True)}
        filled = substitute(condition, literals)
        if not is_constant(filled):
            raise Unsupported("a user's function of partition columns is not decided for directories")
        verdicts[each] = evaluate_constant(filled).value
    return verdicts


def passing_directories(
    columns: Sequence[str], directories: Sequence[Values], conditions: Sequence[Expr]
) -> list[int]:
    """Return the positions of the directories that satisfy every condition on partition columns alone.

    directories: the values of all partition columns, in the order of ``columns``. The conditions are evaluated from left
    to right, as in Spark. Raises the ExecutionError that Spark raises for a directory, or Unsupported if it is not known.
    """
    left, dropped = list(range(len(directories))), set[int]()
    for condition in conditions:
        values = _values_read(columns, directories, condition)
        if values is None:
            continue
        verdicts = decided(condition, [values[i] for i in left])
        left = [i for i in left if verdicts[values[i]] is not False]  # NULL AND x is not settled without x
        dropped.update(i for i in left if verdicts[values[i]] is None)
    return [i for i in left if i not in dropped]


def _has_both_zeros(values: Iterable[Values]) -> bool:
    signs = {math.copysign(1, v) for each in values for v in each if isinstance(v, float) and v == 0}
    return len(signs) > 1


def check_directories(source: Source, conditions: Sequence[Expr]) -> None:
    """Raise the ExecutionError that Spark raises for a directory when it decides these conditions, left to right.

    conditions: the terms of a filter right above the scan. Unsupported where that is not known.
    """
    columns, directories = _directories(source)
    terms = [c for c in conditions if _values_read(columns, directories, c) is not None]
    if any(can_raise(c) for c in terms):
        passing_directories(columns, directories, terms)

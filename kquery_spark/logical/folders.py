"""Conditions on partition columns alone: they hold for all of a folder's rows or for none.

Spark decides them for every folder before it reads a file, whatever else the query asks of the rows: an error of theirs is
raised for a folder without rows, too, and other conditions never see the rows of a folder that is left out.
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

_MAX_FOLDERS = 5000  # each takes some ten microseconds of planning

Values = tuple[Any, ...]


def folder_values(source: Source, condition: Expr) -> list[Values] | None:
    """The values of the columns that the condition reads, in order of their names, in the folder of each file.

    None where it reads other columns than those of folders, or is not always the same for the same values.
    """
    columns, folders = _folders(source)
    return _values_read(columns, folders, condition)


def _folders(source: Source) -> tuple[Sequence[str], list[Values]]:
    """The partition columns of a source, and their values for each file; none of a source without such columns."""
    columns: Sequence[str] = getattr(source, "partition_columns", ())
    if not columns:
        return (), []
    files: Sequence[DataFile] = getattr(source, "files", ())
    return columns, [file.partition for file in files]


def _values_read(columns: Sequence[str], folders: Sequence[Values], condition: Expr) -> list[Values] | None:
    """As ``folder_values``; folders: the values of all ``columns`` for each file."""
    names = sorted(columns_of(condition))
    if not names or not set(names) <= set(columns) or not is_deterministic(condition):
        return None
    positions = [columns.index(name) for name in names]
    return [tuple(folder[p] for p in positions) for folder in folders]


def decided(condition: Expr, values: Sequence[Values]) -> dict[Values, bool | None]:
    """What the condition says of each combination of values of its columns.

    Raises ExecutionError as the condition does; Unsupported for conditions that are not decided here.
    """
    different = list(dict.fromkeys(values))
    if len(different) > _MAX_FOLDERS:
        raise Unsupported(f"Conditions on more than {_MAX_FOLDERS} folders are not decided one by one.")
    columns = {e.name: e for e in walk(condition) if isinstance(e, Column)}
    names = sorted(columns)
    if any(t.is_fractional(column.dtype) for column in columns.values()) and _has_both_zeros(values):
        raise Unsupported("Conditions on folders of 0.0 and of -0.0 are decided by Spark.")
    verdicts: dict[Values, bool | None] = {}
    for each in different:
        literals = {n: Literal(v, columns[n].dtype) for n, v in zip(names, each, strict=True)}
        filled = substitute(condition, literals)
        if not is_constant(filled):
            raise Unsupported("A user's function of partition columns is not decided for folders.")
        verdicts[each] = evaluate_constant(filled).value
    return verdicts


def passing_folders(
    columns: Sequence[str], folders: Sequence[Values], conditions: Sequence[Expr]
) -> list[int]:
    """The positions of the folders that pass those of the conditions that are on partition columns alone.

    folders: the values of all partition columns, by position of ``columns``. The conditions are decided left to right, as
    Spark does: raises the ExecutionError that it raises for a folder; Unsupported where that is not known.
    """
    left, dropped = list(range(len(folders))), set[int]()
    for condition in conditions:
        values = _values_read(columns, folders, condition)
        if values is None:
            continue
        verdicts = decided(condition, [values[i] for i in left])
        left = [i for i in left if verdicts[values[i]] is not False]  # NULL AND x is not settled without x
        dropped.update(i for i in left if verdicts[values[i]] is None)
    return [i for i in left if i not in dropped]


def _has_both_zeros(values: Iterable[Values]) -> bool:
    signs = {math.copysign(1, v) for each in values for v in each if isinstance(v, float) and v == 0}
    return len(signs) > 1


def check_folders(source: Source, conditions: Sequence[Expr]) -> None:
    """Raise the ExecutionError that Spark raises for a folder when it decides these conditions, left to right.

    conditions: the terms of a filter right above the scan. Unsupported where that is not known.
    """
    columns, folders = _folders(source)
    terms = [c for c in conditions if _values_read(columns, folders, c) is not None]
    if any(can_raise(c) for c in terms):
        passing_folders(columns, folders, terms)

"""Conditions on partition columns alone: they hold for all of a folder's rows or for none.

Spark decides them for every folder before it reads a file, whatever else the query asks of the rows: an error of theirs is
raised for a folder without rows, too, and other conditions never see the rows of a folder that is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Expr, Literal, columns_of
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import can_raise, is_constant, is_deterministic
from kquery_spark.expr.traverse import substitute, walk
from kquery_spark.sources.base import DataFile, Source

_MAX_FOLDERS = 5000  # each takes some ten microseconds of planning

Values = tuple[Any, ...]


def folder_values(source: Source, condition: Expr) -> list[Values] | None:
    """The values of the columns that the condition reads, in order of their names, in the folder of each file.

    None where it reads other columns than those of folders, or is not always the same for the same values.
    """
    partitions: Sequence[str] = getattr(source, "partition_columns", ())
    names = sorted(columns_of(condition))
    if not names or not set(names) <= set(partitions) or not is_deterministic(condition):
        return None
    positions = [partitions.index(name) for name in names]
    files: Sequence[DataFile] = getattr(source, "files", ())
    return [tuple(file.partition[p] for p in positions) for file in files]


def decided(condition: Expr, values: Iterable[Values]) -> dict[Values, bool | None]:
    """What the condition says of each combination of values of its columns.

    Raises ExecutionError as the condition does; Unsupported for conditions that are not decided here.
    """
    different = list(dict.fromkeys(values))
    if len(different) > _MAX_FOLDERS:
        raise Unsupported(f"Conditions on more than {_MAX_FOLDERS} folders are not decided one by one.")
    columns = {e.name: e for e in walk(condition) if isinstance(e, Column)}
    names = sorted(columns)
    verdicts: dict[Values, bool | None] = {}
    for each in different:
        literals = {n: Literal(v, columns[n].dtype) for n, v in zip(names, each, strict=True)}
        filled = substitute(condition, literals)
        if not is_constant(filled):
            raise Unsupported("A user's function of partition columns is not decided for folders.")
        verdicts[each] = evaluate_constant(filled).value
    return verdicts


def check_folders(source: Source, conditions: Sequence[Expr]) -> None:
    """Raise the ExecutionError that Spark raises for a folder when it decides these conditions, left to right.

    conditions: the terms of a filter right above the scan. Unsupported where that is not known.
    """
    by_file = [(c, folder_values(source, c)) for c in conditions]
    terms = [(c, values) for c, values in by_file if values is not None]
    if not any(can_raise(c) for c, _ in terms):
        return
    files = range(len(terms[0][1]))
    left = list(files)
    for condition, values in terms:
        verdicts = decided(condition, [values[i] for i in left])
        left = [i for i in left if verdicts[values[i]] is not False]  # NULL AND x is not settled without x

"""Shrinks a case that differs: fewer clauses, smaller expressions, fewer rows, default settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from kquery_spark.fuzz.generate import Case
from kquery_spark.fuzz.tables import FuzzTable


def shrink(case: Case, still_fails: Callable[[Case], bool], attempts: int = 150) -> Case:
    """Return a smaller failing case. It is a greedy search: take the first smaller case that still fails, and repeat.

    The query is shrunk first, then the settings, then the tables, because a smaller query needs fewer tables and columns.
    still_fails: must return False for a case that is invalid or fails in another way. attempts: the most calls of it,
    because each runs two engines.
    """
    left = attempts
    steps: tuple[Callable[[Case], Iterator[Case]], ...] = (_queries, _settings, _tables)
    progress = True
    while progress and left > 0:
        progress = False
        for step in steps:
            smaller_found = True
            while smaller_found and left > 0:
                smaller_found = False
                for smaller in step(case):
                    left -= 1
                    if still_fails(smaller):
                        case, smaller_found, progress = smaller, True, True
                        break
                    if left <= 0:
                        break
    return case


def _queries(case: Case) -> Iterator[Case]:
    seen = {case.query.sql()}
    for query in case.query.smaller():
        sql = query.sql()
        if sql not in seen and len(sql) <= len(case.query.sql()):
            seen.add(sql)
            yield replace(case, query=query)


def _settings(case: Case) -> Iterator[Case]:
    for key in case.settings:
        yield replace(case, settings={k: v for k, v in case.settings.items() if k != key})


def _tables(case: Case) -> Iterator[Case]:
    words = frozenset(re.findall(r"\w+", case.query.sql()))
    used = tuple(table for table in case.tables if table.name in words)
    if len(used) < len(case.tables):
        yield replace(case, tables=used)
    for index, table in enumerate(case.tables):
        for smaller in _smaller_tables(table, words):
            yield replace(case, tables=(*case.tables[:index], smaller, *case.tables[index + 1 :]))


def _smaller_tables(table: FuzzTable, words: frozenset[str]) -> Iterator[FuzzTable]:
    """Yield smaller tables: without unused columns, as Parquet, in one file, and without parts of the rows.

    Halves of the rows are left out first, then quarters, and so on. words: the identifiers in the query.
    """
    data = table.data
    used = [name for name in data.column_names if name in words] or data.column_names[:1]
    if len(used) < data.num_columns:
        yield replace(table, data=data.select(used))
    if table.format != "parquet":
        yield replace(table, format="parquet")
    if table.pieces > 1:
        yield replace(table, pieces=1)
    rows, size = data.num_rows, data.num_rows // 2
    while size >= 1:
        for start in range(0, rows, size):
            remaining = [row for row in range(rows) if not start <= row < start + size]
            yield replace(table, data=data.take(remaining))
        # Leave out single rows only if few are left, because every attempt runs two engines.
        size = size // 2 if rows <= 12 or size > rows // 4 else 0

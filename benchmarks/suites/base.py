"""What a suite is: tables on disk and queries over them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LAST_LIMIT = re.compile(r"\bLIMIT\s+\d+\s*;?\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Table:
    """A table on disk: one file or a directory of files. ``ddl`` gives the types of a CSV file in Spark's words."""

    name: str
    path: Path
    format: str = "parquet"
    ddl: str | None = None

    def files(self) -> list[Path]:
        """Its data files in order."""
        if self.path.is_file():
            return [self.path]
        return sorted(p for p in self.path.rglob(f"*.{self.format}") if p.is_file())


@dataclass(frozen=True)
class Step:
    """A job in the DataFrame API.

    run: called as ``run(spark, paths, out)``, where ``paths`` has the path of each table. It ends in an action and returns
    its result, or None after it wrote Parquet files to ``out``. ordered: the order of the rows in these files is compared,
    too.
    """

    name: str
    run: Callable[..., Any]
    ordered: bool = False


@dataclass(frozen=True)
class Query:
    """A query of a suite.

    sql: for Spark, the engine, and every other engine that reads it. other_sql: for engines that are not
    Spark-compatible, where the dialect differs. settings: Spark settings in force while it runs. pairs_with: the
    query that asks for the same in another way (another format, other settings), for readers of the results. step: a job
    in the DataFrame API, which runs instead of ``sql`` and only on Spark and our engine.
    """

    name: str
    sql: str
    other_sql: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    pairs_with: str | None = None
    step: Step | None = None

    def without_limit(self) -> Query | None:
        """Return the query without its last LIMIT; None if it has none.

        If rows tie at the limit, engines may return different ones. Then the results without the LIMIT are compared.
        """
        bare = _LAST_LIMIT.sub("", self.sql.strip())
        if bare == self.sql.strip():
            return None
        other = None if self.other_sql is None else _LAST_LIMIT.sub("", self.other_sql.strip())
        return Query(self.name, bare, other, self.settings, self.pairs_with)


@dataclass(frozen=True)
class Suite:
    """A named set of queries; ``make`` writes the data of a scale below a directory and returns its tables."""

    name: str
    about: str
    make: Callable[[Path, float], tuple[Table, ...]]
    queries: Callable[[], tuple[Query, ...]]
    note: str = ""

    def data(self, root: Path, scale: float) -> tuple[Table, ...]:
        """Make the data of this scale below ``root`` unless it is there."""
        return self.make(root, scale)

    def chosen(self, names: str | None) -> tuple[Query, ...]:
        """The queries of a list such as ``1,3,6-8`` or ``sort,top_k``; ValueError names one that is not there."""
        queries = self.queries()
        if not names:
            return queries
        known = {query.name: query for query in queries}
        picked: dict[str, Query] = {}
        for part in (part.strip() for part in names.split(",")):
            for name in _range(part):
                if name not in known:
                    raise ValueError(f"suite {self.name} has no query {name!r}: it has {', '.join(known)}")
                picked[name] = known[name]
        return tuple(picked.values())


def _range(part: str) -> list[str]:
    first, dash, last = part.partition("-")
    if dash and first.isdigit() and last.isdigit() and int(first) <= int(last):
        return [str(number) for number in range(int(first), int(last) + 1)]
    return [part]

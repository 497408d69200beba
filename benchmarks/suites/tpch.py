"""The 22 queries derived from TPC-H."""

from __future__ import annotations

from pathlib import Path

from benchmarks import tpch
from benchmarks.suites.base import Query, Suite, Table


def _make(root: Path, scale: float) -> tuple[Table, ...]:
    directory = tpch.generate(root / f"tpch-{scale:g}", scale)
    return tuple(Table(name, directory / f"{name}.parquet") for name in tpch.TABLES)


def _queries() -> tuple[Query, ...]:
    return tuple(Query(str(number), tpch.query(number)) for number in tpch.QUERIES)


TPCH = Suite(
    "tpch", "22 queries derived from TPC-H; scale 1 is 6 million lineitems", _make, _queries, tpch.FAIR_USE
)

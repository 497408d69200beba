"""The 99 queries derived from TPC-DS. Their data and SQL come from DuckDB's ``tpcds`` extension.

The extension comes from PyPI (``duckdb-extension-tpcds``, in the version of ``duckdb``), so nothing is downloaded at run time.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.suites.base import Query, Suite, Table

TABLES = [
    "call_center",
    "catalog_page",
    "catalog_returns",
    "catalog_sales",
    "customer",
    "customer_address",
    "customer_demographics",
    "date_dim",
    "household_demographics",
    "income_band",
    "inventory",
    "item",
    "promotion",
    "reason",
    "ship_mode",
    "store",
    "store_returns",
    "store_sales",
    "time_dim",
    "warehouse",
    "web_page",
    "web_returns",
    "web_sales",
    "web_site",
]
FAIR_USE = (
    "Queries and data are derived from TPC-DS and are not comparable to published TPC-DS results, "
    "as they do not comply with the TPC-DS specification."
)


class ExtensionMissing(RuntimeError):
    """DuckDB or its ``tpcds`` extension is not installed."""


def _connect() -> Any:
    spec = importlib.util.find_spec("duckdb_extension_tpcds")
    if importlib.util.find_spec("duckdb") is None or spec is None or spec.origin is None:
        raise ExtensionMissing(
            "TPC-DS needs DuckDB and its extension; type: pip install duckdb duckdb-extension-tpcds"
        )
    import duckdb

    files = sorted(Path(spec.origin).parent.rglob("tpcds.duckdb_extension"))
    fitting = [file for file in files if file.parent.name == f"v{duckdb.__version__}"]
    if not fitting:
        raise ExtensionMissing(
            f"the tpcds extension is not for DuckDB {duckdb.__version__}; install both in the same version"
        )
    connection = duckdb.connect()
    connection.execute(f"LOAD '{fitting[0]}'")
    return connection


def generate(out: Path, scale: float) -> Path:
    """Write ``<out>/<table>.parquet`` for the 24 tables, unless they exist at this scale; return ``out``."""
    manifest = out / "_tpcds.json"
    if manifest.exists() and json.loads(manifest.read_text()) == {"scale": scale}:
        return out
    connection = _connect()
    out.mkdir(parents=True, exist_ok=True)
    connection.execute(f"CALL dsdgen(sf={scale:g})")
    for table in TABLES:
        connection.execute(f"COPY {table} TO '{out / table}.parquet' (FORMAT parquet)")
    connection.close()
    # written last: a run that was interrupted leaves no manifest and is done again
    manifest.write_text(json.dumps({"scale": scale}) + "\n")
    return out


def _make(root: Path, scale: float) -> tuple[Table, ...]:
    directory = generate(root / f"tpcds-{scale:g}", scale)
    return tuple(Table(name, directory / f"{name}.parquet") for name in TABLES)


@cache
def _queries() -> tuple[Query, ...]:
    with _connect() as connection:
        strings = connection.execute(
            "SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr"
        ).fetchall()
    return tuple(Query(str(number), spark_dialect(text), text) for number, text in strings)


def spark_dialect(text: str) -> str:
    """Convert DuckDB's SQL to Spark's dialect: identifiers in double quotes get backticks instead."""
    return text.replace('"', "`")


TPCDS = Suite(
    "tpcds", "99 queries derived from TPC-DS; scale 1 is 2.9 million store sales", _make, _queries, FAIR_USE
)

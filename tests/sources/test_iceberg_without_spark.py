"""Iceberg tables in a context without Spark, which the pyiceberg package writes and plans."""

from __future__ import annotations

import datetime
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import IntegerType, StringType

import kquery_spark as kq
from kquery_spark.errors import SourceError

ROWS = pa.table(
    {
        "id": range(100),
        "p": [f"a b/%{i % 3}" for i in range(100)],
        "day": [None if i % 4 == 0 else datetime.date(2020, 1, 1 + i % 3) for i in range(100)],
        "m": pa.array([Decimal(i) / 4 for i in range(100)], pa.decimal128(9, 2)),
        "s": [{"x": i, "y": f"y{i % 2}"} for i in range(100)],
    }
)


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    catalog = SqlCatalog(
        "c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/ware house"
    )
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def table(catalog: SqlCatalog) -> Any:
    made = catalog.create_table("db.t", ROWS.schema)
    with made.update_spec() as update:
        update.add_identity("p")
        update.add_identity("day")
    made.append(ROWS)
    return made


def rows(ctx: kq.ExecutionContext, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in ctx.sql(sql).collect()]


def test_partitions_and_metadata_files(table: Any) -> None:
    ctx = kq.ExecutionContext()
    ctx.register_iceberg("t", table)
    expected: dict[tuple[Any, Any], list[Any]] = {}
    for row in ROWS.to_pylist():
        count = expected.setdefault((row["p"], row["day"]), [0, Decimal(0)])
        count[0] += 1
        count[1] += row["m"]
    actual = rows(ctx, "SELECT p, day, count(*), sum(m) FROM t GROUP BY p, day")
    assert {(p, day): [n, m] for p, day, n, m in actual} == expected
    ctx.register_iceberg("same", table.metadata_location)
    assert rows(ctx, "SELECT count(*), sum(s.x) FROM same WHERE s.y = 'y1'") == [(50, 2500)]


def test_snapshots_and_renames(table: Any) -> None:
    first = table.current_snapshot().snapshot_id
    with table.update_schema() as update:
        update.rename_column("id", "number")
        update.rename_column(("s", "x"), "was_x")
    with table.update_schema() as update:
        update.add_column("id", StringType())
    table.append(ROWS.rename_columns(["number", "p", "day", "m", "s"]).drop(["s"]))
    ctx = kq.ExecutionContext()
    ctx.register_iceberg("t", table)
    assert rows(ctx, "SELECT count(*), sum(number), count(id), sum(s.was_x) FROM t") == [(200, 9900, 0, 4950)]
    ctx.register_iceberg("before", table, first)
    assert rows(ctx, "SELECT count(*) FROM before") == [(100,)]


def test_no_rows(catalog: SqlCatalog) -> None:
    empty = catalog.create_table("db.empty", ROWS.schema)
    ctx = kq.ExecutionContext()
    ctx.register_iceberg("t", empty)
    assert rows(ctx, "SELECT count(*), max(id) FROM t") == [(0, None)]


def test_what_is_no_table_is_an_error(tmp_path: Path, table: Any) -> None:
    with pytest.raises(SourceError, match=r"cannot open the Iceberg table .*nothing"):
        kq.ExecutionContext().register_iceberg("t", str(tmp_path / "nothing.metadata.json"))
    with pytest.raises(SourceError, match=r"the Iceberg table .* cannot be read"):
        kq.ExecutionContext().register_iceberg("t", table, 5)


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    with pytest.raises(SourceError, match=r"pip install 'kquery-spark\[iceberg\]'"):
        kq.ExecutionContext().register_iceberg("t", "x.metadata.json")


def test_files_of_other_writers_by_the_names_of_their_columns(table: Any, tmp_path: Path) -> None:
    rows_of_file = ROWS.slice(0, 3)
    pq.write_table(rows_of_file, tmp_path / "added.parquet")
    plain = table.catalog.create_table("db.plain", ROWS.schema)
    plain.add_files([f"file://{tmp_path}/added.parquet"])
    with plain.update_schema() as update:
        update.rename_column("id", "number")
    ctx = kq.ExecutionContext()
    ctx.register_iceberg("t", plain)
    assert rows(ctx, "SELECT number, s.x FROM t ORDER BY number") == [(0, 0), (1, 1), (2, 2)]


def test_a_required_column_that_a_file_lacks_is_an_error(table: Any) -> None:
    """Iceberg's readers raise IllegalArgumentException: Missing required field."""
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.add_column("c", IntegerType(), required=True)
    with pytest.raises(SourceError, match=r"lacks c, although the column cannot be NULL"):
        kq.ExecutionContext().register_iceberg("t", table)


def test_a_required_field_that_a_file_lacks_is_an_error(table: Any) -> None:
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.add_column(("s", "c"), IntegerType(), required=True)
    with pytest.raises(SourceError, match=r"a file lacks c, although the field cannot be NULL"):
        kq.ExecutionContext().register_iceberg("t", table)


def test_required_columns_and_fields_are_not_nullable(catalog: SqlCatalog) -> None:
    item = pa.struct([pa.field("x", pa.int64(), nullable=False), ("y", pa.string())])
    schema = pa.schema(
        [
            pa.field("a", pa.int64(), nullable=False),
            ("s", item),
            ("l", pa.list_(pa.field("element", item, nullable=False))),
            ("m", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
        ]
    )
    written = [
        {"a": 1, "s": {"x": 1, "y": None}, "l": [{"x": 2, "y": "y"}], "m": [("k", 1)]},
        {"a": 2, "s": None, "l": [], "m": None},  # pyiceberg writes NULL lists of structs as empty ones
        {"a": 3, "s": {"x": 3, "y": "z"}, "l": [], "m": []},
    ]
    table = catalog.create_table("db.required", schema)
    table.append(pa.Table.from_pylist(written, schema))
    ctx = kq.ExecutionContext()
    ctx.register_iceberg("t", table)
    result = ctx.sql("SELECT * FROM t ORDER BY a").to_arrow()
    assert result.schema.equals(schema)
    assert result.to_pylist() == written
    assert rows(ctx, "SELECT a FROM t WHERE s.x IS NULL OR m['k'] IS NULL ORDER BY a") == [(2,), (3,)]

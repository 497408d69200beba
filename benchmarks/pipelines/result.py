"""Turns the result of a step, or the files that it wrote, into a table that can be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

_FLOATS = ("FLOAT", "DOUBLE")


def as_table(result: Any, out: Path, ordered: bool = False) -> pa.Table:
    """Return the result of a step as a table.

    A list of rows, a pandas DataFrame, a number, or a list of numbers is converted to Arrow. None means that the step wrote
    Parquet files to ``out``: the table then has checksums of each column, of the rows, and for ``ordered`` of their order.
    """
    import pandas as pd

    if result is None:
        return checksums(out, ordered)
    if isinstance(result, pd.DataFrame):
        return pa.Table.from_pandas(result, preserve_index=False).replace_schema_metadata(None)
    if isinstance(result, list) and result and hasattr(result[0], "asDict"):
        return pa.Table.from_pylist([row.asDict(recursive=True) for row in result])
    return pa.table({"value": result if isinstance(result, list) else [result]})


def checksums(directory: Path, ordered: bool = False) -> pa.Table:
    """Return the type, the number of values, and a checksum of each column of the Parquet files below ``directory``.

    A float column has its sum instead of a checksum, because its values may differ in their last digits. Partition columns
    are included.
    """
    import duckdb

    files = sorted(str(path) for path in directory.rglob("*.parquet"))
    if not files:
        raise FileNotFoundError(f"the step wrote no Parquet files to {directory}")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        scan = "read_parquet($files, hive_partitioning = true, filename = true, file_row_number = true)"
        described = connection.execute(f"DESCRIBE SELECT * FROM {scan}", {"files": files}).fetchall()
        columns = [
            (name, kind) for name, kind, *_ in described if name not in ("filename", "file_row_number")
        ]
        exact = [f'"{name}"' for name, kind in columns if kind not in _FLOATS]
        row = f"hash({', '.join(exact)})"
        items = ["count(*)", f"sum({row})"]
        for name, kind in columns:
            items.append(f'count("{name}")')
            items.append(f'sum("{name}")' if kind in _FLOATS else f'sum(hash("{name}"))')
        aggregates = connection.execute(f"SELECT {', '.join(items)} FROM {scan}", {"files": files}).fetchone()
        order_checksum = None
        if ordered:
            # DuckDB sorts hashes of the rows instead of the wide rows
            hashed_rows = f"SELECT {row} AS row, filename, file_row_number FROM {scan}"
            place = "row_number() OVER (ORDER BY filename, file_row_number)"
            sql = f"SELECT sum(hash(row, place)) FROM (SELECT row, {place} AS place FROM ({hashed_rows}))"
            order_checksum = connection.execute(sql, {"files": files}).fetchall()[0][0]
    assert aggregates is not None, "an aggregate returns a row"
    count, row_checksum, *column_aggregates = aggregates
    records: list[tuple[Any, ...]] = [
        ("(rows)", "", count, str(row_checksum), None),
        ("(order)", "", count, str(order_checksum), None),
    ]
    for (name, kind), values, total in zip(
        columns, column_aggregates[::2], column_aggregates[1::2], strict=True
    ):
        is_float = kind in _FLOATS
        records.append((name, kind, values, None if is_float else str(total), total if is_float else None))
    names = ["column", "type", "values", "checksum", "sum"]
    types = [pa.string(), pa.string(), pa.int64(), pa.string(), pa.float64()]
    arrays = [
        pa.array(list(column), kind) for column, kind in zip(zip(*records, strict=True), types, strict=True)
    ]
    return pa.table(arrays, names=names)

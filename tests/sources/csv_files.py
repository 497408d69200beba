"""Compares how the engine and Spark read CSV files; every test runs with Arrow and with the kernels as the line splitter."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.sources.csv.source import csv_source
from kquery_spark.types import names as t
from tests.sources.compare import assert_same

TYPES = {
    "string": t.STRING,
    "int": t.INT,
    "bigint": t.LONG,
    "smallint": t.SHORT,
    "tinyint": t.BYTE,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "boolean": t.BOOL,
    "date": t.DATE,
    "timestamp": t.timestamp("UTC"),
    "timestamp_ntz": t.TIMESTAMP_NTZ,
    "decimal(5,2)": t.decimal(5, 2),
    "decimal(20,0)": t.decimal(20, 0),
    "decimal(38,10)": t.decimal(38, 10),
}


@pytest.fixture(params=["arrow", "kernels"], autouse=True)
def cut_by(request, monkeypatch):
    """Arrow splits the lines into fields, or the compiled kernels do where they can."""
    found = FILE_LOOPS.compile_now() if request.param == "kernels" else None
    monkeypatch.setattr(FILE_LOOPS, "kernels", lambda *_: found)


def schema_of(ddl: dict[str, str]) -> pa.Schema:
    return pa.schema([pa.field(name, TYPES[kind]) for name, kind in ddl.items()])


def compare(spark, path, ddl: dict[str, str] | None = None, columns=None, **options):
    reader = spark.read.options(
        **{k: str(v).lower() if isinstance(v, bool) else v for k, v in options.items()}
    )
    if ddl is not None:
        reader = reader.schema(", ".join(f"{name} {kind}" for name, kind in ddl.items()))
    source = csv_source([str(path)], None if ddl is None else schema_of(ddl), **options)
    assert_same(reader.csv(str(path)), source, columns)

"""Files that releases of Spark read otherwise, without a setting that would say so: each release's own answer."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import Unsupported
from kquery_spark.sources.file_format import ColumnsRead
from kquery_spark.sources.file_relation import FileRelation
from kquery_spark.sources.formats import format_named
from kquery_spark.spark_bridge.session_settings import EXPECTED, SessionSettings


def test_numbers_and_objects_read_as_text(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id":1,"s":1.50}\n{"id":2,"s":{"a":  1}}\n{"id":3,"s":"x"}\n')
    frame = spark.read.schema("id long, s string").json(str(tmp_path))
    assert kq.kquery_plan(frame, when="always").collect() == frame.collect()


def test_a_struct_none_of_whose_fields_is_in_the_file(spark: Any, tmp_path: Path) -> None:
    structs = pa.array([{"b": 1}, None, {"b": 2}])
    pq.write_table(pa.table({"id": [1, 2, 3], "st": structs}), tmp_path / "a.parquet")
    frame = spark.read.schema("id long, st struct<x: long>").parquet(str(tmp_path))
    assert kq.kquery_plan(frame, when="always").collect() == frame.collect()


STRUCT = pa.struct([("x", pa.int64())])


@pytest.mark.parametrize(
    ("kind", "setting", "dtype", "declined"),
    [
        ("json", "spark.sql.json.enableExactStringParsing", pa.string(), "read as text"),
        ("json", "spark.sql.json.enableExactStringParsing", pa.list_(pa.string()), "read as text"),
        ("json", "spark.sql.json.enableExactStringParsing", pa.int64(), None),
        ("parquet", "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing", STRUCT, "reads a struct"),
        (
            "parquet",
            "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing",
            pa.map_(pa.string(), STRUCT),
            "reads a struct",
        ),
    ],
)
def test_columns_stay_with_a_release_without_the_setting(
    kind: str, setting: str, dtype: pa.DataType, declined: str | None
) -> None:
    schema = pa.schema([("c", dtype), ("other", dtype)])
    relation = FileRelation(kind, (), (), schema, pa.schema([]), {}, {}, {})

    def read(values: dict[str, str | None], *columns: str) -> object:
        settings = SessionSettings("3.5.9", True, "UTC", False, "_corrupt_record", MappingProxyType(values))
        entry = format_named(kind)
        assert entry.read_columns is not None
        source: Any = object()
        return entry.read_columns(ColumnsRead(source, relation, columns, settings, None))  # type: ignore[arg-type]

    if declined is None:
        read({**EXPECTED, setting: None}, "c")
        return
    with pytest.raises(Unsupported, match=f"Spark 3.5.9, unlike 4.* {declined}.*column c stays with it"):
        read({**EXPECTED, setting: None}, "c")

"""Files that releases of Spark read otherwise, without a setting that would say so: each release's own answer."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import Unsupported
from kquery_spark.sources.file_format import ColumnsRead, PathsRead
from kquery_spark.sources.file_relation import FileRelation
from kquery_spark.sources.formats import format_named
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, error_class
from kquery_spark.spark_bridge.session.settings import EXPECTED, SessionSettings
from tests.conftest import SPARK_VERSION


def test_numbers_and_objects_read_as_text(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id":1,"s":1.50}\n{"id":2,"s":{"a":  1}}\n{"id":3,"s":"x"}\n')
    frame = spark.read.schema("id long, s string").json(str(tmp_path))
    assert kq.kquery_plan(frame, when="always").collect() == frame.collect()


def test_a_struct_none_of_whose_fields_is_in_the_file(spark: Any, tmp_path: Path) -> None:
    structs = pa.array([{"b": 1}, None, {"b": 2}])
    pq.write_table(pa.table({"id": [1, 2, 3], "st": structs}), tmp_path / "a.parquet")
    frame = spark.read.schema("id long, st struct<x: long>").parquet(str(tmp_path))
    assert kq.kquery_plan(frame, when="always").collect() == frame.collect()


def test_dates_and_times_that_spark_2_wrote(spark: Any, tmp_path: Path) -> None:
    """Spark's tables of time zones say which times these are: they are read from its JAR, by any Java that it runs on."""
    days = pa.array([dt.date(1000, 1, 1), dt.date(1582, 10, 1), dt.date(2020, 1, 1), None])
    times = pa.array([-30_610_224_000, -12_219_321_600, 1_577_836_800, None], pa.timestamp("s", "UTC"))
    rows = pa.table({"d": days, "t": times.cast(pa.timestamp("us", "UTC"))})
    footer = {"org.apache.spark.version": "2.4.6", "org.apache.spark.timeZone": "America/Los_Angeles"}
    pq.write_table(rows.replace_schema_metadata(footer), tmp_path / "a.parquet")
    frame = spark.read.parquet(str(tmp_path))
    expected = frame.collect()
    assert expected[0].d != days[0].as_py()
    assert kq.kquery_plan(frame, when="always", fallback="error").collect() == expected


#: Columns of files and wider types of tables that have room for all of their values.
PROMOTIONS = [
    (pa.int32(), "bigint", pa.int64()),
    (pa.float32(), "double", pa.float64()),
    (pa.int64(), "decimal(22,2)", pa.decimal128(22, 2)),
    (pa.decimal128(12, 2), "decimal(20,4)", pa.decimal128(20, 4)),
    (pa.list_(pa.float32()), "array<double>", pa.list_(pa.float64())),
    (pa.struct([("a", pa.int16())]), "struct<a: bigint>", pa.struct([("a", pa.int64())])),
    (pa.map_(pa.string(), pa.int8()), "map<string, bigint>", pa.map_(pa.string(), pa.int64())),
]
SAME_SIZE = [
    (pa.int16(), "int", pa.int32()),
    (pa.uint32(), "bigint", pa.int64()),
    (pa.uint64(), "decimal(20,0)", pa.decimal128(20, 0)),
    (pa.binary(), "binary", pa.binary()),
    (pa.string(), "binary", pa.binary()),
]
VALUES = {pa.binary(): b"x", pa.string(): "x"}


def outcome(frame: Any) -> Any:
    try:
        return frame.collect()
    except SPARK_ERRORS as error:
        return error_class(error)


def test_columns_of_narrower_types_than_the_table(spark: Any, tmp_path: Path) -> None:
    """Spark before 4.0 raises an error for them, and for INT96 times that the table has as wall-clock times."""
    for number, (in_file, declared, _) in enumerate(PROMOTIONS + SAME_SIZE):
        column = pa.array([value_of(in_file), None], in_file)
        pq.write_table(pa.table({"c": column}), tmp_path / f"{number}.parquet", store_schema=False)
        frame = spark.read.schema(f"c {declared}").parquet(str(tmp_path / f"{number}.parquet"))
        fast = kq.kquery_plan(frame, when="always", fallback="error" if SPARK_VERSION >= (4, 0) else "spark")
        assert outcome(fast) == outcome(frame), declared
    times = pa.table({"c": pa.array([1 << 50, None], pa.timestamp("us"))})
    pq.write_table(times, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    frame = spark.read.option("int96RebaseMode", "CORRECTED").schema("c timestamp_ntz")
    frame = frame.parquet(str(tmp_path / "t.parquet"))
    assert outcome(kq.kquery_plan(frame, when="always")) == outcome(frame)


def value_of(dtype: pa.DataType) -> Any:
    if pa.types.is_map(dtype):
        return [("k", 1)]
    if pa.types.is_list(dtype):
        return [1]
    return {"a": 1} if pa.types.is_struct(dtype) else VALUES.get(dtype, 1)


def settings_without(setting: str) -> SessionSettings:
    """Those of a Spark that has no such setting."""
    values = MappingProxyType({**EXPECTED, **READ, setting: None})
    return SessionSettings("3.5.9", True, "UTC", False, "_corrupt_record", values)


#: Settings that the format reads for which no value is expected.
READ = {"spark.sql.parquet.int96AsTimestamp": "true"}


@pytest.mark.parametrize(
    ("dtype", "declined"),
    [
        (pa.string(), True),
        (pa.list_(pa.string()), True),
        (pa.map_(pa.string(), pa.int64()), True),
        (pa.int64(), False),
    ],
)
def test_text_of_json_stays_with_a_release_that_rewrites_it(dtype: pa.DataType, declined: bool) -> None:
    schema = pa.schema([("c", dtype), ("n", pa.int64())])
    relation = FileRelation("json", (), (), schema, pa.schema([]), {}, {}, {})
    settings = settings_without("spark.sql.json.enableExactStringParsing")
    read_columns = format_named("json").read_columns
    assert read_columns is not None
    source: Any = object()
    zones: Any = None
    assert read_columns(ColumnsRead(source, relation, ("n",), settings, zones)) is source
    if not declined:
        assert read_columns(ColumnsRead(source, relation, ("c", "n"), settings, zones)) is source
        return
    with pytest.raises(
        Unsupported, match=r"Spark 3\.5\.9, unlike 4\.0, rewrites .* column c is not supported"
    ):
        read_columns(ColumnsRead(source, relation, ("c", "n"), settings, zones))


@pytest.mark.parametrize(("version", "declined"), [("3.5.9", True), ("4.0.0", False)])
def test_narrower_types_stay_with_a_release_that_does_not_read_them(
    tmp_path: Path, version: str, declined: bool
) -> None:
    path = str(tmp_path / "a.parquet")
    entry = format_named("parquet")
    assert entry.read_columns is not None
    values = MappingProxyType({**EXPECTED, **READ})
    settings = SessionSettings(version, True, "UTC", False, "_corrupt_record", values)
    zones: Any = None
    for in_file, _, declared in PROMOTIONS + SAME_SIZE:
        pq.write_table(pa.table({"c": pa.nulls(1, in_file)}), path, store_schema=False)
        opened = entry.open_paths(PathsRead([path], None, "UTC", False))
        assert isinstance(opened, ParquetSource)
        schema = pa.schema([("c", declared)])
        source = ParquetSource(opened.files, schema, (), rebase=opened.rebase)
        read = ColumnsRead(
            source,
            FileRelation("parquet", (), (), schema, pa.schema([]), {}, {}, {}),
            ("c",),
            settings,
            zones,
        )
        if declined and (in_file, _, declared) in PROMOTIONS:
            with pytest.raises(
                Unsupported, match=r"Spark 3\.5\.9, unlike 4\.0, may not read column c of .* as "
            ):
                entry.read_columns(read)
        else:
            entry.read_columns(read)


FIELD = pa.field("x", pa.int64())
OTHER = pa.field("y", pa.int64())


@pytest.mark.parametrize(
    ("in_file", "declared", "declined"),
    [
        (pa.struct([FIELD, OTHER]), pa.struct([FIELD]), False),
        (pa.struct([FIELD]), pa.struct([FIELD, OTHER]), True),
        (pa.list_(pa.struct([OTHER])), pa.list_(pa.struct([FIELD])), True),
        (pa.list_(pa.struct([FIELD])), pa.list_(pa.struct([FIELD])), False),
        (pa.map_(pa.string(), pa.struct([OTHER])), pa.map_(pa.string(), pa.struct([FIELD])), True),
        (pa.struct([("in", pa.struct([OTHER]))]), pa.struct([("in", pa.struct([FIELD]))]), True),
        (pa.int64(), pa.int64(), False),
    ],
)
def test_structs_of_parquet_stay_with_a_release_that_makes_them_null(
    tmp_path: Path, in_file: pa.DataType, declared: pa.DataType, declined: bool
) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"c": pa.nulls(3, in_file), "n": [1, 2, 3]}), path)
    entry = format_named("parquet")
    opened = entry.open_paths(PathsRead([path], None, "UTC", False))
    assert isinstance(opened, ParquetSource) and entry.read_columns is not None
    schema = pa.schema([("c", declared), ("n", pa.int64())])
    source = ParquetSource(opened.files, schema, (), rebase=opened.rebase)
    relation = FileRelation("parquet", (), (), schema, pa.schema([]), {}, {}, {})
    settings = settings_without("spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing")
    zones: Any = None
    entry.read_columns(ColumnsRead(source, relation, ("n",), settings, zones))
    if not declined:
        entry.read_columns(ColumnsRead(source, relation, ("c", "n"), settings, zones))
        return
    with pytest.raises(Unsupported, match=r"before 4\.1.*reads a struct as NULL .*a\.parquet"):
        entry.read_columns(ColumnsRead(source, relation, ("c", "n"), settings, zones))

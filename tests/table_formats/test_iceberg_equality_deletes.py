"""Iceberg tables with rows that are deleted by their values, as Flink deletes them; Iceberg's own library writes the files."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

import kquery_spark as kq
from tests.accelerate.checks import check
from tests.table_formats.queries import whole

# bigints beyond 32 bits, as py4j passes smaller numbers on as ints
ROWS = (
    "SELECT id + 10000000000 AS id, cast(id % 7 AS int) AS k, if(id % 11 = 0, NULL, concat('s', id % 13)) AS s,"
    " id / 3 AS d, cast(id % 50 / 4 AS decimal(9,2)) AS m, date_add(date'2024-01-01', cast(id % 20 AS int)) AS day FROM range(2000)"
)
GROUPED = "SELECT k, count(*), count(s), min(s), max(id), sum(d) FROM {t} GROUP BY k"
MERGE_ON_READ = "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read'"
NUMBERS = itertools.count()


def delete_by_values(
    spark: Any, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], **partition: Any
) -> None:
    """Commit a file of deleted values of the columns. partition: of the file, in a table with partitions."""
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    iceberg = jvm.org.apache.iceberg
    table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    fields = jvm.java.util.ArrayList()
    ids = gateway.new_array(jvm.int, len(columns))
    for i, column in enumerate(columns):
        fields.add(table.schema().findField(column))
        ids[i] = table.schema().findField(column).fieldId()
    keys = iceberg.Schema(fields)
    builder = iceberg.data.GenericFileWriterFactory.Builder(table).deleteFileFormat(
        iceberg.FileFormat.PARQUET
    )
    factory = builder.equalityFieldIds(ids).equalityDeleteRowSchema(keys).build()
    path = f"{table.location()}/data/deleted-values-{next(NUMBERS)}.parquet"
    file = table.encryption().encrypt(table.io().newOutputFile(path))
    values = None
    if partition:
        values = iceberg.data.GenericRecord.create(table.spec().partitionType())
        for column, value in partition.items():
            values.setField(column, value)
    writer = factory.newEqualityDeleteWriter(file, table.spec(), values)
    for row in rows:
        record = iceberg.data.GenericRecord.create(keys)
        for column, value in zip(columns, row, strict=True):
            record.setField(column, value)
        writer.write(record)
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
    spark.sql(f"REFRESH TABLE {name}")


def check_all(spark: Any, name: str) -> None:
    """Groups, counts and plain rows, with the columns that decide and without them."""
    whole(spark, GROUPED.format(t=name))
    whole(spark, f"SELECT count(*) FROM {name}")
    whole(spark, f"SELECT sum(d) FROM {name} WHERE s = 's3' AND d > 20")
    whole(spark, f"SELECT count(*), max(m) FROM {name} WHERE s IS NULL OR k = 3")
    whole(spark, f"SELECT _file, _spec_id, count(*), sum(_pos) FROM {name} GROUP BY ALL")
    check(spark.sql(f"SELECT m, day FROM {name} WHERE id < 10000000100"))
    check(spark.sql(f"SELECT * FROM {name} ORDER BY id DESC LIMIT 7"))


@pytest.mark.essential
@pytest.mark.parametrize("files", [1, 3])
def test_only_older_rows_are_deleted(spark: Any, table: Any, files: int) -> None:
    name = table(ROWS, "'format-version' = '2'", MERGE_ON_READ, files=files)
    before = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots").head()[0]
    delete_by_values(spark, name, ["k"], [[3], [99]])
    assert spark.table(name).where("k = 3").count() == 0
    check_all(spark, name)
    spark.sql(f"INSERT INTO {name} {ROWS} WHERE id % 7 = 3 AND id < 300")
    check_all(spark, name)
    delete_by_values(
        spark, name, ["id", "s"], [[10000000011, None], [10000000012, None], [10000000003, "s3"]]
    )
    check_all(spark, name)
    spark.sql(f"DELETE FROM {name} WHERE d < 7")
    check_all(spark, name)
    spark.sql(f"UPDATE {name} SET s = 'new' WHERE k = 5")
    delete_by_values(spark, name, ["s"], [["new"], [None]])
    check_all(spark, name)
    whole(spark, f"SELECT k, count(*) FROM {name} VERSION AS OF {before} GROUP BY k")


def test_dates_and_decimals(spark: Any, table: Any) -> None:
    from decimal import Decimal

    name = table(ROWS, "'format-version' = '2'")
    dates = spark._jvm.java.time.LocalDate
    delete_by_values(spark, name, ["day"], [[dates.parse("2024-01-05")], [None]])
    delete_by_values(spark, name, ["m", "k"], [[Decimal("2.25"), 2], [Decimal("2.50"), 3], [None, 4]])
    check_all(spark, name)


def test_in_partitions(spark: Any, table: Any) -> None:
    """Those of a partition apply to its files only; the partition's column is not in the delete's columns, or is."""
    name = table(ROWS, "'format-version' = '2'", partitioned="PARTITIONED BY (k)", files=1)
    delete_by_values(spark, name, ["s"], [["s1"], [None]], k=2)
    delete_by_values(spark, name, ["k", "s"], [[4, None], [4, "s2"], [5, "s3"]], k=4)
    check_all(spark, name)
    whole(spark, f"SELECT s, count(*) FROM {name} WHERE k IN (2, 4) GROUP BY s")


@pytest.mark.essential
def test_after_columns_were_renamed_and_added(spark: Any, table: Any) -> None:
    name = table(ROWS, "'format-version' = '2'")
    delete_by_values(spark, name, ["s", "k"], [["s1", 1], [None, 4]])
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO old")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN k TO s")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN extra string")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN s TYPE bigint")
    spark.sql(
        f"INSERT INTO {name} VALUES (1, 1, 's1', NULL, NULL, NULL, NULL), (2, 9, 's1', NULL, NULL, NULL, 'e')"
    )
    whole(spark, f"SELECT s, count(*), count(old), sum(d) FROM {name} GROUP BY s")
    delete_by_values(spark, name, ["extra", "old"], [[None, "s5"], ["e", "s1"]])
    whole(spark, f"SELECT s, count(*), count(old), sum(d) FROM {name} GROUP BY s")
    whole(spark, f"SELECT extra, count(*) FROM {name} GROUP BY extra")


def test_doubles_and_dropped_columns_are_sparks(spark: Any, table: Any) -> None:
    name = table(ROWS, "'format-version' = '2'")
    delete_by_values(spark, name, ["d"], [[1.0], [2.0]])
    frame = spark.sql(GROUPED.format(t=name))
    check(frame)
    assert any("equality deletes by d, a" in sentence for _, sentence in kq.explain(frame).reasons)


def test_writes_of_a_table_with_such_deletes(spark: Any, table: Any) -> None:
    name = table(ROWS, "'format-version' = '2'", MERGE_ON_READ)
    delete_by_values(spark, name, ["k"], [[3]])
    kq.enable(spark)
    try:
        spark.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE k < 5")
        assert spark.table(name).where("k = 3").count() == 0
    finally:
        kq.disable(spark)
    check_all(spark, name)

"""Delta tables: the engine reads what Spark reads of them, whole."""

from __future__ import annotations

import os
import re

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.checks import check
from tests.conftest import SPARK_VERSION
from tests.table_formats.queries import GROUPED, ROWS, check_appends, check_cache, whole

VECTORS = "'delta.enableDeletionVectors' = 'true'"
BY_NAME = "'delta.columnMapping.mode' = 'name'"
BY_ID = "'delta.columnMapping.mode' = 'id'"
TRACKED = "'delta.enableRowTracking' = 'true'"
FACTS = """
SELECT _metadata.file_path, _metadata.file_name, _metadata.file_size, _metadata.file_modification_time, count(*), sum(id)
FROM {t} GROUP BY ALL"""


class TestPlain:
    def test_by_name_and_by_path(self, spark, table, tmp_path):
        name = table(ROWS)
        whole(spark, GROUPED.format(t=name))
        path = str(tmp_path / "a b%20c")
        spark.table(name).write.format("delta").save(path)
        check(spark.read.format("delta").load(path).groupBy("k").count(), coverage=1.0)
        whole(spark, f"SELECT s, count(*) FROM delta.`{path}` GROUP BY s")

    @pytest.mark.essential
    def test_partitions(self, spark, table):
        name = table(
            "SELECT id, id % 3 AS p, if(id % 5 = 0, NULL, date_add(date'2020-01-01', cast(id % 4 AS int))) AS day FROM range(500)",
            partitioned="PARTITIONED BY (p, day)",
        )
        whole(spark, f"SELECT p, day, count(*), sum(id) FROM {name} GROUP BY p, day")
        whole(spark, f"SELECT count(*), max(id) FROM {name} WHERE p = 1 AND day IS NULL")
        whole(spark, f"SELECT sum(id) FROM {name} WHERE day > date'2020-01-02' AND id > 100")

    def test_the_log_prunes_files(self, spark, table):
        name = table(ROWS)
        spark.sql(f"INSERT INTO {name} SELECT id + 10000, 1L, 'x', 1.0D FROM range(100)")
        frame = spark.sql(f"SELECT count(s), sum(d) FROM {name} WHERE id >= 10000")
        (rows,) = re.findall("rows of the largest step: ([0-9,]+)", str(kq.explain(frame)))
        assert int(rows) <= 100
        whole(spark, f"SELECT count(s), sum(d) FROM {name} WHERE id >= 10000")

    def test_a_cached_table(self, spark, table):
        name = table(ROWS)
        check_cache(spark, name, "cached rows other than plain columns of files are not supported")
        whole(spark, GROUPED.format(t=name))

    def test_joins_of_tables_and_of_one_table_with_itself(self, spark, table):
        first, second = table(ROWS), table("SELECT id AS k, concat('n', id) AS name FROM range(7)")
        whole(spark, f"SELECT name, count(*) FROM {first} JOIN {second} USING (k) GROUP BY name")
        whole(
            spark,
            f"SELECT a.k, count(*) FROM {first} a JOIN {first} b ON a.id = b.id + 1 WHERE a.k < 5 GROUP BY a.k",
        )

    def test_time_travel(self, spark, table):
        name = table(ROWS)
        spark.sql(f"DELETE FROM {name} WHERE k = 3")
        spark.sql(f"INSERT INTO {name} SELECT id, 100L, 'new', 0.5D FROM range(10)")
        for version in range(3):
            whole(spark, f"SELECT k, count(*) FROM {name} VERSION AS OF {version} GROUP BY k")
        whole(
            spark,
            f"SELECT count(s), count(DISTINCT k) FROM (SELECT * FROM {name} VERSION AS OF 0 UNION ALL SELECT * FROM {name})",
        )

    def test_limits_that_delta_prunes_files_by(self, spark, table):
        name = table(ROWS, files=8)
        frame = spark.sql(f"SELECT count(*), count(d) FROM (SELECT * FROM {name} LIMIT 5)")
        check(frame)
        assert spark.table(name).limit(5).transform(kquery_plan, when="always").count() == 5


class TestDeletionVectors:
    @pytest.mark.parametrize("files", [1, pytest.param(3, marks=pytest.mark.essential)])
    def test_deleted_rows_are_not_read(self, spark, table, files):
        name = table(ROWS, VECTORS, files=files)
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3")
        whole(spark, GROUPED.format(t=name))
        whole(spark, f"SELECT count(*) FROM {name} WHERE s LIKE 's1%' AND d > 100")
        spark.sql(f"DELETE FROM {name} WHERE s IS NULL")
        whole(spark, GROUPED.format(t=name))
        spark.sql(f"UPDATE {name} SET d = -1 WHERE id < 30")
        whole(spark, f"SELECT d, count(*), sum(id) FROM {name} WHERE d < 10 GROUP BY d")

    def test_the_answer_is_not_that_of_the_files_as_they_are(self, spark, table):
        name = table(ROWS, VECTORS, files=1)
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3")
        fast = spark.table(name).transform(kquery_plan, when="always")
        assert fast.where("id % 20 = 3").count() == 0
        assert len(fast.select("id").collect()) == 1900

    def test_rows_deleted_in_every_row_group(self, spark, tmp_path):
        path = str(tmp_path / "groups")
        (
            spark.range(200_000)
            .selectExpr("id", "cast(id % 1000 AS string) AS s", "id * 1.5 AS d")
            .coalesce(1)
            .write.format("delta")
            .option("delta.enableDeletionVectors", "true")
            .option("parquet.block.size", "100000")
            .save(path)
        )
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 20 = 3 OR id BETWEEN 50000 AND 99999")
        spark.sql(f"SELECT * FROM delta.`{path}`").createOrReplaceTempView("groups")
        whole(spark, "SELECT s, count(*), sum(id), max(d) FROM groups GROUP BY s")
        whole(spark, "SELECT count(*), min(id) FROM groups WHERE id > 40000 AND s = '777'")
        whole(spark, "SELECT sum(d) FROM groups WHERE id BETWEEN 120000 AND 120999")
        check(spark.sql("SELECT id, s FROM groups ORDER BY id DESC LIMIT 10"))
        whole(spark, "SELECT a.s, count(*) FROM groups a JOIN groups b ON a.id = b.id GROUP BY a.s")

    def test_all_rows_of_a_file(self, spark, table):
        name = table("SELECT id, id % 7 AS k FROM range(100)", VECTORS, files=1)
        spark.sql(f"INSERT INTO {name} SELECT id + 1000, 9L FROM range(10)")
        spark.sql(f"DELETE FROM {name} WHERE id < 99")
        whole(spark, f"SELECT k, count(*), max(id) FROM {name} GROUP BY k")


class TestColumnMapping:
    @pytest.mark.parametrize("mode", [BY_ID, pytest.param(BY_NAME, marks=pytest.mark.essential)])
    def test_renamed_swapped_dropped_and_added_columns(self, spark, table, mode):
        name = table(ROWS, mode)
        whole(spark, GROUPED.format(t=name))
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN id TO tmp")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN k TO id")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN tmp TO k")
        whole(spark, GROUPED.format(t=name))
        whole(spark, f"SELECT k, id FROM {name} WHERE k > 1990")
        spark.sql(f"ALTER TABLE {name} DROP COLUMN s")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN s string")
        spark.sql(f"INSERT INTO {name} (k, id, d, s) VALUES (-1, -1, 0.5, 'new')")
        whole(spark, GROUPED.format(t=name))

    @pytest.mark.parametrize("mode", [BY_NAME, BY_ID])
    def test_fields_of_structs(self, spark, table, mode):
        name = table(
            "SELECT id, named_struct('a', id, 'b', concat('x', id % 5)) AS st, array(named_struct('c', id % 3)) AS arr,"
            " map('k', named_struct('v', id)) AS m FROM range(300)",
            mode,
        )
        sql = "SELECT st.b, sum(st.a), count(arr[0].c), sum(m['k'].v) FROM {} GROUP BY st.b"
        whole(spark, sql.format(name))
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN st.a TO was_a")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN st.b TO a")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN st.b int")
        spark.sql(
            f"INSERT INTO {name} SELECT id, named_struct('was_a', id, 'a', 'new', 'b', 5), arr, m FROM {name} LIMIT 5"
        )
        # before 4.1 a struct that lacks fields in a file falls back to Spark
        report = check(
            spark.sql(f"SELECT st.a, sum(st.was_a), sum(st.b), count(*) FROM {name} GROUP BY st.a")
        )
        assert report.coverage == 1.0 or SPARK_VERSION < (4, 1)
        check(spark.sql(f"SELECT st, arr, m FROM {name} WHERE id < 10"))

    def test_partitions_of_mapped_tables(self, spark, table):
        name = table(
            "SELECT id, id % 3 AS p, id % 4 AS q FROM range(500)",
            BY_NAME,
            partitioned="PARTITIONED BY (p, q)",
        )
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN p TO tmp")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN q TO p")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN tmp TO q")
        whole(spark, f"SELECT p, q, count(*), sum(id) FROM {name} WHERE p > 0 GROUP BY p, q")

    def test_names_that_parquet_does_not_allow(self, spark, table):
        name = table("SELECT id AS `a b`, id % 3 AS `c.d`, id % 2 AS `e,f` FROM range(50)", BY_NAME)
        whole(spark, f"SELECT `c.d`, `e,f`, sum(`a b`) FROM {name} GROUP BY ALL")

    @pytest.mark.essential
    def test_with_deletion_vectors(self, spark, table):
        name = table(ROWS, BY_NAME, VECTORS)
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO t")
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3")
        whole(spark, f"SELECT t, count(*), sum(id) FROM {name} WHERE k <> 4 GROUP BY t")


class TestSchemas:
    def test_columns_that_older_files_lack(self, spark, table):
        name = table(ROWS)
        spark.sql(f"ALTER TABLE {name} ADD COLUMNS (extra int, more struct<x: int>)")
        spark.sql(f"INSERT INTO {name} SELECT id, k, s, d, 5, named_struct('x', 1) FROM {name} WHERE id < 20")
        whole(spark, f"SELECT k, sum(extra), count(more.x), count(*) FROM {name} GROUP BY k")

    def test_widened_types(self, spark, table):
        name = table(
            "SELECT cast(id % 100 AS byte) b, cast(id AS int) i, cast(id AS float) f, cast(id AS decimal(6,2)) d FROM range(300)",
            "'delta.enableTypeWidening' = 'true'",
        )
        changes = {"b": "int"}
        if SPARK_VERSION >= (4, 0):
            changes |= {"i": "bigint", "d": "decimal(12,4)", "f": "double"}
        for column, dtype in changes.items():
            spark.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {dtype}")
        big = ("5000000000", "12345678.1234") if SPARK_VERSION >= (4, 0) else ("500", "1234.12")
        spark.sql(f"INSERT INTO {name} VALUES (100000, {big[0]}, 1.5, {big[1]})")
        check(spark.sql(f"SELECT sum(b), sum(i), sum(f), sum(d), max(d) FROM {name}"))
        check(spark.sql(f"SELECT * FROM {name} WHERE i > 290"))

    def test_generated_identity_and_default_columns(self, spark, table):
        if SPARK_VERSION < (4, 0):
            pytest.skip("SQL has no generated columns there")
        name = table("SELECT id FROM range(1)")
        spark.sql(f"DROP TABLE {name}")
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, g BIGINT GENERATED ALWAYS AS (id * 2), e STRING DEFAULT 'none') USING delta"
            " TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
        )
        spark.sql(f"INSERT INTO {name} (id) SELECT id FROM range(100)")
        spark.sql(f"INSERT INTO {name} (id, e) VALUES (500, 'some')")
        whole(spark, f"SELECT e, sum(g), count(*) FROM {name} GROUP BY e")

    def test_columns_with_ids_that_are_not_looked_at(self, spark, table):
        name = table(ROWS)
        spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "false")
        try:
            whole(spark, GROUPED.format(t=name))
        finally:
            spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")


class TestFactsOfFiles:
    @pytest.mark.essential
    @pytest.mark.parametrize("properties", [(VECTORS,), (VECTORS, BY_NAME)])
    def test_facts_of_files_with_deleted_rows(self, spark, table, properties):
        name = table(ROWS, *properties, files=3)
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3")
        spark.sql(f"INSERT INTO {name} SELECT id + 10000, 1L, 'x', 1.0D FROM range(100)")
        whole(spark, FACTS.format(t=name))
        whole(spark, f"SELECT _metadata, input_file_name(), k, count(s) FROM {name} GROUP BY ALL")
        file = spark.sql(f"SELECT max(f) FROM (SELECT input_file_name() f FROM {name})").first()[0]
        whole(spark, f"SELECT k, count(*) FROM {name} WHERE input_file_name() = '{file}' GROUP BY k")
        whole(spark, f"SELECT k, _metadata.file_size FROM {name} WHERE _metadata.file_size < 1000 AND id > 5")

    def test_times_are_those_of_the_log(self, spark, table):
        name = table(ROWS, files=1)
        (file,) = {row[0] for row in spark.sql(f"SELECT _metadata.file_path FROM {name}").collect()}
        os.utime(file.removeprefix("file:"), (1e9, 1e9))
        whole(spark, FACTS.format(t=name))

    def test_facts_of_partitions_and_older_versions(self, spark, table):
        name = table("SELECT id, id % 3 AS p FROM range(500)", VECTORS, partitioned="PARTITIONED BY (p)")
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3")
        whole(spark, FACTS.format(t=name))
        whole(spark, FACTS.format(t=f"{name} VERSION AS OF 0"))
        whole(spark, f"SELECT p, _metadata.file_name, max(id) FROM {name} WHERE p > 0 GROUP BY ALL")

    @pytest.mark.parametrize("properties", [(VECTORS,), (VECTORS, BY_NAME)])
    def test_row_positions_are_those_in_the_files(self, spark, table, properties):
        name = table(ROWS, *properties, files=2)
        spark.sql(f"DELETE FROM {name} WHERE id % 3 = 0")
        frame = spark.table(name)
        positions = frame.select("id", "_metadata.file_name", "_metadata.row_index")
        check(positions.groupBy("file_name").agg({"row_index": "max", "id": "sum"}), coverage=1.0)
        check(
            frame.where("_metadata.row_index < 30 AND k = 2").select("id", "_metadata.row_index"),
            coverage=1.0,
        )

    def test_columns_called_metadata(self, spark, table):
        name = table("SELECT id, id AS _metadata FROM range(100)", BY_NAME)
        whole(spark, f"SELECT _metadata % 7, count(*) FROM {name} GROUP BY 1")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN _metadata TO other")
        whole(spark, f"SELECT _metadata.file_name, sum(other) FROM {name} GROUP BY 1")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN id TO _metadata")
        whole(spark, f"SELECT _metadata % 7, sum(other) FROM {name} GROUP BY 1")


class TestLeftToSpark:
    def test_change_data(self, spark, table):
        name = table(ROWS, "'delta.enableChangeDataFeed' = 'true'", VECTORS)
        spark.sql(f"DELETE FROM {name} WHERE id < 10")
        check(
            spark.sql(f"SELECT _change_type, count(*) FROM table_changes('{name}', 0) GROUP BY _change_type")
        )

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT f, count(*) FROM (SELECT concat(java_method('java.lang.String', 'valueOf', _metadata.file_name), k) f FROM {t}) GROUP BY f",
            "SELECT _metadata.base_row_id, count(*) FROM {t} GROUP BY 1",
            "SELECT id FROM {t} WHERE _metadata.row_id < 10 AND k = (SELECT max(k) FROM {t})",
            "SELECT k, (SELECT max(_metadata.file_size) FROM {t}) FROM {t}",
        ],
    )
    def test_row_tracking(self, spark, table, query):
        """Delta mixes up the fields of ``_metadata`` where a part of an optimized plan is optimized again."""
        name = table(ROWS, TRACKED, files=2)
        check(spark.sql(query.format(t=name)), coverage=0.0)
        whole(spark, GROUPED.format(t=name))


@pytest.mark.essential
def test_rows_that_are_appended_after_planning(spark, tmp_path):
    path = str(tmp_path / "appended")
    rows = spark.range(100).selectExpr("id", "id % 5 AS k")
    rows.write.format("delta").save(path)

    def append():
        rows.limit(10).write.format("delta").mode("append").save(path)

    check_appends(lambda: spark.read.format("delta").load(path), append)

    table = spark.read.format("delta").load(path)
    table.createOrReplaceTempView("appended")
    with_subquery = "SELECT k, sum(id) FROM appended WHERE id > (SELECT avg(id) FROM appended) GROUP BY k"
    for sums in (table.where("id > 3").groupBy("k").sum("id"), spark.sql(with_subquery)):
        events = []
        stop = kq.on_query(events.append)
        sums.transform(kquery_plan, when="always").collect()
        stop()
        planned = [event.kind for event in events].count("planned")
        assert planned == 1, "the queries by which Delta plans are not statements that change tables"

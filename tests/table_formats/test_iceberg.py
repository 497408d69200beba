"""Iceberg tables: the engine reads what Spark reads of them, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.checks import check
from tests.conftest import SPARK_VERSION
from tests.table_formats.queries import GROUPED, ROWS, check_appends, check_cache, whole
from tests.table_formats.writes import check_statements, check_written_tables

ON_READ = "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"
VERSIONS = ["2", "3"]


def version(number: str) -> str:
    return f"'format-version' = '{number}'"


class TestPlain:
    @pytest.mark.parametrize("number", ["1", *VERSIONS])
    def test_a_table(self, spark, table, number):
        name = table(ROWS, version(number))
        whole(spark, GROUPED.format(t=name))
        whole(spark, f"SELECT count(*), sum(d) FROM {name} WHERE s = 's3' AND id > 100")
        check(spark.sql(f"SELECT * FROM {name} WHERE id < 50"))

    @pytest.mark.essential
    def test_all_types(self, spark, table):
        name = table(
            "SELECT id % 2 = 0 AS b, cast(id AS int) i, id l, cast(id AS float) f, cast(id AS double) d, cast(id AS decimal(9,2)) m,"
            " cast(id AS decimal(30,5)) w, cast(id AS string) s, cast(cast(id AS string) AS binary) y, date_add(date'1200-01-01', cast(id AS int)) day,"
            " timestamp_micros(id * 1000001) t, cast(timestamp_micros(id) AS timestamp_ntz) n, array(id, NULL) a, map('k', id) p,"
            " named_struct('x', id, 'y', cast(id AS string)) r FROM range(200)"
        )
        check(spark.sql(f"SELECT * FROM {name}"))
        whole(
            spark,
            f"SELECT b, sum(i), sum(l), sum(f), sum(d), sum(m), max(w), max(s), max(y), min(day), max(t), max(n) FROM {name} GROUP BY b",
        )
        whole(spark, f"SELECT r.y, count(a[1]), sum(p['k']), sum(r.x) FROM {name} GROUP BY r.y")

    def test_a_cached_table(self, spark, table):
        name = table(ROWS)
        check_cache(spark, name, "cached rows other than plain columns of files are not supported")
        whole(spark, GROUPED.format(t=name))

    def test_no_rows(self, spark, table):
        name = table("SELECT id, id AS k FROM range(0)")
        check(spark.sql(f"SELECT k, count(*) FROM {name} GROUP BY k"))
        check(spark.sql(f"SELECT count(*), sum(id) FROM {name}"))

    def test_counts_without_columns(self, spark, table):
        name = table(ROWS)
        check(spark.sql(f"SELECT count(*) FROM {name}"))
        check(spark.sql(f"SELECT 1 AS one FROM {name}"))

    def test_hidden_partitions(self, spark, table):
        name = table(
            "SELECT id, timestamp_seconds(id * 40000) AS t, concat('s', id % 9) AS s FROM range(500)",
            partitioned="PARTITIONED BY (days(t), bucket(4, s), truncate(100, id))",
            files=1,
        )
        whole(spark, f"SELECT s, count(*), max(t) FROM {name} WHERE t > timestamp'1970-03-01' GROUP BY s")
        whole(spark, f"SELECT count(*), sum(id) FROM {name} WHERE s = 's4' AND id < 250")

    @pytest.mark.essential
    def test_identity_partitions_and_their_evolution(self, spark, table):
        name = table(
            "SELECT id, id % 3 AS p, if(id % 5 = 0, NULL, date_add(date'2020-01-01', cast(id % 4 AS int))) AS day,"
            " cast(id % 2 AS decimal(5,2)) AS m, timestamp_seconds(id % 2) AS t FROM range(300)",
            partitioned="PARTITIONED BY (p, day, m, t)",
            files=1,
        )
        sql = f"SELECT p, day, m, t, count(*), sum(id) FROM {name} WHERE p > 0 GROUP BY p, day, m, t"
        whole(spark, sql)
        spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD day")
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(3, id)")
        spark.sql(f"INSERT INTO {name} SELECT id + 1000, p, day, m, t FROM {name} WHERE id < 50")
        whole(spark, sql)
        whole(spark, f"SELECT count(*), max(id) FROM {name} WHERE day IS NULL")

    def test_joins(self, spark, table):
        first, second = table(ROWS), table("SELECT id AS k, concat('n', id) AS name FROM range(7)")
        whole(spark, f"SELECT name, count(*) FROM {first} JOIN {second} USING (k) GROUP BY name")
        whole(
            spark,
            f"SELECT a.k, count(*) FROM {first} a JOIN {first} b ON a.id = b.id + 1 WHERE a.k < 5 GROUP BY a.k",
        )

    def test_time_travel_branches_and_tags(self, spark, table):
        name = table(ROWS)
        spark.sql(f"ALTER TABLE {name} CREATE TAG first")
        spark.sql(f"ALTER TABLE {name} CREATE BRANCH side")
        spark.sql(f"DELETE FROM {name} WHERE k = 3")
        spark.sql(f"INSERT INTO {name}.branch_side SELECT id, 100L, 'new', 0.5D FROM range(10)")
        for which in ("", "VERSION AS OF 'first'", "VERSION AS OF 'side'"):
            whole(spark, f"SELECT k, count(*) FROM {name} {which} GROUP BY k")
        snapshot = spark.sql(f"SELECT min_by(snapshot_id, committed_at) FROM {name}.snapshots").head()[0]
        whole(spark, f"SELECT count(s), count(DISTINCT k) FROM {name} VERSION AS OF {snapshot}")


class TestDeletes:
    @pytest.mark.parametrize("number", VERSIONS)
    @pytest.mark.parametrize("files", [1, pytest.param(3, marks=pytest.mark.essential)])
    def test_deleted_rows_are_not_read(self, spark, table, number, files):
        name = table(ROWS, version(number), ON_READ, files=files)
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3")
        whole(spark, GROUPED.format(t=name))
        spark.sql(f"DELETE FROM {name} WHERE s IS NULL")
        whole(spark, GROUPED.format(t=name))
        spark.sql(f"UPDATE {name} SET d = -1 WHERE id < 30")
        whole(spark, f"SELECT d, count(*), sum(id) FROM {name} WHERE d < 10 GROUP BY d")
        assert spark.table(name).transform(kquery_plan, when="always").where("id % 20 = 3").count() == 0

    @pytest.mark.parametrize("number", VERSIONS)
    def test_in_every_row_group_and_partition(self, spark, table, number):
        name = table(
            "SELECT id, id % 3 AS p, cast(id % 1000 AS string) AS s, id * 1.5 AS d FROM range(60000)",
            version(number),
            ON_READ,
            "'write.parquet.row-group-size-bytes' = '50000'",
            "'write.parquet.page-size-bytes' = '5000'",
            partitioned="PARTITIONED BY (p)",
            files=1,
        )
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3 OR id BETWEEN 20000 AND 39999")
        whole(spark, f"SELECT s, p, count(*), sum(id), max(d) FROM {name} GROUP BY s, p")
        whole(spark, f"SELECT count(*), min(id) FROM {name} WHERE id > 15000 AND s = '777'")
        check(spark.sql(f"SELECT id, s FROM {name} ORDER BY id DESC LIMIT 10"))

    @pytest.mark.parametrize("number", VERSIONS)
    def test_a_damaged_file_is_an_error(self, spark, table, number):
        name = table(ROWS, version(number), ON_READ, files=1)
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3")
        path = spark.sql(f"SELECT file_path FROM {name}.delete_files").head()[0].removeprefix("file:")
        data = bytearray(Path(path).read_bytes())
        Path(path).write_bytes(data[: len(data) // 3] + bytes(len(data) - len(data) // 3))
        with pytest.raises(Exception, match=Path(path).name):
            spark.table(name).groupBy("k").count().transform(kquery_plan, when="always").collect()


class TestSchemas:
    @pytest.mark.essential
    def test_renamed_swapped_dropped_and_added_columns(self, spark, table):
        name = table(ROWS)
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN id TO tmp")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN k TO id")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN tmp TO k")
        whole(spark, GROUPED.format(t=name))
        spark.sql(f"ALTER TABLE {name} DROP COLUMN s")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN s string")
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN s FIRST")
        spark.sql(f"INSERT INTO {name} (s, k, id, d) VALUES ('new', -1, -1, 0.5)")
        whole(spark, GROUPED.format(t=name))
        whole(spark, f"SELECT k, id FROM {name} WHERE k > 1990")

    @pytest.mark.essential
    def test_fields_of_structs(self, spark, table):
        name = table(
            "SELECT id, named_struct('a', id, 'b', concat('x', id % 5)) AS st, array(named_struct('c', id % 3)) AS arr,"
            " map('k', named_struct('v', id)) AS m FROM range(300)"
        )
        whole(spark, f"SELECT st.b, sum(st.a), count(arr[0].c), sum(m['k'].v) FROM {name} GROUP BY st.b")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN st.a TO was_a")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN st.b TO a")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN st.b int")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN arr.element.c TO cc")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN m.value.v TO vv")
        spark.sql(
            f"INSERT INTO {name} SELECT id, named_struct('was_a', id, 'a', 'new', 'b', 5), arr, m FROM {name} WHERE id < 5"
        )
        whole(spark, f"SELECT st.a, sum(st.was_a), count(*) FROM {name} GROUP BY st.a")
        check(spark.sql(f"SELECT st.a, sum(st.b) FROM {name} GROUP BY st.a"))
        check(spark.sql(f"SELECT st, arr, m FROM {name} WHERE id < 10"))

    def test_promoted_types(self, spark, table):
        name = table(
            "SELECT cast(id AS int) i, cast(id AS float) f, cast(id AS decimal(6,2)) d FROM range(300)"
        )
        for column, dtype in {"i": "bigint", "f": "double", "d": "decimal(12,2)"}.items():
            spark.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {dtype}")
        spark.sql(f"INSERT INTO {name} VALUES (5000000000, 1.5, 12345678.12)")
        whole(spark, f"SELECT sum(i), sum(f), sum(d), max(d) FROM {name}")
        check(spark.sql(f"SELECT * FROM {name} WHERE i > 290"))

    def test_a_query_of_one_table_before_and_after_a_rename(self, spark, table):
        name = table(ROWS)
        first = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots").head()[0]
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO text")
        spark.sql(f"INSERT INTO {name} SELECT id, k, 'x', d FROM {name} WHERE id < 5")
        whole(spark, f"SELECT s, count(*) FROM {name} VERSION AS OF {first} GROUP BY s")
        whole(spark, f"SELECT text, count(*) FROM {name} GROUP BY text")


class TestMetadataColumns:
    @pytest.mark.essential
    @pytest.mark.parametrize("number", VERSIONS)
    def test_of_files_with_deleted_rows(self, spark, table, number):
        name = table(ROWS, version(number), ON_READ, files=3)
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO text")
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD k")
        spark.sql(f"INSERT INTO {name} SELECT id + 10000, 1L, 'x', 1.0D FROM range(100)")
        whole(spark, f"SELECT _file, _spec_id, min(_pos), max(_pos), count(text) FROM {name} GROUP BY ALL")
        whole(spark, f"SELECT _pos, id, _file, text FROM {name} WHERE _pos % 7 = 3 AND k = 2")
        whole(spark, f"SELECT k, count(*) FROM {name} WHERE _pos < 30 GROUP BY k")
        file = spark.sql(f"SELECT _file FROM {name}").first()[0]
        whole(spark, f"SELECT k, count(*) FROM {name} WHERE _file = '{file}' GROUP BY k")
        whole(spark, f"SELECT _spec_id FROM {name} WHERE id > 10")


class TestLeftToSpark:
    @pytest.mark.essential
    def test_metadata_tables_and_columns(self, spark, table):
        name = table(ROWS)
        check(spark.sql(f"SELECT count(*), sum(record_count) FROM {name}.files"))
        check(spark.sql(f"SELECT _partition, _deleted, count(*) FROM {name} GROUP BY ALL"))

    @pytest.mark.parametrize("file_format", ["orc", "avro"])
    def test_files_of_other_formats(self, spark, table, file_format):
        name = table(ROWS, f"'write.format.default' = '{file_format}'")
        frame = spark.sql(GROUPED.format(t=name))
        check(frame)
        assert any(file_format.upper() in sentence for _, sentence in kq.explain(frame).reasons)


class TestFilesWithoutFieldIds:
    """Files of other writers that Iceberg's procedures take into a table, with a mapping of names to field ids."""

    @pytest.fixture
    def add(self, spark, tmp_path):
        def add_files(name, query, partition=None, **options):
            path = str(tmp_path / f"plain {len(list(tmp_path.iterdir()))}")
            writer = spark.sql(query).coalesce(1).write.options(**options)
            (writer.partitionBy(partition) if partition else writer).parquet(path)
            spark.sql(
                f"CALL ice.system.add_files(table => '{name.removeprefix('ice.')}', source_table => '`parquet`.`{path}`')"
            )

        return add_files

    @pytest.mark.essential
    def test_columns_by_name(self, spark, table, add):
        name = table(ROWS, ON_READ)
        add(name, ROWS.replace("range(2000)", "range(2000, 3000)"))
        add(name, "SELECT id, s FROM VALUES ('x', 5000L), (NULL, 5001L) t(s, id)")
        whole(spark, GROUPED.format(t=name))
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO text")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN new BIGINT")
        spark.sql(f"DELETE FROM {name} WHERE id % 5 = 1")
        sql = f"SELECT k, count(text), max(text), count(new), sum(id), sum(d) FROM {name} GROUP BY k"
        whole(spark, sql)
        assert spark.sql(f"SELECT count(text) > 2000 FROM {name}").collect() == [(True,)]

    def test_nested_columns(self, spark, table, add):
        rows = (
            "SELECT id, array(named_struct('x', id, 'y', array(id, NULL))) a, map(id, named_struct('z', id)) m,"
            " named_struct('v', id, 'w', concat('s', id)) s FROM range({})"
        )
        name = table(rows.format(20))
        add(name, rows.format(30))
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN a.element.x TO first")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN m.value.z TO last")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN s.new STRING")
        check(spark.sql(f"SELECT * FROM {name}"))
        whole(
            spark,
            f"SELECT s.w, s.new, sum(a[0].first), sum(a[0].y[0]), sum(m[id].last) FROM {name} GROUP BY s.w, s.new",
        )

    def test_lists_of_old_writers(self, spark, table, add):
        rows = "SELECT id, array(id, NULL, 5L) AS a, cast(id AS decimal(9,2)) AS m, timestamp_seconds(id) AS t FROM range(50)"
        name = table(rows)
        spark.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
        spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
        try:
            add(name, rows)
        finally:
            spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
            spark.conf.unset("spark.sql.parquet.outputTimestampType")
        check(spark.sql(f"SELECT * FROM {name}"))
        whole(spark, f"SELECT a[0] % 3, sum(m), max(t), sum(size(a)) FROM {name} GROUP BY 1")

    def test_types_that_were_widened(self, spark, table, add):
        name = table("SELECT cast(id AS int) AS id, cast(id AS float) AS f FROM range(10)")
        add(name, "SELECT cast(id AS int) AS id, cast(id AS float) AS f FROM range(20)")
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT")
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN f TYPE DOUBLE")
        whole(spark, f"SELECT id % 3, sum(f), max(id) FROM {name} GROUP BY 1")

    def test_partition_directories(self, spark, table, add):
        name = table(ROWS, partitioned="PARTITIONED BY (k)", files=1)
        add(name, ROWS.replace("id % 7", "id % 5").replace("range(2000)", "range(9000, 9500)"), "k")
        whole(spark, GROUPED.format(t=name))
        whole(spark, f"SELECT s, count(*) FROM {name} WHERE k = 3 GROUP BY s")

    def test_what_stays_with_spark(self, spark, table, add):
        name, dotted, old = (
            table(ROWS),
            table("SELECT id, id AS k FROM range(9)"),
            table("SELECT date'1400-03-01' AS d"),
        )
        add(name, ROWS)
        spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('schema.name-mapping.default')")
        check(spark.sql(GROUPED.format(t=name)))
        add(dotted, "SELECT id, 5L AS `k.k` FROM range(9)")
        spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
        try:
            add(old, "SELECT date'1400-03-02' AS d")
        finally:
            spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInWrite")
        for sql, reason in (
            (GROUPED.format(t=name), "has no field ids"),
            (f"SELECT k, count(*) FROM {dotted} GROUP BY k", "may read it as a nested field"),
            (f"SELECT d, count(*) FROM {old} GROUP BY d", "may have dates of the hybrid calendar"),
        ):
            frame = spark.sql(sql)
            check(frame)
            assert any(reason in sentence for _, sentence in kq.explain(frame).reasons)


class TestWrites:
    def test_statements_are_right_with_the_engine_enabled(self, spark, table):
        name, other = table(ROWS, ON_READ), table(ROWS, ON_READ)
        statements = (
            "DELETE FROM {t} WHERE id % 5 = 1",
            "UPDATE {t} SET d = d + 1, s = 'u' WHERE k = 2",
            "MERGE INTO {t} t USING (SELECT id, k, 'm' AS s, d FROM {t} WHERE id % 2 = 0 UNION ALL"
            " SELECT id + 5000, 1L, 'n', 0.5D FROM range(10)) m ON t.id = m.id"
            " WHEN MATCHED AND m.k = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET s = m.s WHEN NOT MATCHED THEN INSERT *",
            "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id > 3",
        )
        check_statements(spark, statements, name, other)

    def test_frames_are_appended_while_enabled(self, spark, table):
        name, target = table(ROWS), table(ROWS)
        kq.enable(spark)
        try:
            spark.table(name).where("k < 4").writeTo(target).append()
        finally:
            kq.disable(spark)
        assert spark.table(target).count() == 2000 + spark.table(name).where("k < 4").count()


def test_the_releases_of_spark_that_are_tested_here():
    assert SPARK_VERSION < (4, 2), "there is a JAR of Iceberg for this Spark now: see conftest.py"


def test_what_is_written_is_the_engines(spark, table, monkeypatch):
    check_written_tables(spark, monkeypatch, "ice.db.written", "iceberg", table(ROWS))


@pytest.mark.essential
def test_rows_that_are_appended_after_planning(spark, table):
    name = table(ROWS)
    check_appends(
        lambda: spark.table(name), lambda: spark.sql(f"INSERT INTO {name} SELECT * FROM {name} LIMIT 10")
    )

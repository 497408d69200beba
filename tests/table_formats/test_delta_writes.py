"""Delta tables: statements and writers while the engine is enabled, and the rows that the engine writes itself."""

from __future__ import annotations

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.table_formats.queries import ROWS
from tests.table_formats.test_delta import VECTORS
from tests.table_formats.writes import check_statements, check_written_tables


class TestWrites:
    def test_statements_are_right_with_the_engine_enabled(self, spark, table):
        name, other = table(ROWS, VECTORS), table(ROWS, VECTORS)
        statements = (
            "DELETE FROM {t} WHERE id % 5 = 1",
            "UPDATE {t} SET d = d + 1, s = 'u' WHERE k = 2",
            "MERGE INTO {t} USING (SELECT id, k, 'm' AS s, d FROM {t} WHERE id % 2 = 0 UNION ALL"
            " SELECT id + 5000, 1L, 'n', 0.5D FROM range(10)) m ON {t}.id = m.id"
            " WHEN MATCHED AND m.k = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET s = m.s WHEN NOT MATCHED THEN INSERT *",
            "OPTIMIZE {t}",
            "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id > 3",
        )
        check_statements(spark, statements, name, other)

    def test_frames_are_written_while_enabled(self, spark, table, tmp_path):
        name = table(ROWS)
        kq.enable(spark)
        try:
            path = str(tmp_path / "copy")
            spark.table(name).where("k < 4").groupBy("k").count().write.format("delta").save(path)
            spark.table(name).write.format("delta").mode("append").save(str(tmp_path / "all"))
            spark.read.format("delta").load(path).write.format("delta").mode("overwrite").save(path)
            assert spark.read.format("delta").load(path).count() == 4
        finally:
            kq.disable(spark)
        assert spark.read.format("delta").load(str(tmp_path / "all")).count() == 2000

    def test_a_frame_sees_what_was_written_since(self, spark, table):
        name = table(ROWS, VECTORS)
        frame = spark.table(name).groupBy("k").count()
        fast = frame.transform(kquery_plan, when="always")
        assert sum(row[1] for row in fast.collect()) == 2000
        spark.sql(f"DELETE FROM {name} WHERE id < 100")
        again = spark.table(name).groupBy("k").count().transform(kquery_plan, when="always")
        assert sum(row[1] for row in again.collect()) == 1900


def test_what_is_written_is_the_engines(spark, table, monkeypatch):
    check_written_tables(spark, monkeypatch, "written", "delta", table(ROWS))

"""Files of Delta tables: listed once a snapshot by the engine, and by Delta where the engine does not run the whole query."""

from __future__ import annotations

from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.accelerate.planning.pipeline import plan_frame
from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.relations import delta_snapshots
from kquery_spark.spark_bridge.relations.catalog_snapshot import spark_plan
from kquery_spark.spark_bridge.relations.delta_snapshots import DeltaSnapshots
from kquery_spark.spark_bridge.session.bridge import get_bridge
from tests.accelerate.checks import check
from tests.table_formats.queries import GROUPED, ROWS, whole

EXCLUDED = "spark.sql.optimizer.excludedRules"


def _jobs(spark: Any) -> set[int]:
    """The numbers of the jobs that Spark's UI knows; it forgets all but the last thousand."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    known = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    return {known.apply(i).jobId() for i in range(known.size())}


def _pinned(frame: Any) -> DeltaSnapshots | None:
    """The snapshots that planning takes of a query's tables; None where Delta takes them."""
    return spark_plan(frame, get_bridge(frame.sparkSession)).delta_snapshots


@pytest.mark.essential
def test_planning_lists_a_snapshot_once(spark, table):
    name, other = table(ROWS), table("SELECT id AS k, concat('n', id) AS name FROM range(7)")
    sql = f"SELECT name, count(*), sum(d) FROM {name} JOIN {other} USING (k) WHERE id > 10 GROUP BY name"
    whole(spark, sql)
    before = _jobs(spark)
    planned = plan_frame(spark.sql(sql))
    assert planned.whole
    assert not _jobs(spark) - before, "planning runs no job where the tables' files are known"
    spark.sql(f"INSERT INTO {name} SELECT id, 3L, 'new', 0.5D FROM range(1000)")
    whole(spark, sql)
    spark.sql(f"DELETE FROM {name} WHERE id % 3 = 0")
    whole(spark, sql)


def test_all_scans_of_a_table_read_one_snapshot(spark, table):
    name = table(ROWS)
    bridge = get_bridge(spark)
    frame = spark.sql(f"SELECT a.k, count(*) FROM {name} a JOIN {name} b ON a.id = b.id + 1 GROUP BY a.k")
    leaves = bridge.analyzed(frame).collectLeaves()
    one, other = (leaves.apply(i).relation().location() for i in range(2))

    def paths_of(snapshots: DeltaSnapshots, index: Any) -> tuple[Any, ...]:
        return snapshots.files(index, lambda directories: tuple(bridge.jvm.strings(directories)))

    snapshots = DeltaSnapshots(bridge.jvm, "UTC")
    assert snapshots.pin([leaves])
    pinned = paths_of(snapshots, one)
    spark.sql(f"INSERT INTO {name} SELECT id, 100L, 'new', 0.5D FROM range(10)")
    assert paths_of(snapshots, other) == pinned
    assert paths_of(DeltaSnapshots(bridge.jvm, "UTC"), other) != pinned


def test_a_table_that_changes_while_it_is_listed(spark, table):
    name = table(ROWS)
    bridge = get_bridge(spark)
    frame = spark.sql(GROUPED.format(t=name))
    index = bridge.analyzed(frame).collectLeaves().apply(0).relation().location()
    snapshots = DeltaSnapshots(bridge.jvm, "UTC")
    snapshot = snapshots._snapshot(index)
    spark.sql(f"INSERT INTO {name} SELECT id, 100L, 'new', 0.5D FROM range(10)")
    with pytest.raises(Unsupported, match="changed while its files were listed"):
        snapshots._directories(index, snapshot)
    check(frame, coverage=1.0)


def test_where_spark_reads_a_table_delta_lists_the_files_of_all(spark, table):
    name = table(ROWS)
    frame = spark.sql(
        f"SELECT k, n FROM (SELECT k, count(*) AS n FROM {name} GROUP BY k) UNION ALL "
        f"SELECT id, java_method('java.lang.Math', 'abs', int(k)) FROM {name} WHERE id < 10"
    )
    assert _pinned(frame) is not None
    planned = plan_frame(frame)
    assert not planned.whole
    assert "PreparedDeltaFileIndex" in str(
        [planned.plan.collectLeaves().apply(i).relation().location().getClass().getName() for i in range(2)]
    )
    check(frame)


def test_larger_tables_are_pruned_by_delta(spark, table, monkeypatch):
    name = table(ROWS, files=4)
    frame = spark.sql(f"SELECT count(s), sum(d) FROM {name} WHERE id >= 1900")
    assert _pinned(frame) is not None
    spark.sql(f"INSERT INTO {name} SELECT id, 100L, 'new', 0.5D FROM range(10)")
    monkeypatch.setattr(delta_snapshots, "MAX_FILES", 3)
    assert _pinned(frame) is None
    whole(spark, f"SELECT count(s), sum(d) FROM {name} WHERE id >= 1900")


def test_settings_of_the_session_stay_and_are_followed(spark, table):
    name = table(ROWS)
    with_subquery = spark.sql(
        f"SELECT k, count(*) FROM {name} WHERE id > (SELECT avg(id) FROM {name}) GROUP BY k"
    )
    check(with_subquery, coverage=1.0)
    assert spark.conf.get(EXCLUDED, None) is None
    rule = "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"
    spark.conf.set(EXCLUDED, rule)
    try:
        frame = spark.sql(f"SELECT k, count(*) FROM {name} WHERE id > 1 + 2 GROUP BY k")
        plan = spark_plan(frame, get_bridge(spark))
        assert plan.delta_snapshots is not None
        assert "cast(" in plan.optimized.toString()
        assert spark.conf.get(EXCLUDED) == rule
    finally:
        spark.conf.unset(EXCLUDED)


def test_values_of_partitions_follow_the_time_zone(spark, table):
    name = table(
        "SELECT id, timestamp'2024-03-31 00:30:00' + make_dt_interval(0, id % 3) AS at FROM range(60)",
        partitioned="PARTITIONED BY (at)",
    )
    for zone in ("UTC", "America/New_York", "UTC"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            whole(spark, f"SELECT at, hour(at), count(*) FROM {name} GROUP BY at")
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_schema_that_has_changed_since_is_sparks_error(spark, table):
    name = table(ROWS, "'delta.columnMapping.mode' = 'name'")
    frame = spark.sql(GROUPED.format(t=name))
    spark.sql(f"ALTER TABLE {name} DROP COLUMN s")
    with pytest.raises(Exception) as expected:
        frame.collect()
    with pytest.raises(Exception) as actual:
        frame.transform(kquery_plan, when="always").collect()
    assert type(actual.value) is type(expected.value)
    assert str(actual.value)[:60] == str(expected.value)[:60]


def test_explain_lists_nothing_anew(spark, table):
    name = table(ROWS)
    frame = spark.sql(GROUPED.format(t=name))
    kq.explain(frame)
    before = _jobs(spark)
    assert kq.explain(frame).coverage == 1.0
    assert not _jobs(spark) - before

"""Time zones are those of Spark's JVM, also where this machine's time zone database has another history of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark import kquery_plan
from kquery_spark.fuzz.settings import applied
from kquery_spark.kernels import zones
from kquery_spark.kernels.zones import ZoneTable, table_of_this_machine
from kquery_spark.spark_bridge.session import zone_rules
from kquery_spark.spark_bridge.session.bridge import get_bridge
from kquery_spark.spark_bridge.session.zone_rules import follow_zone
from kquery_spark.verify import compare_tables

#: From 1600 to 2400, and a second before and after changes that databases disagree on.
SECONDS = [-11_676_096_000, -2_826_000_000, -2_147_483_648, -1_577_836_800, -900_000_000, 0, 230_000_000, 1_577_836_800,
           3_600_000_000, 13_579_465_600]  # fmt: skip
# of neighbors since release 2022b in the JVM, of their own in many a Linux; and zones that all agree on
ZONES = ["Europe/Amsterdam", "Europe/Oslo", "Asia/Tehran", "Asia/Gaza", "Africa/Accra", "America/Los_Angeles"]


@pytest.mark.parametrize("zone", ZONES)
def test_old_times_are_those_of_the_jvm(spark, tmp_path, zone):
    pq.write_table(pa.table({"s": SECONDS}), tmp_path / "t.parquet")
    with applied(spark, {"spark.sql.session.timeZone": zone, "spark.kquery.driverBytes": "0"}):
        rows = spark.read.parquet(str(tmp_path)).selectExpr("timestamp_seconds(s) AS t")
        frame = rows.selectExpr(
            "CAST(t AS STRING) AS a", "hour(t) AS b", "date_trunc('DAY', t) AS c", "to_json(struct(t)) AS d"
        )
        fast = frame.transform(kquery_plan, when="always", fallback="error")
        assert compare_tables(frame.toArrow(), fast.toArrow()) == []


@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "Europe/Oslo"])
def test_zones_that_a_query_names_are_those_of_the_jvm(spark, tmp_path, zone):
    pq.write_table(pa.table({"s": SECONDS}), tmp_path / "t.parquet")
    rows = spark.read.parquet(str(tmp_path)).selectExpr("timestamp_seconds(s) AS t")
    frame = rows.selectExpr(
        f"from_utc_timestamp(t, '{zone}') AS a",
        f"to_utc_timestamp(t, '{zone}') AS b",
        f"convert_timezone('UTC', '{zone}', CAST(t AS TIMESTAMP_NTZ)) AS c",
    )
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    assert compare_tables(frame.toArrow(), fast.toArrow()) == []


@pytest.mark.parametrize(
    "planted",
    [
        lambda table: ZoneTable(table.name, table.moments[3:], table.offsets[3:]),
        lambda table: ZoneTable(table.name, table.moments[:-700], table.offsets[:-700]),
        lambda table: ZoneTable(table.name, (), table.offsets[:1]),
    ],
    ids=["other past", "other future", "no changes"],
)
def test_whatever_this_machine_says_the_jvm_is_followed(spark, monkeypatch, planted):
    zone = "America/New_York"
    known = table_of_this_machine(zone)
    monkeypatch.setattr(zone_rules, "_followed", set())
    monkeypatch.setattr(zone_rules, "table_of_this_machine", lambda name: planted(known))
    monkeypatch.setattr(zones, "_adopted", {})
    follow_zone(get_bridge(spark).jvm, zone)
    assert zones._adopted[zone] == known
    assert zones.adopted_tables_in(b"... America/New_York ...") == (known,)
    assert zones.adopted_tables_in(b"... America/New ...") == ()

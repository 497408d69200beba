"""Dates before 1582 and times before 1900 in Parquet files are those that Spark reads, whoever wrote them."""

from __future__ import annotations

import datetime as dt
import itertools
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.sources.hybrid_calendar import gregorian_days
from kquery_spark.spark_bridge.frames.pyspark_names import arrow_table
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, error_class
from tests.accelerate.checks import check
from tests.conftest import SPARK_VERSION

DATETIME, INT96 = "spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead"
DATES = [
    "0001-01-01",
    "0001-01-03",
    "0099-12-31",
    "0100-02-28",
    "0100-03-01",
    "0200-03-01",
    "1000-02-28",
    "1000-03-01",
    "1001-01-01",
    "1100-03-05",
    "1500-02-28",
    "1500-03-01",
    "1500-03-11",
    "1582-10-03",
    "1582-10-04",
    "1582-10-15",
    "1582-10-16",
    "1800-01-01",
    "1899-12-31",
    "1900-01-01",
    "2020-02-29",
]
CLOCK = ("00:00:00", "23:59:59.999999", "12:34:56.789")
QUERIES = (
    "SELECT * FROM old",
    "SELECT d, count(*), min(t), max(t), min(n), max(n), max(s.d) FROM old GROUP BY d",
    """SELECT id, d, t FROM old WHERE d = DATE'1001-01-01' OR d = DATE'0001-01-01' OR t < TIMESTAMP'1001-01-01 12:34:56.789'
       OR t >= TIMESTAMP'1899-12-31 23:59:59' OR s.t BETWEEN TIMESTAMP'1582-10-03 00:00:00' AND TIMESTAMP'1582-10-16 00:00:00'""",
    "SELECT a.id, b.id FROM old a JOIN old b ON a.d = b.d AND a.t = b.t WHERE b.d > DATE'0099-12-31' AND a.d < DATE'1500-03-05'",
)


@pytest.fixture(autouse=True)
def default_modes(spark: Any) -> Iterator[None]:
    """Files that do not tell their calendar are read as Spark 4 reads them by default; Spark 3.5 refuses their old dates."""
    with setting(spark, DATETIME, "CORRECTED"), setting(spark, INT96, "CORRECTED"):
        yield


@contextmanager
def view(frame: Any) -> Iterator[None]:
    frame.createOrReplaceTempView("old")
    try:
        yield
    finally:
        frame.sparkSession.catalog.dropTempView("old")


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name) if before is None else spark.conf.set(name, before)


def rows_of(frame: Any) -> pa.Table:
    rows = arrow_table(frame)
    names = [f"{i}" for i in range(rows.num_columns)]
    flat = [n for n, dtype in zip(names, rows.schema.types, strict=True) if not pa.types.is_nested(dtype)]
    return rows.rename_columns(names).sort_by([(name, "ascending") for name in flat]).combine_chunks()


def check_all(frame: Any, queries: Sequence[str]) -> None:
    """The engine runs each query of the rows as a whole, and gives Spark's rows."""
    with view(frame), warnings.catch_warnings():
        warnings.simplefilter("error", kq.FallbackWarning)
        for query in queries:
            spark_frame = frame.sparkSession.sql(query)
            fast = spark_frame.transform(kq.kquery_plan, when="always", fallback="error")
            ours, expected = rows_of(fast), rows_of(spark_frame)
            assert ours.equals(expected), (query, ours, expected)


def write_by_spark(spark: Any, directory: Path, times: str) -> None:
    """Rows with each date, each at several times of day, in the hybrid calendar."""
    dates = ", ".join(f"DATE'{date}'" for date in DATES)
    rows = spark.sql(
        f"""SELECT id, d, t, n, named_struct('d', d, 't', t, 'x', 1, 'l', array(t, NULL)) s, array(d, NULL, d + 1) ds,
              IF(id % 4 = 0 OR d IS NULL, NULL, map(d, t)) m, IF(id % 3 = 0, NULL, array(named_struct('d', d, 't', t))) ls
            FROM (SELECT CAST(row_number() OVER (ORDER BY d, c) AS INT) id, d, timestamp(concat(d, ' ', c)) t,
              to_timestamp_ntz(concat(d, ' ', c)) n FROM (SELECT explode(array({dates})) d), (SELECT explode(array{CLOCK}) c)
              UNION ALL SELECT -1, NULL, NULL, NULL)"""
    )
    with (
        setting(spark, "spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY"),
        setting(spark, "spark.sql.parquet.int96RebaseModeInWrite", "LEGACY"),
        setting(spark, "spark.sql.parquet.outputTimestampType", times),
    ):
        rows.repartition(2).write.parquet(str(directory))


@pytest.mark.parametrize(
    ("zone", "times"),
    [
        ("UTC", "TIMESTAMP_MICROS"),
        ("Europe/Berlin", "INT96"),
        ("America/Los_Angeles", "TIMESTAMP_MILLIS"),
        ("Asia/Kathmandu", "TIMESTAMP_MICROS"),
        ("+01:30", "INT96"),
    ],
)
def test_files_that_spark_writes_in_the_hybrid_calendar(
    spark: Any, tmp_path: Path, zone: str, times: str
) -> None:
    with setting(spark, "spark.sql.session.timeZone", zone):
        write_by_spark(spark, tmp_path / "t", times)
        check_all(spark.read.parquet(str(tmp_path / "t")), QUERIES)


def old_table() -> pa.Table:
    """Every day around the switches of the calendars, also before the common era, at several times of day."""
    switches = [-719_164, *(-682_945 + 36_525 * i for i in range(16)), -141_427]
    days = np.unique(np.concatenate([np.arange(s - 13, s + 14) for s in [*switches, -900_000, -25_567, 0]]))
    days = np.repeat(days, 3)
    micros = days * 86_400_000_000 + np.tile([0, 43_200_123_456, 86_399_999_999], len(days) // 3)
    d = pa.array(days.astype(np.int32)).cast(pa.date32())
    t = pa.array(micros).cast(pa.timestamp("us", tz="UTC"))
    n = pa.array(micros).cast(pa.timestamp("us"))
    nested = pa.StructArray.from_arrays([d, t], ["d", "t"])
    ids = pa.array(range(len(days)), pa.int32())
    return pa.table({"id": ids, "d": d, "t": t, "n": n, "s": nested})


def write(path: Path, rows: pa.Table, keys: dict[str, str], **options: Any) -> None:
    """A file with these pairs in its footer, and none of Arrow's."""
    with pq.ParquetWriter(path, rows.schema, store_schema=False, **options) as writer:
        writer.write_table(rows, row_group_size=200)
        if keys:
            writer.add_key_value_metadata(keys)


VERSION, LEGACY_KEYS, ZONE = "org.apache.spark.version", ("legacyDateTime", "legacyINT96"), "timeZone"
FOOTERS: dict[str, dict[str, str]] = {
    "2.4.6": {VERSION: "2.4.6"},
    "2.4.6 in a zone": {VERSION: "2.4.6", f"org.apache.spark.{ZONE}": "America/Los_Angeles"},
    "2.4.6 in a fixed zone": {VERSION: "2.4.6", f"org.apache.spark.{ZONE}": "GMT+05:30"},
    "2.4.6 in no zone at all": {VERSION: "2.4.6", f"org.apache.spark.{ZONE}": "Nowhere/Land"},
    "3.0.3": {VERSION: "3.0.3"},
    "3.5.1": {VERSION: "3.5.1"},
    "10.0.0": {VERSION: "10.0.0"},
    "legacy": {VERSION: "4.0.0", **{f"org.apache.spark.{key}": "" for key in LEGACY_KEYS}},
    "legacy dates": {VERSION: "4.0.0", "org.apache.spark.legacyDateTime": ""},
    "legacy INT96": {VERSION: "4.0.0", "org.apache.spark.legacyINT96": "", f"org.apache.spark.{ZONE}": "Europe/Berlin"},
    "keys without a version": {f"org.apache.spark.{key}": "" for key in LEGACY_KEYS},
    "of Avro": {"parquet.avro.schema": "{}"},
}  # fmt: skip
WAYS: dict[str, dict[str, Any]] = {
    "micros": {},
    "plain millis": {"coerce_timestamps": "ms", "allow_truncated_timestamps": True, "use_dictionary": False},
    "INT96": {"use_deprecated_int96_timestamps": True},
    "no statistics": {"write_statistics": False, "data_page_version": "2.0"},
    "pages": {"write_page_index": True, "data_page_size": 256, "use_dictionary": False},
}
FORGED_QUERIES = (
    "SELECT id, d, t, n, s FROM old",
    """SELECT count(*) n, min(d), max(d), min(t), max(t), min(n), max(n), count(DISTINCT d) FROM old
       WHERE (d < DATE'1000-03-05' AND d > DATE'0500-01-01') OR t < TIMESTAMP'1900-01-01 00:00:00' AND s.d >= DATE'1582-10-04'""",
)
REFUSED_QUERIES = (
    "SELECT max(id), max(n) FROM old",
    "SELECT max(d) FROM old",
    "SELECT max(t) FROM old",
    "SELECT max(s.d) FROM old",
)


@pytest.mark.parametrize(("footer", "way"), list(zip(FOOTERS, itertools.cycle(WAYS), strict=False)))
def test_what_a_footer_says_of_the_calendar(spark: Any, tmp_path: Path, footer: str, way: str) -> None:
    write(tmp_path / "t.parquet", old_table(), FOOTERS[footer], **WAYS[way])
    check_all(spark.read.parquet(str(tmp_path)), FORGED_QUERIES)


@pytest.mark.parametrize("way", ["micros", "INT96"])
def test_files_of_other_writers(spark: Any, tmp_path: Path, way: str) -> None:
    write(tmp_path / "t.parquet", old_table(), {}, **WAYS[way])
    for mode, int96 in (("LEGACY", "CORRECTED"), ("CORRECTED", "LEGACY")):
        read = spark.read.option("datetimeRebaseMode", mode).option("int96RebaseMode", int96)
        check_all(read.parquet(str(tmp_path)), FORGED_QUERIES[:1])
        with setting(spark, DATETIME, mode), setting(spark, INT96, int96):
            check_all(spark.read.parquet(str(tmp_path)), FORGED_QUERIES[:1])


@pytest.mark.parametrize("way", ["micros", "INT96", "no statistics"])
@pytest.mark.parametrize("mode", ["EXCEPTION", "LEGACY"])
def test_old_values_that_spark_refuses_are_left_to_it(
    spark: Any, tmp_path: Path, way: str, mode: str
) -> None:
    write(tmp_path / "t.parquet", old_table(), {}, **WAYS[way])
    with (
        setting(spark, DATETIME, mode),
        setting(spark, INT96, "EXCEPTION"),
        view(spark.read.parquet(str(tmp_path))),
    ):
        for query in REFUSED_QUERIES:
            frame = spark.sql(query)
            outcomes = []
            for one in (frame, kq.kquery_plan(frame, when="always")):
                try:
                    outcomes.append(one.collect())
                except SPARK_ERRORS as error:
                    outcomes.append(error_class(error))
            assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("mode", ["EXCEPTION", "LEGACY"])
def test_files_without_old_values_are_read_in_every_mode(spark: Any, tmp_path: Path, mode: str) -> None:
    days = pa.array([0, None, 20_000], pa.int32()).cast(pa.date32())
    times = pa.array([0, None, 1 << 50], pa.timestamp("us", tz="UTC"))
    write(
        tmp_path / "t.parquet",
        pa.table({"d": days, "t": times, "x": [[d] for d in days], "none": days.take([1] * 3)}),
        {},
    )
    with setting(spark, DATETIME, mode), setting(spark, INT96, mode):
        check(spark.read.parquet(str(tmp_path)), coverage=1.0)
        check(
            spark.read.option("datetimeRebaseMode", mode).parquet(str(tmp_path)).groupBy("d").count(),
            coverage=1.0,
        )


def test_a_mode_that_spark_does_not_know_is_left_to_it(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", pa.table({"x": [1]}), FOOTERS["3.5.1"])
    frame = spark.read.option("datetimeRebaseMode", "legacy").parquet(str(tmp_path))
    assert kq.explain(frame).coverage == 0.0
    check(frame)


def test_files_of_one_table_may_differ_in_calendar_and_zone(spark: Any, tmp_path: Path) -> None:
    # before 4.0, no wall-clock times are read from INT96
    ways = [options for name, options in WAYS.items() if name != "INT96" or SPARK_VERSION >= (4, 0)]
    for i, footer in enumerate(FOOTERS):
        write(tmp_path / f"{i}.parquet", old_table(), FOOTERS[footer], **ways[i % len(ways)])
    check_all(spark.read.parquet(str(tmp_path)), FORGED_QUERIES)


def test_old_dates_beside_a_partition_column(spark: Any, tmp_path: Path) -> None:
    for part in (1, 2):
        directory = tmp_path / f"p={part}" / "day=1001-01-01"
        directory.mkdir(parents=True)
        write(directory / "t.parquet", old_table(), FOOTERS["2.4.6"])
    with view(spark.read.parquet(str(tmp_path))):
        check(
            spark.sql("SELECT day, max(d), min(t) FROM old WHERE p = 2 AND d < day GROUP BY day"),
            coverage=1.0,
        )


def test_every_day_of_five_thousand_years_is_rebased_as_spark_rebases_it(spark: Any) -> None:
    rebase = spark._jvm.org.apache.spark.sql.catalyst.util.RebaseDateTime
    days = np.concatenate([np.arange(-1_500_000, -130_000, 997), np.arange(-719_500, -718_800)])
    assert gregorian_days(days).tolist() == [rebase.rebaseJulianToGregorianDays(int(day)) for day in days]


def test_a_context_without_spark_rebases_dates(tmp_path: Path) -> None:
    rows = pa.table({"d": pa.array([dt.date(1001, 1, 7)]), "x": [1]})
    write(tmp_path / "t.parquet", rows, FOOTERS["2.4.6"])
    context = kq.ExecutionContext()
    context.register_parquet("t", str(tmp_path / "t.parquet"))
    assert context.sql("SELECT d FROM t").to_arrow().to_pylist() == [{"d": dt.date(1001, 1, 1)}]

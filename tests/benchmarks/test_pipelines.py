"""The pipelines suite: its data, every step on both engines, and the checksums of what the steps write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row

import kquery_spark as kq
from benchmarks import runner
from benchmarks.answers import Answers, exact_difference
from benchmarks.engines import OutsideEngine, Settings, Skipped
from benchmarks.engines.spark import KqueryEngine, SparkEngine
from benchmarks.pipelines.result import as_table, checksums
from benchmarks.suites import SQL_SUITES, SUITES, Query
from benchmarks.suites.base import Step, Table
from kquery_spark.accelerate.observers import QueryEvent

pytest.importorskip("duckdb")

SCALE = 0.0001
STEPS = SUITES["pipelines"].queries()
# Spark computes these steps: kq.enable accelerates none of their actions (approx_quantile), the result depends on the
# partitions of Spark (approximate percentiles, a random sample), or the step writes scanned rows.
ON_SPARK = {"approx_quantile", "summary", "sample", "csv_to_parquet", "partitioned_write"}


class NoMemory:
    def reset(self) -> None:
        pass

    def peak(self) -> Any:
        return SimpleNamespace(as_json=lambda: {"total": 1})


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, ...]:
    return SUITES["pipelines"].data(tmp_path_factory.mktemp("pipelines"), SCALE)


@pytest.fixture(scope="module")
def engines(spark: Any, tables: tuple[Table, ...]) -> Iterator[list[Any]]:
    """Spark and the engine with its default settings, under which small queries run in the driver."""
    before = spark.conf.get("spark.kquery.driverBytes")
    spark.conf.unset("spark.kquery.driverBytes")
    settings = Settings(2, 2, "1g")
    yield [SparkEngine(spark, settings, tables), KqueryEngine(spark, settings, tables)]
    spark.conf.set("spark.kquery.driverBytes", before)


def test_there_are_about_thirty_steps_with_docstrings():
    assert len(STEPS) >= 25
    assert len({query.name for query in STEPS}) == len(STEPS)
    assert all(query.step is not None and query.step.run.__doc__ for query in STEPS)
    assert "pipelines" not in SQL_SUITES


@pytest.mark.parametrize("query", STEPS, ids=lambda query: query.name)
def test_a_step_has_the_same_answer_on_both_engines(engines, tmp_path, query):
    found = runner.measure(query, engines, Answers(tmp_path), 1, NoMemory(), exact_difference)
    assert {name: (one.status, one.detail) for name, one in found.items()} == {
        "spark": ("ok", ""),
        "kquery": ("ok", ""),
    }
    assert found["spark"].rows
    decision = found["kquery"].decision
    assert decision["decisions"]
    assert decision["reasons"] == []
    if query.name in ON_SPARK:
        assert (decision["accelerated"], decision["coverage"]) == (False, 0.0)
    assert not (engines[0]._tables[0].path.parent / "_output" / "spark").exists()


def test_enable_is_undone_after_a_step(spark, engines):
    (query,) = SUITES["pipelines"].chosen("filter_count")
    engines[1].run(query)
    events: list[Any] = []
    remove = kq.on_query(events.append)
    try:
        engines[0].run(query)
    finally:
        remove()
    assert events == []


# --- Data ------------------------------------------------------------------------------------------------------------


def test_the_data_is_deterministic_and_generated_once(tables, tmp_path):
    again = SUITES["pipelines"].data(tmp_path, SCALE)
    for first, second in zip(tables, again, strict=True):
        assert first.files()
        assert [path.name for path in first.files()] == [path.name for path in second.files()]
        contents = [
            [path.read_bytes() for path in table.files() if table.format != "parquet"]
            for table in (first, second)
        ]
        assert contents[0] == contents[1]
    assert pq.read_table(tables[1].path).equals(pq.read_table(again[1].path))
    times = [path.stat().st_mtime_ns for table in again for path in table.files()]
    SUITES["pipelines"].data(tmp_path, SCALE)
    assert [path.stat().st_mtime_ns for table in again for path in table.files()] == times


def test_the_data_has_the_properties_that_the_steps_need(spark, tables):
    ddl = {table.name: table for table in tables}
    orders = (
        spark.read.schema(ddl["orders"].ddl).option("header", True).csv(str(ddl["orders"].path)).toPandas()
    )
    assert len(orders) == 1000
    assert orders["load_id"].is_unique
    assert orders.duplicated(["order_id", "line"]).any()
    for name in ("customer_id", "payment", "note", "discount", "shipped_at", "rating"):
        assert orders[name].isna().any() and not orders[name].isna().all()
    # Spark reads a value that does not fit its declared type as NULL
    for name in ("order_id", "total", "ordered_at", "gift", "quantity", "order_date"):
        assert not orders[name].isna().any()
    assert orders["note"].str.contains(",").any()
    clicks = pq.read_table(ddl["clicks"].path)
    assert len(clicks) == 1000
    assert {"purchase", "view"} <= set(clicks["event"].to_pylist())
    metadata = pq.ParquetFile(ddl["clicks"].files()[0]).metadata
    assert metadata.row_group(0).column(0).compression == "SNAPPY"
    assert metadata.schema.column(clicks.column_names.index("clicked_at")).physical_type == "INT96"
    history = pq.read_table(ddl["customer_history"].path)
    current = history.filter(history["is_current"])["customer_id"]
    assert 0 < len(current) < len(history)
    assert len(current) == len(current.unique()) == len(history["customer_id"].unique())
    changes = pq.read_table(ddl["customer_changes"].path)
    known = set(history["customer_id"].to_pylist())
    changed = set(changes["customer_id"].to_pylist())
    assert changed & known and changed - known


def test_the_type_2_dimension_closes_rows_and_adds_versions(spark, tables, tmp_path):
    paths = {table.name: str(table.path) for table in tables}
    (query,) = SUITES["pipelines"].chosen("slowly_changing_dimension")
    query.step.run(spark, paths, str(tmp_path / "out"))
    before = spark.read.parquet(paths["customer_history"])
    after = spark.read.parquet(str(tmp_path / "out"))
    changes = spark.read.parquet(paths["customer_changes"])
    new_customers = changes.join(before, "customer_id", "left_anti").count()
    closed = after.filter("NOT is_current").count() - before.filter("NOT is_current").count()
    assert closed > 0
    assert new_customers > 0
    assert after.count() == before.count() + closed + new_customers
    current = after.filter("is_current")
    assert current.count() == current.select("customer_id").distinct().count()
    assert current.filter("valid_to IS NOT NULL").count() == 0


# --- Results of steps ------------------------------------------------------------------------------------------------


def test_results_of_actions_become_tables(tmp_path):
    assert as_table(7, tmp_path).to_pylist() == [{"value": 7}]
    assert as_table([[1.0, 2.0]], tmp_path).to_pylist() == [{"value": [1.0, 2.0]}]
    rows = [Row(a=1, b=Row(c="x")), Row(a=2, b=None)]
    assert as_table(rows, tmp_path).to_pylist() == [{"a": 1, "b": {"c": "x"}}, {"a": 2, "b": None}]


def write_parts(directory: Path, *parts: pa.Table) -> Path:
    directory.mkdir(parents=True)
    for number, part in enumerate(parts):
        pq.write_table(part, directory / f"part-{number}.parquet")
    return directory


ROWS = pa.table({"k": [1, 2, 3], "s": ["x", None, "z"], "d": [0.5, 0.25, None]})


def test_checksums_do_not_depend_on_files_or_order(tmp_path):
    one = checksums(write_parts(tmp_path / "one", ROWS))
    two = checksums(write_parts(tmp_path / "two", ROWS.slice(2), ROWS.slice(0, 2)))
    assert exact_difference(one, two) is None


@pytest.mark.parametrize(
    "other",
    [
        ROWS.slice(1),
        ROWS.set_column(1, "s", pa.array(["x", "z", None])),
        ROWS.set_column(1, "s", pa.array(["x", None, "y"])),
        ROWS.set_column(2, "d", pa.array([0.5, 0.26, None])),
        ROWS.set_column(0, "k", pa.array([1, 2, 3], pa.int32())),
        ROWS.rename_columns(["k", "t", "d"]),
    ],
)
def test_checksums_detect_differences(tmp_path, other):
    one, two = (
        checksums(write_parts(tmp_path / name, table)) for name, table in (("one", ROWS), ("two", other))
    )
    assert exact_difference(one, two) is not None


def test_checksums_include_partitions_and_on_request_the_order(tmp_path):
    one = write_parts(tmp_path / "one", ROWS)
    two = write_parts(tmp_path / "two", ROWS.take([1, 0, 2]))
    assert exact_difference(checksums(one), checksums(two)) is None
    assert exact_difference(checksums(one, ordered=True), checksums(two, ordered=True)) is not None
    same = write_parts(tmp_path / "same", ROWS.slice(0, 1), ROWS.slice(1))
    assert exact_difference(checksums(one, ordered=True), checksums(same, ordered=True)) is None
    left, right = (write_parts(tmp_path / name / "p=1", ROWS).parent for name in ("left", "right"))
    (right / "p=1").rename(right / "p=2")
    assert exact_difference(checksums(left), checksums(right)) is not None
    with pytest.raises(FileNotFoundError, match="wrote no Parquet files"):
        checksums(tmp_path / "nothing")


def test_a_step_that_writes_other_rows_is_wrong(spark, tables, tmp_path):
    def write_less(spark: Any, paths: Any, out: str) -> None:
        rows = 3 if out.endswith("spark") else 2
        spark.range(rows).write.mode("overwrite").parquet(out)

    query = Query("q", "", step=Step("q", write_less))
    settings = Settings(2, 2, "1g")
    both = [SparkEngine(spark, settings, tables), KqueryEngine(spark, settings, tables)]
    found = runner.measure(query, both, Answers(tmp_path), 1, NoMemory(), exact_difference)
    assert (found["spark"].status, found["kquery"].status) == ("ok", "wrong")


def test_other_engines_skip_steps():
    engine = OutsideEngine.__new__(OutsideEngine)
    with pytest.raises(Skipped, match="DataFrame API"):
        engine.run(STEPS[0])


def test_where_the_actions_of_a_step_ran():
    def event(kind: Any, place: Any, action: str = "", *sentences: str, failure: str | None = None) -> Any:
        return QueryEvent(kind, action, place, 1.0, sentences, 0.1, failure)

    from benchmarks.engines.spark import _step_decision

    wins = "The engine should win."
    copies = "Not accelerated: a scan. An action that collects the rows runs it in the driver."
    collected = _step_decision(
        [event("planned", "driver", "", copies), event("finished", "driver", "collect")]
    )
    assert (collected["places"], collected["coverage"]) == (["driver"], 1.0)
    wrote = _step_decision([event("planned", "driver", "", copies), event("finished", "spark", "write")])
    assert (wrote["places"], wrote["accelerated"], wrote["coverage"]) == (["spark"], False, 0.0)
    half = _step_decision([event("planned", "tasks", "", wins), event("planned", "spark", "", copies)])
    assert (half["places"], half["coverage"]) == (["tasks", "spark"], 0.5)
    failed = _step_decision([event("planned", "tasks"), event("finished", "spark", "collect", failure="no")])
    assert (failed["reasons"], failed["accelerated"]) == (["no"], False)

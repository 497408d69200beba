"""Timing and comparing, with engines that only pretend: what is measured, in which order, what is shown."""

import io
import json
from types import SimpleNamespace

import pyarrow as pa
import pytest
from rich.console import Console

from benchmarks import compare, demo
from benchmarks.compare import Comparison


@pytest.fixture
def pretend(monkeypatch):
    """Two engines that note their turn and answer at once; ``same`` and ``reasons`` can be changed."""
    world = SimpleNamespace(turns=[], same=True, reasons=[], report="no differences", clock=0.0)

    def engine(name, seconds):
        def answer(spark, sql):
            world.turns.append(name)
            world.clock += seconds
            return pa.table({"a": [1, 2, 3]})

        return answer

    class Report:
        def __init__(self):
            self.ok = world.same

        def __str__(self):
            return world.report

    monkeypatch.setattr(compare, "run_spark", engine("spark", 0.2))
    monkeypatch.setattr(compare, "run_engine", engine("kquery", 0.1))
    monkeypatch.setattr(compare.time, "perf_counter", lambda: world.clock)
    fake = SimpleNamespace(
        verify=lambda frame: Report(),
        explain=lambda frame: SimpleNamespace(accelerated=not world.reasons, reasons=world.reasons),
    )
    monkeypatch.setattr(compare, "kq", fake)
    world.spark = SimpleNamespace(sql=lambda text: text)
    return world


def test_engines_take_turns_and_who_is_first_is_drawn_by_lot(pretend):
    steps = []
    one, table = compare.compare(pretend.spark, "q", "SELECT 1", runs=3, step=lambda: steps.append(1))
    assert pretend.turns == ["kquery", "spark", "spark", "kquery", "spark", "kquery"]
    assert len(steps) == 4
    assert one.spark_seconds == pytest.approx((0.2, 0.2, 0.2))
    assert one.engine_seconds == pytest.approx((0.1, 0.1, 0.1))
    assert one.ratio == pytest.approx(2.0)
    assert (one.rows, one.same, one.accelerated, table.num_rows) == (3, True, True, 3)


def test_a_difference_and_the_reasons_are_kept(pretend):
    pretend.same, pretend.reasons, pretend.report = (
        False,
        [("Window", "windows are not supported")],
        "row 3 differs",
    )
    one, _ = compare.compare(pretend.spark, "q", "SELECT 1", runs=1)
    assert (one.same, one.accelerated, one.difference) == (False, False, "row 3 differs")
    assert one.reasons == ("Window: windows are not supported",)


def comparison(**changes):
    values = {
        "name": "TPC-H 1",
        "rows": 4,
        "spark_seconds": (3.0, 1.0, 2.0),
        "engine_seconds": (0.4, 0.5, 9.0),
    }
    return Comparison(**{**values, "same": True, "accelerated": True, "reasons": (), **changes})


def test_medians_not_means_and_json_with_everything():
    one = comparison()
    assert (one.spark_median, one.engine_median, one.ratio) == (2.0, 0.5, 4.0)
    record = json.loads(json.dumps(one.as_json()))
    assert record["spark_seconds"] == [3.0, 1.0, 2.0]
    assert (record["ratio"], record["same"], record["name"]) == (4.0, True, "TPC-H 1")


def printed(renderable):
    console = Console(file=io.StringIO(), width=160)
    console.print(renderable)
    return console.file.getvalue()


def test_the_summary_says_times_ratio_and_whether_the_answers_are_the_same():
    text = printed(
        demo.summary_table([comparison(), comparison(name="TPC-H 2", same=False, accelerated=False)])
    )
    first, second = (line for line in text.splitlines() if "TPC-H" in line)
    for part in ("2,000 ms", "500 ms", "4.0x", "all of it", "yes"):
        assert part in first
    assert "not all" in second
    assert "NO" in second


def test_rows_are_shown_with_nulls_and_what_is_left_out_is_counted():
    text = printed(demo.rows_table(pa.table({"passenger_count": [None, *range(14)]})))
    assert "NULL" in text
    assert "4 more rows" in text
    assert "13" not in text


def test_the_demo_shows_the_line_a_reader_looks_for():
    console = Console(file=io.StringIO(), width=160)
    demo.show(console, comparison(reasons=("Window: no",)), "SELECT 1", pa.table({"a": [1]}))
    text = console.file.getvalue()
    assert "same as Spark SQL: yes   Spark 2,000 ms   kquery_spark 500 ms   4.0 times as fast" in text
    assert "falls back to Spark: Window: no" in text


def test_the_demo_has_the_taxi_query_and_three_of_tpch():
    assert list(demo.queries()) == ["taxi, parquet", "taxi, csv", "TPC-H 1", "TPC-H 3", "TPC-H 6"]
    assert demo.EXPLAINED in demo.queries()


def test_the_machine_is_described_without_names_and_paths():
    facts = compare.machine()
    assert facts["cores"]
    assert facts["pyspark"]
    assert not any("/" in str(value) for value in facts.values())

"""The harness: a wrong answer is reported, its time does not count, and a real run writes a file that can be read back."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pyarrow as pa
import pyspark
import pytest

from benchmarks import results, runner
from benchmarks.answers import Answers, exact_difference, value_difference
from benchmarks.engines import Run, Settings, Skipped
from benchmarks.engines.comet_engine import PACKAGES
from benchmarks.engines.outside import OutsideEngine
from benchmarks.engines.spark import KqueryEngine, SparkEngine
from benchmarks.memory import Family, MemorySampler
from benchmarks.suites import SUITES, Query


class Pretend:
    """An engine that gives prepared answers, one a run, the last one for ever."""

    def __init__(self, name, *answers, turns=None):
        self.name, self.answers, self.turns = name, list(answers), turns if turns is not None else []

    def run(self, query):
        self.turns.append(self.name)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return Run(answer, 0.5, 0.1, 7)


class NoMemory:
    def reset(self):
        pass

    def peak(self):
        return SimpleNamespace(as_json=lambda: {"total": 1})


A = pa.table({"a": [1, 2, 3]})
B = pa.table({"a": [1, 2, 4]})


def measured(tmp_path, spark, engine, sql="SELECT a FROM t", runs=3, seconds=0.0):
    query, answers = Query("q", sql), Answers(tmp_path)
    return runner.measure(query, [spark, engine], answers, runs, NoMemory(), exact_difference, seconds)


def test_engines_take_turns_and_who_is_first_is_drawn_by_lot(tmp_path):
    turns = []
    found = measured(tmp_path, Pretend("spark", A, turns=turns), Pretend("kquery", A, turns=turns))
    assert turns == ["spark", "kquery", "kquery", "spark", "spark", "kquery", "spark", "kquery"]
    one = found["kquery"]
    assert (one.status, one.cold_seconds, one.warm_seconds, one.median) == ("ok", 0.5, (0.5,) * 3, 0.5)
    assert (one.planning, one.shuffle_bytes, one.rows) == (0.1, 7, 3)


def test_each_engine_is_first_as_often_as_the_other_but_not_in_strict_turns(tmp_path):
    turns = []
    measured(tmp_path, Pretend("spark", A, turns=turns), Pretend("kquery", A, turns=turns), runs=20)
    firsts = turns[2::2]
    assert (firsts.count("spark"), firsts.count("kquery")) == (10, 10)
    assert firsts not in (["spark", "kquery"] * 10, ["kquery", "spark"] * 10)
    again = []
    measured(tmp_path, Pretend("spark", A, turns=again), Pretend("kquery", A, turns=again), runs=20)
    assert again == turns


def test_short_queries_are_run_more_often_but_not_for_ever(tmp_path):
    found = measured(tmp_path, Pretend("spark", A), Pretend("kquery", A), runs=2, seconds=60.0)
    assert [len(found[name].warm_seconds) for name in ("spark", "kquery")] == [20, 20]


def test_a_wrong_answer_is_reported_and_has_no_time(tmp_path):
    found = measured(tmp_path, Pretend("spark", A), Pretend("kquery", B))
    assert found["kquery"].status == "wrong"
    assert "row 3" in found["kquery"].detail
    assert found["kquery"].median is None
    assert found["kquery"].warm_seconds == ()
    assert found["spark"].median == 0.5
    outcome = record(found)
    assert outcome.failed() == ["q (kquery: wrong)"]
    assert outcome.ratios() == {}
    assert outcome.total("kquery") is None


def test_rows_that_come_or_go_between_runs_are_wrong(tmp_path):
    found = measured(tmp_path, Pretend("spark", A), Pretend("kquery", A, A.slice(1)))
    assert found["kquery"].status == "wrong"
    assert found["kquery"].detail == "2 rows in a warm run, 3 at first"


def test_an_error_is_kept_and_the_other_engine_goes_on(tmp_path):
    found = measured(tmp_path, Pretend("spark", A), Pretend("kquery", RuntimeError("no\nluck")))
    assert (found["kquery"].status, found["kquery"].detail) == ("error", "RuntimeError: no luck")
    assert len(found["spark"].warm_seconds) == 3


def test_ties_at_a_limit_are_settled_without_it(tmp_path):
    sql = "SELECT a FROM t LIMIT 3"
    whole = pa.table({"a": [1, 2, 3, 4]})
    good = measured(tmp_path, Pretend("spark", A, whole, A), Pretend("kquery", B, whole, B), sql, runs=1)
    assert (good["kquery"].status, len(good["kquery"].warm_seconds)) == ("ok", 1)
    assert "without its LIMIT" in good["kquery"].detail
    bad = measured(tmp_path, Pretend("spark", A, whole, A), Pretend("kquery", B, A, B), sql, runs=1)
    assert bad["kquery"].status == "wrong"


def test_without_spark_its_saved_answer_decides_and_without_that_nothing_counts(tmp_path):
    query, alone = Query("q", "SELECT 1"), [Pretend("kquery", A)]
    first = runner.measure(query, alone, Answers(tmp_path), 1, NoMemory(), exact_difference)
    assert (first["kquery"].status, first["kquery"].median) == ("unchecked", None)
    Answers(tmp_path).keep("q", B)
    second = runner.measure(query, alone, Answers(tmp_path), 1, NoMemory(), exact_difference)
    assert second["kquery"].status == "wrong"
    Answers(tmp_path).keep("q", A)
    third = runner.measure(query, alone, Answers(tmp_path), 1, NoMemory(), exact_difference)
    assert third["kquery"].median == 0.5


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (pa.table({"x": pa.array([3.0, 1.0, 2.0])}), True),
        (pa.table({"x": pa.array([3, 1, None])}), False),
        (pa.table({"x": pa.array([3.0, 1.0, 2.01])}), False),
        (pa.table({"x": pa.array(["1", "2", "3"])}), False),
        (pa.table({"x": pa.array([1, 2])}), False),
        (pa.table({"x": A["a"], "y": A["a"]}), False),
    ],
)
def test_other_engines_are_compared_by_value(other, same):
    assert (value_difference(A, other) is None) == same


ALONE = """
import mmap, sys
for line in sys.stdin:
    task, argument = line.split(" ", 1)
    if task == "hold":
        held = bytearray(int(argument))
    else:
        with open(argument.rstrip(), "rb") as file:
            held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for at in range(0, len(held), 4096):
        held[at] if task == "map" else held.__setitem__(at, 1)
    print(flush=True)
"""


@pytest.fixture
def alone():
    """A process and a way to have it hold memory.

    In this one, a heap with room or memory that others give back would hide what is allocated.
    """
    with subprocess.Popen(
        [sys.executable, "-c", ALONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:

        def ask(task, argument):
            process.stdin.write(f"{task} {argument}\n")
            assert process.stdout.readline() == "\n"

        ask("hold", 0)
        yield process.pid, ask


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell which pages are of files")
def test_pages_of_a_mapped_file_are_not_the_process_own(tmp_path, alone):
    pid, ask = alone
    size = 64 * 2**20
    (tmp_path / "data").write_bytes(bytes(size))
    resident, before = psutil.Process(pid).memory_info().rss, Family(pid).memory().driver
    ask("map", tmp_path / "data")
    assert psutil.Process(pid).memory_info().rss >= resident + size // 2
    assert Family(pid).memory().driver <= before + size // 4


def test_memory_counts_a_process_and_keeps_the_largest(alone):
    pid, ask = alone
    size = 64 * 2**20
    with MemorySampler(pid, interval=0.01) as sampler:
        sampler.reset()
        before = sampler.peak().driver
        assert before > 1_000_000
        ask("hold", size)
        held = sampler.peak().driver
        assert held >= before + size * 3 // 4
        ask("hold", 0)
        assert Family(pid).memory().driver < held - size // 2
        assert sampler.peak().driver >= held
        sampler.reset()
        assert sampler.peak().driver < held - size // 2


def test_memory_of_what_a_process_started_is_distinguished(alone):
    pid, ask = alone
    ask("hold", 64 * 2**20)
    assert Family(os.getpid()).memory().workers >= Family(pid).memory().driver > 64 * 2**20


def record(engines, name="q", scale=1.0, **changes):
    fields = {
        "suite": "micro", "scale": scale, "engines": tuple(engines), "started": "", "finished": "",
        "options": {"cores": 2}, "environment": {"cores": 2}, "settings": {}, "files": [],
        "queries": (results.QueryResult(name, engines),),
    }  # fmt: skip
    return results.Results(**{**fields, **changes})


def test_a_result_file_reads_back_as_it_was_written(tmp_path):
    found = record(measured(tmp_path, Pretend("spark", A), Pretend("kquery", A)))
    path = tmp_path / "deep" / "r.json"
    found.write(path)
    assert results.read(path) == found
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ValueError, match="not a benchmark result"):
        results.read(tmp_path / "x.json")


@pytest.fixture(scope="module")
def in_session(spark, tmp_path_factory):
    """Both engines on tiny micro data in the tests' session."""
    directory = tmp_path_factory.mktemp("bench")
    tables = SUITES["micro"].data(directory, 0.0005)
    settings = Settings(2, 2, "1g", "always")
    engines = [SparkEngine(spark, settings), KqueryEngine(spark, settings)]
    engines[0].load(tables)
    return directory, tables, engines


@pytest.mark.parametrize("name", ["scan_sum", "group_many", "join_small"])
def test_a_real_query_runs_on_both_engines(in_session, name):
    directory, _, engines = in_session
    (query,) = SUITES["micro"].chosen(name)
    with MemorySampler(os.getpid()) as memory:
        found = runner.measure(query, engines, Answers(directory), 1, memory, exact_difference)
    assert found["kquery"].detail == ""
    assert found["kquery"].status == "ok"
    assert found["kquery"].planning_seconds[0] > 0
    assert found["kquery"].decision["coverage"] > 0
    assert found["spark"].memory["jvm"] > 50 * 2**20
    assert found["kquery"].memory["workers"] > 10 * 2**20
    if name == "group_many":
        assert found["spark"].shuffle_bytes > 0
    json.dumps(record(found).as_json())


def test_a_child_process_runs_duckdb_and_says_why_it_cannot(in_session):
    pytest.importorskip("duckdb")
    _, tables, engines = in_session
    child = OutsideEngine("duckdb", Settings(1, 1, "1g"))
    try:
        child.load(tables)
        (query,) = SUITES["micro"].chosen("group_few")
        run = child.run(query)
        assert run.seconds > 0
        assert value_difference(engines[0].run(query).table, run.table) is None
        with pytest.raises(Skipped, match="no_such_table"):
            child.run(Query("q", "SELECT * FROM no_such_table"))
    finally:
        child.close()


@pytest.mark.skipif(pyspark.__version__.rpartition(".")[0] in PACKAGES, reason="Comet supports this release")
def test_comet_names_the_spark_releases_that_it_supports():
    child = OutsideEngine("comet", Settings(1, 1, "1g"))
    try:
        with pytest.raises(Skipped, match=r"Comet has no package for Spark .*, only for 4\.0, 4\.1"):
            child.load([])
    finally:
        child.close()

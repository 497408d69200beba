"""First runs in new processes: the order of the engines, failures, and their place in the results."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import first_runs
from benchmarks.answers import Answers
from benchmarks.engines import Settings
from benchmarks.first_runs import with_first_runs
from benchmarks.results import EngineResult, merged, read
from benchmarks.suites import SUITES
from tests.benchmarks.test_pipelines_page import example_results

STEPS = SUITES["pipelines"].queries()


def run_with_prepared_answers(
    monkeypatch, tmp_path, answers: dict[str, list[Any]], queries=STEPS[:1], rounds=2
):
    """Run first_runs with prepared answers instead of processes; return the results and the order of the runs.

    A string among the answers is an error of the run.
    """
    turns: list[tuple[str, str]] = []

    def run_once(query, name, settings, tables, previous, collected):
        if previous.status != "ok":
            return previous
        turns.append((query.name, name))
        answer = answers[name][min(len(previous.first_seconds), len(answers[name]) - 1)]
        if isinstance(answer, str):
            return replace(previous, status="error", detail=answer)
        collected[name] = answer
        return replace(previous, first_seconds=(*previous.first_seconds, 0.5))

    monkeypatch.setattr(first_runs, "_run_once", run_once)
    found = first_runs.first_runs(
        queries, ("spark", "kquery"), rounds, Settings(1, 1, "1g"), (), Answers(tmp_path), lambda line: None
    )
    return found, turns


ANSWER = pa.table({"a": [1, 2]})


def test_engines_take_turns_in_going_first(monkeypatch, tmp_path):
    found, turns = run_with_prepared_answers(
        monkeypatch, tmp_path, {"spark": [ANSWER], "kquery": [ANSWER]}, STEPS[:2]
    )
    assert [name for _, name in turns] == [
        "spark",
        "kquery",
        "kquery",
        "spark",
        "kquery",
        "spark",
        "spark",
        "kquery",
    ]
    assert all(one.first == 0.5 for by_engine in found.values() for one in by_engine.values())


def test_a_wrong_answer_of_a_first_run_is_the_result(monkeypatch, tmp_path):
    found, turns = run_with_prepared_answers(
        monkeypatch, tmp_path, {"spark": [ANSWER], "kquery": [ANSWER.slice(1)]}
    )
    first = found[STEPS[0].name]["kquery"]
    assert first.status == "wrong"
    whole = with_first_runs(EngineResult("ok", warm_seconds=(1.0,)), first)
    assert (whole.status, whole.median) == ("wrong", None)
    assert "in a first run" in whole.detail
    assert len(turns) == 3


def test_an_error_of_a_first_run_is_the_result(monkeypatch, tmp_path):
    found, _ = run_with_prepared_answers(monkeypatch, tmp_path, {"spark": [ANSWER], "kquery": ["no memory"]})
    whole = with_first_runs(EngineResult("ok", warm_seconds=(1.0,)), found[STEPS[0].name]["kquery"])
    assert (whole.status, whole.detail) == ("error", "in a first run: no memory")
    assert (
        with_first_runs(EngineResult("wrong", "w"), EngineResult("ok", first_seconds=(1.0,))).status
        == "wrong"
    )


FIRST_RUN = """
import sys
from pathlib import Path
from benchmarks.answers import Answers
from benchmarks.engines import Settings
from benchmarks.first_runs import first_runs
from benchmarks.suites import SUITES

if __name__ == "__main__":
    root = Path(sys.argv[1])
    tables = SUITES["pipelines"].data(root, 0.0001)
    queries = SUITES["pipelines"].chosen("filter_count")
    settings = Settings(1, 1, "1g", conf={"spark.driver.host": "127.0.0.1"})
    found = first_runs(queries, ("spark", "kquery"), 1, settings, tables, Answers(root / "answers"), print)
    print({name: (one.status, one.first > 0) for name, one in found["filter_count"].items()})
"""


def test_a_first_run_has_a_process_and_a_session_of_its_own(tmp_path):
    pytest.importorskip("duckdb")
    script = tmp_path / "script.py"
    script.write_text(FIRST_RUN)
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(root), "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert "{'spark': ('ok', True), 'kquery': ('ok', True)}" in run.stdout, run.stderr[-2000:]


def test_first_runs_are_written_and_merged(tmp_path):
    example_results().write(tmp_path / "r.json")
    assert read(tmp_path / "r.json") == example_results()
    whole = merged([example_results(), example_results()])
    assert whole.queries[0].engines["spark"].first_seconds == (12, 12)
    assert whole.summary()["spark_over_kquery_first_runs"]["below_one"] == ["b"]

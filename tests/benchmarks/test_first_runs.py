"""First runs in new processes: the order of the engines, failures, and their place in the results."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
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
    queries = SUITES["pipelines"].chosen(sys.argv[2])
    settings = Settings(1, 1, "1g", conf={"spark.driver.host": "127.0.0.1", "spark.local.dir": sys.argv[3]})
    found = first_runs(queries, ("spark", "kquery"), 1, settings, tables, Answers(root / "answers"), print)
    for by_engine in found.values():
        print({name: (one.status, one.first > 0) for name, one in by_engine.items()})
"""


def start_first_runs(tmp_path, query):
    """Start a process that makes first runs of a query, in a process group of its own."""
    script = tmp_path / "script.py"
    script.write_text(FIRST_RUN)
    local_dir = tmp_path / "local"
    local_dir.mkdir()
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "data"), query, str(local_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root), "SPARK_LOCAL_IP": "127.0.0.1"},
        start_new_session=True,
    )


def test_a_first_run_has_a_process_and_a_session_of_its_own(tmp_path):
    pytest.importorskip("duckdb")
    with start_first_runs(tmp_path, "filter_count") as process:
        out, errors = process.communicate(timeout=300)
    assert "{'spark': ('ok', True), 'kquery': ('ok', True)}" in out, errors[-2000:]


@pytest.mark.parametrize("to_all", [False, True], ids=["the harness is ended", "Ctrl-C"])
def test_an_interrupted_first_run_ends_and_leaves_nothing_behind(tmp_path, to_all):
    """Ctrl-C in a terminal sends SIGINT to all processes of the group; SIGTERM reaches the harness only."""
    pytest.importorskip("duckdb")
    with start_first_runs(tmp_path, "slowly_changing_dimension") as process:
        output = tmp_path / "data" / "pipelines-0.0001" / "_output" / "spark"
        wait_until(lambda: output.exists() or process.poll() is not None)
        assert process.poll() is None
        if to_all:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.terminate()
        # the child inherits stderr, so this also waits for its end
        _, errors = process.communicate(timeout=60)
    wait_until(lambda: not group_exists(process.pid))
    assert not output.parent.exists()
    assert list((tmp_path / "local").iterdir()) == []
    assert "SpawnProcess" not in errors  # the first word of a traceback of the child
    assert "Unable to cleanly shutdown" not in errors
    assert ("Traceback (most" in errors) == to_all


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def group_exists(group):
    """Return True if the process group has a process."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_first_runs_are_written_and_merged(tmp_path):
    example_results().write(tmp_path / "r.json")
    assert read(tmp_path / "r.json") == example_results()
    whole = merged([example_results(), example_results()])
    assert whole.queries[0].engines["spark"].first_seconds == (12, 12)
    assert whole.summary()["spark_over_kquery_first_runs"]["below_one"] == ["b"]

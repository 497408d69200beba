"""The bar of long runs: when it is shown, what it says, and that nothing of it is left behind."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typing_extensions import override

import kquery_spark as kq
from kquery_spark import progress as module
from kquery_spark.cli.fuzzing import Reporter
from kquery_spark.config.engine import EngineConfig
from kquery_spark.fuzz.record import Record
from kquery_spark.physical.operators import ScanExec
from kquery_spark.progress import Display, NotebookDisplay, TerminalDisplay, find_display, progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 20.0
"""How long a test waits for a bar before it fails."""


class Terminal(io.StringIO):
    @override
    def isatty(self) -> bool:
        return True


class Recorder(Display):
    """Keeps what is drawn."""

    def __init__(self) -> None:
        self.drawn: list[tuple[str, str, float]] = []
        self.cleared = 0
        self.changed = threading.Event()

    @override
    def draw(self, head: str, tail: str, share: float) -> None:
        self.drawn.append((head, tail, share))
        self.changed.set()

    @override
    def clear(self) -> None:
        self.cleared += 1

    def wait(self) -> None:
        """Wait until it is drawn once more."""
        self.changed.clear()
        assert self.changed.wait(SECONDS)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """Where progress is shown, at once."""
    display = Recorder()
    monkeypatch.setattr(module, "SHOWN_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(module, "_REDRAW_SECONDS", 0.01)
    monkeypatch.setattr(module, "find_display", lambda: display)
    yield display
    assert "kquery-progress" not in {thread.name for thread in threading.enumerate()}


def test_a_bar_says_how_far_the_run_is(recorder: Recorder) -> None:
    with progress("verify", "runs", 4) as bar:
        bar.advance("the engine", 3)
        recorder.wait()
    head, tail, share = recorder.drawn[-1]
    assert head == "verify: the engine"
    assert tail.startswith("3 / 4 runs, ")
    assert tail.endswith(" s")
    assert share == 0.75
    assert recorder.cleared == 1


def test_an_unknown_total_has_no_share(recorder: Recorder) -> None:
    with progress("fuzz", "cases", count=lambda: 1234):
        recorder.wait()
    assert recorder.drawn[-1][1].startswith("1,234 cases, ")
    assert recorder.drawn[-1][2] == 0.0


def test_a_short_run_shows_nothing(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHOWN_AFTER_SECONDS", 60.0)
    with progress("verify", "runs", 2):
        pass
    assert recorder.drawn == []
    assert recorder.cleared == 0


def test_a_run_within_another_shows_nothing_of_its_own(recorder: Recorder) -> None:
    with progress("outer", "runs", 1) as outer, progress("inner", "splits", 5) as inner:
        recorder.wait()
        assert outer.is_shown
        assert not inner.is_shown
    assert {head for head, _, _ in recorder.drawn} == {"outer"}
    with progress("later", "runs", 1) as later:
        assert later.is_shown


def test_an_error_takes_the_bar_away(recorder: Recorder) -> None:
    with pytest.raises(ValueError, match="broken"), progress("bench", "queries", 2):
        recorder.wait()
        raise ValueError("broken")
    assert recorder.cleared == 1


def test_fuzz_draws_a_bar_or_prints_lines(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kquery_spark.cli.fuzzing._PROGRESS_SECONDS", 0)
    record = Record()
    with progress("fuzz", "cases", 10) as bar:
        Reporter(None, bar).progress(record)
        assert bar.done == record.cases
        recorder.wait()
    assert capsys.readouterr().err == ""
    with progress("fuzz", "cases", 10, enabled=False) as bar:
        Reporter(None, bar).progress(record)
    assert "0 cases in 0 s" in capsys.readouterr().err


def test_lines_are_printed_without_the_bar(recorder: Recorder) -> None:
    with progress("bench", "queries", 2) as bar:
        recorder.wait()
        bar.hide()
        assert recorder.cleared >= 1
        recorder.wait()


def test_a_terminal_draws_one_line_over_and_over() -> None:
    stream = Terminal()
    display = TerminalDisplay(stream)
    display.draw("bench", "1 / 2 queries, 3 s", 0.5)
    line = stream.getvalue()
    assert line.startswith("\r[bench ====")
    assert line.rstrip().endswith("1 / 2 queries, 3 s]")
    assert "\n" not in line
    display.clear()
    assert stream.getvalue().endswith(" \r")


def test_a_terminal_that_hung_up_does_not_fail_the_run() -> None:
    stream = Terminal()
    display = TerminalDisplay(stream)
    display.draw("bench", "1 / 2 queries, 3 s", 0.5)
    stream.close()
    display.draw("bench", "2 / 2 queries, 4 s", 1.0)
    display.clear()


def test_only_a_terminal_or_a_notebook_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert find_display() is None
    monkeypatch.setattr("sys.stderr", Terminal())
    assert isinstance(find_display(), TerminalDisplay)
    with progress("verify", "runs", 2, enabled=False) as bar:
        assert not bar.is_shown


def test_a_notebook_updates_one_output(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython: Any = pytest.importorskip("IPython")
    outputs: list[str] = []

    class Handle:
        def update(self, html: Any) -> None:
            outputs.append(html.data)

    def display(html: Any, display_id: bool) -> Handle:
        assert display_id
        outputs.append(html.data)
        return Handle()

    class Shell:
        kernel = "a notebook's"

    monkeypatch.setattr(ipython, "get_ipython", Shell)
    monkeypatch.setattr("IPython.display.display", display)
    notebook = find_display()
    assert isinstance(notebook, NotebookDisplay)
    notebook.draw("verify <b>", "1 / 2 runs, 3 s", 0.5)
    notebook.draw("verify", "2 / 2 runs, 4 s", 1.0)
    notebook.clear()
    assert "verify &lt;b&gt;" in outputs[0]
    assert 'value="1.000"' in outputs[1]
    assert outputs[2] == ""


@contextmanager
def slow_scans(monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> Iterator[None]:
    """Scans whose last batch comes only when the bar was drawn again."""
    execute = ScanExec.execute

    def slow(scan: ScanExec, task: Any) -> Iterator[Any]:
        yield from execute(scan, task)
        recorder.wait()

    with monkeypatch.context() as patch:
        patch.setattr(ScanExec, "execute", slow)
        yield


@pytest.fixture
def four_row_groups(tmp_path: Path) -> str:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"v": list(range(40))}), path, row_group_size=10)
    return str(path)


@pytest.mark.parametrize("shown", [True, False])
def test_a_query_in_this_process_shows_its_splits(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, four_row_groups: str, shown: bool
) -> None:
    ctx = kq.ExecutionContext(config=EngineConfig(parallelism=1, progress=shown))
    ctx.register_parquet("t", four_row_groups)
    if not shown:
        assert ctx.sql("SELECT sum(v) AS s FROM t").collect() == [{"s": 780}]
        time.sleep(0.05)
        assert recorder.drawn == []
        return
    with slow_scans(monkeypatch, recorder):
        assert ctx.sql("SELECT sum(v) AS s FROM t").collect() == [{"s": 780}]
    head, tail, share = recorder.drawn[-1]
    assert (head, share) == ("kquery", 1.0)
    assert tail.startswith("4 / 4 splits, ")


def test_verify_and_the_driver_show_theirs(
    spark: SparkSession, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, four_row_groups: str
) -> None:
    frame = spark.read.parquet(four_row_groups).groupBy().sum("v")
    assert kq.verify(frame).ok
    steps = {"verify", "verify: Spark", "verify: the engine", "verify: warm runs"}
    assert {head for head, _, _ in recorder.drawn} <= steps
    assert recorder.drawn
    recorder.drawn.clear()
    spark.conf.set("spark.kquery.driverBytes", "8m")
    try:
        with slow_scans(monkeypatch, recorder):
            assert frame.transform(kq.kquery_plan, when="always").collect()[0][0] == 780
        assert recorder.drawn[-1][1].startswith("4 / 4 splits, ")
        recorder.drawn.clear()
        spark.conf.set("spark.kquery.progress", "false")
        assert kq.verify(frame).ok
        assert recorder.drawn == []
    finally:
        spark.conf.set("spark.kquery.driverBytes", "0")
        spark.conf.unset("spark.kquery.progress")

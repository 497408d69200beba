"""Shows the progress of long runs: as a bar on the terminal, or as an output of a notebook's cell.

The bar appears after two seconds, and only if stderr is a terminal or a notebook runs the code. The run itself only counts
its finished units. A thread, which ends with the run, draws the bar.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from html import escape
from typing import Any, Protocol, TextIO

from typing_extensions import override

SHOWN_AFTER_SECONDS = 2.0
_REDRAW_SECONDS = 0.5
_LEAST_BAR_COLUMNS = 10
_only_one = threading.Lock()
"""The run that shows its progress holds this lock. Runs inside of it, and concurrent runs, show none."""


class Display(Protocol):
    """An output that shows one bar, redrawn in place."""

    def draw(self, head: str, tail: str, share: float) -> None:
        """Show a bar that is filled to ``share`` (0 to 1), between two strings."""

    def clear(self) -> None:
        """Remove the bar."""


class TerminalDisplay(Display):
    """A bar in one line of a terminal, like Spark's own bar."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._columns = 0

    @override
    def draw(self, head: str, tail: str, share: float) -> None:
        self._columns = shutil.get_terminal_size().columns - 1
        space = max(_LEAST_BAR_COLUMNS, self._columns - len(head) - len(tail) - 5)
        done = int(space * share)
        bar = ("=" * done + ">")[:space].ljust(space)
        self._write(f"\r[{head} {bar} {tail}]"[: self._columns + 1].ljust(self._columns + 1))

    @override
    def clear(self) -> None:
        self._write("\r" + " " * self._columns + "\r")

    def _write(self, text: str) -> None:
        # A closed terminal or stream must not make the run fail.
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


class NotebookDisplay(Display):
    """A bar in the output of the running cell, updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    @override
    def draw(self, head: str, tail: str, share: float) -> None:
        bar = f'<progress max="1" value="{share:.3f}"></progress>'
        self._show(f'<div class="kquery-progress">{escape(head)} {bar} {escape(tail)}</div>')

    @override
    def clear(self) -> None:
        self._show("")

    def _show(self, html: str) -> None:
        from IPython.display import HTML, display

        if self._handle is None:
            self._handle = display(HTML(html), display_id=True)
        else:
            self._handle.update(HTML(html))


class Progress:
    """The progress of a run.

    done: the number of finished units; any thread can set it. total: the number of all units; None if it is unknown.
    count: returns the number of finished units instead of ``done``. step: the current step.
    """

    def __init__(
        self, title: str, unit: str, total: float | None, count: Callable[[], float] | None = None
    ) -> None:
        self.total = total
        self.step = ""
        self.done: float = 0
        self._title = title
        self._unit = unit
        self._count = count
        self._started = time.monotonic()
        self._display: Display | None = None
        self._is_drawn = False
        self._lock = threading.Lock()
        self._ended = threading.Event()

    @property
    def is_shown(self) -> bool:
        """True if the run has a display."""
        return self._display is not None

    def advance(self, step: str = "", amount: float = 1) -> None:
        """Add finished units. step: the step that starts now."""
        self.done += amount
        self.step = step

    def hide(self) -> None:
        """Remove the bar until the next redraw, so that other lines can be printed."""
        with self._lock:
            if self._is_drawn and self._display is not None:
                self._display.clear()
                self._is_drawn = False

    def strings(self) -> tuple[str, str, float]:
        """Return the strings before and after the bar, and the finished share."""
        done = self.done if self._count is None else self._count()
        share = min(done / self.total, 1.0) if self.total else 0.0
        of = f" / {self.total:,.0f}" if self.total else ""
        head = f"{self._title}: {self.step}" if self.step else self._title
        return head, f"{done:,.0f}{of} {self._unit}, {time.monotonic() - self._started:,.0f} s", share

    @contextmanager
    def shown_on(self, display: Display) -> Iterator[None]:
        """Draw on a display while the ``with`` block runs, after the first ``SHOWN_AFTER_SECONDS``."""
        self._display = display
        context = copy_context()  # a notebook finds the cell of an output by the context of the thread
        thread = threading.Thread(
            target=context.run, args=(self._redraw,), name="kquery-progress", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            self.hide()

    def _redraw(self) -> None:
        wait_seconds = SHOWN_AFTER_SECONDS
        while not self._ended.wait(wait_seconds):
            with self._lock:
                assert self._display is not None
                self._display.draw(*self.strings())
                self._is_drawn = True
            wait_seconds = _REDRAW_SECONDS


@contextmanager
def progress(
    title: str,
    unit: str,
    total: float | None = None,
    count: Callable[[], float] | None = None,
    enabled: bool = True,
) -> Iterator[Progress]:
    """Provide the progress of a ``with`` block. It is shown if the block takes long and no other run shows its progress.

    count: returns the number of finished units, if the block does not set it.
    """
    run = Progress(title, unit, total, count)
    display = find_display() if enabled else None
    if display is None or not _only_one.acquire(blocking=False):
        yield run
        return
    try:
        with run.shown_on(display):
            yield run
    finally:
        _only_one.release()


def find_display() -> Display | None:
    """Return a display in the notebook that runs this code, or on the terminal of stderr; None if there is neither."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        return NotebookDisplay()
    return TerminalDisplay(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else None

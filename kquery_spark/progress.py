"""Progress of long runs: a bar on the terminal, or one display that a notebook updates.

Nothing is shown in the first seconds, nor where stderr is no terminal and no notebook is at hand. Work only counts; a thread
that lives as long as the bar draws it.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from html import escape
from typing import Any, Protocol, TextIO

from typing_extensions import override

SHOWN_AFTER_SECONDS = 2.0
_REDRAW_SECONDS = 0.5
_LEAST_BAR_COLUMNS = 10
_only_one = threading.Lock()
"""Held by the run that shows its progress: what runs within it, or beside it, shows none."""


class Display(Protocol):
    """Where progress is shown, in one place that is drawn over."""

    def draw(self, head: str, tail: str, share: float) -> None:
        """Show a bar of which ``share`` (0 to 1) is done, between two texts."""

    def clear(self) -> None:
        """Take the bar away."""


class TerminalDisplay(Display):
    """One line of a terminal, as Spark's own bar."""

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
        self._stream.write(text)
        self._stream.flush()


class NotebookDisplay(Display):
    """An output of the running cell, updated in place."""

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
    """How far a run is. ``hide`` takes the bar away until it is drawn next, so that other lines can be printed.

    done: units that are done, of ``total``, which may be unknown; set by any thread. step: what is going on now.
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
        """Whether there is a place to show it."""
        return self._display is not None

    def advance(self, step: str = "", amount: float = 1) -> None:
        """Count what was done; ``step`` comes next."""
        self.done += amount
        self.step = step

    def hide(self) -> None:
        """Take the bar away for now."""
        with self._lock:
            if self._is_drawn and self._display is not None:
                self._display.clear()
                self._is_drawn = False

    def texts(self) -> tuple[str, str, float]:
        """What stands before and after the bar, and the share that is done."""
        done = self.done if self._count is None else self._count()
        share = min(done / self.total, 1.0) if self.total else 0.0
        of = f" / {self.total:,.0f}" if self.total else ""
        head = f"{self._title}: {self.step}" if self.step else self._title
        return head, f"{done:,.0f}{of} {self._unit}, {time.monotonic() - self._started:,.0f} s", share

    @contextmanager
    def shown_on(self, display: Display) -> Iterator[None]:
        """Draw on a display until the block ends, once it has taken long enough."""
        self._display = display
        context = copy_context()  # a notebook's displays belong to the cell of their context
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
        if self._ended.wait(SHOWN_AFTER_SECONDS):
            return
        while True:
            with self._lock:
                assert self._display is not None
                self._display.draw(*self.texts())
                self._is_drawn = True
            if self._ended.wait(_REDRAW_SECONDS):
                return


@contextmanager
def progress(
    title: str,
    unit: str,
    total: float | None = None,
    count: Callable[[], float] | None = None,
    enabled: bool = True,
) -> Iterator[Progress]:
    """The progress of a block of code, shown if it takes long and no other is shown.

    count: gives the units that are done, where the block does not set them.
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
    """The notebook that runs this, or else the terminal of stderr; None if there is neither."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        return NotebookDisplay()
    return TerminalDisplay(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else None

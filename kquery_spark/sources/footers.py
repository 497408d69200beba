"""The footers of files that this process keeps parsed, bounded by what they take in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, Protocol, TypeVar

from kquery_spark.sources.base import DataFile

MAX_BYTES = 256 << 20


class Footer(Protocol):
    """Something that was read of a file."""

    @property
    def nbytes(self) -> int:
        """What it takes in memory, about."""
        ...


F = TypeVar("F", bound=Footer)


class Footers(Generic[F]):
    """Footers by file; those that were not used for longest go first."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._nbytes = 0
        self._footers: OrderedDict[DataFile, F] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """What all of them take."""
        return self._nbytes

    def get(self, file: DataFile) -> F | None:
        """The footer of a file, if it is kept."""
        with self._lock:
            footer = self._footers.get(file)
            if footer is not None:
                self._footers.move_to_end(file)
            return footer

    def put(self, file: DataFile, footer: F) -> None:
        """Keep a footer, the newest even when it alone takes more than all may."""
        with self._lock:
            self._forget(file)
            self._footers[file] = footer
            self._nbytes += footer.nbytes
            while self._nbytes > self._max_bytes and len(self._footers) > 1:
                self._nbytes -= self._footers.popitem(last=False)[1].nbytes

    def forget(self, file: DataFile) -> None:
        """Let go of the footer of a file, if it is kept."""
        with self._lock:
            self._forget(file)

    def _forget(self, file: DataFile) -> None:
        footer = self._footers.pop(file, None)
        if footer is not None:
            self._nbytes -= footer.nbytes


PARQUET_FOOTERS: Footers[Footer] = Footers()
"""Those of this process's Parquet files."""

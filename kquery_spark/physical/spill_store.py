"""Scratch files without a name: whatever ends the process, their disk space is free again and nothing stays behind.

A file is unlinked as soon as it is open (or never linked, by ``O_TMPFILE``), so that the system frees it with its handle:
after success, an error, a cancelled task whose worker Spark kills, and ``kill -9``. Only the process's user can read it.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from typing import IO

import pyarrow as pa

from kquery_spark.errors import SpillError

_turn = itertools.count()


def scratch_directories() -> list[str]:
    """Where to spill: Spark's local directories as its workers know them, otherwise the user's temporary directory.

    Spark tells its Python workers of the executor's block manager directories, below ``spark.local.dir``, YARN's or
    Kubernetes' local directories, in ``SPARK_LOCAL_DIRS``.
    """
    named = [d for d in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if d and os.path.isdir(d)]
    return named or [tempfile.gettempdir()]


class SpillStore:
    """One nameless file, to whose end blocks are written and from which they are read by their place."""

    def __init__(self) -> None:
        self._file, self._directory = _opened()
        self._end = 0

    def append(self, block: pa.Buffer) -> int:
        """Write a block; gives the place it is at. SpillError names the directory when the disk is full."""
        start, rest = self._end, memoryview(block)
        try:
            while rest:
                written = os.pwrite(self._file.fileno(), rest, self._end)
                self._end += written
                rest = rest[written:]
        except OSError as error:
            raise SpillError(
                f"cannot write to the scratch directory {self._directory}: {error.strerror}; make room there, let Spark use "
                "another disk (spark.local.dir), or give tasks more memory (spark.kquery.memoryBytes)"
            ) from None
        return start

    def read(self, start: int, nbytes: int) -> pa.Buffer:
        """A block by its place."""
        try:
            data = os.pread(self._file.fileno(), nbytes, start)
        except OSError as error:
            raise SpillError(
                f"cannot read from the scratch directory {self._directory}: {error.strerror}"
            ) from None
        if len(data) < nbytes:
            raise SpillError(f"a file in the scratch directory {self._directory} was cut by someone else")
        return pa.py_buffer(data)

    def close(self) -> None:
        """Give the disk space back."""
        self._file.close()


def _opened() -> tuple[IO[bytes], str]:
    """A new file in the directory whose turn it is; in the next one where that is gone, read-only or full."""
    directories = scratch_directories()
    first = next(_turn)
    failures = []
    for i in range(len(directories)):
        directory = directories[(first + i) % len(directories)]
        try:
            return tempfile.TemporaryFile(dir=directory, prefix="kquery-spill-", buffering=0), directory
        except OSError as error:
            failures.append(f"{directory}: {error.strerror}")
    raise SpillError(f"no scratch directory can be written to ({'; '.join(failures)})")

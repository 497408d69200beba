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


_AT_SPARK = "let Spark use another disk (spark.local.dir)"
_IN_PROCESS = "use another directory (environment variable TMPDIR)"


def scratch_directories() -> list[str]:
    """Where to spill: Spark's local directories as its workers know them, otherwise the user's temporary directory.

    Spark passes the executor's block manager directories, below ``spark.local.dir``, YARN's or Kubernetes' local
    directories, to its Python workers in ``SPARK_LOCAL_DIRS``. SpillError if no directory is usable.
    """
    spark = _spark_directories()
    if spark:
        return spark
    try:
        return [tempfile.gettempdir()]
    except OSError as error:  # as in a container whose root file system is read-only
        raise SpillError(f"{error.strerror}; {_advice()}") from None


def _spark_directories() -> list[str]:
    return [d for d in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if d and os.path.isdir(d)]


def _advice() -> str:
    place = _AT_SPARK if _spark_directories() else _IN_PROCESS
    return f"make room there, {place}, or give tasks more memory (spark.kquery.memoryBytes)"


class SpillStore:
    """Nameless files, to whose end blocks are written and from which they are read by their place.

    There is one file until its disk is full or fails. From then on blocks go to a file in the next directory.
    """

    def __init__(self) -> None:
        directories = scratch_directories()
        first = next(_turn) % len(directories)
        self._untried = directories[first:] + directories[:first]
        self._failures: list[str] = []
        self._files: list[_ScratchFile] = []
        self._open_next()

    def append(self, block: pa.Buffer) -> int:
        """Write a block and return its place. SpillError names the directories when all disks are full."""
        while True:
            file = self._files[-1]
            try:
                return file.append(block)
            except OSError as error:
                self._failures.append(
                    f"cannot write to the scratch directory {file.directory}: {error.strerror}"
                )
            self._open_next()

    def read(self, start: int, nbytes: int) -> pa.Buffer:
        """A block by its place."""
        file = next(file for file in reversed(self._files) if file.first <= start)
        try:
            data = os.pread(file.handle.fileno(), nbytes, start - file.first)
        except OSError as error:
            raise SpillError(
                f"cannot read from the scratch directory {file.directory}: {error.strerror}"
            ) from None
        if len(data) < nbytes:
            raise SpillError(f"another process truncated a file in the scratch directory {file.directory}")
        return pa.py_buffer(data)

    def close(self) -> None:
        """Give the disk space back."""
        for file in self._files:
            file.handle.close()

    def _open_next(self) -> None:
        """Open a file in the next directory, passing over those that are gone, read-only or full."""
        while self._untried:
            directory = self._untried.pop(0)
            try:
                handle = tempfile.TemporaryFile(dir=directory, prefix="kquery-spill-", buffering=0)  # noqa: SIM115
            except OSError as error:
                self._failures.append(
                    f"cannot create a file in the scratch directory {directory}: {error.strerror}"
                )
            else:
                self._files.append(_ScratchFile(handle, directory, self._files[-1].end if self._files else 0))
                return
        raise SpillError(f"{'; '.join(self._failures)}; {_advice()}")


class _ScratchFile:
    """One file of a store. first, end: the places of its first byte and behind its last one."""

    def __init__(self, handle: IO[bytes], directory: str, first: int) -> None:
        self.handle = handle
        self.directory = directory
        self.first = first
        self.end = first

    def append(self, block: pa.Buffer) -> int:
        """Write a block and return its place; after an OSError the file ends as before."""
        start, rest = self.end, memoryview(block)
        end = start
        while rest:
            written = os.pwrite(self.handle.fileno(), rest, end - self.first)
            end += written
            rest = rest[written:]
        self.end = end
        return start

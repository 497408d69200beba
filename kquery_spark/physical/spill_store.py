"""Unnamed scratch files: their disk space is freed when the process ends, for whatever reason.

A file is unlinked as soon as it is open (or never linked, by ``O_TMPFILE``), so the operating system frees it together with
its handle: after success, after an error, when Spark kills the worker of a cancelled task, and after ``kill -9``. Only the
user of the process can read it.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from typing import IO

import pyarrow as pa

from kquery_spark.errors import SpillError

# The number of the next store in this process. Stores start in different directories to spread the load over all disks.
_store_numbers = itertools.count()


_SPARK_DIRECTORY_ADVICE = "let Spark use another disk (spark.local.dir)"
_PROCESS_DIRECTORY_ADVICE = "use another directory (environment variable TMPDIR)"


def scratch_directories() -> list[str]:
    """Return the directories for spilling: Spark's local directories in a worker, otherwise the user's temporary directory.

    Spark passes the directories of the executor's block manager to its Python workers in ``SPARK_LOCAL_DIRS``. They are
    below ``spark.local.dir`` or the local directories of YARN or Kubernetes. Raises SpillError if no directory is usable.
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
    place = _SPARK_DIRECTORY_ADVICE if _spark_directories() else _PROCESS_DIRECTORY_ADVICE
    return f"make room there, {place}, or give tasks more memory (spark.kquery.memoryBytes)"


class SpillStore:
    """Stores blocks of bytes in unnamed files. A block is appended, and read by its position.

    There is one file until its disk is full or fails. Later blocks are written to a file in the next directory. Positions
    continue across files: if the first file has 1000 bytes, the first block of the second one has the position 1000.
    """

    def __init__(self) -> None:
        directories = scratch_directories()
        first = next(_store_numbers) % len(directories)
        self._untried = directories[first:] + directories[:first]
        self._failures: list[str] = []
        self._files: list[_ScratchFile] = []
        self._open_next()

    def append(self, block: pa.Buffer) -> int:
        """Append a block and return its position. Raises SpillError, which names the directories, if all disks are full."""
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
        """Return the block at a position."""
        file = next(file for file in reversed(self._files) if file.first <= start)
        try:
            data = file.read(start, nbytes)
        except OSError as error:
            raise SpillError(
                f"cannot read from the scratch directory {file.directory}: {error.strerror}"
            ) from None
        if len(data) < nbytes:
            raise SpillError(f"another process truncated a file in the scratch directory {file.directory}")
        return pa.py_buffer(data)

    def close(self) -> None:
        """Free the disk space."""
        for file in self._files:
            file.handle.close()

    def _open_next(self) -> None:
        """Open a file in the next directory. Directories that are missing, read-only or full are skipped."""
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
    """One file of a store. first: the position of its first byte. end: the position after its last byte."""

    def __init__(self, handle: IO[bytes], directory: str, first: int) -> None:
        self.handle = handle
        self.directory = directory
        self.first = first
        self.end = first

    def append(self, block: pa.Buffer) -> int:
        """Append a block and return its position. After an OSError, ``end`` is unchanged, so a partial block is ignored."""
        start, rest = self.end, memoryview(block)
        end = start
        while rest:
            written = os.pwrite(self.handle.fileno(), rest, end - self.first)
            end += written
            rest = rest[written:]
        self.end = end
        return start

    def read(self, start: int, nbytes: int) -> bytes:
        """Return the bytes at a position; fewer than ``nbytes`` only at the end of the file."""
        pieces: list[bytes] = []
        missing = nbytes
        while missing:  # Linux reads at most 2 GiB - 4 KiB in one call
            piece = os.pread(self.handle.fileno(), missing, start - self.first + nbytes - missing)
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

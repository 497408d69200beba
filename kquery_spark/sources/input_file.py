"""Opens data files, which are read by position and never mapped into memory, and caches the open files.

If a file is truncated while a process reads it through a memory mapping, the kernel kills the process with SIGBUS; in the
driver that is the user's own process. ``pread`` returns fewer bytes instead, which becomes an error that names the file. The
copy that it makes takes about 0.1 ms per megabyte, which is little compared with decoding.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs

from kquery_spark.errors import SourceError
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import (
    changed_error,
    check_remote,
    check_unchanged,
    filesystem,
    is_changed,
    local_path,
    missing_error,
)
from kquery_spark.sources.object_stores.connections import error_text, store_of
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, read_array
from kquery_spark.sources.prefetch.read_counts import count_read
from kquery_spark.sources.request_limit import within_limit

R = TypeVar("R")

# Larger reads are checked against the file's size before memory is allocated, because damaged metadata may request them.
_MAX_UNCHECKED_BYTES = 64 << 20
_MAX_OPEN_FILES = 128  # files that ``shared_input`` keeps open; many systems allow 1,024 for a process
_OPEN_FILES_DIVISOR = 4  # the cache uses at most this fraction of the files that the process may open


class InputFile:
    """One open file. It stays the same version if another file replaces it at its path.

    native: the ``pyarrow.NativeFile``; several threads may call its ``read_at``. readers: thread-local cache of the format
    readers that a thread uses for this file.
    """

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self.readers = threading.local()
        local = local_path(file.path)
        self.is_local = local is not None
        self._path = local or file.path
        self._remote: tuple[pafs.FileSystem, str] | None = None
        check_unchanged(file)
        try:
            if local is not None:
                self.native: Any = _open_local(local)
            else:
                self._remote = filesystem(file.path)
                fs, inner = self._remote
                self.native = within_limit(file.path, lambda: fs.open_input_file(inner))
                store = store_of(file.path)
                if store is not None:
                    store.check_opened(self.native)
        except FileNotFoundError:
            raise missing_error(file.path) from None
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"cannot open {file.path}: {error_text(error, file.path)}") from None
        if self.is_local:
            # On a remote filesystem this check takes a request, so there it is made only after reads.
            try:
                self.check_unchanged()
            except BaseException:
                self.native.close()
                raise

    def __enter__(self) -> InputFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.native.close()

    @property
    def change(self) -> SourceError | None:
        """The error to raise if the file was changed since the query was planned; None if it was not.

        A removed remote file counts as changed. A removed local file does not, because its bytes can still be read.
        """
        if self._remote is None:
            return changed_error(self.file.path) if is_changed(self.file, self._status()) else None
        try:
            fs, inner = self._remote
            within_limit(self.file.path, lambda: check_remote(self.file, fs, inner))
        except SourceError as error:
            return error
        return None

    @property
    def _descriptor(self) -> int | None:
        """The file descriptor of a local file; None for other files, and if pyarrow is too old to tell it."""
        return int(self.native.fileno()) if self.is_local and hasattr(self.native, "fileno") else None

    def _status(self) -> os.stat_result:
        """Return the status of the open local file; with an old pyarrow, of the file at its path."""
        descriptor = self._descriptor
        return os.stat(self._path) if descriptor is None else os.fstat(descriptor)

    def check_unchanged(self) -> None:
        """Raise SourceError if the file has changed since the query was planned.

        Call this after reading. A write changes the file's time before its bytes, so if the time is still the planned one,
        all bytes that were read before this call belong to the planned version.
        """
        change = self.change
        if change is not None:
            forget_input(self.file)
            raise change

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """Read exactly ``nbytes`` bytes of the planned version.

        Raises SourceError if the file changed, and ValueError for a negative offset.
        """
        if min(nbytes, offset) < 0:
            raise ValueError(f"the file has no {nbytes} bytes at {offset}")
        self._check_size(nbytes, offset + nbytes)
        try:
            data = self.read_unchecked(nbytes, offset)
        except SourceError:
            self.check_unchanged()  # the cause may be that the file has changed
            raise
        count_read(len(data))
        self.check_unchanged()
        if len(data) < nbytes:
            raise SourceError(f"{self.file.path} ends at byte {offset + len(data)}, which is too early")
        return data

    def read_arrays(self, ranges: Sequence[Sequence[ByteRange]]) -> list[npt.NDArray[np.uint8]]:
        """Return an array for each sequence of ranges of the planned version, with their bytes one range after the other.

        The ranges of a local file are read directly into one buffer, and its version is checked once, after the last one.
        Raises the errors of ``read_at``.
        """
        every = [part for parts in ranges for part in parts]
        if self._descriptor is None or not hasattr(os, "preadv") or any(min(part) < 0 for part in every):
            # ``read_at`` raises an error for negative positions
            return [read_array([self] * len(parts), parts) for parts in ranges]
        total = sum(part.size for part in every)
        self._check_size(total, max(part.end for part in every))
        data = np.empty(total, np.uint8)
        at = 0
        for part in every:
            self._read_into(data.data[at : at + part.size], part.start)
            at += part.size
            count_read(part.size)
        self.check_unchanged()
        ends = np.cumsum([sum(part.size for part in parts) for parts in ranges])
        return np.split(data, ends[:-1])

    def _read_into(self, view: memoryview, position: int) -> None:
        """Fill a buffer with the bytes of a local file from a position on."""
        done = 0
        while done < len(view):
            try:
                count = os.preadv(self.native.fileno(), [view[done:]], position + done)
            except OSError as error:
                self.check_unchanged()  # the cause may be that the file has changed
                raise SourceError(
                    f"cannot read {self.file.path}: {error_text(error, self.file.path)}"
                ) from None
            if count == 0:
                self.check_unchanged()
                raise SourceError(f"{self.file.path} ends at byte {position + done}, which is too early")
            done += count

    def _check_size(self, nbytes: int, end: int) -> None:
        """Raise SourceError before memory for a large read is allocated that extends past the end of the file."""
        if nbytes > _MAX_UNCHECKED_BYTES and end > self.size():
            self.check_unchanged()
            raise SourceError(f"{self.file.path} ends at byte {self.size()}, which is too early")

    def read_unchecked(self, nbytes: int, offset: int) -> bytes:
        """Read up to ``nbytes`` bytes of the current version, without counting them.

        A caller has to use ``check_unchanged`` afterwards to find out if they belong to the planned version.
        """
        try:
            data: bytes = self._limited(lambda: self.native.read_at(nbytes, offset))
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"cannot read {self.file.path}: {error_text(error, self.file.path)}") from None
        return data

    def _limited(self, request: Callable[[], R]) -> R:
        return request() if self.is_local else within_limit(self.file.path, request)

    def open_reader(self, format_name: str, opening: Callable[[], R], *, checked: bool = False) -> R:
        """Open this file with the reader of a format.

        Raises SourceError if the file does not have the format, or is not the planned version. checked: ``opening`` reads
        only through ``read_at``, which checks the version itself.
        """
        try:
            reader = opening() if checked else self._limited(opening)
        except (OSError, pa.ArrowException) as error:
            self.check_unchanged()
            cause = error_text(error, self.file.path)
            raise SourceError(f"cannot read {self.file.path} as {format_name}: {cause}") from None
        if not checked:
            self.check_unchanged()
        return reader

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return int(self.native.size())


def _open_local(path: str) -> pa.OSFile:
    """Open a local file. If the process has too many open files, close the cached ones and try again."""
    try:
        return pa.OSFile(path)
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
    with _lock:
        _shared.clear()
    return pa.OSFile(path)


def _max_open_files() -> int:
    """Return the number of open files to cache: fewer if the process may open only few files."""
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except (ImportError, OSError):  # not a Unix
        return _MAX_OPEN_FILES
    if soft < 0:  # unlimited
        return _MAX_OPEN_FILES
    return min(_MAX_OPEN_FILES, soft // _OPEN_FILES_DIVISOR)


_shared: OrderedDict[DataFile, InputFile] = OrderedDict()
_lock = threading.Lock()


def shared_input(file: DataFile) -> InputFile:
    """Return an open file from an LRU cache that all threads share."""
    with _lock:
        shared = _shared.get(file)
        if shared is not None:
            _shared.move_to_end(file)
            return shared
    opened = InputFile(file)
    with _lock:
        shared = _shared.setdefault(file, opened)  # another thread may have opened the file at the same time
        while len(_shared) > _max_open_files():
            _shared.popitem(last=False)
    return shared


def forget_input(file: DataFile) -> None:
    """Remove a deleted or changed file from the cache, so that its disk space can be reused."""
    with _lock:
        _shared.pop(file, None)

"""An open data file, read by position and never mapped into memory.

When a file is truncated while a process reads a mapping of it, the kernel ends the process by SIGBUS; in the driver that is
the user's own process. ``pread`` gives fewer bytes instead, which is an error that names the file. It copies what the
mapping would show, about 0.1 ms per megabyte, which is little beside decoding.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

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
from kquery_spark.sources.prefetch.read_counts import count_read
from kquery_spark.sources.request_limit import within_limit

R = TypeVar("R")

_CHECKED_BYTES = (
    64 << 20
)  # reads of more, which damaged metadata may ask for, are checked against the file's size
_MAX_OPEN_FILES = 128  # handles that ``shared_input`` keeps open; many systems allow a process 1,024
_OPEN_FILES_DIVISOR = 4  # of the files that a process may open, for the user's own files and sockets


class InputFile:
    """One open file, which stays the version it was opened as when another one gets its path.

    native: the ``pyarrow.NativeFile``, whose ``read_at`` any number of threads may call. readers: for each thread, what it
    reads this file with.
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
            # On a remote filesystem this takes one more request, so the reader checks after it has read.
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
        """The error of a file that was written to or, where this matters, removed since the query was planned; else None."""
        if self._remote is None:
            return changed_error(self.file.path) if is_changed(self.file, self._status()) else None
        try:
            fs, inner = self._remote
            within_limit(self.file.path, lambda: check_remote(self.file, fs, inner))
        except SourceError as error:
            return error
        return None

    def _status(self) -> os.stat_result:
        """Of the open file; of what has its path now where pyarrow is too old to tell the file's descriptor."""
        try:
            return os.fstat(self.native.fileno())
        except AttributeError:
            return os.stat(self._path)

    def check_unchanged(self) -> None:
        """Raise SourceError when what was read may not be as planned.

        A write sets the file's time before its bytes: bytes that were read before this call are those of the planned file.
        """
        change = self.change
        if change is not None:
            forget_input(self.file)
            raise change

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """Read exactly this number of bytes of the planned version.

        Raises SourceError if the file changed, and ValueError for a negative offset.
        """
        if min(nbytes, offset) < 0:
            raise ValueError(f"there are no {nbytes} bytes at {offset}")
        if nbytes > _CHECKED_BYTES and offset + nbytes > self.size():  # before memory is allocated
            self.check_unchanged()
            raise SourceError(f"{self.file.path} ends at byte {self.size()}, which is too early")
        try:
            data = self.read_unchecked(nbytes, offset)
        except SourceError:
            self.check_unchanged()  # as the reason may be that it is another one by now
            raise
        count_read(len(data))
        self.check_unchanged()
        if len(data) < nbytes:
            raise SourceError(f"{self.file.path} ends at byte {offset + len(data)}, which is too early")
        return data

    def read_unchecked(self, nbytes: int, offset: int) -> bytes:
        """Up to so many bytes as they are now, which are not counted; ``check_unchanged`` says if they are as planned."""
        try:
            data: bytes = self._limited(lambda: self.native.read_at(nbytes, offset))
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"cannot read {self.file.path}: {error_text(error, self.file.path)}") from None
        return data

    def _limited(self, request: Callable[[], R]) -> R:
        return request() if self.is_local else within_limit(self.file.path, request)

    def open_reader(self, format_name: str, opening: Callable[[], R], *, checked: bool = False) -> R:
        """Open this file with the reader of a format; raises SourceError if it is malformed or not the planned file.

        checked: it only looks at bytes that ``read_at`` gave, which are as planned.
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
        """Bytes of the file."""
        return int(self.native.size())


def _open_local(path: str) -> pa.OSFile:
    """Open a file; where the process has too many open, close those that are kept for later reads, and try again."""
    try:
        return pa.OSFile(path)
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
    with _lock:
        _shared.clear()
    return pa.OSFile(path)


def _max_open_files() -> int:
    """The handles to keep: fewer where the process may open few files."""
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
    """The file's handle, which all threads share and which stays open until many other files were read."""
    with _lock:
        shared = _shared.get(file)
        if shared is not None:
            _shared.move_to_end(file)
            return shared
    opened = InputFile(file)
    with _lock:
        shared = _shared.setdefault(file, opened)  # another thread may have been faster
        while len(_shared) > _max_open_files():
            _shared.popitem(last=False)
    return shared


def forget_input(file: DataFile) -> None:
    """Let go of the handle of a file that is gone or has changed, so that its disk space can be reused."""
    with _lock:
        _shared.pop(file, None)

"""A read-only Arrow filesystem for HDFS, based on the client of ``hdfs-native``."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.fs as pafs
from typing_extensions import override

LoggedIn = Callable[[], AbstractContextManager[None]]

_NANOSECONDS = 1_000_000  # per millisecond


class HdfsHandler(pafs.FileSystemHandler):  # type: ignore[misc]
    """The handler that ``pyarrow.fs.PyFileSystem`` calls; paths are absolute and not escaped.

    client: a ``hdfs_native.Client``. logged_in: returns a block within which the client can log in if it needs to.
    """

    def __init__(self, client: Any, logged_in: LoggedIn = nullcontext) -> None:
        self._client = client
        self._logged_in = logged_in

    @override
    def get_type_name(self) -> str:
        return "hdfs"

    @override
    def normalize_path(self, path: str) -> str:
        return path

    @override
    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> pafs.FileInfo:
        try:
            with _errors_of(path), self._logged_in():
                return _file_info(path, self._client.get_file_info(_without_slash(path)))
        except FileNotFoundError:
            return pafs.FileInfo(path, pafs.FileType.NotFound)

    @override
    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        base = _without_slash(selector.base_dir)
        try:
            with _errors_of(base), self._logged_in():
                listed = self._client.list_status(base, selector.recursive)
                return [_file_info(status.path, status) for status in listed]
        except FileNotFoundError:
            if selector.allow_not_found:
                return []
            raise

    @override
    def open_input_file(self, path: str) -> pa.PythonFile:
        return pa.PythonFile(HdfsFile(self._client, path, self._logged_in), mode="r")

    open_input_stream = open_input_file

    def _refuse(self, *arguments: Any) -> NoReturn:
        raise NotImplementedError("files of HDFS are only read")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse


class HdfsFile(io.RawIOBase):
    """An open file. Reads never return bytes of another version than the one that was opened.

    A read that fails is retried once with current block locations, because data nodes may have come or gone since the file
    was opened.
    """

    def __init__(self, client: Any, path: str, logged_in: LoggedIn) -> None:
        self._client = client
        self._path = path
        self._logged_in = logged_in
        with _errors_of(path), logged_in():
            self._version = self._version_now()
            self._reader = client.read(path)
        self._size = len(self._reader)
        self._position = 0

    def _version_now(self) -> tuple[int, int]:
        status = self._client.get_file_info(self._path)
        return status.length, status.modification_time

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    @override
    def tell(self) -> int:
        return self._position

    @override
    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._position, 0)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        data = self._read_range(self._position, length)
        self._position += len(data)
        return data

    def _read_range(self, offset: int, length: int) -> bytes:
        try:
            with _errors_of(self._path), self._logged_in():
                data: bytes = self._reader.read_range(offset, length)
                return data
        except OSError:
            with _errors_of(self._path), self._logged_in():
                if self._version_now() != self._version:
                    raise
                self._reader = self._client.read(self._path)
                data = self._reader.read_range(offset, length)
                return data


def _file_info(path: str, status: Any) -> pafs.FileInfo:
    kind = pafs.FileType.Directory if status.isdir else pafs.FileType.File
    changed = status.modification_time * _NANOSECONDS
    return pafs.FileInfo(path, kind, size=None if status.isdir else status.length, mtime_ns=changed)


def _without_slash(path: str) -> str:
    return path.rstrip("/") or "/"


@contextmanager
def _errors_of(path: str) -> Iterator[None]:
    """Convert all exceptions of the client to OSErrors with a message of one line."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist") from None
    except OSError:
        raise
    except (RuntimeError, NotImplementedError) as error:
        raise OSError(_first_line(error)) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a panic in Rust; Python code cannot import this class
            raise
        raise OSError(f"the HDFS client failed: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    """The message without the name node's stack trace, in which the client may have escaped the line ends."""
    return str(error).split("\n", 1)[0].split("\\n", 1)[0]

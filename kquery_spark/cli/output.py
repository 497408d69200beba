"""Writes a result atomically: the output is either complete or not there at all."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark.errors import AnalysisException
from typing_extensions import override

from kquery_spark.cli.failures import Exit, Failure, explain_failure, print_error
from kquery_spark.cli.paths import check_new_directory, path_on_disk
from kquery_spark.cli.tables import format_of_path
from kquery_spark.sources.formats import DEFAULT_FORMAT, format_named
from kquery_spark.spark_bridge.hadoop.files import HadoopFiles
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, is_file_error, java_root_cause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kquery_spark.sources.file_format import Format

P = TypeVar("P")  # a path of the output's file system
# In other file systems, such as object stores, a directory exists only if it contains files.
_SCHEMES_WITH_DIRECTORIES = ("file", "hdfs", "viewfs")


def output_format(path: str) -> Format:
    """Return the format of an output by its extension, or the default format. Raises Failure if it cannot be written."""
    name = format_of_path(path)
    entry = DEFAULT_FORMAT if name is None else format_named(name)
    if not entry.writable:
        raise Failure(Exit.OUTPUT, f"cannot write {path}: writing {entry.title} files is not supported")
    return entry


def check_output(path: str | None, overwrite: bool) -> None:
    """Raise Failure for an output on the local disk that cannot be written, before Spark is started."""
    if path is None:
        return
    output_format(path)
    local = path_on_disk(path)
    if local is not None:
        check_new_directory(local, path, overwrite)


class AtomicOutput(ABC, Generic[P]):
    """The path of a result, which is created by one rename.

    1. The rows are written to a hidden staging directory (``.name.1a2b3c4d.new``).
    2. With ``overwrite``, an existing output is renamed (to ``.name.1a2b3c4d.old``).
    3. The staging directory is renamed to the path. If that fails, the old output is renamed back.
    4. The old output is deleted.

    A query that fails leaves no files behind and does not change an existing output.
    """

    def __init__(self, path: str, overwrite: bool) -> None:
        self.path = path
        self._overwrite = overwrite
        self._format = output_format(path)

    def _publish(self, staging: P, target: P, old: P) -> None:
        """Rename the staging directory to the target. old: the path of an existing output until the new one is complete.

        Object stores rename file by file. If a rename stops halfway, its source and its target both exist; then, the old
        output is neither deleted nor renamed back, and a message says where to find it.
        """
        try:
            if self._exists(target):
                if not self._overwrite:
                    raise Failure(
                        Exit.OUTPUT, f"output appeared while the query ran: {self.path}; nothing was written"
                    )
                self._rename(target, old)
            self._rename(staging, target)
        finally:
            if self._exists(old):
                if not self._exists(target):
                    self._rename(old, target)
                elif self._exists(staging):
                    print_error(
                        f"a rename stopped halfway: the previous files of {self.path} are in {old}, or still in {target}"
                    )
                else:
                    self._delete(old)

    @abstractmethod
    def _exists(self, path: P) -> bool: ...

    @abstractmethod
    def _rename(self, source: P, target: P) -> None: ...

    @abstractmethod
    def _delete(self, path: P) -> None: ...


def hidden_name(name: str, suffix: str) -> str:
    """Return a new name for a file or directory, which readers of its directory skip because of the leading dot."""
    return f".{name}.{uuid.uuid4().hex[:8]}.{suffix}"


class Output(AtomicOutput[Any]):
    """The path of Spark's result, in any file system of Hadoop. It is checked before any work is done."""

    def __init__(self, spark: SparkSession, path: str, overwrite: bool = False) -> None:
        super().__init__(path, overwrite)
        self._hadoop = HadoopFiles(spark, path)
        self._path, self._files = self._hadoop.path, self._hadoop.system
        # The nearest existing ancestor must be a directory.
        directory = self._path.getParent()
        while directory is not None and not self._files.exists(directory):
            directory = directory.getParent()
        if directory is not None and not self._files.getFileStatus(directory).isDirectory():
            raise Failure(
                Exit.OUTPUT, f"cannot write {path}: {directory.toUri().getPath()} is not a directory"
            )
        if self._files.exists(self._path) and not overwrite:
            raise Failure(Exit.OUTPUT, f"output exists: {path}; remove it or pass --overwrite")
        # Object stores need no parent directories, and a user may have the right to write below the parent only.
        parent, scheme = self._path.getParent(), self._files.getUri().getScheme()
        if directory is not None and (directory.equals(parent) or scheme in _SCHEMES_WITH_DIRECTORIES):
            self._check_writable(directory)

    def _check_writable(self, directory: Any) -> None:
        """Raise Failure unless a directory can be created in this one."""
        probe = self._hadoop.child(directory, hidden_name(self._path.getName(), "probe"))
        try:
            created = self._files.mkdirs(probe)
        except SPARK_ERRORS as error:
            raise Failure(Exit.OUTPUT, f"cannot write {self.path}: {java_root_cause(error)}") from error
        if not created:
            where = directory.toUri().getPath()
            raise Failure(Exit.OUTPUT, f"cannot write {self.path}: no directory can be created in {where}")
        self._files.delete(probe, True)

    def write(self, frame: DataFrame) -> None:
        """Write ``frame`` in the format of the path's extension, or in the default format if it has none."""
        staging = self._sibling("new")
        try:
            writer = frame.write.format(self._format.name).options(**self._format.file_options)
            try:
                writer.save(staging.toString())
            except AnalysisException as error:
                # The query has been analyzed before, so this error is about the format.
                raise Failure(
                    Exit.OUTPUT, f"cannot write {self.path}: {explain_failure(error).message}"
                ) from error
            except SPARK_ERRORS as error:
                if explain_failure(error).code is not Exit.QUERY_FAILED or not is_file_error(error):
                    raise
                raise Failure(Exit.OUTPUT, f"cannot write {self.path}: {java_root_cause(error)}") from error
            self._publish(staging, self._path, self._sibling("old"))
        finally:
            self._delete(staging)

    @override
    def _exists(self, path: Any) -> bool:
        return bool(self._files.exists(path))

    @override
    def _delete(self, path: Any) -> None:
        self._files.delete(path, True)

    @override
    def _rename(self, source: Any, target: Any) -> None:
        if not self._files.rename(source, target):
            raise Failure(Exit.OUTPUT, f"cannot write {self.path}: renaming {source.getName()} failed")

    def _sibling(self, suffix: str) -> Any:
        return self._hadoop.sibling(hidden_name(self._path.getName(), suffix))

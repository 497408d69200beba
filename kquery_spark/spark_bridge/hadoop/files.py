"""Access to files through the Hadoop file systems of Spark's configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

HIDDEN = ("_", ".")
"""How the names of files and directories begin that Spark does not read as data."""


class HadoopFiles:
    """A path and its Hadoop file system; a missing file raises py4j's error for Hadoop's exception."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark._jvm
        self._make = jvm.org.apache.hadoop.fs.Path
        self.path = self._make(path)
        self.system = self.path.getFileSystem(spark._jsc.hadoopConfiguration())

    def sibling(self, name: str) -> Any:
        """The path of another file in the same directory."""
        parent = self.path.getParent()
        return self._make(name) if parent is None else self._make(parent, name)

    def child(self, directory: Any, name: str) -> Any:
        """The path of a file in a directory, which is a path of Hadoop."""
        return self._make(directory, name)

    def names_below(self) -> Iterator[str]:
        """The names of all files in this directory and its subdirectories, without hidden ones."""
        root = str(self.system.makeQualified(self.path).toUri().getPath()).rstrip("/")
        files = self.system.listFiles(self.path, True)
        while files.hasNext():
            path = str(files.next().getPath().toUri().getPath())
            parts = path.removeprefix(root).strip("/").split("/")
            if not any(part.startswith(HIDDEN) for part in parts):
                yield parts[-1]

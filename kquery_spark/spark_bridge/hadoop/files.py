"""Files by the file systems that Spark's Hadoop configuration knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession


class HadoopFiles:
    """The file system of a path, and the paths in it; what is not there raises what py4j makes of Hadoop's error."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark._jvm
        self._make = jvm.org.apache.hadoop.fs.Path
        self.path = self._make(path)
        self.system = self.path.getFileSystem(spark._jsc.hadoopConfiguration())

    def beside(self, name: str) -> Any:
        """A path in the directory of this one."""
        parent = self.path.getParent()
        return self._make(name) if parent is None else self._make(parent, name)

    def names_below(self) -> Iterator[str]:
        """The names of all files in the directory and in those below it."""
        files = self.system.listFiles(self.path, True)
        while files.hasNext():
            yield str(files.next().getPath().getName())

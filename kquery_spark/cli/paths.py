"""Checks local paths before Spark starts, so that commands report mistakes at once."""

from __future__ import annotations

import glob
import os
import re
import tempfile
from pathlib import Path

from kquery_spark.cli.failures import Exit, Failure

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
# If one of these is set, Spark's default file system may not be the local disk.
_CONFIGURATIONS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS")


def local_path(path: str) -> str | None:
    """Return a path of the local file system without its scheme; None for paths of other file systems."""
    if path.startswith("file:"):
        return path.removeprefix("file://").removeprefix("file:")
    return None if _SCHEME.match(path) else path


def path_on_disk(path: str) -> str | None:
    """Return ``local_path``, or None if Spark may resolve the path in a file system that is not local."""
    if path.startswith("file:") or not any(os.environ.get(name) for name in _CONFIGURATIONS):
        return local_path(path)
    return None


def path_exists(path: str) -> bool:
    """Return whether a local path or glob matches a file. True for Hadoop's globs with braces, which are not checked."""
    return os.path.exists(path) or bool(glob.glob(path)) or "{" in path


def missing_path(path: str) -> Failure:
    """Return the Failure for a path that does not exist."""
    return Failure(Exit.MISSING_PATH, f"path does not exist: {path}")


def check_new_directory(path: str, shown: str, overwrite: bool) -> Path:
    """Return the nearest existing ancestor of a local path. Raises Failure unless a directory can be created at the path.

    shown: the path as the user wrote it.
    """
    target = Path(os.path.abspath(path))  # lexists("file/") is False for a file
    if os.path.lexists(target) and not overwrite:
        raise Failure(Exit.OUTPUT, f"output exists: {shown}; remove it or pass --overwrite")
    parent = target.parent
    while not os.path.lexists(parent):
        parent = parent.parent
    if not parent.is_dir():
        raise Failure(Exit.OUTPUT, f"cannot write {shown}: {parent} is not a directory")
    try:
        # Only an attempt detects read-only mounts, quotas, and virtual file systems. Permission bits do not.
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=parent):
            pass
    except OSError as error:
        raise cannot_write(shown, error, parent) from None
    return parent


def check_new_file(file: Path | None) -> None:
    """Raise Failure unless a command can append to this file or create it. An existing file does not change."""
    if file is None:
        return
    existed = file.exists()
    try:
        with file.open("ab"):
            pass
        if not existed:
            file.unlink()
    except OSError as error:
        raise cannot_write(str(file), error) from None


def cannot_write(shown: str, error: OSError, parent: Path | None = None) -> Failure:
    """Return the Failure for a path that cannot be written. parent: the directory in which creating it failed, if any."""
    where = "" if parent is None else f" in {parent}"
    return Failure(Exit.OUTPUT, f"cannot write {shown}: {error.strerror or error}{where}")

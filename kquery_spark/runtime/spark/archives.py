"""Caches the tables of contents of zip archives on the path of Python workers. Without it, each task rereads them."""

from __future__ import annotations

import contextlib
import os
import sys
import zipimport

_contents: dict[str, tuple[tuple[int, int, int], object]] = {}
"""For each archive, the identity of its file (inode, size, modification time) and the table of contents read from it."""


def read_archives_once() -> None:
    """Make Python reread the table of contents of an archive only if its file has changed.

    PySpark before 4.2 invalidates Python's import caches before each task (``importlib.invalidate_caches``). Python before
    3.13 then rereads each archive once for each package that was imported from it: ``pyspark.zip`` 17 times, which takes
    200 ms of every task. Later releases of Python read an archive only when they search it for a module.
    """
    if sys.version_info >= (3, 13):
        return
    read = zipimport.zipimporter.invalidate_caches

    def invalidate_caches(importer: zipimport.zipimporter) -> None:
        file = None
        with contextlib.suppress(OSError):
            status = os.stat(importer.archive)
            file = (status.st_ino, status.st_size, status.st_mtime_ns)
        known_file, contents = _contents.get(importer.archive, (None, None))
        if file is not None and file == known_file:
            importer._files = contents  # type: ignore[attr-defined]
            return
        read(importer)
        if file is not None:
            _contents[importer.archive] = (file, importer._files)  # type: ignore[attr-defined]

    zipimport.zipimporter.invalidate_caches = invalidate_caches  # type: ignore[assignment, method-assign]

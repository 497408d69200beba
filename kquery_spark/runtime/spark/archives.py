"""Reduces the time that Python workers spend on the zip archives on their path, at their start and before each task."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import zipimport
from pathlib import Path

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


def import_unpacked_pyspark() -> None:
    """Import PySpark from its directory, although ``pyspark.zip`` comes before it on the path that Spark sets.

    The archive has no compiled modules, and compiling the 100 modules that a worker imports takes 0.4 s. In a
    distribution of Spark, the directory is ``python/pyspark``, and the archive is in ``python/lib``. If pip installed
    PySpark, the archive is in ``python/lib`` below the directory. Nothing is imported unless the directory has compiled
    modules, and the same ``version.py`` and ``worker.py`` as the archive.
    """
    spec = None if "pyspark" in sys.modules else importlib.util.find_spec("pyspark")
    if spec is None or not isinstance(spec.loader, zipimport.zipimporter):
        return
    archive = spec.loader
    python = Path(archive.archive).parent.parent
    for directory in (python / "pyspark", python.parent):
        with contextlib.suppress(OSError):
            is_compiled = os.path.exists(importlib.util.cache_from_source(str(directory / "worker.py")))
            if is_compiled and all(_is_same(archive, directory, n) for n in ("version.py", "worker.py")):
                _import_package("pyspark", directory)
                return


def _is_same(archive: zipimport.zipimporter, directory: Path, name: str) -> bool:
    packed = archive.get_data(os.path.join(archive.archive, "pyspark", name))
    return packed == (directory / name).read_bytes()


def _import_package(name: str, directory: Path) -> None:
    """Import a package and its ``worker`` from a directory. After an error, remove the modules that are already imported."""
    spec = importlib.util.spec_from_file_location(
        name, directory / "__init__.py", submodule_search_locations=[str(directory)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        # The worker imports the modules that tasks need. If the directory lacks one, the archive is used.
        importlib.import_module(f"{name}.worker")
    except Exception:
        for imported in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
            del sys.modules[imported]

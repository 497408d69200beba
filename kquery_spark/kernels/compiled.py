"""Loads the compiled loops: packages of numba kernels. Each package is compiled once per machine, in the background.

Until a package is loaded, queries use pyarrow or numpy instead.

Compiling a package takes up to 30 seconds; loading it from numba's cache takes 0.3 seconds. Neither may delay a query:

1. A caller calls ``kernels()`` for each column chunk, block of lines, or batch of rows to aggregate. As long as nothing
   is loaded, it gets None, and uses pyarrow or numpy.
2. After requests for more than ``_WARMUP_CHUNKS`` chunks, a thread looks into the cache directory. If the marker file
   ``ready`` is there, it imports the package, and numba loads the machine code from its cache.
3. Without a marker, the thread creates ``started`` and launches a low-priority process that compiles the package and
   then writes ``ready`` (or ``failed``). Every later request looks again, at most once per second.

The cache directory is below the user's cache directory, so that read-only installations can use it. Its name is a hash of
the source and of all versions, so a new release compiles again. A compilation removes the directories that no process has
used for a month. Without numba or a directory, nothing is compiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from kquery_spark.cached_property import cached_property

_READY = "ready"
_STARTED = "started"
_FAILED = "failed"
_STALE_LOCK_SECONDS = 300.0  # after this time, another process's compilation is considered dead
_RETRY_SECONDS = 86_400.0  # after this time, a failed compilation is tried again
# modules of this directory that the packages compile as well, and that also run without numba
_SHARED_SOURCES = (
    "bounded_heaps.py",
    "json_bytes.py",
    "parquet_page_table.py",
    "thrift_scan.py",
    "variants.py",
)
_DIRECTORY_PATTERN = "[0-9a-f]" * 16  # the names of cache directories
_UNUSED_SECONDS = 30 * 86_400.0  # after this time, unused loops of another release or machine are removed
_WARMUP_CHUNKS = 100  # column chunks; reading this many takes less time than importing numba
_NEVER = float("inf")
_POLL_SECONDS = 1.0  # interval at which a process checks for the compiled result


class CompiledLoops:
    """The state of one package of loops in this process. ``package``: its name below this directory."""

    def __init__(self, package: str) -> None:
        self._module_name = f"{__package__}.{package}"
        self.package = package
        self._lock = threading.Lock()
        self._module: ModuleType | None = None
        self._next_check_time = 0.0
        self._requests = 0

    def kernels(self, chunks: int = 1) -> ModuleType | None:
        """Return the package if it is loaded, or None. After ``_WARMUP_CHUNKS`` chunks, a thread loads or compiles it.

        chunks: the work that the caller is about to do, as the number of column chunks whose reading takes as long
        without the package. With 0, the call does not count as a request.
        """
        if self._module is None:
            self._requests += chunks
            if self._requests > _WARMUP_CHUNKS:
                self.load_in_background()
        return self._module

    def load_in_background(self) -> None:
        """Start a thread that calls ``load``, since importing numba takes a while; at most one thread per second.

        Does nothing if no kernels have been requested.
        """
        if (
            self._module is None
            and self._requests
            and time.monotonic() >= self._next_check_time
            and not self._lock.locked()
        ):
            self._next_check_time = time.monotonic() + _POLL_SECONDS
            threading.Thread(target=self.load, name="kquery-kernels").start()

    def load(self) -> None:
        """Import the kernels if they are compiled; otherwise start to compile them in the background."""
        with self._lock:
            if self._module is None and self._next_check_time < _NEVER:
                self._load_or_start_compiling()

    @property
    def are_compiled(self) -> bool:
        """True if the kernels are compiled."""
        return self._module is not None or (self.directory is not None and (self.directory / _READY).exists())

    def are_ready_or_start_compiling(self) -> bool:
        """Return True if the kernels are compiled; otherwise start to compile them in the background."""
        if not self.are_compiled:
            self.load()
        return self.are_compiled

    @property
    def not_ready_clause(self) -> str:
        """Why the loops are not ready, as the predicate of a sentence that begins with "the loops that ... needs"."""
        if self.directory is not None:
            return "are not compiled on this machine yet"
        if not has_numba():
            return "are compiled by numba, which is not installed"
        return "are not compiled, because this user has no private cache directory"

    def compile_now(self) -> ModuleType | None:
        """Import the kernels, which compiles them unless they are cached; None without a cache directory.

        Raises numba's errors.
        """
        directory = self.directory
        with self._lock:
            if self._module is None and directory is not None:
                try:
                    self._module = self._import_package(directory)
                except Exception:  # for example incompatible versions of numba and numpy, or a full disk
                    (directory / _FAILED).touch()
                    raise
                (directory / _READY).touch()
                _remove_unused(directory)
        return self._module

    def _load_or_start_compiling(self) -> None:
        directory = self.directory
        if directory is None:
            self._next_check_time = _NEVER
        elif (directory / _READY).exists():
            self._next_check_time = _NEVER  # a failed import is not repeated in this process
            with contextlib.suppress(Exception):  # for example incompatible versions, or a broken cache
                self._module = self._import_package(directory)
                (directory / _READY).touch()  # its time says when the loops were last used
        elif _is_younger(directory / _FAILED, _RETRY_SECONDS):
            self._next_check_time = _NEVER
        elif _claim_compilation(directory):
            _start_compiler(self.package)

    def _import_package(self, directory: Path) -> ModuleType:
        import numba

        config: Any = numba.config
        with _import_lock:
            before = config.CACHE_DIR
            # numba reads the setting when a function is decorated, so functions of other packages are not affected
            config.CACHE_DIR = str(directory)
            try:
                return importlib.import_module(self._module_name)
            finally:
                config.CACHE_DIR = before

    @cached_property
    def directory(self) -> Path | None:
        """The cache directory for this machine, these versions and this code; None if it cannot be created or is unsafe."""
        return _cache_directory(self._module_name)


def has_numba() -> bool:
    """Return True if numba is installed, which compiles the loops."""
    return importlib.util.find_spec("numba") is not None


_import_lock = threading.Lock()  # numba has one cache directory at a time
FILE_LOOPS = CompiledLoops("loops")
"""Loops that decompress and decode Parquet pages and split lines of delimited text."""
JSON_LOOPS = CompiledLoops("json_loops")
"""Loops over JSON strings in columns, in a package of their own because few queries need them."""
AGGREGATE_LOOPS = CompiledLoops("aggregate_loops")
"""Loops of aggregates: sums, and bounded heaps of rows."""
VARIANT_LOOPS = CompiledLoops("variant_loops")
"""Loops over variants."""
ALL_LOOPS = (FILE_LOOPS, JSON_LOOPS, AGGREGATE_LOOPS, VARIANT_LOOPS)


def _cache_directory(module_name: str) -> Path | None:
    spec = importlib.util.find_spec(module_name)
    if spec is None or spec.origin is None or not has_numba():
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    try:
        shared = [Path(__file__).with_name(name) for name in _SHARED_SOURCES]
        sources = [*sorted(Path(spec.origin).parent.glob("*.py")), *shared]
        code = b"".join(source.read_bytes() for source in sources)
        parts = (
            version("numba"),
            version("llvmlite"),
            version("numpy"),
            sys.version,
            spec.origin,
            _processor(),
        )
        name = hashlib.sha256(code + "\n".join(parts).encode()).hexdigest()[:16]
        directory = Path(home) / "kquery_spark" / name
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:  # no home, no permission, code in a zip file
        return None
    return directory if os.access(directory, os.W_OK) and _is_own(directory) else None


def _is_own(directory: Path) -> bool:
    """True if no other user can write there: numba unpickles cached files, so another user's file would run as code."""
    if not hasattr(os, "getuid"):
        return True
    with contextlib.suppress(OSError):
        states = [directory.stat(), directory.parent.stat()]
        owned = all(state.st_uid == os.getuid() and not state.st_mode & stat.S_IWOTH for state in states)
        return owned and not states[0].st_mode & stat.S_IWGRP
    return False


def _remove_unused(used: Path) -> None:
    """Remove the directories beside ``used`` in which nothing has changed for a month, such as those of earlier releases."""
    for directory in used.parent.glob(_DIRECTORY_PATTERN):
        with contextlib.suppress(OSError):
            if not any(_is_younger(path, _UNUSED_SECONDS) for path in (directory, *directory.iterdir())):
                # First, so that no process loads only a part of the loops.
                (directory / _READY).unlink(missing_ok=True)
                shutil.rmtree(directory)


def _processor() -> str:
    """Describe this model of processor, since machines with different ones may share the directory."""
    with contextlib.suppress(OSError):
        first = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0]
        return "\n".join(
            line for line in first.splitlines() if line.startswith(("model name", "flags", "Features"))
        )
    return os.uname().machine if hasattr(os, "uname") else sys.platform


def _claim_compilation(directory: Path) -> bool:
    """Create the marker file of a running compilation; False if another process has created it before."""
    marker = directory / _STARTED
    with contextlib.suppress(OSError):
        if marker.exists() and not _is_younger(marker, _STALE_LOCK_SECONDS):
            marker.unlink()
        marker.touch(exist_ok=False)
        return True
    return False


def _is_younger(marker: Path, seconds: float) -> bool:
    with contextlib.suppress(OSError):
        return time.time() - marker.stat().st_mtime <= seconds
    return False


def _start_compiler(package: str) -> None:
    """Start a process of the lowest priority that compiles a package."""
    paths = os.pathsep.join(p for p in sys.path if p)
    with contextlib.suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.compiled", package],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # survives when the processes of a job are ended
            env={**os.environ, "PYTHONPATH": paths},
        )


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(19)
    CompiledLoops(sys.argv[1]).compile_now()

"""Loads packages of loops that numba compiles once per machine, in the background. Until then queries use pyarrow only.

Compilation takes some seconds; loading the result from numba's cache takes a third of a second. A process that finds no
compiled result starts a low-priority process, which compiles the loops and writes a marker file, and continues with pyarrow.
numba's cache is in a directory of its own below the user's cache directory, so that read-only installations can use it.
Without numba, or without such a directory, there are no loops.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import stat
import subprocess
import sys
import threading
import time
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

_READY = "ready"
_STARTED = "started"
_FAILED = "failed"
_STALE_LOCK_SECONDS = 300.0  # after this time, another process's compilation is considered dead
_RETRY_SECONDS = 86_400.0  # after this time, a failed compilation is tried again
_SHARED_SOURCE = "thrift_scan.py"  # compiled as part of a package, and also run without numba
_WARMUP_CALLS = (
    100  # column chunks or blocks of lines; reading this many takes less time than importing numba
)
_NEVER = float("inf")
_POLL_SECONDS = 1.0  # interval at which a process checks for the compiled result


class CompiledLoops:
    """One package of loops, and what this process knows of it. ``package``: its name below this directory."""

    def __init__(self, package: str) -> None:
        self._module_name = f"{__package__}.{package}"
        self._package = package
        self._lock = threading.Lock()
        self._module: ModuleType | None = None
        self._next_look = 0.0
        self._requests = 0

    def kernels(self) -> ModuleType | None:
        """The package; None while there is none. Compiles in the background after ``_WARMUP_CALLS`` requests."""
        if self._module is None:
            self._requests += 1
            if self._requests > _WARMUP_CALLS:
                self.look_later()
        return self._module

    def look_later(self) -> None:
        """Have a thread look for the kernels, as importing numba takes a while; not again within a second.

        Does nothing where the kernels were never requested.
        """
        if (
            self._module is None
            and self._requests
            and time.monotonic() >= self._next_look
            and not self._lock.locked()
        ):
            self._next_look = time.monotonic() + _POLL_SECONDS
            threading.Thread(target=self.load, name="kquery-kernels").start()

    def load(self) -> None:
        """Import the kernels if they are compiled; start compiling them in the background if not."""
        with self._lock:
            if self._module is None and self._next_look < _NEVER:
                self._look()

    def are_ready(self) -> bool:
        """Whether the kernels are compiled; has them compiled in the background if not."""
        if self._module is not None:
            return True
        directory = self.directory
        if directory is None:
            return False
        if not (directory / _READY).exists():
            self.load()
        return (directory / _READY).exists()

    def compile_now(self) -> ModuleType | None:
        """The kernels, compiled here unless cached; None without a cache directory. Raises numba's errors."""
        directory = self.directory
        with self._lock:
            if self._module is None and directory is not None:
                try:
                    self._module = self._imported(directory)
                except Exception:  # numba and numpy that do not fit together, a full disk
                    (directory / _FAILED).touch()
                    raise
                (directory / _READY).touch()
        return self._module

    def _look(self) -> None:
        directory = self.directory
        if directory is None:
            self._next_look = _NEVER
        elif (directory / _READY).exists():
            self._next_look = _NEVER  # what fails once is not tried again
            with contextlib.suppress(Exception):  # numba and numpy that do not fit together, a broken cache
                self._module = self._imported(directory)
        elif _is_younger(directory / _FAILED, _RETRY_SECONDS):
            self._next_look = _NEVER
        elif _is_first(directory):
            _start(self._package)

    def _imported(self, directory: Path) -> ModuleType:
        import numba

        config: Any = numba.config
        with _import_lock:
            before = config.CACHE_DIR
            # read when a function is decorated, so nothing changes for functions of others
            config.CACHE_DIR = str(directory)
            try:
                return importlib.import_module(self._module_name)
            finally:
                config.CACHE_DIR = before

    @cached_property
    def directory(self) -> Path | None:
        """The cache directory for this machine, these versions and this code; None where there is no such directory."""
        return _cache_directory(self._module_name)


_import_lock = threading.Lock()  # numba has one cache directory at a time
FILE_LOOPS = CompiledLoops("loops")
"""Of Parquet's dictionary indices and of lines of text."""
JSON_LOOPS = CompiledLoops("json_loops")
"""Of JSON strings in columns, which take several times as long to compile and few queries need."""
HEAP_LOOPS = CompiledLoops("heap_loops")
"""Of aggregates that keep several rows of each group."""
VARIANT_LOOPS = CompiledLoops("variant_loops")
"""Of variants."""


def _cache_directory(module_name: str) -> Path | None:
    spec = importlib.util.find_spec(module_name)
    if spec is None or spec.origin is None or importlib.util.find_spec("numba") is None:
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    try:
        sources = [*sorted(Path(spec.origin).parent.glob("*.py")), Path(__file__).with_name(_SHARED_SOURCE)]
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


def _processor() -> str:
    """Identifies this kind of processor among others that may share the directory."""
    with contextlib.suppress(OSError):
        first = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0]
        return "\n".join(
            line for line in first.splitlines() if line.startswith(("model name", "flags", "Features"))
        )
    return os.uname().machine if hasattr(os, "uname") else sys.platform


def _is_first(directory: Path) -> bool:
    """True if no process is compiling; writes the marker that this one does."""
    note = directory / _STARTED
    with contextlib.suppress(OSError):
        if note.exists() and not _is_younger(note, _STALE_LOCK_SECONDS):
            note.unlink()
        note.touch(exist_ok=False)
        return True
    return False


def _is_younger(note: Path, seconds: float) -> bool:
    with contextlib.suppress(OSError):
        return time.time() - note.stat().st_mtime <= seconds
    return False


def _start(package: str) -> None:
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

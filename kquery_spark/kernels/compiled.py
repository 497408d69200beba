"""The compiled kernels: numba compiles them once per machine, in the background; until then scans run without them.

Compiling takes half a minute, taking the result from numba's cache a third of one. So a process that finds no result
starts another one at the lowest priority, which compiles and leaves a marker file, and goes on by pyarrow alone.
numba caches its results in our folder below the user's cache folder, so that a read-only installation has
them, too. Without numba, or without such a folder, there are no kernels.
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
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

_KERNELS = f"{__package__}.loops"
_READY = "ready"
_STARTED = "started"
_FAILED = "failed"
_STALE_LOCK_SECONDS = 300.0  # seconds after which another process's compilation counts as dead
_RETRY_SECONDS = 86_400.0  # seconds after which what could not be compiled is tried again
_WARMUP_CALLS = 100  # column chunks or blocks of text; reading these takes less than importing numba
_NEVER = float("inf")
_POLL_SECONDS = 1.0  # seconds between two looks for the result

_lock = threading.Lock()


class _State:
    """What this process knows of the kernels."""

    kernels: ModuleType | None = None
    next_look: float = 0.0
    requests: int = 0


def kernels() -> ModuleType | None:
    """The package of kernels; None while there are none. Compiles in the background after ``_WARMUP_CALLS`` requests."""
    if _State.kernels is None:
        _State.requests += 1
        if _State.requests > _WARMUP_CALLS:
            look_later()
    return _State.kernels


def look_later() -> None:
    """Have a thread look for the kernels, as importing numba takes a while; not again within a second.

    Does nothing where the kernels were never requested.
    """
    if (
        _State.kernels is None
        and _State.requests
        and time.monotonic() >= _State.next_look
        and not _lock.locked()
    ):
        _State.next_look = time.monotonic() + _POLL_SECONDS
        threading.Thread(target=load, name="kquery-kernels").start()


def load() -> None:
    """Import the kernels if they are compiled; start compiling them in the background if not."""
    with _lock:
        if _State.kernels is None and _State.next_look < _NEVER:
            _look()


def are_ready() -> bool:
    """Whether the kernels are compiled; has them compiled in the background if not."""
    if _State.kernels is not None:
        return True
    folder = _folder()
    if folder is None:
        return False
    if not (folder / _READY).exists():
        load()
    return (folder / _READY).exists()


def compile_now() -> ModuleType | None:
    """The kernels, compiled here unless cached; None without a cache folder. Raises numba's errors."""
    folder = _folder()
    with _lock:
        if _State.kernels is None and folder is not None:
            try:
                _State.kernels = _imported(folder)
            except Exception:  # numba and numpy that do not fit together, a full disk
                (folder / _FAILED).touch()
                raise
            (folder / _READY).touch()
    return _State.kernels


def _look() -> None:
    folder = _folder()
    if folder is None:
        _State.next_look = _NEVER
    elif (folder / _READY).exists():
        _State.next_look = _NEVER  # what fails once is not tried again
        with contextlib.suppress(Exception):  # numba and numpy that do not fit together, a broken cache
            _State.kernels = _imported(folder)
    elif _is_younger(folder / _FAILED, _RETRY_SECONDS):
        _State.next_look = _NEVER
    elif _is_first(folder):
        _start(folder)


def _imported(folder: Path) -> ModuleType:
    import numba

    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)  # read when a function is decorated; of others' functions nothing changes
    try:
        return importlib.import_module(_KERNELS)
    finally:
        config.CACHE_DIR = before


@cache
def _folder() -> Path | None:
    """The cache folder for this machine, these versions and this code; None where there is no such folder."""
    spec = importlib.util.find_spec(_KERNELS)
    if spec is None or spec.origin is None or importlib.util.find_spec("numba") is None:
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    try:
        code = b"".join(part.read_bytes() for part in sorted(Path(spec.origin).parent.glob("*.py")))
        parts = (
            version("numba"),
            version("llvmlite"),
            version("numpy"),
            sys.version,
            spec.origin,
            _processor(),
        )
        name = hashlib.sha256(code + "\n".join(parts).encode()).hexdigest()[:16]
        folder = Path(home) / "kquery_spark" / name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:  # no home, no permission, code in a zip file
        return None
    return folder if os.access(folder, os.W_OK) and _is_own(folder) else None


def _is_own(folder: Path) -> bool:
    """True if no other user can write there: numba unpickles cached files, so another user's file would run as code."""
    if not hasattr(os, "getuid"):
        return True
    with contextlib.suppress(OSError):
        states = [folder.stat(), folder.parent.stat()]
        owned = all(state.st_uid == os.getuid() and not state.st_mode & stat.S_IWOTH for state in states)
        return owned and not states[0].st_mode & stat.S_IWGRP
    return False


def _processor() -> str:
    """Identifies this kind of processor among others that may share the folder."""
    with contextlib.suppress(OSError):
        first = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0]
        return "\n".join(
            line for line in first.splitlines() if line.startswith(("model name", "flags", "Features"))
        )
    return os.uname().machine if hasattr(os, "uname") else sys.platform


def _is_first(folder: Path) -> bool:
    """True if no process is compiling; writes the marker that this one does."""
    note = folder / _STARTED
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


def _start(folder: Path) -> None:
    paths = os.pathsep.join(p for p in sys.path if p)
    with contextlib.suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.compiled"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # survives when the processes of a job are ended
            env={**os.environ, "PYTHONPATH": paths},
        )


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(19)
    compile_now()

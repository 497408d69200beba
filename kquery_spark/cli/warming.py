"""Compiles the engine's loops before the first query needs them, for ``kquery-spark warm``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from kquery_spark.cli.failures import Exit, Failure
from kquery_spark.kernels.compiled import ALL_LOOPS, has_numba


def compile_loops(say: Callable[[str], None]) -> None:
    """Compile all packages of loops that are not in the cache yet. ``say`` receives one line for each package.

    The cache is valid for this user, this processor model, this installation of the package, and these versions of Python,
    numpy, and numba.
    """
    for loops in ALL_LOOPS:
        if loops.directory is None:
            code = Exit.OUTPUT if has_numba() else Exit.USAGE
            raise Failure(code, f"cannot compile the loops: they {loops.not_ready_clause}")
        was_ready, start = loops.are_compiled, time.perf_counter()
        loops.compile_now()
        outcome = "already compiled" if was_ready else f"compiled in {time.perf_counter() - start:.1f} s"
        functions, nbytes = _cache_size(loops.directory)
        say(f"{loops.package}: {outcome}, {functions} functions, {nbytes / 1e6:.1f} MB in {loops.directory}")


def _cache_size(directory: Path) -> tuple[int, int]:
    """Return the number of compiled functions in numba's cache, and their bytes."""
    files = [path for path in directory.rglob("*") if path.suffix in (".nbc", ".nbi")]
    return sum(path.suffix == ".nbc" for path in files), sum(path.stat().st_size for path in files)

"""Keeps freed memory in the heap of the C library, so that batches reuse it.

By default, GNU's C library returns freed blocks of some megabytes to the system, and numpy allocates such blocks for every
batch. The system then has to provide new, zeroed pages, which took up to half of the time of an aggregation.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable
from functools import cache, lru_cache

# Parameters of mallopt(3): M_TRIM_THRESHOLD (free memory to keep at the top of the heap), M_TOP_PAD (memory to request at
# once) and M_MMAP_THRESHOLD (the size from which blocks are allocated outside of the heap).
_TRIM, _PAD, _MAP = -1, -2, -3
_WORKER_OPTIONS = ((_TRIM, 256 << 20), (_PAD, 16 << 20), (_MAP, 32 << 20))
# The C library itself uses these thresholds once a program has freed a block of 32 MiB.
_USER_PROCESS_OPTIONS = ((_TRIM, 64 << 20), (_MAP, 32 << 20))
_HEAP_BUDGET_DIVISOR = 8  # with a small memory budget, an eighth of it may remain in the heap as freed memory


@cache
def tune_worker_heap() -> None:
    """Let a worker, which only runs tasks, keep freed memory."""
    _set_malloc_options(_WORKER_OPTIONS)


@cache
def tune_user_heap() -> None:
    """Let the user's process, which also does other work, keep up to 64 MiB of freed memory.

    It changes nothing if the user has configured the C library by environment variables.
    """
    if not any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        _set_malloc_options(_USER_PROCESS_OPTIONS)


@lru_cache(maxsize=1)  # sets the options only if the budget has changed since the last task
def fit_worker_heap(memory_bytes: int) -> None:
    """Limit the freed memory that stays in the heap to a share of the task's memory budget."""
    share = memory_bytes // _HEAP_BUDGET_DIVISOR
    _set_malloc_options((option, min(nbytes, max(1 << 20, share))) for option, nbytes in _WORKER_OPTIONS)


def _set_malloc_options(options: Iterable[tuple[int, int]]) -> None:
    with contextlib.suppress(OSError, AttributeError):  # the C library is not GNU's
        library = ctypes.CDLL(None)
        for option, nbytes in options:
            library.mallopt(option, nbytes)

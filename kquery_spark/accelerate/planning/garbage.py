"""Planning without garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Disable cyclic garbage collection inside the block.

    Plans are many small objects. Nearly all of them stay alive and none is part of a cycle, so collections would find
    nothing.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

"""Bounded heaps of the largest keys of each group, for MAX_BY and MIN_BY with a count.

When keys are equal, the rows that stay and their order depend on how the heap moves its items. So each step follows Spark's
own heap: the smallest key is at the root, and a new row replaces the root only if its key is strictly larger.
"""

from __future__ import annotations

from typing import Any


def insert(rows: Any, ids: Any, keys: Any, bounds: Any, sizes: Any, slots: Any, heaps: Any) -> None:
    """Offer rows to the heaps of their groups, one after the other; ``aggregate_loops`` compiles this function.

    ids: the group of each row. keys: the key of each row. bounds: the start of each group's heap, and the end of the last.
    sizes: the current number of items of each heap. slots: the rows of each heap. heaps: the heap order, as positions within
    ``slots``, so that moving an item in the heap does not move its row.
    """
    for row in rows:
        group = ids[row]
        base, size, key = bounds[group], sizes[group], keys[row]
        if size < bounds[group + 1] - base:
            slots[base + size] = row
            sizes[group] = size + 1
            at = size
            while at > 0:  # sift up: move larger parents down
                parent = (at - 1) // 2
                if key >= keys[slots[base + heaps[base + parent]]]:
                    break
                heaps[base + at] = heaps[base + parent]
                at = parent
            heaps[base + at] = size
        elif size and key > keys[slots[base + heaps[base]]]:
            slot = heaps[base]
            slots[base + slot] = row
            at = 0
            while 2 * at + 1 < size:  # sift down: move the smaller child up
                child = 2 * at + 1
                child_key = keys[slots[base + heaps[base + child]]]
                if child + 1 < size:
                    right_key = keys[slots[base + heaps[base + child + 1]]]
                    if right_key < child_key:
                        child, child_key = child + 1, right_key
                if key <= child_key:
                    break
                heaps[base + at] = heaps[base + child]
                at = child
            heaps[base + at] = slot

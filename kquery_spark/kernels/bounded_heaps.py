"""Heaps of the largest keys of each group, of a bounded size, as Spark keeps them for MAX_BY and MIN_BY with a number.

Which of equal keys stay, and in which order, depends on how a heap moves its items, so these are Spark's own steps.
"""

from __future__ import annotations

from typing import Any


def insert(rows: Any, ids: Any, keys: Any, bounds: Any, sizes: Any, slots: Any, heaps: Any) -> None:
    """Offer rows to the heaps of their groups, one after the other; ``heap_loops`` has this compiled.

    bounds: where the heap of each group begins and the last one ends. sizes: how many items each has so far.
    slots: the rows of each heap in the order of their places. heaps: positions of ``slots``, the smallest key at the root.
    """
    for row in rows:
        group = ids[row]
        base, size, key = bounds[group], sizes[group], keys[row]
        if size < bounds[group + 1] - base:
            slots[base + size] = row
            sizes[group] = size + 1
            at = size
            while at > 0:  # towards the root
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
            while 2 * at + 1 < size:  # towards the leaves
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

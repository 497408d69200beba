"""Unique column names of a query: the engine identifies a column by its name in all nodes of a plan."""

from __future__ import annotations

from collections.abc import Sequence


class UniqueNames:
    """Generates column names that are unique in the query: ``stem``, ``stem_2``, ``stem_3`` ..."""

    def __init__(self) -> None:
        self._used_names: set[str] = set()
        self._order: list[str] = []
        #: For each stem, the number in its last name. Without it, a long list of equal stems would take quadratic time.
        self._counts: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        """``stem``, or ``stem_2`` and so on if it is used."""
        name, count = stem, self._counts.get(stem, 1)
        while name in self._used_names:
            count += 1
            name = f"{stem}_{count}"
        self._counts[stem] = count
        self._used_names.add(name)
        self._order.append(name)
        return name

    def mark(self) -> int:
        """A savepoint for ``rollback``."""
        return len(self._order)

    def rollback(self, mark: int) -> None:
        """Release the names that were generated since the mark."""
        self._used_names.difference_update(self._order[mark:])
        del self._order[mark:]
        self._counts.clear()


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names, with a number appended to repeated ones: ``a, a, a_2`` becomes ``a, a_3, a_2``."""
    unique: list[str] = []
    used_names = set(names)
    next_count: dict[str, int] = {}
    for name in names:
        if name not in next_count:
            next_count[name] = 2
            unique.append(name)
            continue
        while (suffixed := f"{name}_{next_count[name]}") in used_names:
            next_count[name] += 1
        used_names.add(suffixed)
        unique.append(suffixed)
    return unique

"""Suggests a known name for an unknown one that is probably misspelled."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean fare?)`` with the most similar known name; an empty string if there is none.

    Upper and lower case do not count, and the last part of a name with dots does by itself, too: ``t.fare`` is suggested for
    ``fair``.
    """
    spellings: dict[str, str] = {}
    for candidate in known:
        folded = candidate.lower()
        for spelling in (folded, folded.rpartition(".")[2]):
            spellings.setdefault(spelling, candidate)
    closest = get_close_matches(name.lower(), spellings, n=1)
    return f" (did you mean {spellings[closest[0]]}?)" if closest else ""

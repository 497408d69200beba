"""What a name that nobody knows was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` (did you mean fare?)`` of the known name that is spelled most like ``name``; empty if none is.

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

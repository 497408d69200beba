"""Describes how calls of a function are written in DataFrames, and how Spark shows them in column names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CallForm:
    """How calls of a function are written in a DataFrame and shown in a column name.

    columns: positions of arguments whose strings are column names, as in PySpark; other strings are constants.
    columns_from: the position from which all arguments are columns, passed one by one or as a list.
    distinct_names: PySpark functions that stand for the call with DISTINCT.
    trims: the side of ``TRIM(side characters FROM text)`` for which the name stands. In DataFrames, the string comes first.
    upper: True if Spark shows the name in upper case. shown_as: the name that Spark shows; empty: as written.
    adds: for calls with this number of arguments, the string of the arguments that Spark adds in column names.
    shape: for calls with this number of arguments, the format of the column name. flag_shapes: if a second argument is a
    flag, not a value, the formats for TRUE and for FALSE.
    """

    columns: tuple[int, ...] = (0,)
    columns_from: int | None = None
    distinct_names: tuple[str, ...] = ()
    trims: str = ""
    upper: bool = False
    shown_as: str = ""
    adds: tuple[int, str] | None = None
    shape: tuple[int, str] | None = None
    flag_shapes: tuple[str, str] | None = None

    def name_of(self, name: str) -> str:
        """The name that Spark shows for a call written with ``name``."""
        return name.upper() if self.upper else self.shown_as or name


ONE_COLUMN = CallForm()
TWO_COLUMNS = CallForm(columns=(0, 1))
THREE_COLUMNS = CallForm(columns=(0, 1, 2))
FOUR_COLUMNS = CallForm(columns=(0, 1, 2, 3))
ALL_COLUMNS = CallForm(columns_from=0)
UPPER = CallForm(upper=True)

Spellings = tuple[tuple[str, CallForm], ...]
"""Aliases whose calls are written or shown differently than those of the function's name."""


_FORMS: dict[str, CallForm] = {}
_DISTINCT: dict[str, str] = {}
_TRIMS: dict[str, str] = {}


def register_calls(name: str, aliases: tuple[str, ...], calls: CallForm, alias_calls: Spellings = ()) -> None:
    """Add the names of an entry; names are unique among functions of all kinds."""
    spelled = dict(alias_calls)
    for spelling in (name, *aliases):
        if spelling in _FORMS:
            raise ValueError(f"function {spelling} is registered twice")
        _FORMS[spelling] = spelled.get(spelling, calls)
    _DISTINCT.update(dict.fromkeys(calls.distinct_names, name))
    if calls.trims:
        _TRIMS[calls.trims] = name


def call_form(name: str) -> CallForm:
    """Return how calls of ``name``, in lower case, are written and shown; the plain form for an unknown name."""
    return _FORMS.get(name, ONE_COLUMN)


def distinct_function(name: str) -> str | None:
    """The function that PySpark's ``name`` calls with DISTINCT (``countDistinct``); None for other names."""
    return _DISTINCT.get(name)


def trim_function(side: str) -> str:
    """The function that implements ``TRIM(side FROM text)``."""
    return _TRIMS[side or "BOTH"]


def registered_names() -> frozenset[str]:
    """All names of all functions, including aliases."""
    return frozenset(_FORMS)

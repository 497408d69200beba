"""Functions without a kernel. Frontends implement their calls by other functions, constants or plan nodes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kquery_spark.functions.call_form import (
    ALL_COLUMNS,
    ONE_COLUMN,
    THREE_COLUMNS,
    TWO_COLUMNS,
    CallForm,
    Spellings,
    register_calls,
)

_ARGUMENT_ALONE = CallForm(shape=(1, "{0}"))


@dataclass(frozen=True)
class SpecialForm:
    """A function that a handler of the SQL frontend implements."""

    name: str
    aliases: tuple[str, ...] = ()
    calls: CallForm = ONE_COLUMN
    alias_calls: Spellings = ()


class Clock(Enum):
    """What a function returns of the time at which the query begins."""

    DATE = "the date"
    TIMESTAMP = "the instant"
    LOCAL_TIMESTAMP = "the date and time, without a time zone"


@dataclass(frozen=True)
class SessionValue(SpecialForm):
    """A value that is constant within a query. Its name, unlike its aliases, may be written without parentheses.

    clock: what it returns of the current time; None for the session's time zone.
    """

    clock: Clock | None = None


@dataclass(frozen=True)
class TryFunction(SpecialForm):
    """The TRY form of the function ``wrapped``: it returns NULL where that function raises an error."""

    wrapped: str = ""


@dataclass(frozen=True)
class CastFunction(SpecialForm):
    """A cast written as a function: ``int(x)``. Spark names the column after the argument."""

    calls: CallForm = _ARGUMENT_ALONE


@dataclass(frozen=True)
class GeneratorFunction(SpecialForm):
    """A function that returns several rows for one row.

    generator: the kind of ``logical.Generate``. keeps_row: True if a row without results is returned once, with NULLs.
    """

    generator: str = ""
    keeps_row: bool = False


@dataclass(frozen=True)
class TimeWindowFunction(SpecialForm):
    """A function that returns the time window of a row. is_session: True for a session window, which ends after a gap."""

    is_session: bool = False


_FORMS: dict[str, SpecialForm] = {}


def register_special_forms(*entries: SpecialForm) -> None:
    """Add entries; names are unique."""
    for entry in entries:
        register_calls(entry.name, entry.aliases, entry.calls, entry.alias_calls)
        _FORMS.update(dict.fromkeys((entry.name, *entry.aliases), entry))


def special_form(name: str) -> SpecialForm | None:
    """The entry called ``name`` (or an alias), in lower case; None if there is none."""
    return _FORMS.get(name)


def special_forms() -> tuple[SpecialForm, ...]:
    """All entries."""
    return tuple(dict.fromkeys(_FORMS.values()))


def time_window_function(name: str) -> TimeWindowFunction | None:
    """The time window function with this name; None if there is none."""
    entry = _FORMS.get(name)
    return entry if isinstance(entry, TimeWindowFunction) else None


def generator_function(name: str) -> GeneratorFunction | None:
    """The generator with this name; None if there is none."""
    entry = _FORMS.get(name)
    return entry if isinstance(entry, GeneratorFunction) else None


register_special_forms(
    SpecialForm("map_contains_key"),
    SpecialForm("if", calls=CallForm(shape=(3, "(IF({0}, {1}, {2}))"))),
    SpecialForm("nvl", ("ifnull",), TWO_COLUMNS),
    SpecialForm("nvl2", calls=THREE_COLUMNS),
    SpecialForm("nullifzero"),
    SpecialForm("zeroifnull"),
    SpecialForm("assert_true", calls=CallForm(shape=(1, "assert_true({0}, '{0}' is not true!)"))),
    SpecialForm("regexp_count", calls=TWO_COLUMNS),
    SpecialForm("regexp_substr", calls=TWO_COLUMNS),
    SpecialForm("struct", calls=ALL_COLUMNS),
    SpecialForm("grouping"),
    SpecialForm("grouping_id", calls=ALL_COLUMNS),
    SpecialForm(
        "extract",
        ("date_part", "datepart"),
        CallForm(columns=(1,)),
        (("datepart", CallForm(columns=(1,), shape=(2, "datepart({0} FROM {1})"))),),
    ),
    SpecialForm("to_date"),
    SpecialForm("to_timestamp"),
    SpecialForm("try_to_date"),
    SpecialForm("try_to_timestamp", calls=TWO_COLUMNS),
    TryFunction("try_add", calls=TWO_COLUMNS, wrapped="add"),
    TryFunction("try_subtract", calls=TWO_COLUMNS, wrapped="subtract"),
    TryFunction("try_multiply", calls=TWO_COLUMNS, wrapped="multiply"),
    TryFunction("try_divide", calls=TWO_COLUMNS, wrapped="divide"),
    TryFunction("try_mod", calls=TWO_COLUMNS, wrapped="mod"),
    TryFunction("try_url_decode", wrapped="url_decode"),
    TryFunction("try_to_binary", calls=TWO_COLUMNS, wrapped="to_binary"),
    TryFunction("try_parse_url", calls=THREE_COLUMNS, wrapped="parse_url"),
    TryFunction("try_element_at", calls=TWO_COLUMNS, wrapped="element_at"),
    TryFunction("get", calls=TWO_COLUMNS, wrapped="get_array_item"),
    SessionValue("current_date", ("curdate",), CallForm(shown_as="current_date"), clock=Clock.DATE),
    SessionValue("current_timestamp", ("now",), clock=Clock.TIMESTAMP),
    SessionValue("localtimestamp", clock=Clock.LOCAL_TIMESTAMP),
    SessionValue("current_timezone"),
    GeneratorFunction("explode", generator="explode"),
    GeneratorFunction("explode_outer", generator="explode", keeps_row=True),
    GeneratorFunction("posexplode", generator="posexplode"),
    GeneratorFunction("posexplode_outer", generator="posexplode", keeps_row=True),
    GeneratorFunction("inline", generator="inline"),
    GeneratorFunction("inline_outer", generator="inline", keeps_row=True),
    TimeWindowFunction("window"),
    TimeWindowFunction("session_window", is_session=True),
    *map(CastFunction, ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double")),
    *map(CastFunction, ("decimal", "date", "timestamp", "binary", "string")),
)

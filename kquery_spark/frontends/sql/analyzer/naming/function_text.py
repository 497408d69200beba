"""Prints the names of functions in column names, and the arguments that Spark adds."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.functions.aggregate.windows import aggregate_of, window_function
from kquery_spark.functions.call_form import call_form


def special_call_text(name: str, arguments: Sequence[str]) -> str | None:
    """Print a call that Spark shows as an operator, or only as its argument; None for other calls."""
    form = call_form(name)
    if form.shape is not None and len(arguments) == form.shape[0]:
        return form.shape[1].format(*arguments)
    if form.flag_shapes is not None and len(arguments) == 2:
        return form.flag_shapes[arguments[1] != "true"].format(arguments[0])  # the flag is not shown
    return None


def default_arguments(name: str, count: int) -> str:
    """The string of the arguments that Spark adds to ``count`` written ones."""
    entry = window_function(name)
    if entry is not None and entry.is_offset:
        return ", 1, NULL"[3 * (count - 1) :] if count < 3 else ""
    adds = call_form(name).adds
    return adds[1] if adds is not None and count == adds[0] else ""


def function_name_text(name: str, ignores_nulls: bool = False) -> str:
    """The name that Spark prints for a function."""
    if ignores_nulls and aggregate_of(name) != name:
        return aggregate_of(name)
    return call_form(name).name_of(name)

"""Function calls as Spark shows them in column names: their names, and the arguments that Spark adds."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.functions.windows import aggregate_of, window_function

# Functions that Spark shows in upper case, whichever way they were written.
_UPPER = frozenset(
    [
        "power",
        "atan2",
        "log10",
        "cbrt",
        "sqrt",
        "exp",
        "expm1",
        "log2",
        "log1p",
        "ceil",
        "floor",
        "rank",
        "dense_rank",
        "percent_rank",
        "signum",
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "degrees",
        "radians",
        "hypot",
        "pi",
        "e",
        "log",
        "rlike",
        "regexp",
        "regexp_like",
    ]
)
# Arguments that Spark adds when fewer are written: how many there are then, and the text of the rest.
_DEFAULTS = {
    "locate": (2, ", 1"),
    "position": (2, ", 1"),
    "percentile": (2, ", 1"),
    "split": (2, ", -1"),
    "substring": (2, ", 2147483647"),
    "substr": (2, ", 2147483647"),
    "lpad": (2, ",  "),
    "rpad": (2, ",  "),
    "replace": (2, ", "),
    "months_between": (2, ", true"),
    "from_unixtime": (1, ", yyyy-MM-dd HH:mm:ss"),
    "regexp_replace": (3, ", 1"),
    "regexp_extract": (2, ", 1"),
    "round": (1, ", 0"),
    "overlay": (3, ", -1"),
    "sort_array": (1, ", true"),
    "unix_timestamp": (1, ", yyyy-MM-dd HH:mm:ss"),
    "to_unix_timestamp": (1, ", yyyy-MM-dd HH:mm:ss"),
    "bround": (1, ", 0"),
}
_RENAMED = {"dateadd": "date_add", "array_agg": "collect_list", "curdate": "current_date"}
# Calls that Spark shows as something other than a call.
_SHAPES = {
    ("approx_count_distinct", 2): "approx_count_distinct({0})",
    ("datepart", 2): "datepart({0} FROM {1})",  # date_part is shown as written
    ("div", 2): "({0} div {1})",
    ("isnull", 1): "({0} IS NULL)",
    ("isnotnull", 1): "({0} IS NOT NULL)",
    ("positive", 1): "(+ {0})",
    ("like", 2): "{0} LIKE {1}",
    ("ilike", 3): "ilike({0}, {1})",
    ("log", 1): "LOG(E(), {0})",
    ("if", 3): "(IF({0}, {1}, {2}))",
    ("trim", 2): "TRIM(BOTH {0} FROM {1})",
    ("ltrim", 2): "TRIM(LEADING {0} FROM {1})",
    ("rtrim", 2): "TRIM(TRAILING {0} FROM {1})",
}
_MODES = {"true": "mode() WITHIN GROUP (ORDER BY {0} DESC)"}  # the flag is not shown
_CAST_FUNCTIONS = frozenset(
    {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double"}
    | {"decimal", "date", "timestamp", "binary", "string"}
)


def special_call_text(name: str, arguments: Sequence[str]) -> str | None:
    """A call that Spark shows as an operator, or as its argument alone; None for all others."""
    shape = _SHAPES.get((name, len(arguments)))
    if shape is not None:
        return shape.format(*arguments)
    if name == "mode" and len(arguments) == 2:
        return _MODES.get(arguments[1], "mode({0})").format(arguments[0])
    if name in _CAST_FUNCTIONS and len(arguments) == 1:
        return arguments[0]
    return None


def default_arguments(name: str, count: int) -> str:
    """The text of the arguments that Spark adds to ``count`` written ones."""
    entry = window_function(name)
    if entry is not None and entry.is_offset:
        return ", 1, NULL"[3 * (count - 1) :] if count < 3 else ""
    written_count, text = _DEFAULTS.get(name, (-1, ""))
    return text if count == written_count else ""


def function_name_text(name: str, ignores_nulls: bool = False) -> str:
    """The name Spark gives a function."""
    if ignores_nulls and aggregate_of(name) != name:
        return aggregate_of(name)
    return name.upper() if name in _UPPER else _RENAMED.get(name, name)

"""Parses the options of a JSON scan, with Spark's names and defaults, when the query is planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kquery_spark.errors import ConfigError, Unsupported
from kquery_spark.sources.csv.options import CsvOptions, pop_patterns, pop_time_zone

_MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
_WRITE_ONLY = frozenset({"compression", "ignorenullfields", "path"})
# Options that are supported only with these values, which are Spark's defaults.
_FIXED: dict[str, tuple[str, ...]] = {
    "allowbackslashescapinganycharacter": ("false",),
    "allowcomments": ("false",),
    "allownonnumericnumbers": ("true",),
    "allownumericleadingzeros": ("false",),
    "allowsinglequotes": ("true",),
    "allowunquotedcontrolchars": ("false",),
    "allowunquotedfieldnames": ("false",),
    "columnnameofcorruptrecord": ("_corrupt_record",),
    "dropfieldifallnull": ("false",),
    "infertimestamp": ("false",),
    "locale": ("en-us",),
    "multiline": ("false",),
    "prefersdecimal": ("false",),
    "primitivesasstring": ("false",),
    "recursivefilelookup": ("false",),
    "samplingratio": ("1", "1.0"),
}


@dataclass(frozen=True)
class JsonOptions:
    """Decides how the values of a JSON line are interpreted; the defaults are the same as in Spark.

    strings: options for parsing dates and times from strings, shared with CSV. filters: whether Spark would push filters
    into its scan, which tests them before it has parsed a whole line. null_filters: whether a filter accepts NULL.
    exact_strings: whether numbers and objects that are read as strings keep their spelling; otherwise they are spelled as
    Jackson writes them.
    """

    mode: str = "PERMISSIVE"
    strings: CsvOptions = field(default_factory=CsvOptions)
    filters: bool = False
    null_filters: bool = False
    case_sensitive: bool = False
    exact_strings: bool = True


def json_options(options_map: Mapping[str, object], time_zone: str = "UTC") -> JsonOptions:
    """Parse Spark's JSON options. Names may have any case; values are strings, booleans or numbers.

    Raises Unsupported for an option that the engine does not support exactly.
    """
    options = {
        name.lower(): str(value)
        for name, value in options_map.items()
        if value is not None and name.lower() not in _WRITE_ONLY
    }
    patterns = pop_patterns(options)
    for key, allowed in _FIXED.items():
        if key in options and options.pop(key).lower() not in allowed:
            raise Unsupported(f"the JSON option {key} is supported only with its default")
    mode = options.pop("mode", "PERMISSIVE").upper()
    if mode not in _MODES:
        raise ConfigError(f"the JSON mode must be one of {', '.join(_MODES)}, not {mode}")
    result = JsonOptions(mode, CsvOptions(time_zone=pop_time_zone(options, time_zone), **patterns))
    if options:
        raise Unsupported(f"the JSON option {sorted(options)[0]} is not supported")
    return result

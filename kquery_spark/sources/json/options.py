"""The options of a JSON read: Spark's names and defaults, checked when the query is planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kquery_spark.errors import ConfigError, Unsupported
from kquery_spark.sources.csv.options import CsvOptions, pop_patterns

_MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
_WRITE_ONLY = frozenset({"compression", "ignorenullfields", "path"})
# Options that are read with these values only, which are Spark's defaults.
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
    """What the values of a JSON line mean; every default is Spark's.

    ``strings``: how strings become dates and times, which CSV and JSON share. ``filters``: Spark's own read would be
    filtered, by conditions that it tests before it has seen a whole line; ``null_filters``: and that NULL passes.
    ``exact_strings``: numbers and objects that are read as strings stay as they are written, else as Jackson writes them.
    """

    mode: str = "PERMISSIVE"
    strings: CsvOptions = field(default_factory=CsvOptions)
    filters: bool = False
    null_filters: bool = False
    case_sensitive: bool = False
    exact_strings: bool = True


def json_options(given: Mapping[str, object], time_zone: str = "UTC") -> JsonOptions:
    """Read Spark's JSON options (names in any case, values text, booleans or numbers).

    Raises Unsupported, with a sentence, for an option the engine does not follow exactly.
    """
    options = {k.lower(): str(v) for k, v in given.items() if v is not None and k.lower() not in _WRITE_ONLY}
    patterns = pop_patterns(options)
    for key, allowed in _FIXED.items():
        if key in options and options.pop(key).lower() not in allowed:
            raise Unsupported(f"the JSON option {key} is supported with its default only")
    mode = options.pop("mode", "PERMISSIVE").upper()
    if mode not in _MODES:
        raise ConfigError(f"the JSON mode {mode} is none of {', '.join(_MODES)}")
    result = JsonOptions(mode, CsvOptions(time_zone=options.pop("timezone", time_zone), **patterns))
    if options:
        raise Unsupported(f"the JSON option {sorted(options)[0]} is not supported")
    return result

"""The options of a CSV read: Spark's names and defaults, checked when the query is planned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kquery_spark.errors import ConfigError, Unsupported
from kquery_spark.functions.datetime.patterns import check_pattern
from kquery_spark.kernels.zones import fixed_offset
from kquery_spark.types import names as t

_WRITE_ONLY = {"quoteall", "escapequotes"}
_ESCAPES = {"\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f", '\\"': '"', "\\'": "'", "\\\\": "\\"}
_MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")


@dataclass(frozen=True)
class CsvOptions:
    """Decides how lines are split into values and how values are interpreted; the defaults are the same as in Spark.

    names: the column names for files without a header; ``{0}`` stands for the index from 0, ``{1}`` for that from 1.
    strict_dates: whether the user set dateFormat, so that other strings are not dates. date_format, timestamp_format,
    timestamp_ntz_format: the patterns of such columns; empty for Spark's default format. case_sensitive: whether header
    names that differ in case are different names. declines_malformed_times: whether to raise SourceError for a string
    that is not a date or a timestamp, instead of reading it as NULL, because Spark may raise an error for it.
    """

    header: bool = False
    delimiter: str = ","
    quote: str = '"'
    escape: str = "\\"
    comment: str = ""
    null_value: str = ""
    empty_value: str = ""
    nan_value: str = "NaN"
    positive_inf: str = "Inf"
    negative_inf: str = "-Inf"
    trim_leading: bool = False
    trim_trailing: bool = False
    mode: str = "PERMISSIVE"
    multi_line: bool = False
    enforce_schema: bool = True
    infer_schema: bool = False
    strict_dates: bool = False
    date_format: str = ""
    timestamp_format: str = ""
    timestamp_ntz_format: str = ""
    prefer_date: bool = True
    time_zone: str = ""
    names: str = "_c{0}"
    case_sensitive: bool = False
    declines_malformed_times: bool = False

    @property
    def trims(self) -> bool:
        """True if blanks around unquoted values are dropped."""
        return self.trim_leading or self.trim_trailing

    @property
    def has_patterns(self) -> bool:
        """True if dates or timestamps are parsed with a pattern."""
        return bool(self.date_format or self.timestamp_format or self.timestamp_ntz_format)

    def pattern_of(self, dtype: pa.DataType) -> str:
        """The pattern for parsing strings of a date or timestamp type; an empty string for the default format."""
        if t.is_timestamp(dtype) and dtype.tz is not None:
            return self.timestamp_format
        return {t.DATE: self.date_format, t.TIMESTAMP_NTZ: self.timestamp_ntz_format}.get(dtype, "")

    @property
    def doubles_quotes(self) -> bool:
        """True if a quote inside a quoted value is written twice."""
        return self.escape == self.quote

    def has_escapes(self, block: bytes) -> bool:
        """True if the block has an escape character other than the quote itself."""
        return not self.doubles_quotes and self.escape.encode() in block

    def distinguishes_empty_values(self, pruned: bool) -> bool:
        """Return whether Spark distinguishes a quoted empty value from NULL, or has a special rule for skipped columns."""
        return self.null_value != self.empty_value or (pruned and self.doubles_quotes)

    @property
    def words(self) -> dict[str, float]:
        """The strings that stand for NaN and the infinities."""
        return {self.positive_inf: math.inf, self.negative_inf: -math.inf, self.nan_value: math.nan}

    @property
    def special_numbers_look_finite(self) -> bool:
        """True if a string for NaN or an infinity has digits, so that it may look like a number: -999 for NaN."""
        return any(map(str.isdigit, "".join(self.words)))

    @property
    def null_strings(self) -> tuple[str, ...]:
        """The unquoted strings that are read as NULL; the empty string comes first."""
        return ("", self.null_value) if self.null_value else ("",)


def csv_options(given: Mapping[str, object], time_zone: str = "UTC") -> CsvOptions:
    """Parse Spark's CSV options. Names may have any case; values are strings, booleans or numbers.

    Raises Unsupported for an option that the engine does not support exactly.
    """
    options = {k.lower(): v for k, v in given.items() if v is not None and k.lower() not in _WRITE_ONLY}
    _drop_harmless(options)
    patterns = pop_patterns(options)
    encoding = str(options.pop("encoding", options.pop("charset", "UTF-8"))).upper()
    if encoding != "UTF-8":  # Spark refuses other spellings, such as utf8
        raise Unsupported(f"CSV files in the encoding {encoding} are not supported")
    for key, allowed in _ALLOWED.items():
        if key in options and options.pop(key) not in allowed:
            raise Unsupported(f"the CSV option {key} is supported with its default only")
    separator = _unescaped(str(options.pop("sep", options.pop("delimiter", ","))))
    result = CsvOptions(
        header=_flag(options, "header"),
        delimiter=separator,
        quote=_char(options, "quote", '"'),
        escape=_char(options, "escape", "\\"),
        comment=_char(options, "comment", ""),
        null_value=str(options.pop("nullvalue", "")),
        empty_value=str(options.pop("emptyvalue", "")),
        nan_value=str(options.pop("nanvalue", "NaN")),
        positive_inf=str(options.pop("positiveinf", "Inf")),
        negative_inf=str(options.pop("negativeinf", "-Inf")),
        trim_leading=_flag(options, "ignoreleadingwhitespace"),
        trim_trailing=_flag(options, "ignoretrailingwhitespace"),
        mode=str(options.pop("mode", "PERMISSIVE")).upper(),
        multi_line=_flag(options, "multiline"),
        enforce_schema=_flag(options, "enforceschema", True),
        infer_schema=_flag(options, "inferschema"),
        **patterns,
        prefer_date=_flag(options, "preferdate", True),
        time_zone=pop_time_zone(options, time_zone),
    )
    _check(result)
    if options:
        raise Unsupported(f"the CSV option {sorted(options)[0]} is not supported")
    return result


def pop_time_zone(options: dict[str, Any], default: str) -> str:
    """Remove the time zone from ``options`` and return it, or the default.

    Raises Unsupported for a time zone that the engine does not know, for example a short name of Java like PST.
    """
    if "timezone" not in options:
        return default
    time_zone = str(options.pop("timezone"))
    fixed_offset(time_zone)  # called for its error
    return time_zone


def pop_patterns(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the date and timestamp patterns from ``options``, and return them as arguments of ``CsvOptions``.

    Raises Unsupported for a pattern that the engine does not support, for example an empty one.
    """
    patterns: dict[str, Any] = {"strict_dates": "dateformat" in options}
    for key, argument in _PATTERNS.items():
        if key not in options:
            continue
        pattern = str(options.pop(key))
        check_pattern(pattern)
        patterns[argument] = "" if (key, pattern) == ("dateformat", _DEFAULT_DATE_FORMAT) else pattern
    return patterns


def _drop_harmless(options: dict[str, object]) -> None:
    """Remove options with values that do not affect the rows; raises Unsupported for other values of these options."""
    options.pop("path", None)
    for key, harmless in _HARMLESS.items():
        if key in options and str(options.pop(key)).lower() not in harmless:
            raise Unsupported(f"the CSV option {key} is not supported")


def _check(options: CsvOptions) -> None:
    if options.mode not in _MODES:
        raise ConfigError(f"the CSV mode must be one of {', '.join(_MODES)}, not {options.mode}")
    if not options.prefer_date:
        raise Unsupported("the CSV option preferDate is supported with its default only")
    if options.trims and options.null_value != options.empty_value:
        raise Unsupported("CSV with blanks ignored and its own nullValue or emptyValue is not supported")
    if options.multi_line and (options.trims or options.comment):
        raise Unsupported("CSV with multiLine and comments or ignored blanks is not supported")


MAX_COLUMNS = 20_480
"""The default of ``maxColumns``. Spark raises an error for a line with more values."""
# For each of these options, the values that do not affect the rows.
_HARMLESS = {
    "inputbuffersize": ("", "-1", "1"),
    "samplingratio": ("", "1", "1.0"),
    "maxcharspercolumn": ("", "-1"),
    "recursivefilelookup": ("", "false"),
}
_DEFAULT_DATE_FORMAT = "yyyy-MM-dd"
_PATTERNS = {
    "dateformat": "date_format",
    "timestampformat": "timestamp_format",
    "timestampntzformat": "timestamp_ntz_format",
}
_ALLOWED: dict[str, tuple[object, ...]] = {
    "locale": ("en-US",),
    "linesep": (),  # no value is allowed: if a newline is set, Spark does not accept other line ends
    "chartoescapequoteescaping": ("",),
    "enabledatetimeparsingfallback": (),
    "unescapedquotehandling": ("STOP_AT_DELIMITER",),
    "maxcolumns": (MAX_COLUMNS, str(MAX_COLUMNS)),
    "columnpruning": (True, "true"),
    "columnnameofcorruptrecord": ("_corrupt_record",),
    "compression": (),
    "codec": (),
    "singlevariantcolumn": (),
    "pathglobfilter": (),
    "modifiedbefore": (),
    "modifiedafter": (),
}


def _flag(options: dict[str, object], key: str, default: bool = False) -> bool:
    value = str(options.pop(key, default)).lower()
    if value not in ("true", "false"):
        raise ConfigError(f"the CSV option {key} must be true or false, not {value}")
    return value == "true"


def _char(options: dict[str, object], key: str, default: str) -> str:
    value = str(options.pop(key, default))
    if len(value) > 1:
        raise ConfigError(f"the CSV option {key} must be one character, not {value!r}")
    if value and (not 0 < ord(value) < 128 or value in "\r\n"):
        raise Unsupported(
            f"the CSV option {key} is supported for ASCII characters only, other than NUL and line ends"
        )
    if not value and default:
        raise Unsupported(f"CSV without a {key} character is not supported")
    return value


def _unescaped(text: str) -> str:
    value = _ESCAPES.get(text, text)
    if len(value) != 1 or not 0 < ord(value) < 128 or value in "\r\n":
        raise Unsupported(f"the CSV delimiter {text!r} is not supported; one ASCII character is")
    return value

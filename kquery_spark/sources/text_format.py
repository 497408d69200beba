"""Options and checks that are common to the text formats CSV and JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kquery_spark.errors import Unsupported
from kquery_spark.sources.features import Feature

if TYPE_CHECKING:
    from kquery_spark.sources.file_format import PathsRead, ReadSettings, RelationRead

TIME_PARSER = "spark.sql.legacy.timeParserPolicy"
"""The setting that selects the parser and formatter of dates and times."""
CORRECTED, EXCEPTION = "CORRECTED", "EXCEPTION"
"""The values of this setting that the engine supports. EXCEPTION, the default of Spark 3.5, differs for strings that are not
dates or timestamps: it raises an error if the parser of Spark before 3.0 would accept the string."""
LEGACY = "LEGACY"
"""The value that selects the parser and formatter of Spark before 3.0, which use the hybrid calendar."""
_PATTERNS = frozenset({"dateformat", "timestampformat", "timestampntzformat"})

PATTERNS = Feature(
    "`dateFormat`, `timestampFormat`, `timestampNTZFormat`",
    note="patterns of digits, names of months and AM or PM; others fall back to Spark",
)
"""The pattern options of dates and times, and which patterns are supported."""

TEXT_OPTIONS: Mapping[str, str] = dict.fromkeys(
    (
        *("mode", "multiline", "encoding", "charset", "linesep", "locale", "dateformat", "timestampformat"),
        *("timestampntzformat", "columnnameofcorruptrecord", "samplingratio", "primitivesasstring"),
    ),
    "read by text formats only",
)


def check_time_parser(title: str, options: Collection[str], settings: ReadSettings) -> None:
    """Raise Unsupported if the session parses dates and times in text files differently than the engine.

    title: the format's name. options: the names of the options that are set, in lower case.
    """
    policy = settings.text(TIME_PARSER).upper()
    if policy != CORRECTED and not (policy == EXCEPTION and _PATTERNS.isdisjoint(options)):
        raise Unsupported(f"{title} files are not supported while {TIME_PARSER} is {policy}")


def check_text_paths(title: str, read: PathsRead) -> None:
    """Raise Unsupported if the session reads text files under paths differently than the engine."""
    settings = read.settings
    if settings is None:
        return
    options = {name.lower() for name in read.options}
    check_time_parser(title, options, settings)
    corrupt = settings.corrupt_record_column
    if (
        "columnnameofcorruptrecord" not in options
        and read.schema is not None
        and corrupt in read.schema.names
    ):
        raise Unsupported(f"the column {corrupt} of malformed lines is not supported")


def check_text_relation(title: str, read: RelationRead) -> None:
    """Raise Unsupported for files of any text format that the engine would read differently than Spark."""
    from kquery_spark.sources.text import check_codec

    relation = read.relation
    check_time_parser(title, relation.options, read.settings)
    if set(relation.data_schema.names) & set(relation.partition_schema.names):
        raise Unsupported(
            f"{title} files with a column that has the name of a partition column are not supported"
        )
    if relation.options.get("mode", "PERMISSIVE").upper() != "PERMISSIVE":
        raise Unsupported(f"{title} files in other modes than PERMISSIVE are not supported")
    for file in read.files:
        check_codec(file.path)


def declines_malformed_times(settings: ReadSettings | None) -> bool:
    """Return whether Spark may raise an error for a malformed date or timestamp instead of reading it as NULL.

    settings: None without a session.
    """
    return settings is not None and settings.text(TIME_PARSER).upper() == EXCEPTION


def corrupt_record_column(read: RelationRead) -> str:
    """Return the name of the column for malformed lines, from the option or else from the session's setting."""
    return read.options.get("columnnameofcorruptrecord", read.settings.corrupt_record_column)

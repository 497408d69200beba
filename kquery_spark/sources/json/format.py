"""Registers the JSON format: how its files are opened, and how its settings and options are treated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kquery_spark.errors import Unsupported
from kquery_spark.sources.file_format import (
    INFERENCE,
    WRITING,
    ColumnsRead,
    Format,
    FormatOptions,
    FormatSettings,
    PathsRead,
    RelationRead,
)
from kquery_spark.sources.text_format import (
    PATTERNS,
    TEXT_OPTIONS,
    check_text_paths,
    check_text_relation,
    corrupt_record_column,
    declines_malformed_times,
)

if TYPE_CHECKING:
    from kquery_spark.sources.base import Source

_EXACT_STRINGS = "spark.sql.json.enableExactStringParsing"
_DATES_FALL_BACK = "spark.sql.legacy.json.enableDateTimeParsingFallback"


def _open_paths(read: PathsRead) -> Source:
    from kquery_spark.sources.json.source import json_source

    check_text_paths(JSON.title, read)
    source = json_source(
        read.paths, read.schema, read.time_zone, case_sensitive=read.case_sensitive, **read.options
    )
    declines = declines_malformed_times(read.settings)
    strings = replace(source.options.strings, declines_malformed_times=declines)
    return replace(source, options=replace(source.options, strings=strings))


def _read_relation(read: RelationRead) -> Source:
    from kquery_spark.sources.json.options import json_options
    from kquery_spark.sources.json.source import JsonSource, check_columns

    check_text_relation(JSON.title, read)
    settings = read.settings
    options = json_options(read.options, settings.time_zone)
    options = replace(
        options,
        strings=replace(options.strings, declines_malformed_times=declines_malformed_times(settings)),
        case_sensitive=settings.case_sensitive,
    )
    check_columns(list(read.relation.data_schema), corrupt_record_column(read))
    return JsonSource(read.files, read.schema, options, read.partition_columns)


def _read_columns(read: ColumnsRead) -> Source:
    """Decline columns of strings in Spark releases that rewrite numbers and objects which they read as strings."""
    from kquery_spark.types.names import contains_string

    schema = read.relation.data_schema
    if not read.settings.knows(_EXACT_STRINGS):
        for name in read.columns:
            if name in schema.names and contains_string(schema.field(name).type):
                raise Unsupported(
                    f"Spark {read.settings.version}, unlike 4.0, rewrites numbers and objects of JSON files that are "
                    f"read as strings, so column {name} is not supported"
                )
    return read.source


JSON = Format(
    name="json",
    title="JSON",
    endings=(".json", ".jsonl", ".ndjson"),
    catalyst_class="json.JsonFileFormat",
    open_paths=_open_paths,
    read_relation=_read_relation,
    read_columns=_read_columns,
    settings=FormatSettings(
        prefixes=("spark.sql.json.", "spark.sql.legacy.json."),
        expected={
            "spark.sql.json.enablePartialResults": "true",
            _EXACT_STRINGS: "true",
            _DATES_FALL_BACK: "false",
            "spark.sql.legacy.json.allowEmptyString.enabled": "false",
        },
        unset=frozenset({_DATES_FALL_BACK}),
    ),
    options=FormatOptions(
        ignored={
            "samplingratio": INFERENCE,
            "primitivesasstring": INFERENCE,
            "prefersdecimal": INFERENCE,
            "infertimestamp": INFERENCE,
            "dropfieldifallnull": INFERENCE,
            "ignorenullfields": WRITING,
            "pretty": WRITING,
            "sortkeys": WRITING,
            "writenonasciicharacterascodepoint": WRITING,
        },
        private=TEXT_OPTIONS,
    ),
    features=(PATTERNS,),
)

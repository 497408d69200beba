"""The entry of JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kquery_spark.sources.file_format import (
    INFERENCE,
    WRITING,
    Format,
    FormatOptions,
    FormatSettings,
    PathsRead,
    RelationRead,
)
from kquery_spark.sources.text_format import TEXT_OPTIONS, check_text_relation

if TYPE_CHECKING:
    from kquery_spark.sources.base import Source

_DATES_FALL_BACK = "spark.sql.legacy.json.enableDateTimeParsingFallback"


def _open_paths(read: PathsRead) -> Source:
    from kquery_spark.sources.json.source import json_source

    return json_source(
        read.paths, read.schema, read.time_zone, case_sensitive=read.case_sensitive, **read.options
    )


def _read_relation(read: RelationRead) -> Source:
    from kquery_spark.sources.json.options import json_options
    from kquery_spark.sources.json.source import JsonSource, check_columns

    check_text_relation(JSON.title, read)
    settings = read.settings
    options = replace(json_options(read.options, settings.time_zone), case_sensitive=settings.case_sensitive)
    check_columns(list(read.relation.data_schema), settings.corrupt_record_column)
    return JsonSource(read.files, read.schema, options, read.partition_columns)


JSON = Format(
    name="json",
    title="JSON",
    endings=(".json", ".jsonl", ".ndjson"),
    catalyst_class="json.JsonFileFormat",
    open_paths=_open_paths,
    read_relation=_read_relation,
    settings=FormatSettings(
        prefixes=("spark.sql.json.", "spark.sql.legacy.json."),
        expected={
            "spark.sql.json.enablePartialResults": "true",
            "spark.sql.json.enableExactStringParsing": "true",
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
)

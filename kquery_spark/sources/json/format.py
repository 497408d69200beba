"""The entry of JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kquery_spark.sources.file_format import (
    INFERENCE,
    WRITING,
    Format,
    FormatOptions,
    FormatSettings,
    ReadSettings,
)
from kquery_spark.sources.text_format import TEXT_OPTIONS, TIME_PARSER, check_text_relation

if TYPE_CHECKING:
    import pyarrow as pa

    from kquery_spark.sources.base import DataFile, Source
    from kquery_spark.sources.file_relation import FileRelation

_DATES_FALL_BACK = "spark.sql.legacy.json.enableDateTimeParsingFallback"


def _open_paths(
    paths: Sequence[str],
    schema: pa.Schema | None,
    time_zone: str,
    case_sensitive: bool,
    options: Mapping[str, object],
) -> Source:
    from kquery_spark.sources.json.source import json_source

    return json_source(paths, schema, time_zone, case_sensitive=case_sensitive, **options)


def _read_relation(
    relation: FileRelation,
    files: tuple[DataFile, ...],
    schema: pa.Schema,
    options: Mapping[str, str],
    settings: ReadSettings,
) -> Source:
    from kquery_spark.sources.json.options import json_options
    from kquery_spark.sources.json.source import JsonSource, check_columns

    check_text_relation(JSON.title, relation, files)
    parsed = replace(json_options(options, settings.time_zone), case_sensitive=settings.case_sensitive)
    check_columns(list(relation.data_schema), settings.corrupt_record_column)
    return JsonSource(files, schema, parsed, tuple(relation.partition_schema.names))


JSON = Format(
    name="json",
    title="JSON",
    endings=(".json", ".jsonl", ".ndjson"),
    catalyst_class="json.JsonFileFormat",
    open_paths=_open_paths,
    read_relation=_read_relation,
    settings=FormatSettings(
        prefixes=("spark.sql.json.", "spark.sql.legacy.json.", TIME_PARSER),
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

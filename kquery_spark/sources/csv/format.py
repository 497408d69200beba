"""Registers the CSV format: how its files are opened, and how its settings and options are treated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kquery_spark.errors import Unsupported
from kquery_spark.sources.csv.features import CORRUPT_RECORDS, FEATURES
from kquery_spark.sources.file_format import (
    INFERENCE,
    WRITING,
    Format,
    FormatOptions,
    FormatSettings,
    PathsRead,
    RelationRead,
)
from kquery_spark.sources.text_format import (
    TEXT_OPTIONS,
    check_text_paths,
    check_text_relation,
    corrupt_record_column,
    declines_malformed_times,
)

if TYPE_CHECKING:
    from kquery_spark.sources.base import Source

_COLUMN_PRUNING = "spark.sql.csv.parser.columnPruning.enabled"
_DATES_FALL_BACK = "spark.sql.legacy.csv.enableDateTimeParsingFallback"
_OPTIONS = dict.fromkeys(
    (
        *("header", "inferschema", "sep", "delimiter", "quote", "escape", "quoteall", "escapequotes"),
        *("comment", "nullvalue", "emptyvalue", "nanvalue", "positiveinf", "negativeinf", "enforceschema"),
        *("ignoreleadingwhitespace", "ignoretrailingwhitespace", "maxcolumns", "maxcharspercolumn"),
        *("unescapedquotehandling", "chartoescapequoteescaping", "inputbuffersize"),
    ),
    "read by CSV only",
)
_FILE_OPTIONS: Mapping[str, str | bool] = {"header": True}
_INFERENCE_OPTIONS: Mapping[str, str | bool] = {"inferSchema": True}


def _open_paths(read: PathsRead) -> Source:
    """Open CSV files; by default they have a header, and types are inferred without a schema."""
    from kquery_spark.sources.csv.source import csv_source

    check_text_paths(CSV.title, read)
    inference = _INFERENCE_OPTIONS if read.schema is None else {}
    options = {**inference, **_FILE_OPTIONS, **read.options}
    options["header"] = options.pop("has_header", options["header"])
    source = csv_source(
        read.paths,
        read.schema,
        read.time_zone,
        names="field_{1}",
        case_sensitive=read.case_sensitive,
        **options,
    )
    declines = declines_malformed_times(read.settings)
    return replace(source, options=replace(source.options, declines_malformed_times=declines))


def _read_relation(read: RelationRead) -> Source:
    from kquery_spark.sources.csv.options import csv_options
    from kquery_spark.sources.csv.source import CsvSource, check_sizes
    from kquery_spark.sources.csv.values import check_type

    check_text_relation(CSV.title, read)
    settings = read.settings
    if not settings.is_on(_COLUMN_PRUNING):
        raise Unsupported("CSV files are not supported while Spark's column pruning is off")
    options = replace(
        csv_options(read.options, settings.time_zone),
        case_sensitive=settings.case_sensitive,
        declines_malformed_times=declines_malformed_times(settings),
    )
    check_sizes(read.files, options)
    for column in read.relation.data_schema:
        check_type(column.name, column.type)
        if column.name == corrupt_record_column(read):
            raise CORRUPT_RECORDS.declined()
    return CsvSource(read.files, read.schema, options, read.partition_columns)


CSV = Format(
    name="csv",
    title="CSV",
    endings=(".csv",),
    catalyst_class="csv.CSVFileFormat",
    open_paths=_open_paths,
    read_relation=_read_relation,
    settings=FormatSettings(
        prefixes=("spark.sql.legacy.csv.",),
        expected={_DATES_FALL_BACK: "false"},
        unset=frozenset({_DATES_FALL_BACK}),
        read=(_COLUMN_PRUNING,),
        expected_for_paths={_COLUMN_PRUNING: "true"},
    ),
    options=FormatOptions(
        ignored={
            "samplingratio": INFERENCE,
            "quoteall": WRITING,
            "escapequotes": WRITING,
            "extension": WRITING,
            "codec": WRITING,
        },
        private={**_OPTIONS, **TEXT_OPTIONS},
    ),
    file_options=_FILE_OPTIONS,
    inference=_INFERENCE_OPTIONS,
    features=FEATURES,
)

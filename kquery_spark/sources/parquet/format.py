"""The registry entry of the Parquet format: its Spark settings, its options, and how relations are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kquery_spark.errors import Unsupported
from kquery_spark.sources.file_format import (
    IGNORED,
    INFERENCE,
    LISTING,
    SKIPPING,
    WRITING,
    ColumnsRead,
    Format,
    FormatOptions,
    FormatSettings,
    PathsRead,
    ReadSettings,
    RelationRead,
    SessionForFiles,
    Zones,
    decline_options,
    filled_defaults,
)
from kquery_spark.sources.parquet.features import FEATURES

if TYPE_CHECKING:
    from kquery_spark.sources.base import DataFile, Source
    from kquery_spark.sources.parquet.calendar import RebaseSettings
    from kquery_spark.sources.parquet.source import ParquetSource

_VECTORIZED = "spark.sql.parquet.enableVectorizedReader"
_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
_IGNORE_MISSING_IDS = "spark.sql.parquet.fieldId.read.ignoreMissing"
_INT96_AS_TIMESTAMP = "spark.sql.parquet.int96AsTimestamp"
_INT96_CONVERSION = "spark.sql.parquet.int96TimestampConversion"
_DATETIME_REBASE = "spark.sql.parquet.datetimeRebaseModeInRead"
_READS_SHREDDED = "spark.sql.variant.allowReadingShredded"
_INT96_REBASE = "spark.sql.parquet.int96RebaseModeInRead"
_MERGES = "spark.sql.parquet.mergeSchema"
_BINARY_AS_STRING = "spark.sql.parquet.binaryAsString"
_INFERS_NTZ = "spark.sql.parquet.inferTimestampNTZ.enabled"
_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"
_EXCEPTION = "EXCEPTION"  # the calendar mode in which Spark refuses old dates and times
# These options override the settings with the same meaning.
_DATETIME_OPTION, _INT96_OPTION = "datetimerebasemode", "int96rebasemode"
# Some of these may be set per column, as "option#column"; only the part before "#" is listed here.
_WRITERS_OPTIONS = (
    *("parquet.block.size", "parquet.block.row.count.limit", "parquet.page.size"),
    *("parquet.page.row.count.limit", "parquet.page.size.row.check.min", "parquet.page.size.row.check.max"),
    *("parquet.page.size.check.estimate", "parquet.page.value.count.threshold"),
    *("parquet.page.write-checksum.enabled", "parquet.dictionary.page.size", "parquet.enable.dictionary"),
    *("parquet.enable.bytestreamsplit", "parquet.writer.version", "parquet.writer.max-padding"),
    *("parquet.validation", "parquet.memory.pool.ratio", "parquet.memory.min.chunk.size"),
    *("parquet.columnindex.truncate.length", "parquet.statistics.truncate.length"),
    *("parquet.column.statistics.enabled", "parquet.size.statistics.enabled", "parquet.bloom.filter.enabled"),
    *("parquet.bloom.filter.expected.ndv", "parquet.bloom.filter.fpp", "parquet.bloom.filter.max.bytes"),
    *("parquet.bloom.filter.adaptive.enabled", "parquet.bloom.filter.candidates.number"),
    *("parquet.compression.codec.zstd.level", "parquet.enable.summary-metadata"),
    "parquet.summary.metadata.level",
)
_FILTERS = tuple(f"parquet.filter.{by}.enabled" for by in ("bloom", "columnindex", "dictionary", "stats"))

_PROMOTES_TYPES_SINCE = (4, 0)
_NULL_STRUCT = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"


def _open_paths(read: PathsRead) -> Source:
    from kquery_spark.sources.files import check_distinct_names
    from kquery_spark.sources.parquet.path_source import parquet_source

    source = parquet_source(read.paths, read.time_zone)
    check_distinct_names(
        source.schema.names, read.case_sensitive
    )  # follow_session finds columns by their names
    return source if read.session is None else follow_session(source, read.session)


def follow_session(source: ParquetSource, session: SessionForFiles) -> ParquetSource:
    """Return a source that reads all columns like the session, for files that are not part of a plan of Spark.

    Raises Unsupported if the engine does not support one of the settings for these files.
    """
    rebased = replace(source, rebase=_rebase_settings({}, session.settings))
    return _check_and_add_zones(rebased, source.schema.names, session)


def _read_relation(read: RelationRead) -> Source:
    from kquery_spark.sources.parquet.source import ParquetSource

    decline_options(read.options, _DATETIME_OPTION, _INT96_OPTION)
    rebase = _rebase_settings(read.options, read.settings)
    defaults = filled_defaults(read, _VECTORIZED)
    return ParquetSource(
        read.files,
        read.schema,
        read.partition_columns,
        rebase=rebase,
        defaults=defaults,
        bucketing=read.bucketing,
    )


def _rebase_settings(options: Mapping[str, str], settings: ReadSettings) -> RebaseSettings:
    """The rebase modes for files that Spark did not write: from the reader's options, otherwise from Spark's settings."""
    from kquery_spark.sources.parquet.calendar import MODES, RebaseSettings

    datetime = options.get(_DATETIME_OPTION, settings.text(_DATETIME_REBASE))
    int96 = options.get(_INT96_OPTION, settings.text(_INT96_REBASE))
    for mode in (datetime, int96):
        if mode not in MODES:
            raise Unsupported(f"files in the calendar mode {mode} are not supported")
    return RebaseSettings(datetime, int96, default_zone=None)


def _read_columns(read: ColumnsRead) -> Source:
    """Decline columns that Spark, by its settings, resolves or converts differently than the engine."""
    from kquery_spark.sources.parquet.field_ids import check_field_ids, field_ids
    from kquery_spark.sources.parquet.source import ParquetSource

    source, columns, settings = read.source, read.columns, read.settings
    assert isinstance(source, ParquetSource)
    described = read.relation.columns
    ids = {name: field_ids(described[name]) for name in columns if name in described}
    ids_by_column = {name: column_ids for name, column_ids in ids.items() if column_ids is not None}
    check_field_ids(
        source.files, ids_by_column, settings.is_on(_FIELD_IDS), settings.is_on(_IGNORE_MISSING_IDS)
    )
    return _check_and_add_zones(source, columns, SessionForFiles(settings, read.zones))


def _check_and_add_zones(
    source: ParquetSource, columns: Sequence[str], session: SessionForFiles
) -> ParquetSource:
    """Decline columns that Spark, by its settings or version, converts differently; add the zones that the others need."""
    from kquery_spark.sources.parquet.setting_checks import (
        check_no_int96,
        check_no_promotion,
        check_no_shredding,
    )

    settings = session.settings
    if not settings.knows(_NULL_STRUCT):
        _check_structs(source, columns)
    if settings.release < _PROMOTES_TYPES_SINCE:
        check_no_promotion(source, columns, settings.version)
    if not settings.is_on(_INT96_AS_TIMESTAMP):
        check_no_int96(source, columns)
    elif settings.is_on(_INT96_CONVERSION):
        check_no_int96(source, columns, by_parquet_java=False)
    if not settings.is_on(_READS_SHREDDED):
        check_no_shredding(source, columns)
    return _with_zones(source, columns, session.zones)


def _check_structs(source: ParquetSource, columns: Sequence[str]) -> None:
    """Raise Unsupported for structs that Spark may read as NULL because a file lacks some of their fields."""
    from kquery_spark.sources.parquet.setting_checks import file_without_fields

    lacking = file_without_fields(source, columns)
    if lacking is not None:
        raise Unsupported(
            "before 4.1, or by a setting, Spark reads a struct as NULL if a file has none of the fields that are read, and "
            f"{lacking} lacks some of them"
        )


def _with_zones(source: ParquetSource, columns: Sequence[str], zones: Zones) -> ParquetSource:
    """Add the rebase tables of those time zones that the source's files need, as far as the zones are known."""
    from kquery_spark.sources.parquet.setting_checks import zones_to_rebase

    names = zones_to_rebase(source, columns)
    known = {zone.name: zone for zone in source.rebase.zones}
    default = zones.default() if None in names else source.rebase.default_zone
    for name in (default if name is None else name for name in names):
        zone = None if name is None or name in known else zones.get(name)
        if zone is not None:
            known[zone.name] = zone
    rebase = replace(source.rebase, default_zone=default, zones=tuple(known.values()))
    return source if rebase == source.rebase else replace(source, rebase=rebase)


def _footer_bytes(file: DataFile) -> int:
    from kquery_spark.sources.parquet.open_files import open_file

    return open_file(file).nbytes


PARQUET = Format(
    name="parquet",
    title="Parquet",
    endings=(".parquet", ".parq"),
    catalyst_class="parquet.ParquetFileFormat",
    open_paths=_open_paths,
    read_relation=_read_relation,
    read_columns=_read_columns,
    settings=FormatSettings(
        prefixes=("spark.sql.parquet.", "spark.sql.legacy.parquet."),
        expected={
            "spark.sql.parquet.ignoreVariantAnnotation": "false",
            _NULL_STRUCT: "false",
        },
        read=(
            *(_FIELD_IDS, _IGNORE_MISSING_IDS, _INT96_AS_TIMESTAMP, _INT96_CONVERSION),
            *(_DATETIME_REBASE, _INT96_REBASE, _VECTORIZED, _READS_SHREDDED),
        ),
        irrelevant={
            _MERGES: INFERENCE,
            _BINARY_AS_STRING: "infers a string from plain bytes, which falls back",
            _INFERS_NTZ: "infers a timestamp from wall-clock times, which falls back",
            _NANOS_AS_LONG: "infers a bigint from nanoseconds, which falls back",
            "spark.sql.parquet.filterPushdown": SKIPPING,
        },
        strictest={
            _FIELD_IDS: "true",
            _IGNORE_MISSING_IDS: "false",
            _INT96_AS_TIMESTAMP: "true",
            _INT96_CONVERSION: "true",
            _DATETIME_REBASE: _EXCEPTION,
            _INT96_REBASE: _EXCEPTION,
            _VECTORIZED: "false",
            _READS_SHREDDED: "false",
            _NULL_STRUCT: None,
        },
        expected_for_paths={
            _MERGES: "false",
            _BINARY_AS_STRING: "false",
            _INFERS_NTZ: "true",
            _NANOS_AS_LONG: "false",
            _INT96_AS_TIMESTAMP: "true",
            _INT96_CONVERSION: "false",
            _READS_SHREDDED: "true",
        },
    ),
    options=FormatOptions(
        ignored={
            **dict.fromkeys(_WRITERS_OPTIONS, WRITING),
            **dict.fromkeys(_FILTERS, SKIPPING),
            "timezone": LISTING,
        },
        table_properties={"parquet.compression": WRITING, "parquet.compress": IGNORED},
    ),
    finds_by_name=True,
    fills_defaults=True,
    reads_variants=True,
    footer_bytes=_footer_bytes,
    features=FEATURES,
)

"""Leaves: files that the engine reads itself, ranges, and rows that are in the query."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlparse

import pyarrow as pa

from kquery_spark.errors import ConfigError, SourceError, Unsupported
from kquery_spark.expr import Named
from kquery_spark.frontends.catalyst.file_options import followed_options
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.scope import Scope
from kquery_spark.logical import LogicalPlan, Projection, Scan
from kquery_spark.sources.base import DataFile, Source
from kquery_spark.sources.csv import CsvSource, csv_options
from kquery_spark.sources.csv.values import check_type
from kquery_spark.sources.files import stamp_of
from kquery_spark.sources.json import JsonSource, json_options
from kquery_spark.sources.json.source import check_columns
from kquery_spark.sources.memory import local_source, one_row_source
from kquery_spark.sources.orc.source import OrcSource
from kquery_spark.sources.parquet.calendar import MODES, RebaseSettings
from kquery_spark.sources.parquet.field_ids import check_field_ids
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.partitions import plain_value
from kquery_spark.sources.ranges import RangeSource
from kquery_spark.sources.text import check_codec
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.spark_bridge.relations import DataFile as ListedFile
from kquery_spark.spark_bridge.relations import FileRelation, LocalRows, OtherRelation, RangeRelation
from kquery_spark.spark_bridge.session_settings import (
    FIELD_IDS,
    IGNORE_CORRUPT_FILES,
    IGNORE_MISSING_FILES,
    IGNORE_MISSING_IDS,
    INT96_AS_TIMESTAMP,
    INT96_CONVERSION,
    ORC_SETTINGS,
    TIME_PARSER,
    SessionSettings,
)
from kquery_spark.spark_bridge.spark_types import arrow_type

_DATETIME_OPTION, _INT96_OPTION = _REBASE_OPTIONS = ("datetimerebasemode", "int96rebasemode")
# Every task carries the rows with it, and so does the query's plan.
_LOCAL_VALUES = 20_000
_WIDEST_RANGE = 1 << 62
# Options that files of any format are asked about, with the setting that each overrules.
_IGNORED_FILES = {"ignorecorruptfiles": IGNORE_CORRUPT_FILES, "ignoremissingfiles": IGNORE_MISSING_FILES}
_FILE_OPTIONS = tuple(_IGNORED_FILES)


@PLANS.handles("LogicalRelation", family="leaves", partly="files of formats that the engine reads")
def logical_relation(node: CatalystNode, context: Context) -> Scope:
    """A table of files, under names that are unique in the query."""
    found = context.relations.read(node)
    if not isinstance(found, FileRelation):
        raise Unsupported(
            found.reason if isinstance(found, OtherRelation) else f"{node.cls} is read by Spark"
        )
    source = context.sources.get(id(found))
    if source is None:
        source = context.sources[id(found)] = _source(found, context.settings)
    if isinstance(source, JsonSource) and context.wanted.filters:
        options = replace(source.options, filters=True, null_filters=context.wanted.null_filters)
        source = replace(source, options=options)
    attributes = [attribute for attribute in node.trees("output") if context.wanted(node, attribute)]
    for column in (attribute["name"] for attribute in attributes):
        if column in found.unread:
            raise Unsupported(f"the column {column} is read by Spark: {found.unread[column]}")
        if source.schema.get_field_index(column) < 0:
            raise Unsupported(
                f"the column {column} comes from the file and not from its data, so Spark reads it"
            )
    columns = [attribute["name"] for attribute in attributes]
    try:
        if isinstance(source, ParquetSource):
            _check_parquet_columns(found, source, columns, context.settings)
            source = context.sources[id(found)] = _with_zones(source, columns, context)
        source.check_files(columns)
    except SourceError as error:
        raise Unsupported(f"{found.format} files are read by Spark: {error}") from error
    return _scan(_table_name(found), source, attributes, context)


@PLANS.handles("LocalRelation", family="leaves", partly="up to 20,000 values, none binary or nested")
def local_relation(node: CatalystNode, context: Context) -> Scope:
    """Rows that are in the query itself, of the columns that are read."""
    attributes = node.trees("output")
    places = [i for i, attribute in enumerate(attributes) if context.wanted(node, attribute)]
    found = context.relations.read(node)
    if not isinstance(found, LocalRows):
        raise Unsupported(found.reason if isinstance(found, OtherRelation) else "streams stay with Spark")
    if found.count * max(1, len(places)) > _LOCAL_VALUES:
        raise Unsupported(f"the {found.count:,} rows that are in the query itself are given by Spark")
    wanted = [attributes[i] for i in places]
    types = [arrow_type(a["dataType"], context.settings.time_zone) for a in wanted]
    # columns of a local relation may share a name, and it may have none
    fields = [pa.field("row", pa.null())]
    arrays = [pa.nulls(found.count)]
    output, names = [], []
    for place, attribute, dtype in zip(places, wanted, types, strict=True):
        nullable = bool(attribute["nullable"])
        name = context.names.fresh(attribute["name"])
        fields.append(pa.field(name, dtype, nullable))
        arrays.append(found.column(place, attribute["dataType"], dtype))
        output.append((attribute["exprId"], name))
        names.append(name)
    rows = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    return Scope(Scan("values", local_source(rows), tuple(names)), tuple(output))


@PLANS.handles("Range", family="leaves")
def range_(node: CatalystNode, context: Context) -> Scope:
    """``spark.range``: numbers that every task counts for itself."""
    found = context.relations.read(node)
    if not isinstance(found, RangeRelation):
        raise Unsupported(found.reason if isinstance(found, OtherRelation) else "streams stay with Spark")
    if max(abs(found.end - found.start), abs(found.step)) >= _WIDEST_RANGE:
        raise Unsupported("a range that is wider than 62 bits is made by Spark")
    (attribute,) = node.trees("output")
    source = RangeSource(found.start, found.end, found.step, attribute["name"])
    return _scan("range", source, [a for a in (attribute,) if context.wanted(node, a)], context)


def _scan(table: str, source: Source, attributes: list[CatalystNode], context: Context) -> Scope:
    """A scan of some columns, under names that are unique in the query."""
    columns = tuple(dict.fromkeys(attribute["name"] for attribute in attributes))
    plan: LogicalPlan = Scan(table, source, columns)
    output, renamed = [], []
    for attribute in attributes:
        name = context.names.fresh(attribute["name"])
        output.append((attribute["exprId"], name))
        renamed.append(Named(plan.column(attribute["name"]), name))
    if any(named.name != str(named.expr)[1:] for named in renamed):
        plan = Projection(plan, tuple(renamed))
    return Scope(plan, tuple(output))


@PLANS.handles("OneRowRelation", family="leaves")
def one_row(node: CatalystNode, context: Context) -> Scope:
    """The one row without columns of a query without a table; Spark makes such a query of merged subqueries."""
    return Scope(Scan("one_row", one_row_source(), ()), ())


def _source(relation: FileRelation, settings: SessionSettings) -> Source:
    make = _FORMATS.get(relation.format)
    if make is None:
        raise Unsupported(f"{relation.format} files are read by Spark")
    partitions = set(relation.partition_schema.names)
    fields = [field for field in relation.data_schema if field.name not in partitions]
    fields = [*fields, *relation.partition_schema]
    folded = [field.name.lower() for field in fields]
    if len(set(folded)) < len(folded):
        raise Unsupported("a table whose column names differ only in case is read by Spark")
    files = tuple(map(_file, relation.files))
    try:
        return make(relation, files, pa.schema(fields), settings)
    except ConfigError as error:
        raise Unsupported(f"{relation.format} files are read by Spark: {error}") from error


def _file(listed: ListedFile) -> DataFile:
    """The file as Spark lists it, for the engine."""
    path = _local(listed.path)
    return DataFile(
        path, listed.size, listed.modified_ms, tuple(map(_value, listed.partition)), stamp_of(path)
    )


def _parquet(
    relation: FileRelation, files: tuple[DataFile, ...], schema: pa.Schema, settings: SessionSettings
) -> Source:
    _check_settings(settings, "spark.sql.parquet.", "spark.sql.legacy.parquet.")
    _check_options(relation, settings, _REBASE_OPTIONS)
    rebase = _rebase_settings(relation.options, settings)
    return ParquetSource(files, schema, tuple(relation.partition_schema.names), rebase=rebase)


def _csv(
    relation: FileRelation, files: tuple[DataFile, ...], schema: pa.Schema, settings: SessionSettings
) -> Source:
    given = _line_options(relation, files, settings, "spark.sql.legacy.csv.")
    if settings.values.get("spark.sql.csv.parser.columnPruning.enabled") != "true":
        raise Unsupported("CSV files are read by Spark while its column pruning is off")
    options = replace(csv_options(given, settings.time_zone), case_sensitive=settings.case_sensitive)
    for field in relation.data_schema:
        check_type(field.name, field.type)
        if field.name == settings.corrupt_record_column:
            raise Unsupported("CSV files with a column of corrupt records are read by Spark")
    return CsvSource(files, schema, options, tuple(relation.partition_schema.names))


def _json(
    relation: FileRelation, files: tuple[DataFile, ...], schema: pa.Schema, settings: SessionSettings
) -> Source:
    given = _line_options(relation, files, settings, "spark.sql.json.", "spark.sql.legacy.json.")
    options = replace(json_options(given, settings.time_zone), case_sensitive=settings.case_sensitive)
    check_columns(list(relation.data_schema), settings.corrupt_record_column)
    return JsonSource(files, schema, options, tuple(relation.partition_schema.names))


def _line_options(
    relation: FileRelation, files: tuple[DataFile, ...], settings: SessionSettings, *prefixes: str
) -> dict[str, str]:
    """The options that say how lines are read, of text files that the engine may read at all."""
    _check_settings(settings, *prefixes, TIME_PARSER)
    _check_ignored_files(relation.options, settings)
    kind = relation.format.upper()
    if set(relation.data_schema.names) & set(relation.partition_schema.names):
        raise Unsupported(f"{kind} files with a column of a partition's name are read by Spark")
    if relation.options.get("mode", "PERMISSIVE").upper() != "PERMISSIVE":
        raise Unsupported(f"which {kind} lines are malformed depends on Spark's own choice of columns")
    for file in files:
        check_codec(file.path)
    return followed_options(relation.format, relation.options, _FILE_OPTIONS)


def _orc(
    relation: FileRelation, files: tuple[DataFile, ...], schema: pa.Schema, settings: SessionSettings
) -> Source:
    _check_settings(settings, *ORC_SETTINGS)
    _check_options(relation, settings)
    return OrcSource(files, schema, tuple(relation.partition_schema.names), relation.jvm_zone)


_FORMATS = {"parquet": _parquet, "csv": _csv, "json": _json, "orc": _orc}


def _check_parquet_columns(
    relation: FileRelation, source: ParquetSource, columns: list[str], settings: SessionSettings
) -> None:
    """Raise Unsupported for columns that Spark, by its settings, finds or converts otherwise than the engine."""
    asked = {name: relation.field_ids[name] for name in columns if name in relation.field_ids}
    by_id, ignore_missing = settings.is_on(FIELD_IDS), settings.is_on(IGNORE_MISSING_IDS)
    check_field_ids(source.files, asked, by_id, ignore_missing)
    if settings.is_on(INT96_CONVERSION) or not settings.is_on(INT96_AS_TIMESTAMP):
        source.check_no_int96(columns)


def _rebase_settings(options: Mapping[str, str], settings: SessionSettings) -> RebaseSettings:
    """What Spark does with old dates and times of files that no Spark wrote: an option of the reader, else a setting."""
    datetime = options.get(_DATETIME_OPTION, settings.datetime_rebase)
    int96 = options.get(_INT96_OPTION, settings.int96_rebase)
    for mode in (datetime, int96):
        if mode not in MODES:
            raise Unsupported(f"files are read by Spark in the calendar mode {mode}")
    return RebaseSettings(datetime, int96, default_zone=None)


def _with_zones(source: ParquetSource, columns: list[str], context: Context) -> ParquetSource:
    """The source with the time zones by which old times in its files are rebased, as far as they are known."""
    names = source.zones_to_rebase(columns)
    known = {zone.name: zone for zone in source.rebase.zones}
    default = context.relations.zones.default() if None in names else source.rebase.default_zone
    for name in (default if name is None else name for name in names):
        zone = None if name is None or name in known else context.relations.zones.get(name)
        if zone is not None:
            known[zone.name] = zone
    rebase = replace(source.rebase, default_zone=default, zones=tuple(known.values()))
    return source if rebase == source.rebase else replace(source, rebase=rebase)


def _check_options(relation: FileRelation, settings: SessionSettings, own: tuple[str, ...] = ()) -> None:
    _check_ignored_files(relation.options, settings)
    for name in followed_options(relation.format, relation.options, (*_FILE_OPTIONS, *own)):
        raise Unsupported(f"files with the option {name} are read by Spark")


def _check_ignored_files(options: Mapping[str, str], settings: SessionSettings) -> None:
    """Raise Unsupported where Spark goes on without files that it cannot read: an option overrules the setting."""
    for option, setting in _IGNORED_FILES.items():
        given = options.get(option)
        if given is None and settings.is_on(setting):
            raise Unsupported(f"files are read by Spark while {setting} is true")
        if given is not None and given.lower() != "false":
            raise Unsupported(f"files with the option {option} are read by Spark")


def _check_settings(settings: SessionSettings, *prefixes: str) -> None:
    for name, value in settings.unexpected(*prefixes).items():
        raise Unsupported(f"files are read by Spark while {name} is {value}")


def _local(path: str) -> str:
    """The plain path of Hadoop's ``file:/a b`` (nothing in it is escaped)."""
    scheme = urlparse(path).scheme
    if scheme != "file":
        raise Unsupported(f"files of the filesystem {scheme}: are read by Spark")
    plain = path.removeprefix("file:")
    return "/" + plain.lstrip("/")


def _value(value: pa.Scalar) -> object:
    return plain_value(value)


def _table_name(relation: FileRelation) -> str:
    name = os.path.basename(relation.roots[0].rstrip("/")) if relation.roots else "files"
    return name.split(".")[0] or name

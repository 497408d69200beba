"""Imports tables of files, and rows in Spark's cache that were read from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from kquery_spark.errors import ConfigError, SourceError, Unsupported
from kquery_spark.frontends.catalyst.file_options import options_with_effect
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.hidden_columns import (
    ROW_INDEX,
    check_blocks,
    hidden_columns,
    is_metadata,
    with_metadata,
)
from kquery_spark.frontends.catalyst.plans.leaf_scopes import leaf_scope, read_relation
from kquery_spark.frontends.catalyst.plans.many_files import check_many_files
from kquery_spark.frontends.catalyst.plans.partition_pruning import prune_partitions
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.logical import Scan
from kquery_spark.sources.base import DataFile, Source
from kquery_spark.sources.bucketing import Bucketing, bucketed_files
from kquery_spark.sources.deletes.deletion_vectors import DeletionVector
from kquery_spark.sources.deletes.live_rows import LiveRows
from kquery_spark.sources.file_features import FILE_COLUMN
from kquery_spark.sources.file_format import ColumnsRead, Format, RelationRead
from kquery_spark.sources.file_relation import FileRelation, ListedFile
from kquery_spark.sources.files import check_unchanged, local_path, modified_ms, stamp_of
from kquery_spark.sources.formats import format_named
from kquery_spark.sources.partitions import plain_value
from kquery_spark.sources.views.numbered_rows import NumberedRows
from kquery_spark.sources.views.renamed import RenamedColumns
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.relations.cached_rows import (
    CACHE_OF_CHANGED_FILES,
    CACHE_OF_OTHER_FORMAT,
    CACHE_OF_REMOTE_FILES,
)
from kquery_spark.spark_bridge.relations.leaves import CACHE, CachedFiles
from kquery_spark.spark_bridge.session.settings import (
    BUCKETING_SETTING,
    IGNORE_CORRUPT_FILES,
    IGNORE_MISSING_FILES,
    SessionSettings,
)

# Options that apply to all formats, each with the setting that it overrides.
_IGNORED_FILES = {"ignorecorruptfiles": IGNORE_CORRUPT_FILES, "ignoremissingfiles": IGNORE_MISSING_FILES}
_FILE_OPTIONS = tuple(_IGNORED_FILES)


@PLANS.handles("LogicalRelation", family="leaves", partly="files of formats that the engine reads")
def logical_relation(node: CatalystNode, context: Context) -> PlanScope:
    """Import a table of files; its columns get names that are unique in the query."""
    relation = prune_partitions(read_relation(node, context, FileRelation), node, context)
    hidden = hidden_columns(node, relation, context)
    if hidden:
        relation = context.relations.with_file_columns(relation, context.settings.whole_file_bytes)
        check_blocks(hidden, relation)
    attributes = [
        attribute
        for attribute in node.trees("output")
        if context.required(node, attribute) and not is_metadata(attribute, relation)
    ]
    columns = [(attribute["exprId"], attribute["name"]) for attribute in attributes]
    names = [name for _, name in columns] + [column for column in hidden.values() if column != ROW_INDEX]
    source = _columns_of_files(relation, context.settings, names, context)
    if ROW_INDEX in hidden.values():
        source = NumberedRows(source, ROW_INDEX)
    scan = _table_scan(relation, source, context)
    return with_metadata(leaf_scope(scan, columns, context, hidden), node, relation, context)


@PLANS.handles(CACHE, family="leaves", partly="rows of files, as docs/sources.md says")
def in_memory_relation(node: CatalystNode, context: Context) -> PlanScope:
    """Import rows in Spark's cache, which are read again from their files."""
    cached = read_relation(node, context, CachedFiles)
    relation = cached.relation
    strictest = format_named(relation.format).settings.strictest
    if strictest is None:
        raise CACHE_OF_OTHER_FORMAT.declined(format=relation.format)
    _check_as_cached(relation, context)
    columns = [
        (attribute["exprId"], name)
        for attribute, name in zip(node.trees("output"), cached.columns, strict=True)
        if context.required(node, attribute)
    ]
    settings = context.settings.with_values(strictest)
    source = _columns_of_files(relation, settings, [name for _, name in columns], context)
    scan = replace(_table_scan(relation, source, context), cached=True)
    return leaf_scope(scan, columns, context)


def _columns_of_files(
    relation: FileRelation, settings: SessionSettings, names: Sequence[str], context: Context
) -> Source:
    """The source of a relation's files; raises Unsupported if one of the columns cannot be read."""
    file_format = format_named(relation.format)
    source = context.sources.setdefault(relation, lambda: _source(relation, file_format, settings, context))
    columns = []
    for name in names:
        stored = relation.stored_name(name)
        if stored in relation.unread:
            raise Unsupported(f"the column {name} is not supported: {relation.unread[stored]}")
        if source.schema.get_field_index(stored) < 0:
            raise FILE_COLUMN.declined(column=name)
        columns.append(stored)
    try:
        if file_format.read_columns is not None:
            read = ColumnsRead(source, relation, columns, settings, context.relations.zones)
            source = file_format.read_columns(read)
            context.sources[relation] = source
        source.check_files(columns)
    except SourceError as error:
        raise Unsupported(f"{relation.format} files are not supported: {error}") from error
    return source


def _table_scan(relation: FileRelation, source: Source, context: Context) -> Scan:
    source = source.once("table", partial(_table_source, relation, source, context.relations.path))
    if context.required.filters:
        source = source.under_filters(context.required.null_filters)
    return Scan(_table_name(relation), source, files_pruned=relation.files_pruned)


def _check_as_cached(relation: FileRelation, context: Context) -> None:
    """Raise Unsupported unless the files are local and have not changed since Spark listed them for its cache."""
    for listed in relation.files:
        path = local_path(listed.path)
        if path is None:
            raise CACHE_OF_REMOTE_FILES.declined(path=relation.roots[0])
        try:
            check_unchanged(_file(relation, listed, context.relations.path))
        except SourceError as error:
            raise CACHE_OF_CHANGED_FILES.declined(path=path) from error


def _source(
    relation: FileRelation, file_format: Format, settings: SessionSettings, context: Context
) -> Source:
    partitions = set(relation.partition_schema.names)
    fields = [field for field in relation.data_schema if field.name not in partitions]
    fields = [*fields, *relation.partition_schema]
    folded = [field.name.lower() for field in fields]
    if len(set(folded)) < len(folded):
        raise Unsupported("a table whose column names differ only in case is not supported")
    for name, value in settings.unexpected(*file_format.settings.prefixes).items():
        raise Unsupported(f"files are not supported while {name} is {value}")
    _check_ignored_files(relation.options, settings)
    options = options_with_effect(relation.format, relation.options, _FILE_OPTIONS)
    try:
        path_of = context.relations.path
        sizes = [listed.size for listed in relation.files]
        check_many_files(
            sizes,
            lambda: _file(relation, relation.files[0], path_of),
            file_format,
            context.relations.parallelism,
        )
        files = tuple(_file(relation, listed, path_of) for listed in relation.files)
        buckets = _bucketing(relation, files, settings)
        read = RelationRead(relation, files, pa.schema(fields), options, settings, buckets)
        return file_format.read_relation(read)
    except (ConfigError, SourceError) as error:
        raise Unsupported(f"{relation.format} files are not supported: {error}") from error


def _bucketing(
    relation: FileRelation, files: Sequence[DataFile], settings: SessionSettings
) -> Bucketing | None:
    """The bucketing of the files; None if Spark does not use it."""
    spec = relation.bucket_spec
    if spec is None or not settings.is_on(BUCKETING_SETTING):
        return None
    return bucketed_files(spec, [file.path for file in files])


def _table_source(relation: FileRelation, source: Source, path_of: Callable[[str], str]) -> Source:
    """Add the views that a table needs on top of its files: live rows, and renamed columns."""
    if any(file.deleted for file in relation.files):
        source = LiveRows(source, tuple(_deleted(file, path_of) for file in relation.files))
    if relation.table_columns is not None:
        fields = relation.table_columns.fields
        source = RenamedColumns(source, pa.schema([fields.get(field.name, field) for field in source.schema]))
    return source


def _deleted(listed: ListedFile, path_of: Callable[[str], str]) -> DeletionVector | None:
    vector = listed.deleted
    return vector if vector is None or vector.path is None else replace(vector, path=path_of(vector.path))


def _file(relation: FileRelation, listed: ListedFile, path_of: Callable[[str], str]) -> DataFile:
    """Convert a listed file to a DataFile; the time in a table format's log is not used, as it may not be the file's."""
    path = path_of(listed.path)
    modified = modified_ms(path) if relation.from_log else listed.modified_ms
    return DataFile(path, listed.size, modified, tuple(map(plain_value, listed.partition)), stamp_of(path))


def _check_ignored_files(options: Mapping[str, str], settings: SessionSettings) -> None:
    """Raise Unsupported if Spark would skip files that it cannot read, by an option or otherwise by a setting."""
    for option, setting in _IGNORED_FILES.items():
        given = options.get(option)
        if given is None and settings.is_on(setting):
            raise Unsupported(f"files are not supported while {setting} is true")
        if given is not None and given.lower() != "false":
            raise Unsupported(f"files with the option {option} are not supported")


def _table_name(relation: FileRelation) -> str:
    name = os.path.basename(relation.roots[0].rstrip("/")) if relation.roots else "files"
    return name.split(".")[0] or name

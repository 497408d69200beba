"""Registers the ORC format: how its files are opened, and how its settings and options are treated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.sources.file_format import (
    INFERENCE,
    LISTING,
    SKIPPING,
    WRITING,
    Format,
    FormatOptions,
    FormatSettings,
    PathsRead,
    RelationRead,
    decline_options,
    filled_defaults,
)
from kquery_spark.sources.orc.features import FEATURES, PADDED

if TYPE_CHECKING:
    import pyarrow as pa

    from kquery_spark.sources.base import Source

# Settings of the ORC library. Spark passes them to the library with and without the prefix.
_BY_POSITION = ("orc.force.positional.evolution", "spark.hadoop.orc.force.positional.evolution")
_VECTORIZED = "spark.sql.orc.enableVectorizedReader"
_MERGES = "spark.sql.orc.mergeSchema"
_WRITERS_OPTIONS = (
    *("orc.compress.size", "orc.compression.strategy", "orc.compression.zstd.level"),
    *("orc.buffer.size.enforce", "orc.stripe.size", "orc.stripe.row.count", "orc.block.size"),
    *("orc.block.padding", "orc.block.padding.tolerance", "orc.create.index", "orc.row.index.stride"),
    *("orc.memory.pool", "orc.rows.between.memory.checks", "orc.bloom.filter.columns"),
    *("orc.bloom.filter.fpp", "orc.bloom.filter.write.version", "orc.dictionary.key.threshold"),
    *("orc.dictionary.early.check", "orc.dictionary.implementation", "orc.encoding.strategy"),
    *("orc.column.encoding.direct", "orc.write.format", "orc.write.variable.length.blocks"),
)


def _open_paths(read: PathsRead) -> Source:
    from kquery_spark.sources.orc.source import orc_source

    return orc_source(read.paths, read.time_zone)


def _read_relation(read: RelationRead) -> Source:
    from kquery_spark.sources.orc.source import OrcSource

    decline_options(read.options)
    return OrcSource(
        read.files,
        read.schema,
        read.partition_columns,
        zone=read.relation.jvm_zone,
        defaults=filled_defaults(read, _VECTORIZED),
        bucketing=read.bucketing,
    )


def _check_column(column: pa.Field) -> None:
    from kquery_spark.sources.orc.source import check_orc_type

    if column.metadata:
        raise PADDED.declined(column=column.name)
    check_orc_type(column.name, column.type)


ORC = Format(
    name="orc",
    title="ORC",
    endings=(".orc",),
    catalyst_class="orc.OrcFileFormat",
    open_paths=_open_paths,
    read_relation=_read_relation,
    check_column=_check_column,
    settings=FormatSettings(
        prefixes=("spark.sql.orc.", "orc.", "spark.hadoop.orc."),
        expected=dict.fromkeys(_BY_POSITION, "false"),
        unset=frozenset(_BY_POSITION),
        read=(_VECTORIZED,),
        irrelevant={
            _MERGES: INFERENCE,
            "spark.sql.orc.filterPushdown": SKIPPING,
        },
        expected_for_paths={_MERGES: "false"},
    ),
    options=FormatOptions(
        ignored={**dict.fromkeys(_WRITERS_OPTIONS, WRITING), "timezone": LISTING},
        table_properties={"orc.compress": WRITING},
    ),
    finds_by_name=True,
    fills_defaults=True,
    features=FEATURES,
    in_jvm_zone=True,
)

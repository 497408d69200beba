"""Options of file relations that do not change which rows a scan gives, each with the reason.

Options travel with a relation whoever set them: a writer's survive in a table's properties, a reader's may be meant for
another format. An option with no entry here is the format's own to follow, or the relation stays with Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

_LISTING = "chooses files, which Spark has listed by the time the engine plans"
_WRITING = "read by writers only"
_INFERENCE = "read when a schema is inferred, which a relation has by then"
_SERDE = "a parameter of Hive's SerDe, which Spark's own readers do not look at"
_SKIPPING = "decides what Spark skips unread, and not which rows pass"
_TEXT = "read by text formats only"
_CSV = "read by CSV only"
_NOBODY = "read by nobody: tables carry it for Hive's sake"

_ALL_FORMATS = {
    "path": _LISTING,
    "paths": _LISTING,
    "basepath": _LISTING,
    "pathglobfilter": _LISTING,
    "recursivefilelookup": _LISTING,
    "modifiedbefore": _LISTING,
    "modifiedafter": _LISTING,
    "ignoreinvalidpartitionpaths": _LISTING,
    "mergeschema": _INFERENCE,
    "compression": _WRITING,
    "partitionoverwritemode": _WRITING,
    "maxrecordsperfile": _WRITING,
    "serialization.format": _SERDE,
    # properties that a table of Hive's keeps when its format is changed, or that a generic job sets for all of its reads
    "parquet.compression": _WRITING,
    "parquet.compress": _NOBODY,
    "orc.compress": _WRITING,
}

_CSV_ONLY = dict.fromkeys(
    (
        *("header", "inferschema", "sep", "delimiter", "quote", "escape", "quoteall", "escapequotes"),
        *("comment", "nullvalue", "emptyvalue", "nanvalue", "positiveinf", "negativeinf", "enforceschema"),
        *("ignoreleadingwhitespace", "ignoretrailingwhitespace", "maxcolumns", "maxcharspercolumn"),
        *("unescapedquotehandling", "chartoescapequoteescaping", "inputbuffersize"),
    ),
    _CSV,
)

_TEXT_ONLY = _CSV_ONLY | dict.fromkeys(
    (
        *("mode", "multiline", "encoding", "charset", "linesep", "locale", "dateformat", "timestampformat"),
        *("timestampntzformat", "columnnameofcorruptrecord", "samplingratio", "primitivesasstring"),
    ),
    _TEXT,
)

# Without the name of a column behind "#", which some may have.
_PARQUET = {
    **dict.fromkeys(
        (
            *(
                "parquet.block.size",
                "parquet.block.row.count.limit",
                "parquet.page.size",
                "parquet.page.row.count.limit",
            ),
            *(
                "parquet.page.size.row.check.min",
                "parquet.page.size.row.check.max",
                "parquet.page.size.check.estimate",
            ),
            *("parquet.page.value.count.threshold", "parquet.page.write-checksum.enabled"),
            *("parquet.dictionary.page.size", "parquet.enable.dictionary", "parquet.enable.bytestreamsplit"),
            *("parquet.writer.version", "parquet.writer.max-padding", "parquet.validation"),
            *("parquet.memory.pool.ratio", "parquet.memory.min.chunk.size"),
            *("parquet.columnindex.truncate.length", "parquet.statistics.truncate.length"),
            *("parquet.column.statistics.enabled", "parquet.size.statistics.enabled"),
            *(
                "parquet.bloom.filter.enabled",
                "parquet.bloom.filter.expected.ndv",
                "parquet.bloom.filter.fpp",
            ),
            *("parquet.bloom.filter.max.bytes", "parquet.bloom.filter.adaptive.enabled"),
            *("parquet.bloom.filter.candidates.number", "parquet.compression.codec.zstd.level"),
            *("parquet.enable.summary-metadata", "parquet.summary.metadata.level"),
        ),
        _WRITING,
    ),
    **dict.fromkeys(
        [f"parquet.filter.{by}.enabled" for by in ("bloom", "columnindex", "dictionary", "stats")], _SKIPPING
    ),
    "timezone": _LISTING,
}

_ORC = {
    **dict.fromkeys(
        (
            *(
                "orc.compress.size",
                "orc.compression.strategy",
                "orc.compression.zstd.level",
                "orc.buffer.size.enforce",
            ),
            *("orc.stripe.size", "orc.stripe.row.count", "orc.block.size", "orc.block.padding"),
            *("orc.block.padding.tolerance", "orc.create.index", "orc.row.index.stride", "orc.memory.pool"),
            *("orc.rows.between.memory.checks", "orc.bloom.filter.columns", "orc.bloom.filter.fpp"),
            *("orc.bloom.filter.write.version", "orc.dictionary.key.threshold", "orc.dictionary.early.check"),
            *("orc.dictionary.implementation", "orc.encoding.strategy", "orc.column.encoding.direct"),
            *("orc.write.format", "orc.write.variable.length.blocks"),
        ),
        _WRITING,
    ),
    "timezone": _LISTING,
}

_JSON = _CSV_ONLY | {
    "samplingratio": _INFERENCE,
    "primitivesasstring": _INFERENCE,
    "prefersdecimal": _INFERENCE,
    "infertimestamp": _INFERENCE,
    "dropfieldifallnull": _INFERENCE,
    "ignorenullfields": _WRITING,
    "pretty": _WRITING,
    "sortkeys": _WRITING,
    "writenonasciicharacterascodepoint": _WRITING,
}
_CSV_OPTIONS = {
    "samplingratio": _INFERENCE,
    "quoteall": _WRITING,
    "escapequotes": _WRITING,
    "extension": _WRITING,
    "codec": _WRITING,
}

# By format: names in lower case, with the reason why a scan need not look at them.
IGNORED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "parquet": _ALL_FORMATS | _TEXT_ONLY | _PARQUET,
        "orc": _ALL_FORMATS | _TEXT_ONLY | _ORC,
        "json": _ALL_FORMATS | _JSON,
        "csv": _ALL_FORMATS | _CSV_OPTIONS,
    }
)


def followed_options(file_format: str, options: Mapping[str, str], own: Iterable[str] = ()) -> dict[str, str]:
    """The options that decide what a scan gives, without those in ``own``, which the caller sees to."""
    ignored = IGNORED[file_format]
    elsewhere = frozenset(own)
    return {
        name: value
        for name, value in options.items()
        if name not in elsewhere and name.partition("#")[0] not in ignored
    }

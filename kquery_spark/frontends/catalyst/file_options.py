"""Options of file relations that do not change which rows a scan gives, each with the reason.

Options travel with a relation whoever set them: a writer's survive in a table's properties, a reader's may be meant for
another format. An option with no entry here is the format's own to follow, or the relation falls back to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kquery_spark.sources.file_format import INFERENCE, LISTING, WRITING, Format
from kquery_spark.sources.formats import FORMATS

_SERDE = "a parameter of Hive's SerDe, which Spark's own readers do not look at"

_ALL_FORMATS = {
    "path": LISTING,
    "paths": LISTING,
    "basepath": LISTING,
    "pathglobfilter": LISTING,
    "recursivefilelookup": LISTING,
    "modifiedbefore": LISTING,
    "modifiedafter": LISTING,
    "ignoreinvalidpartitionpaths": LISTING,
    "mergeschema": INFERENCE,
    "compression": WRITING,
    "partitionoverwritemode": WRITING,
    "maxrecordsperfile": WRITING,
    "serialization.format": _SERDE,
    # properties that a table of Hive's keeps when its format is changed, or that a generic job sets for all of its reads
    **{name: reason for entry in FORMATS for name, reason in entry.options.table_properties.items()},
}


def _ignored(file_format: Format) -> dict[str, str]:
    """The options that a scan of a format need not look at: all formats', other formats' own, and some of its own."""
    foreign = {
        name: reason
        for entry in FORMATS
        for name, reason in entry.options.private.items()
        if name not in file_format.options.private
    }
    return {**_ALL_FORMATS, **foreign, **file_format.options.ignored}


# By format: names in lower case, with the reason why a scan need not look at them.
IGNORED: Mapping[str, Mapping[str, str]] = MappingProxyType({e.name: _ignored(e) for e in FORMATS})


def followed_options(file_format: str, options: Mapping[str, str], own: Iterable[str] = ()) -> dict[str, str]:
    """The options that decide what a scan gives, without those in ``own``, which the caller sees to."""
    ignored = IGNORED[file_format]
    elsewhere = frozenset(own)
    return {
        name: value
        for name, value in options.items()
        if name not in elsewhere and name.partition("#")[0] not in ignored
    }

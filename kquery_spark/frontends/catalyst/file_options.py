"""Options of file relations that do not affect the rows of a scan, each with the reason.

A relation has all options that were ever set: those of a writer remain in a table's properties, and those of a reader may be
intended for another format. An option that is not listed here must be supported by the format; otherwise the relation falls
back to Spark.
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
    # properties that a Hive table retains when its format changes, or that a generic job sets for all of its reads
    **{name: reason for entry in FORMATS for name, reason in entry.options.table_properties.items()},
}


def _ignored(file_format: Format) -> dict[str, str]:
    """The options without effect for a format: those of all formats, private ones of other formats, and some of its own."""
    foreign = {
        name: reason
        for entry in FORMATS
        for name, reason in entry.options.private.items()
        if name not in file_format.options.private
    }
    return {**_ALL_FORMATS, **foreign, **file_format.options.ignored}


# By format: the names in lower case, with the reason why they have no effect.
IGNORED: Mapping[str, Mapping[str, str]] = MappingProxyType({e.name: _ignored(e) for e in FORMATS})


def options_with_effect(
    file_format: str, options: Mapping[str, str], own: Iterable[str] = ()
) -> dict[str, str]:
    """The options that may affect the rows of a scan, without those in ``own``, which the caller handles."""
    ignored = IGNORED[file_format]
    elsewhere = frozenset(own)
    return {
        name: value
        for name, value in options.items()
        if name not in elsewhere and name.partition("#")[0] not in ignored
    }

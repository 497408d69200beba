"""Maps the scheme of a path to an object store, and finds out how Spark connects to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kquery_spark.sources.object_stores.store import ObjectStore
from kquery_spark.spark_bridge.hadoop.azure import ABFS, ABFSS, azure_store
from kquery_spark.spark_bridge.hadoop.google import (
    GOOGLES_CONNECTOR,
    HADOOPS_CONNECTOR,
    google_store,
    google_store_of_hadoop,
)
from kquery_spark.spark_bridge.hadoop.object_store_features import OTHER_FILESYSTEM
from kquery_spark.spark_bridge.hadoop.s3 import S3A, s3_store

_Store = Callable[[Any, str], ObjectStore]


@dataclass(frozen=True)
class _Scheme:
    """The Hadoop filesystems that the engine knows for a scheme.

    stores: by the filesystem's class name, the function that converts its settings to the store of a bucket.
    is_default: True if Hadoop uses the first filesystem unless ``fs.<scheme>.impl`` is set.
    """

    stores: Mapping[str, _Store]
    is_default: bool = True


_SCHEMES: Mapping[str, _Scheme] = {
    "s3a": _Scheme({S3A: s3_store}),
    "s3": _Scheme({S3A: s3_store}, is_default=False),
    "s3n": _Scheme({S3A: s3_store}, is_default=False),
    "gs": _Scheme({GOOGLES_CONNECTOR: google_store, HADOOPS_CONNECTOR: google_store_of_hadoop}),
    "abfs": _Scheme({ABFS: partial(azure_store, encrypted=False)}),
    "abfss": _Scheme({ABFSS: partial(azure_store, encrypted=True)}),
}
#: Schemes that identify the kind of store, so that Spark's settings for it apply.
SPARKS_SCHEMES = frozenset(name for name, scheme in _SCHEMES.items() if scheme.is_default)


def object_store(configuration: Any, scheme: str, bucket: str) -> ObjectStore:
    """Return the options to connect to a bucket; raises Unsupported if Arrow cannot connect as Hadoop does.

    configuration: the session's Hadoop configuration.
    """
    known = _SCHEMES.get(scheme)
    if known is None:
        raise OTHER_FILESYSTEM.declined(scheme=scheme)
    default = next(iter(known.stores)) if known.is_default else ""
    store = known.stores.get(configuration.getTrimmed(f"fs.{scheme}.impl") or default)
    if store is None:
        raise OTHER_FILESYSTEM.declined(scheme=scheme)
    return store(configuration, bucket)

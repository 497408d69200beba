"""The buckets that this process reaches, and how."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow.fs as pafs

from kquery_spark.errors import ConfigError
from kquery_spark.sources.object_stores.azure import AzureStore
from kquery_spark.sources.object_stores.google import GoogleStore
from kquery_spark.sources.object_stores.s3 import S3Store
from kquery_spark.sources.object_stores.store import Location, ObjectStore, without_secrets

#: The kind of store of each scheme.
KINDS: Mapping[str, type[ObjectStore]] = {
    scheme: kind for kind in (S3Store, GoogleStore, AzureStore) for scheme in kind.schemes
}

_lock = threading.Lock()
_stores: dict[tuple[type[ObjectStore], str], ObjectStore] = {}


def connect(stores: Iterable[ObjectStore]) -> None:
    """Have this process reach buckets in these ways from now on."""
    with _lock:
        _stores.update({(type(store), store.bucket): store for store in stores})


def stores_named_in(data: bytes) -> tuple[ObjectStore, ...]:
    """The buckets that this process reaches and that serialized plans name."""
    with _lock:
        stores = tuple(_stores.values())
    return tuple(store for store in stores if store.names_in(data))


def bucket_of(path: str) -> str | None:
    """The bucket that a path of an object store names; None for other paths."""
    located = _located(path)
    return None if located is None else located[1].bucket


def store_of(path: str) -> ObjectStore | None:
    """How this process reaches the bucket of a path, by default with default credentials; None for other paths."""
    located = _located(path)
    if located is None:
        return None
    kind, location = located
    with _lock:
        return _stores.get((kind, location.bucket)) or kind(location.bucket)


def reach(path: str) -> tuple[pafs.FileSystem, str] | None:
    """The filesystem of a path of an object store and the path in it; None for other paths."""
    store, located = store_of(path), _located(path)
    return None if store is None or located is None else (store.filesystem(), located[1].inner)


def error_text(error: object, path: str) -> str:
    """The text of an error about a path, without what its bucket is reached with: Azure's URLs have it in them."""
    store = store_of(path)
    return str(error) if store is None else without_secrets(error, store)


def store_of_options(path: str, options: Mapping[str, Any]) -> ObjectStore:
    """The store of a path, given options of a user: Arrow's names or those of environment variables in lower case.

    ConfigError for unknown options and for paths that are no object store's.
    """
    located = _located(path)
    if located is None:
        raise ConfigError(
            f"storage_options are for paths like s3://bucket/key, gs://bucket/key and abfss://container@account/key, "
            f"not for {path}"
        )
    return located[0].of_options(path, options)


def _located(path: str) -> tuple[type[ObjectStore], Location] | None:
    kind = KINDS.get(path.partition("://")[0])
    location = None if kind is None else kind.locate(path)
    return None if kind is None or location is None else (kind, location)

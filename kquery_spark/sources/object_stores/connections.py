"""The registry of buckets that this process can read, with their credentials."""

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

#: Maps each URI scheme to its kind of store.
KINDS: Mapping[str, type[ObjectStore]] = {
    scheme: kind for kind in (S3Store, GoogleStore, AzureStore) for scheme in kind.schemes
}

_lock = threading.Lock()
_stores: dict[tuple[type[ObjectStore], str], ObjectStore] = {}


def connect(stores: Iterable[ObjectStore]) -> None:
    """Register buckets and their credentials for this process; replaces earlier registrations."""
    with _lock:
        _stores.update({(type(store), store.bucket): store for store in stores})


def stores_named_in(data: bytes) -> tuple[ObjectStore, ...]:
    """The registered buckets whose paths occur in serialized plans."""
    with _lock:
        stores = tuple(_stores.values())
    return tuple(store for store in stores if store.names_in(data))


def bucket_of(path: str) -> str | None:
    """The bucket in a path of an object store; None for other paths."""
    located = _located(path)
    return None if located is None else located[1].bucket


def store_of(path: str) -> ObjectStore | None:
    """The store of a path's bucket; with default credentials if it is not registered. None for other paths."""
    located = _located(path)
    if located is None:
        return None
    kind, location = located
    with _lock:
        return _stores.get((kind, location.bucket)) or kind(location.bucket)


def reach(path: str) -> tuple[pafs.FileSystem, str] | None:
    """The filesystem of a path of an object store, and the path within it; None for other paths."""
    store, located = store_of(path), _located(path)
    return None if store is None or located is None else (store.filesystem(), located[1].inner)


def error_text(error: object, path: str) -> str:
    """The message of an error about a path, without the bucket's credentials, which are part of Azure's URLs."""
    store = store_of(path)
    return str(error) if store is None else without_secrets(error, store)


def store_of_options(path: str, options: Mapping[str, Any]) -> ObjectStore:
    """Build the store of a path from a user's options, which have Arrow's names or those of environment variables.

    Names may have any case. Raises ConfigError for unknown options, and for paths that are not in an object store.
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

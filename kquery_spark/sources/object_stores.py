"""Buckets of object stores: how this process reaches each, without any of that being in paths, plans or messages.

A path names a bucket (``s3a://bucket/key``). What is needed to read there is told to this process once, by the driver's
planner or by ``storage_options``, and travels to workers with the function that they run, not with the plan.
"""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from kquery_spark.errors import ConfigError, SourceError

_S3_PATH = re.compile(r"(s3|s3a|s3n)://([^/@?]+)(?:/[^?]*)?$")
_HIDDEN = "(hidden)"
# Options of the environment variables' names, as other libraries take them, by those of Arrow's filesystem.
_STORAGE_OPTIONS = {
    "aws_access_key_id": "access_key",
    "aws_secret_access_key": "secret_key",
    "aws_session_token": "session_token",
    "aws_region": "region",
    "aws_endpoint_url": "endpoint_override",
}
_SECRETS = frozenset({"access_key", "secret_key", "session_token", "proxy_options", "external_id"})
_OPTIONS = frozenset(
    {
        *_SECRETS,
        *("region", "endpoint_override", "scheme", "anonymous", "role_arn", "session_name"),
        *("force_virtual_addressing", "connect_timeout", "request_timeout"),
    }
)


@dataclass(frozen=True)
class ObjectStore:
    """How to reach one bucket of S3. options: arguments of ``pyarrow.fs.S3FileSystem``; ``repr`` shows no secret."""

    bucket: str
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    @property
    def stamp(self) -> int:
        """A number that tells the bucket from one of the same name at another endpoint."""
        return zlib.crc32(str(dict(self.options).get("endpoint_override")).encode())

    def filesystem(self) -> pafs.FileSystem:
        """The filesystem of the bucket, of which this process has one; SourceError where none can be made."""
        return _filesystem(self)


@lru_cache(maxsize=64)
def _filesystem(store: ObjectStore) -> pafs.FileSystem:
    options = dict(store.options)
    try:
        if "region" not in options and "endpoint_override" not in options:
            options["region"] = pafs.resolve_s3_region(store.bucket)
        return pafs.S3FileSystem(**options)
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise SourceError(
            f"cannot reach the bucket {store.bucket}: {without_secrets(error, store)}"
        ) from None


def without_secrets(error: object, store: ObjectStore) -> str:
    """The text of an error, in case that it repeats what the store was reached with."""
    text = str(error)
    for name, value in store.options:
        if name in _SECRETS and isinstance(value, str) and value:
            text = text.replace(value, _HIDDEN)
    return text


_lock = threading.Lock()
_stores: dict[str, ObjectStore] = {}


def connect(stores: Iterable[ObjectStore]) -> None:
    """Have this process reach buckets in these ways from now on."""
    with _lock:
        _stores.update({store.bucket: store for store in stores})


def stores_named_in(data: bytes) -> tuple[ObjectStore, ...]:
    """The buckets that this process reaches and that serialized plans name."""
    with _lock:
        return tuple(store for bucket, store in _stores.items() if f"://{bucket}/".encode() in data)


def bucket_of(path: str) -> str | None:
    """The bucket that a path of S3 names; None for other paths."""
    match = _S3_PATH.match(path)
    return None if match is None else match[2]


def store_of(path: str) -> ObjectStore | None:
    """How this process reaches the bucket of a path of S3, by default with the default credentials; None for other paths."""
    bucket = bucket_of(path)
    if bucket is None:
        return None
    with _lock:
        return _stores.get(bucket, ObjectStore(bucket))


def reach(path: str) -> tuple[pafs.FileSystem, str] | None:
    """The filesystem of a path of S3 and the path in it; None for other paths."""
    store = store_of(path)
    return None if store is None else (store.filesystem(), path.partition("://")[2].rstrip("/"))


def store_of_options(path: str, options: Mapping[str, Any]) -> ObjectStore:
    """The store of a path, given options of a user: Arrow's names or those of the environment variables in lower case.

    ``aws_access_key_id``, ``aws_secret_access_key``, ``aws_session_token``, ``aws_region``, ``aws_endpoint_url``,
    ``anonymous`` and what else ``pyarrow.fs.S3FileSystem`` takes. ConfigError for others and for paths that are not S3's.
    """
    bucket = bucket_of(path)
    if bucket is None:
        raise ConfigError(f"storage_options are for paths like s3://bucket/key, not for {path}")
    named = {_STORAGE_OPTIONS.get(name.lower(), name.lower()): value for name, value in options.items()}
    unknown = sorted(set(named) - _OPTIONS)
    if unknown:
        raise ConfigError(f"storage_options have no {unknown[0]}; there are {', '.join(sorted(_OPTIONS))}")
    scheme, given, host = str(named.get("endpoint_override", "")).partition("://")
    if given:
        named |= {"endpoint_override": host.rstrip("/"), "scheme": named.get("scheme", scheme)}
    return ObjectStore(bucket, tuple(sorted(named.items())))

"""Base class of object stores: a bucket and the credentials to read it, which no message may contain.

A path names a bucket (``s3a://bucket/key``). What is needed to read there is passed to this process once, by the driver's
planner or by ``storage_options``, and travels to workers with the function that they run, not with the plan.
"""

from __future__ import annotations

import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs
from typing_extensions import Self, override

from kquery_spark.errors import ConfigError, SourceError

_HIDDEN = "(hidden)"


class Location(NamedTuple):
    """The location of a path. bucket: as the path names it. inner: the path within the bucket's Arrow filesystem."""

    bucket: str
    inner: str


@dataclass(frozen=True)
class ObjectStore(ABC):
    """One bucket and the options to read it. ``repr`` does not show the options, because some are secrets."""

    bucket: str
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    #: The URI schemes of paths; the usual one comes first.
    schemes: ClassVar[tuple[str, ...]]
    #: The options of ``open_filesystem``, and those of them that no message may show.
    option_names: ClassVar[frozenset[str]]
    secrets: ClassVar[frozenset[str]]
    #: Maps names that environment variables and other libraries use to the names in ``option_names``.
    synonyms: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @classmethod
    @abstractmethod
    def locate(cls, path: str) -> Location | None:
        """Parse a path; None if it is not a path of this kind of store."""

    @classmethod
    def of_options(cls, path: str, options: Mapping[str, Any]) -> Self:
        """Build the store of a path from a user's options; raises ConfigError for unknown options."""
        location = cls.locate(path)
        assert location is not None
        named = {cls.synonyms.get(name.lower(), name.lower()): value for name, value in options.items()}
        named = cls._completed(named)
        unknown = sorted(set(named) - cls.option_names)
        if unknown:
            raise ConfigError(
                f"storage_options have no {unknown[0]}; there are {', '.join(sorted(cls.option_names))}"
            )
        return cls(location.bucket, tuple(sorted(named.items())))

    @classmethod
    def _completed(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Expand options that stand for several of the filesystem's options."""
        return options

    @property
    @abstractmethod
    def stamp(self) -> int:
        """A number that distinguishes the bucket from one with the same name at another endpoint."""

    def names_in(self, data: bytes) -> bool:
        """True if a path in the bucket occurs in serialized plans."""
        return any(f"{scheme}://{self.bucket}/".encode() in data for scheme in self.schemes)

    def filesystem(self) -> pafs.FileSystem:
        """Return the process's filesystem object for the bucket; raises SourceError if it cannot be created."""
        return _filesystem(self)

    def check_opened(self, file: pa.NativeFile) -> None:  # noqa: B027  most stores give an object's bytes as they are
        """Raise OSError if the store may return other bytes than those of the stored object."""

    @abstractmethod
    def open_filesystem(self, options: dict[str, Any]) -> pafs.FileSystem:
        """Create a filesystem with the store's options; raises Arrow's errors."""


class BucketStore(ObjectStore):
    """A store whose paths consist of bucket and key, with the option ``endpoint_override`` for other servers."""

    #: Matches the store's paths; the first group is the bucket.
    path_pattern: ClassVar[re.Pattern[str]]

    @classmethod
    @override
    def locate(cls, path: str) -> Location | None:
        match = cls.path_pattern.match(path)
        return None if match is None else Location(match[1], path.partition("://")[2].rstrip("/"))

    @classmethod
    @override
    def _completed(cls, options: dict[str, Any]) -> dict[str, Any]:
        scheme, host = split_endpoint(str(options.get("endpoint_override", "")))
        return {"scheme": scheme, **options, "endpoint_override": host} if scheme else options

    @property
    @override
    def stamp(self) -> int:
        return endpoint_stamp(dict(self.options).get("endpoint_override"))


@lru_cache(maxsize=64)
def _filesystem(store: ObjectStore) -> pafs.FileSystem:
    try:
        return store.open_filesystem(dict(store.options))
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise SourceError(
            f"cannot reach the bucket {store.bucket}: {without_secrets(error, store)}"
        ) from None


def without_secrets(error: object, store: ObjectStore) -> str:
    """The message of an error, in which secrets of the store are replaced."""
    text = str(error)
    for name, value in store.options:
        if name in store.secrets and isinstance(value, str) and value:
            text = text.replace(value, _HIDDEN)
    return text


def endpoint_stamp(endpoint: object) -> int:
    """The ``stamp`` of a bucket. endpoint: None for the default endpoint."""
    return zlib.crc32(str(endpoint).encode())


def split_endpoint(url: str) -> tuple[str, str]:
    """Split an endpoint's URL into its scheme, which may be empty, and its host and port."""
    scheme, given, host = url.rpartition("://")
    return (scheme if given else ""), host.rstrip("/")


def is_true(value: object) -> bool:
    """True if an option is on; other libraries accept it as a string."""
    return str(value).strip().lower() in ("true", "1", "yes", "on")

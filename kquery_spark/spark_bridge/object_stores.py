"""Which object store each scheme of Spark's paths is, and what finds out how Spark reaches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kquery_spark.sources.object_stores.store import ObjectStore
from kquery_spark.spark_bridge.hadoop_azure import ABFS, ABFSS, azure_store
from kquery_spark.spark_bridge.hadoop_google import CONNECTOR, google_store
from kquery_spark.spark_bridge.hadoop_s3 import S3A, s3_store
from kquery_spark.spark_bridge.object_store_features import OTHER_FILESYSTEM


@dataclass(frozen=True)
class _Scheme:
    """The filesystem of Hadoop's whose settings are known, and the store for a bucket by its settings.

    is_default: whether Hadoop's connector is the scheme's without a setting.
    """

    implementation: str
    store: Callable[[Any, str], ObjectStore]
    is_default: bool = True


_SCHEMES: Mapping[str, _Scheme] = {
    "s3a": _Scheme(S3A, s3_store),
    "s3": _Scheme(S3A, s3_store, is_default=False),
    "s3n": _Scheme(S3A, s3_store, is_default=False),
    "gs": _Scheme(CONNECTOR, google_store),
    "abfs": _Scheme(ABFS, partial(azure_store, encrypted=False)),
    "abfss": _Scheme(ABFSS, partial(azure_store, encrypted=True)),
}
#: Schemes that name the store by themselves, so that Spark's settings are the ones to reach it by.
SPARKS_SCHEMES = frozenset(name for name, scheme in _SCHEMES.items() if scheme.is_default)


def object_store(configuration: Any, scheme: str, bucket: str) -> ObjectStore:
    """How to reach a bucket; Unsupported where Arrow cannot reach it as Hadoop does.

    configuration: Hadoop's, of the session.
    """
    known = _SCHEMES.get(scheme)
    if known is None:
        raise OTHER_FILESYSTEM.declined(scheme=scheme)
    implementation = configuration.getTrimmed(f"fs.{scheme}.impl")
    if (implementation or (known.is_default and known.implementation)) != known.implementation:
        raise OTHER_FILESYSTEM.declined(scheme=scheme)
    return known.store(configuration, bucket)

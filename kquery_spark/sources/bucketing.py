"""Bucketed tables: a hash of some columns assigns each row to a bucket, and file names say which bucket a file is in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kquery_spark.sources.file_features import NO_BUCKET

# as in Spark's ``BucketingUtils.getBucketId``
_BUCKET_FILE = re.compile(r".*_([0-9]+)(?:\..*)?")


@dataclass(frozen=True)
class BucketSpec:
    """The bucketing of a table: the bucket of a row is the Spark hash of ``columns`` modulo ``count``."""

    columns: tuple[str, ...]
    count: int


@dataclass(frozen=True)
class Bucketing:
    """The buckets of a source's files. files: the bucket of each file."""

    spec: BucketSpec
    files: tuple[int, ...]


def bucketed_files(spec: BucketSpec, paths: Sequence[str]) -> Bucketing:
    """The buckets of a table's files, from their names; UnsupportedQuery for a name without one, which Spark may reject."""
    return Bucketing(spec, tuple(_bucket(path, spec.count) for path in paths))


def _bucket(path: str, count: int) -> int:
    match = _BUCKET_FILE.fullmatch(path.rsplit("/", 1)[-1])
    if match is None or int(match[1]) >= count:
        raise NO_BUCKET.declined(file=path)
    return int(match[1])

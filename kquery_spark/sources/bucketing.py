"""Bucketed tables: the hash of some columns chooses the bucket of a row, and the names of files say which is theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kquery_spark.sources.file_features import NO_BUCKET

# as Spark's ``BucketingUtils.getBucketId`` takes them apart
_BUCKET_FILE = re.compile(r".*_([0-9]+)(?:\..*)?")


@dataclass(frozen=True)
class BucketSpec:
    """How a table is bucketed: Spark's hash of ``columns``, modulo ``count``, is the number of a row's bucket."""

    columns: tuple[str, ...]
    count: int


@dataclass(frozen=True)
class Bucketing:
    """The buckets of a source's files. files: the number of the bucket that each file is in."""

    spec: BucketSpec
    files: tuple[int, ...]


def bucketed_files(spec: BucketSpec, paths: Sequence[str]) -> Bucketing:
    """The buckets of a table's files; UnsupportedQuery if the name of one says no bucket, as Spark may refuse it."""
    return Bucketing(spec, tuple(_bucket(path, spec.count) for path in paths))


def _bucket(path: str, count: int) -> int:
    named = _BUCKET_FILE.fullmatch(path.rsplit("/", 1)[-1])
    if named is None or int(named[1]) >= count:
        raise NO_BUCKET.declined(file=path)
    return int(named[1])

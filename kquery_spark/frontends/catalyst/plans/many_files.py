"""Limits the number of files that the driver inspects while it plans, especially of object stores and of HDFS."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kquery_spark.sources.base import DataFile
from kquery_spark.sources.file_features import LARGE_FOOTERS, MANY_REMOTE_FILES
from kquery_spark.sources.file_format import Format
from kquery_spark.sources.files import local_path
from kquery_spark.sources.footers import MAX_BYTES

# Up to this number, files are always inspected, which takes about a second.
_ALWAYS_INSPECTED_FILES = 500
# Footers that the driver fetches per second, 32 at a time, and the bytes that a core of Spark reads per second, at best.
_FOOTERS_PER_SECOND = 500
_READ_BYTES_PER_SECOND = 100 << 20
# The share of the time that Spark needs to read all files which planning may spend on inspecting them.
_SHARE = 0.1
_MEGABYTE = 1 << 20


def check_many_files(
    sizes: Sequence[int], first: Callable[[], DataFile], file_format: Format, parallelism: int
) -> None:
    """Raise Unsupported if the driver would take too long to inspect all files while it plans.

    Planning reads the footers several times. If they did not fit into the cache, it would open each file each time.

    sizes: the sizes of all files in bytes. first: returns the first file. parallelism: the number of tasks that run at once.
    With more tasks, Spark reads remote files faster, so they must be larger for the inspection to pay.
    """
    if len(sizes) <= _ALWAYS_INSPECTED_FILES:
        return
    file = first()
    if local_path(file.path) is None:
        enough = _READ_BYTES_PER_SECOND * parallelism / (_SHARE * _FOOTERS_PER_SECOND)
        if file_format.footer_bytes is None or sum(sizes) < enough * len(sizes):
            raise MANY_REMOTE_FILES.declined(
                count=len(sizes), limit=_ALWAYS_INSPECTED_FILES, megabytes=round(enough / _MEGABYTE)
            )
    if file_format.footer_bytes is None:
        return
    nbytes = len(sizes) * file_format.footer_bytes(file)
    if nbytes > MAX_BYTES:
        raise LARGE_FOOTERS.declined(count=len(sizes), megabytes=nbytes // _MEGABYTE)

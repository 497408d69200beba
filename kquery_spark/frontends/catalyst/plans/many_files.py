"""Limits the number of files that the driver inspects while it plans.

Two limits apply: the memory of the cached footers, for every Parquet file, and the time to fetch footers, for files of
object stores and of HDFS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kquery_spark.sources.base import DataFile
from kquery_spark.sources.file_features import LARGE_FOOTERS, MANY_REMOTE_FILES
from kquery_spark.sources.file_format import Format
from kquery_spark.sources.files import local_path
from kquery_spark.sources.footers import MAX_BYTES

# Up to this number, files are always inspected, which takes about a second.
_ALWAYS_INSPECTED_FILES = 500
# Footers that the driver reads per second: 32 remote ones at a time, or a local one after the other, several times each.
_FOOTERS_PER_SECOND = 500
_READ_BYTES_PER_SECOND_AND_CORE = 100 << 20  # of Spark, at best
# The share of the time that Spark needs to read all files which planning may spend on inspecting them.
_MAX_INSPECTION_SHARE = 0.1
_MEGABYTE = 1 << 20


def check_many_files(
    sizes: Sequence[int], first: Callable[[], DataFile], file_format: Format, parallelism: int
) -> None:
    """Raise Unsupported if the driver would take too long to inspect all files while it plans.

    Planning reads the footers several times. If they do not fit into the cache of ``MAX_BYTES``, it opens every file each
    time. Remote files must be large, and their footers must fit into the cache; for local files, one of the two is enough.
    The size of the footers is estimated from that of the first file.

    sizes: the sizes of all files in bytes. first: returns the first file. parallelism: the number of tasks that run at once.
    With more tasks, Spark reads the files faster, so they must be larger for the inspection to pay.
    """
    if len(sizes) <= _ALWAYS_INSPECTED_FILES:
        return
    first_file = first()
    is_remote = local_path(first_file.path) is None
    large_bytes = (
        _READ_BYTES_PER_SECOND_AND_CORE * parallelism / (_MAX_INSPECTION_SHARE * _FOOTERS_PER_SECOND)
    )
    are_small = sum(sizes) < large_bytes * len(sizes)
    if is_remote and (file_format.footer_bytes is None or are_small):
        raise MANY_REMOTE_FILES.declined(
            count=len(sizes), limit=_ALWAYS_INSPECTED_FILES, megabytes=round(large_bytes / _MEGABYTE)
        )
    if file_format.footer_bytes is None or not (is_remote or are_small):
        return
    nbytes = len(sizes) * file_format.footer_bytes(first_file)
    if nbytes > MAX_BYTES:
        raise LARGE_FOOTERS.declined(count=len(sizes), megabytes=nbytes // _MEGABYTE)

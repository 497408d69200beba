"""Tests how many files a query may read before it falls back to Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.plans.many_files import check_many_files
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.csv.format import CSV
from kquery_spark.sources.file_format import Format
from kquery_spark.sources.parquet.format import PARQUET

MEGABYTE = 1 << 20
SMALL_FOOTERS = replace(PARQUET, footer_bytes=lambda _: 20_000)


def check(files: list[DataFile], file_format: Format, parallelism: int) -> None:
    check_many_files([file.size for file in files], lambda: files[0], file_format, parallelism)


def files(count: int, size: int, root: str = "hdfs://cluster") -> list[DataFile]:
    return [DataFile(f"{root}/t/{i}.parquet", size, 0) for i in range(count)]


def test_few_files_are_always_inspected() -> None:
    check(files(500, 10), PARQUET, 1000)
    check([], PARQUET, 2)


def test_local_files_are_inspected_if_they_are_large_or_their_footers_fit_into_the_cache() -> None:
    check(files(13_000, 10, "/data"), SMALL_FOOTERS, 1000)
    with pytest.raises(
        Unsupported, match=r"reading 14,000 files .* take about 267 MB of the driver's memory"
    ):
        check(files(14_000, 10, "/data"), SMALL_FOOTERS, 1000)
    check(files(14_000, 64 * MEGABYTE, "/data"), SMALL_FOOTERS, 32)  # inspecting large files pays
    with pytest.raises(Unsupported, match="reading 14,000 files"):
        check(files(14_000, 63 * MEGABYTE, "/data"), SMALL_FOOTERS, 32)
    check(files(100_000, 10, "/data"), CSV, 2)  # has no footers


def test_many_files_have_to_be_larger_the_more_tasks_there_are() -> None:
    check(files(5000, 128 * MEGABYTE), SMALL_FOOTERS, 64)
    check(files(501, 4 * MEGABYTE), SMALL_FOOTERS, 2)
    with pytest.raises(
        Unsupported, match=r"reading 5,000 files .* more than 500 .* of less than about 256 MB"
    ):
        check(files(5000, 128 * MEGABYTE), SMALL_FOOTERS, 128)


def test_footers_that_take_too_much_memory() -> None:
    large = replace(PARQUET, footer_bytes=lambda _: MEGABYTE)
    with pytest.raises(Unsupported, match=r"reading 600 files .* take about 600 MB of the driver's memory"):
        check(files(600, 1000 * MEGABYTE), large, 2)


def test_formats_whose_footers_are_not_kept() -> None:
    with pytest.raises(Unsupported, match="the driver would take too long"):
        check(files(501, 1000 * MEGABYTE), CSV, 2)

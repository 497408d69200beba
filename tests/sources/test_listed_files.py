"""Directories and globs list the same files as in Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from kquery_spark import ExecutionContext
from kquery_spark.errors import KQueryError, SourceError
from kquery_spark.sources import listing
from kquery_spark.sources.csv.source import csv_source
from kquery_spark.sources.listing import list_files
from kquery_spark.sources.parquet.source import parquet_source
from tests.sources.compare import assert_same


def number_file(path: Path, number: int) -> Path:
    """Write a CSV file of one number, and its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{number}\n")
    return path


def assert_listed(spark, path):
    assert_same(
        spark.read.option("inferSchema", True).csv(str(path)), csv_source([str(path)], inferSchema=True)
    )


def assert_same_numbers(spark, path):
    """Compare the rows of the files that ``number_file`` wrote. path: may be a glob."""
    df = spark.read.schema("a INT").csv(path)
    assert_same(df, csv_source([path], pa.schema([("a", pa.int32())])))


def test_links_to_directories_and_files(spark, tmp_path):
    number_file(tmp_path / "other" / "b.csv", 1)
    number_file(tmp_path / "table" / "k=2" / "a.csv", 2)
    os.symlink(tmp_path / "other", tmp_path / "table" / "k=1")
    os.symlink(tmp_path / "other" / "b.csv", tmp_path / "table" / "k=2" / "c.csv")
    assert_listed(spark, tmp_path / "table")
    assert len(list_files([str(tmp_path / "table")])[0]) == 3


def test_links_without_a_target_are_skipped(spark, tmp_path):
    number_file(tmp_path / "a.csv", 1)
    os.symlink(tmp_path / "absent.csv", tmp_path / "b.csv")
    assert_listed(spark, tmp_path)
    with pytest.raises(SourceError, match=r"(?i)no such file or directory"):
        list_files([str(tmp_path / "b.csv")])


def test_links_in_a_circle_are_an_error(tmp_path):
    number_file(tmp_path / "k=1" / "a.csv", 1)
    os.symlink(tmp_path, tmp_path / "k=1" / "k=2")
    # With two links, a walk that only stops at paths of 40 links would follow up to 2 ** 40 paths.
    os.symlink(tmp_path, tmp_path / "k=1" / "k=3")
    with pytest.raises(SourceError, match=r"k=1/k=[23]: it is a link to a directory that contains it"):
        list_files([str(tmp_path)])


def test_a_directory_that_cannot_be_listed_is_an_error(tmp_path, monkeypatch):
    number_file(tmp_path / "k=1" / "a.csv", 1)
    number_file(tmp_path / "k=2" / "a.csv", 2)
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("k=1"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SourceError, match=r"cannot list .*k=1: Permission denied"):
        list_files([str(tmp_path)])


def test_the_first_path_decides_the_columns(spark, tmp_path):
    """A hyphen sorts before the slash after the directory, so k=US-CA/b.parquet is the first file."""
    for value, columns in {"US": ["x"], "US-CA": ["x", "y"]}.items():
        directory = tmp_path / f"k={value}"
        directory.mkdir()
        pq.write_table(pa.table({name: [1] for name in columns}), directory / "part.parquet")
    source = parquet_source([str(tmp_path)])
    assert source.schema.names == spark.read.parquet(str(tmp_path)).columns == ["x", "y", "k"]


@pytest.mark.parametrize(
    "pattern",
    ["[^a]*.csv", "[!a]*.csv", "[a^]*.csv", "[!^]*.csv", "{a,b}.csv", "{a,b*}.csv", "{a,{b,c}}.csv", "{a,a*,?}.csv", "[b-c].csv", "?.csv", "*", "{k,q}/{a,b}.csv"],
)  # fmt: skip
def test_globs(spark, tmp_path, pattern):
    for number, name in enumerate(["a", "b", "c", "^", "bb", ".a", "_b", "k/a", "q/b"]):
        number_file(tmp_path / f"{name}.csv", number)
    if pattern == "*":
        (tmp_path / "k" / "a.csv").unlink()
        (tmp_path / "q" / "b.csv").unlink()
    assert_same_numbers(spark, f"{tmp_path}/{pattern}")


@pytest.mark.parametrize(
    "pattern", ["*", "_*", ".*", "?k", "[._]*", "{_k,a.csv}", "*/*.csv", "*/*", "*/", "*/*/*", "_k", ""]
)
def test_globs_match_hidden_directories_but_no_hidden_files(spark, tmp_path, pattern):
    for number, name in enumerate(["a", "_b", ".c", "_k/a", ".k/a", "_k/_b", "k/.q/a", "k/q/a"]):
        number_file(tmp_path / f"{name}.csv", number)
    assert_same_numbers(spark, f"{tmp_path}/{pattern}")


@pytest.mark.parametrize("pattern", ["*", "*/*.csv", "*/*", "*/*/*"])
def test_globs_skip_links_without_a_target(spark, tmp_path, pattern):
    for number, name in enumerate(["a", "k/a", "k/q/a"]):
        number_file(tmp_path / f"{name}.csv", number)
    (tmp_path / "latest").symlink_to(tmp_path / "gone")
    assert_same_numbers(spark, f"{tmp_path}/{pattern}")


class Container:
    """An Azure container without a hierarchical namespace, where directories are empty objects."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def get_file_info(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        return [
            pafs.FileInfo(name, pafs.FileType.File, size=5 if name.endswith(".csv") else 0)
            for name in self.names
            if name.startswith(f"{selector.base_dir}/")
        ]


def test_remote_globs_match_hidden_directories_but_no_hidden_files(monkeypatch):
    names = ["c/t/_b", "c/t/_b/a.csv", "c/t/_c.csv", "c/t/_SUCCESS", "c/t/k", "c/t/k/a.csv", "c/t/b.csv"]
    monkeypatch.setattr(listing, "filesystem", lambda path: (Container(*names), "c/t/*"))
    listed, _ = list_files(["abfss://c@a/t/*"])
    assert [file.path for file in listed] == [
        f"abfss://c@a/t/{name}" for name in ("_b/a.csv", "b.csv", "k/a.csv")
    ]


@pytest.mark.parametrize("name", ["_b.csv", ".b.csv"])
def test_a_hidden_file_is_refused(spark, tmp_path, name):
    path = str(number_file(tmp_path / name, 1))
    assert spark.read.schema("a INT").csv(path).count() == 0
    with pytest.raises(SourceError, match="is a hidden file, which Spark does not read"):
        list_files([path])
    with pytest.raises(SourceError, match="no such file or directory"):
        list_files([f"{tmp_path}/*"])


@pytest.mark.parametrize("name", ["x=", "=1"])
def test_partition_directories_without_a_name_or_value(spark, tmp_path, name):
    number_file(tmp_path / name / "a.csv", 1)
    with pytest.raises(Exception, match=r"(?i)empty.partition.column"):
        spark.read.schema("a INT").csv(str(tmp_path))
    with pytest.raises(SourceError, match="EMPTY_PARTITION_COLUMN"):
        list_files([str(tmp_path)])


@pytest.mark.parametrize("directories", ["x=1/x=2", "x=1/X=2", "A=1"])
def test_column_names_that_differ_only_in_case(spark, tmp_path, directories):
    number_file(tmp_path / directories / "a.csv", 1)
    if directories != "A=1":  # Spark returns the partition's value under the file's name
        with pytest.raises(Exception, match="COLUMN_ALREADY_EXISTS"):
            spark.read.schema("a INT").csv(str(tmp_path))
    with pytest.raises(KQueryError, match=r"COLUMN_ALREADY_EXISTS|differ only in case"):
        ExecutionContext().register_csv("t", tmp_path, "a INT")


def test_escapes_in_globs_are_declined(tmp_path):
    number_file(tmp_path / "a.csv", 1)
    with pytest.raises(SourceError, match="globs with a backslash"):
        list_files([f"{tmp_path}/\\a.csv"])

"""Directories and globs list the same files as in Spark."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from kquery_spark import ExecutionContext
from kquery_spark.errors import KQueryError, SourceError, Unsupported
from kquery_spark.sources import listing
from kquery_spark.sources.csv.source import csv_source
from kquery_spark.sources.listing import list_files
from kquery_spark.sources.orc.source import orc_source
from kquery_spark.sources.parquet.path_source import parquet_source
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


NARROW, WIDE = pa.table({"id": [1]}), pa.table({"x": ["a"], "id": [2]})


def assert_same_table(spark, *paths):
    """Compare the rows and columns of Parquet files."""
    df = spark.read.parquet(*paths)
    source = parquet_source(paths)
    assert source.schema.names == df.columns
    assert_same(df, source)


@pytest.mark.parametrize("names", [("2023", "2024"), ("2024", "2023")])
def test_the_first_of_the_given_paths_in_path_order_decides_the_columns(spark, tmp_path, names):
    pq.write_table(NARROW, tmp_path / f"{names[0]}.parquet")
    pq.write_table(WIDE, tmp_path / f"{names[1]}.parquet")
    assert_same_table(spark, f"{tmp_path}/2023.parquet", f"{tmp_path}/2024.parquet")
    assert_same_table(spark, f"{tmp_path}/2024.parquet", f"{tmp_path}/2023.parquet")


def test_the_first_file_of_the_directories_of_a_glob_decides_the_columns(spark, tmp_path):
    """The directories are in the order a, a-b, and the files in the order a-b/1.parquet, a/1.parquet."""
    for name, rows in (("a", NARROW), ("a-b", WIDE)):
        (tmp_path / name).mkdir()
        pq.write_table(rows, tmp_path / name / "1.parquet")
    assert_same_table(spark, f"{tmp_path}/*")


@pytest.mark.parametrize(
    "names",
    [["_metadata"], ["_common_metadata"], ["_metadata", "_common_metadata"], ["_metadata_of_a.parquet"], ["k/_metadata"]],
)  # fmt: skip
@pytest.mark.parametrize("pattern", ["", "*", "*.parquet", "{b.parquet,_metadata}"])
def test_summary_files_decide_the_columns_of_parquet(spark, tmp_path, names, pattern):
    pq.write_table(NARROW, tmp_path / "b.parquet")
    (tmp_path / "k").mkdir()
    for number, name in enumerate(names):
        pq.write_metadata(WIDE.schema.append(pa.field(f"y{number}", pa.int64())), tmp_path / name)
    assert_same_table(spark, f"{tmp_path}/{pattern}")


@pytest.mark.parametrize("directory", ["", "k=1"])
def test_summary_files_of_partitioned_tables_decide_the_order_of_columns(spark, tmp_path, directory):
    written: list[pq.FileMetaData] = []
    # The row groups in the summary are larger than the summary itself.
    rows = pa.table({"k": np.arange(20_000) % 2, "n": np.random.default_rng(1).permutation(20_000)})
    pq.write_to_dataset(rows, tmp_path, partition_cols=["k"], metadata_collector=written)
    assert_same_table(spark, str(tmp_path))
    pq.write_metadata(rows.schema, tmp_path / directory / "_common_metadata")
    pq.write_metadata(rows.schema.remove(0), tmp_path / directory / "_metadata", written)
    assert_same_table(spark, str(tmp_path))
    (tmp_path / directory / "_common_metadata").unlink()
    assert_same_table(spark, str(tmp_path))


@pytest.mark.parametrize("again", ["t", "t/", "./t", "[t]", "{t,u}", "t/k=1", "u"])
@pytest.mark.parametrize("name", ["k=1/a.csv", "a.csv"])
def test_several_paths_that_contain_the_same_files(spark, tmp_path, name, again):
    number_file(tmp_path / "t" / name, 5)
    number_file(tmp_path / "t" / name.replace("1", "2"), 6)
    number_file(tmp_path / "u" / name, 7)
    paths = [f"{tmp_path}/t", f"file:{tmp_path}/{again}"]
    try:
        expected = spark.read.schema("a INT").csv(paths)
    except Exception as error:
        assert str(error).startswith(("[CONFLICTING_DIRECTORY_STRUCTURES]", "[PATH_NOT_FOUND]"))
        with pytest.raises(SourceError):
            list_files(paths)
    else:
        assert_same(expected, csv_source(paths, pa.schema([("a", pa.int32())])))


def test_summary_files_of_other_formats_are_not_read(spark, tmp_path):
    number_file(tmp_path / "a.csv", 1)
    number_file(tmp_path / "_metadata", 2)
    assert_same_numbers(spark, str(tmp_path))
    (tmp_path / "orc").mkdir()
    orc.write_table(NARROW, tmp_path / "orc" / "a.orc")
    orc.write_table(WIDE, tmp_path / "orc" / "_metadata")
    with pytest.raises(Unsupported, match=r"Spark may take the columns of ORC files from .*_metadata"):
        orc_source([f"{tmp_path}/orc"])


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
    listed, _, _ = list_files(["abfss://c@a/t/*"])
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


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
@pytest.mark.parametrize(
    "name", ["t#1", "2024?", "%41", "a%20b", "a b", "r[1]", "r?1]", "x{1}", "s*", "c]", "d}", "t#1/", "q?x=1"]
)
def test_names_with_characters_of_uris_and_globs(spark, tmp_path, scheme, name):
    names = ["t#1", "t", "2024?", "2024", "%41", "A", "a%20b", "a b", "r[1]", "r1", "x{1}", "x1", "s*", "sq", "c]", "d}", "q?x=1", "q"]  # fmt: skip
    for number, each in enumerate(names):
        number_file(tmp_path / each, number)
    assert_same_numbers(spark, f"{scheme}{tmp_path}/{name}")


def test_a_file_whose_name_is_a_glob_that_does_not_match_it(spark, tmp_path):
    path = str(number_file(tmp_path / "r[1].csv", 1))
    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        spark.read.schema("a INT").csv(path)
    with pytest.raises(
        SourceError, match=r"no such file or directory: .*; the path is a glob, as in Spark; write \? instead"
    ):
        list_files([path])


@pytest.mark.parametrize("path", ["file:a.csv", "file://localhost{0}/a.csv"])
def test_file_paths_that_spark_rejects(spark, tmp_path, path):
    number_file(tmp_path / "a.csv", 1)
    with pytest.raises(Exception, match=r"Relative path in absolute URI|Wrong FS"):
        spark.read.schema("a INT").csv(path.format(tmp_path))
    with pytest.raises(SourceError, match="after file: there must be an absolute path"):
        list_files([path.format(tmp_path)])


def test_escapes_in_globs_are_declined(tmp_path):
    number_file(tmp_path / "a.csv", 1)
    with pytest.raises(SourceError, match="globs with a backslash"):
        list_files([f"{tmp_path}/\\a.csv"])
    number_file(tmp_path / "\\a.csv", 1)
    with pytest.raises(SourceError, match="globs with a backslash"):
        list_files([f"{tmp_path}/\\a.csv"])

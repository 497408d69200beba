"""Files that change, break or go away between planning and action: the outcome equals that of Spark, whatever it is."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.conftest import settings

FORMATS = ("parquet", *(pytest.param(kind, marks=pytest.mark.faults) for kind in ("orc", "csv", "json")))
ROWS = 5_000


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def append(file: Path) -> None:
    with open(file, "ab") as out:
        out.write(b"7,7\n")


def overwrite(file: Path) -> None:
    """Same length and modification time, other bytes.

    ORC's data has no checksums, and bytes that decode decode differently in Java and C++: its footer is damaged instead.
    """
    state = file.stat()
    length = min(200, state.st_size // 3)
    with open(file, "r+b") as out:
        out.seek(state.st_size - length - 30 if file.suffix == ".orc" else state.st_size // 3)
        out.write(b"\xff" * length)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


def vanish(file: Path) -> None:
    file.unlink()


def replace_by_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def replace_by_other_format(file: Path) -> None:
    file.write_bytes(b"\x89PNG\r\n" + bytes(range(256)) * 20)


FAULTS: dict[str, Callable[[Path], None]] = {
    "truncated": truncate,
    "emptied": empty,
    "appended": append,
    "corrupt": overwrite,
    "vanished": vanish,
    "a directory": replace_by_directory,
    "another format": replace_by_other_format,
}


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, spark: Any, tmp_path: Path) -> tuple[str, Path]:
    """A format, and a directory of three files of it."""
    rows = spark.range(ROWS).selectExpr("id % 7 AS k", "id AS v").repartition(3)
    directory = tmp_path / "data"
    rows.write.format(request.param).save(str(directory))
    return request.param, directory


def data_files(directory: Path) -> list[Path]:
    return sorted(p for p in directory.iterdir() if p.name.startswith("part-"))


def drop_checksums(directory: Path) -> None:
    """Hadoop's own checksum files would refuse the changed bytes before any reader sees them."""
    for file in directory.glob(".*.crc"):
        file.unlink()


def outcome(frame: Any) -> Any:
    """The rows in an order of their own, or that it failed."""
    try:
        return sorted(map(repr, frame.collect()))
    except Exception:
        return "an error"


@pytest.mark.parametrize("place", ["workers", "driver"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_between_plan_and_action_ends_as_in_spark(
    spark: Any, table: tuple[str, Path], fault: str, place: str
) -> None:
    kind, directory = table
    given = {"spark.kquery.driverBytes": "8m", "spark.kquery.threadBytes": "32m"} if place == "driver" else {}
    with settings(spark, given), warnings.catch_warnings():
        warnings.simplefilter("ignore", kq.FallbackWarning)
        frame = (
            spark.read.schema("k bigint, v bigint").format(kind).load(str(directory)).groupBy("k").sum("v")
        )
        fast = kquery_plan(frame, when="always")
        assert sorted(map(repr, fast.collect())) == outcome(frame)
        drop_checksums(directory)
        FAULTS[fault](data_files(directory)[1])
        assert outcome(fast) == outcome(frame)
        assert spark.range(3).count() == 3


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "ignore", ["spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles"]
)
def test_faults_that_spark_must_ignore(spark: Any, table: tuple[str, Path], fault: str, ignore: str) -> None:
    kind, directory = table
    with settings(spark, {ignore: "true"}), warnings.catch_warnings():
        warnings.simplefilter("ignore", kq.FallbackWarning)
        frame = (
            spark.read.schema("k bigint, v bigint").format(kind).load(str(directory)).groupBy("k").sum("v")
        )
        fast = kquery_plan(frame, when="always")
        drop_checksums(directory)
        FAULTS[fault](data_files(directory)[1])
        assert outcome(fast) == outcome(frame)
        # and a query that is planned when the fault is there already
        if fault != "vanished":
            late = (
                spark.read.schema("k bigint, v bigint")
                .format(kind)
                .load(str(directory))
                .groupBy("k")
                .sum("v")
            )
            assert outcome(kquery_plan(late, when="always")) == outcome(late)


NAMES = [
    "with space",
    "per%20cent",
    "a+b",
    "hash#mark",
    "quest?ion",
    "semi;colon",
    "quote'and\"double",
    "back\\slash",
    "curly{a,b}",
    "square[ab]",
    "star*",
    "äöü-日本-🙂",
    "new\nline",
    "k=v",
    "a=b=c",
    "x" * 200,
]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_odd_names_of_directories(spark: Any, tmp_path: Path, name: str, kind: str) -> None:
    plain = tmp_path / "plain"
    spark.range(100).selectExpr("id % 3 AS k", "id AS v").write.format(kind).save(str(plain))
    odd = tmp_path / name
    shutil.copytree(plain, odd, ignore=shutil.ignore_patterns(".*", "_*"))

    def query(path: str) -> Any:
        return spark.read.schema("k bigint, v bigint").format(kind).load(path).groupBy("k").sum("v")

    # the name as it is, with the characters escaped that Spark takes for a glob, and below a directory that is given
    escaped = "".join(f"\\{c}" if c in "{}[]*?\\" else c for c in str(odd))
    for path in (str(odd), escaped, str(tmp_path / "*")):
        try:
            frame = query(path)
        except Exception:
            continue  # Spark does not take the path
        with warnings.catch_warnings():
            warnings.simplefilter("error", kq.FallbackWarning)
            assert outcome(kquery_plan(frame, when="always")) == outcome(frame)


def test_odd_values_of_partition_columns(spark: Any, tmp_path: Path) -> None:
    values = [
        "a b",
        "50%",
        "x/y",
        "p=q",
        "a:b",
        "#",
        "?",
        "*",
        "[1]",
        "{z}",
        "ü",
        "",
        None,
        "\n",
        "__HIVE__",
        ".",
    ]
    rows = spark.createDataFrame([(i, v) for i, v in enumerate(values)], "v int, p string")
    rows.write.partitionBy("p").parquet(str(tmp_path / "t"))
    frame = spark.read.parquet(str(tmp_path / "t"))
    fast = kquery_plan(frame.groupBy("p").sum("v"), when="always", fallback="error")
    assert outcome(fast) == outcome(frame.groupBy("p").sum("v"))
    one = frame.where("p = '50%'").groupBy("p").count()
    assert outcome(kquery_plan(one, when="always", fallback="error")) == outcome(one)


@pytest.mark.faults
def test_many_small_files(spark: Any, tmp_path: Path) -> None:
    """10,000 files of one row: planned and read in bounded time, by no more tasks than Spark would start."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    directory = tmp_path / "many"
    directory.mkdir()
    pq.write_table(pa.table({"k": [1], "v": [2]}), directory / "0.parquet")
    for number in range(1, 10_000):
        shutil.copyfile(directory / "0.parquet", directory / f"{number}.parquet")
    frame = spark.read.parquet(str(directory)).groupBy("k").sum("v")
    fast = kquery_plan(frame, when="always", fallback="error")
    assert [tuple(r) for r in fast.collect()] == [(1, 20_000)]


def test_unreadable_files_end_as_in_spark(spark: Any, table: tuple[str, Path]) -> None:
    """A broken symbolic link, which root cannot read either."""
    kind, directory = table
    victim = data_files(directory)[1]
    frame = spark.read.schema("k bigint, v bigint").format(kind).load(str(directory)).groupBy("k").sum("v")
    fast = kquery_plan(frame, when="always")
    drop_checksums(directory)
    victim.unlink()
    victim.symlink_to(directory / "nowhere")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kq.FallbackWarning)
        assert outcome(fast) == outcome(frame)

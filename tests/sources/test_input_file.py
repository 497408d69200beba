"""An open data file: never mapped, and what was read is the planned file's or an error."""

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq
import pytest

from kquery_spark.errors import SourceError
from kquery_spark.sources import input_file
from kquery_spark.sources.csv.source import csv_source
from kquery_spark.sources.footers import PARQUET_FOOTERS
from kquery_spark.sources.input_file import InputFile, forget_input, shared_input
from kquery_spark.sources.json.source import json_source
from kquery_spark.sources.listing import list_files
from kquery_spark.sources.orc.source import orc_source
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.path_source import parquet_source
from tests.physical.harness import open_files

ROWS = 400_000  # enough for pages and dictionary indices to be looked at one by one


def data_file(path):
    ((file,), _, _) = list_files([str(path)])
    return file


def table():
    return pa.table({"k": pa.array([i % 50 for i in range(ROWS)]), "v": pa.array(range(ROWS))})


def sources(directory):
    few = table().slice(0, 1000)
    pq.write_table(table(), directory / "a.parquet", row_group_size=ROWS // 2, data_page_size=4096)
    pa_orc.write_table(few, directory / "a.orc")
    (directory / "a.csv").write_text("".join(f"{i % 50},{i}\n" for i in range(1000)))
    (directory / "a.json").write_text("".join(f'{{"k": {i % 50}, "v": {i}}}\n' for i in range(1000)))
    return {
        "parquet": parquet_source([str(directory / "a.parquet")]),
        "orc": orc_source([str(directory / "a.orc")]),
        "csv": csv_source([str(directory / "a.csv")], few.schema),
        "json": json_source([str(directory / "a.json")], few.schema),
    }


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "json"])
def test_no_file_is_mapped(tmp_path, kind):
    source = sources(tmp_path)[kind]
    split = source.splits()[0]
    batches = source.read(split, ["k", "v"])
    next(batches)
    if kind == "parquet":
        source.page_statistics(split, ["v"])
        dictionary_column = source.dictionary_column(split, "k")
        assert dictionary_column is None or dictionary_column.values.type == pa.int64()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()


def test_a_file_that_shrinks_gives_an_error_that_names_row_group_and_file(tmp_path):
    source = sources(tmp_path)["parquet"]
    first, second = source.splits()
    list(source.read(first, ["v"]))
    path = tmp_path / "a.parquet"
    os.truncate(path, path.stat().st_size // 3)
    opened = PARQUET_FOOTERS.get(source.files[0])
    with pytest.raises(SourceError, match=f"row group 1 of {path}: .*has changed since"):
        opened.read(*second.pieces, ["v"])
    with pytest.raises(SourceError, match=f"{path} has changed since"):
        opened.pages.ranges(1, "v")


def test_bytes_written_meanwhile_are_not_taken(tmp_path):
    """Of the same length, they would look like data."""
    path = tmp_path / "a.bin"
    path.write_bytes(b"before" * 1000)
    with InputFile(data_file(path)) as opened:
        assert opened.read_at(6, 600) == b"before"
        with open(path, "r+b") as file:
            file.write(b"after!" * 1000)
        os.utime(path, ns=(1, 1))  # however little time has passed
        with pytest.raises(SourceError, match=f"{path} has changed"):
            opened.read_at(6, 600)


def test_another_file_under_the_path_is_not_the_open_one(tmp_path):
    path, other = tmp_path / "a.bin", tmp_path / "b.bin"
    path.write_bytes(b"before")
    with InputFile(data_file(path)) as opened:
        other.write_bytes(b"another one")
        other.replace(path)
        assert opened.read_at(6, 0) == b"before"


def test_the_end_of_a_file_is_an_error_not_fewer_bytes(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"123456")
    with InputFile(data_file(path)) as opened:
        with pytest.raises(SourceError, match=f"{path} ends at byte 6"):
            opened.read_at(4, 4)
        with pytest.raises(ValueError, match="no 3 bytes at -1"):
            opened.read_at(3, -1)


def test_a_directory_and_a_missing_file_are_named(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"123")
    file = data_file(path)
    path.unlink()
    with pytest.raises(SourceError, match=f"{path} does not exist any more"):
        InputFile(file)
    with pytest.raises(SourceError, match=str(tmp_path)):
        InputFile(replace(file, path=str(tmp_path)))


def test_few_handles_stay_open(tmp_path, monkeypatch):
    monkeypatch.setattr(input_file, "_MAX_OPEN_FILES", 3)
    files = []
    for i in range(8):
        path = tmp_path / f"{i}.parquet"
        pq.write_table(pa.table({"v": [i]}), path)
        files.append(data_file(path))
    assert [open_file(f).read(0, ["v"]).column(0).to_pylist() for f in files] == [[i] for i in range(8)]
    assert len(open_files(tmp_path)) == 3
    assert [open_file(f).read(0, ["v"]).column(0).to_pylist() for f in files] == [[i] for i in range(8)]
    kept = shared_input(files[7])
    forget_input(files[7])
    assert kept.read_at(4, 0) == b"PAR1"


@pytest.mark.parametrize("change", [Path.unlink, lambda p: p.write_bytes(b"other")], ids=["gone", "changed"])
def test_the_handle_of_a_file_that_is_gone_is_let_go(tmp_path, change):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": [1]}), path)
    file = data_file(path)
    open_file(file).read(0, ["v"])
    change(path)
    with pytest.raises(SourceError, match=str(path)):
        open_file(file)
    assert open_files(tmp_path) == []

"""Lengths of strings, lists and maps in ORC files: damaged ones are an error before pyarrow follows them into memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

from kquery_spark.errors import SourceError
from kquery_spark.sources.orc.lengths import check_lengths
from kquery_spark.sources.orc.source import orc_source
from tests.sources.compare import read_all

# The examples of ORC's specification, which are valid
SHORT_REPEAT = bytes.fromhex("0a2710")
DIRECT = bytes.fromhex("5e035ca1ab1edeadbeef")
PATCHED_BASE = bytes.fromhex("8e132b2107d01e00147028323c46505a646e78828c96a0aab4befce8")
DELTA = bytes.fromhex("c609020222424246")


@pytest.mark.parametrize("run", [SHORT_REPEAT, DIRECT, PATCHED_BASE, DELTA, SHORT_REPEAT + DELTA, b""])
def test_valid_runs(run: bytes):
    check_lengths(run, is_version_1=False)


@pytest.mark.parametrize("run", [b"\x61\x00\x07", bytes.fromhex("fb020306070b"), b"\x61\xff\x64"])
def test_valid_runs_of_version_1(run: bytes):
    check_lengths(run, is_version_1=True)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (b"\x3f" + b"\xff" * 8, "add up to"),  # repeats of a value of 64 bits
        (bytes([0x40 | 31 << 1, 0]) + b"\xff" * 8, "have 64 bits"),
        (bytes([0x40 | 27 << 1, 1]) + b"\xff" * 8, "add up to"),
        (b"\x8e\x13\x2b\x21\x87" + PATCHED_BASE[5:], "negative"),
        (bytes([0xC0, 9, 5, 3]), "negative"),  # ten values from 5, each 2 less than the one before
        (bytes([0xC6, 9, 2, 3, 0xFF, 0xFF, 0xFF, 0xFF]), "negative"),
        (b"\xc6", "end within a run"),
        (bytes([0x40 | 27 << 1, 255]), "end within a run"),
    ],
)
def test_damaged_runs(run: bytes, message: str):
    with pytest.raises(ValueError, match=message):
        check_lengths(run, is_version_1=False)


@pytest.mark.parametrize(
    ("run", "message"),
    [(b"\x61\xff\x05", "negative"), (b"\xfe\xff\xff\xff\xff\xff\x7f\x01", "add up to"), (b"\xf0\x01", "end")],
)
def test_damaged_runs_of_version_1(run: bytes, message: str):
    with pytest.raises(ValueError, match=message):
        check_lengths(run, is_version_1=True)


@pytest.mark.parametrize("version", ["0.11", "0.12"])
@pytest.mark.parametrize("compression", ["uncompressed", "zlib"])
def test_lengths_of_all_kinds_are_accepted(tmp_path: Path, version: str, compression: str):
    numbers = np.random.default_rng(3)
    lengths = {
        "small": numbers.integers(0, 9, 5000),
        "skewed": (numbers.random(5000) ** 30 * 4000).astype(int),
        "rising": np.arange(5000) // 50,
        "falling": (5000 - np.arange(5000)) // 7,
        "steps": numbers.integers(0, 3, 5000).cumsum() % 900,
    }
    table = pa.table(
        {name: pa.array(["x" * int(n) for n in some]) for name, some in lengths.items()}
        | {"list": pa.array([[1] * int(n) for n in lengths["small"]])}
    )
    orc.write_table(table, tmp_path / "t.orc", compression=compression, file_version=version)
    assert read_all(orc_source([str(tmp_path / "t.orc")])).equals(table)


def test_a_damaged_length_of_a_map_is_an_error_that_names_the_file(tmp_path: Path):
    path = tmp_path / "t.orc"
    table = pa.table({"m": pa.array([[(i, i)] * 2 for i in range(8)], pa.map_(pa.int64(), pa.int64()))})
    orc.write_table(table, str(path), compression="uncompressed")
    data = path.read_bytes()
    lengths = bytes([5, 2])  # eight values of 2
    assert data.count(lengths) == 1
    # a run of the same size whose second value is negative
    path.write_bytes(data.replace(lengths, bytes([0xC0, 7])))
    with pytest.raises(SourceError, match=r"t\.orc as ORC: column 1 of stripe 0 is damaged"):
        read_all(orc_source([str(path)]))

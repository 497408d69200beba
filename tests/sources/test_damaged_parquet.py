"""Damaged Parquet files give errors that name the file; pyarrow alone would end the process by a signal for some of them."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import SourceError
from kquery_spark.fuzz.settings import IN_DRIVER, applied
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.sources.deletes.position_deletes import PositionDeletes
from kquery_spark.sources.parquet import footer_tables as tables_module
from kquery_spark.sources.parquet.footer import read_footer
from kquery_spark.sources.parquet.footer_tables import ABSENT, Chunk, Group, footer_tables
from kquery_spark.sources.parquet.thrift_compact import LIST, STRUCT, TRUE, Cursor, integer, varint
from tests.conftest import ROOT, exhaustive
from tests.sources.mutated_files import run
from tests.sources.mutations.children import Child
from tests.sources.mutations.formats import format_named
from tests.sources.mutations.outcomes import ROWS, Outcome

_LEAF, _CHUNK = (2, [1]), (4, [0], 1, [0], 3)
_LEAF_TYPE, _REPETITION = (*_LEAF, 1), (*_LEAF, 3)
_TYPE, _CODEC, _VALUES, _SIZE = ((*_CHUNK, field) for field in (1, 4, 5, 7))
_INT64, _REQUIRED = integer(2), integer(0)

DAMAGE = {
    "unknown compression codec": [(_CODEC, integer(30))],
    "another type": [(_TYPE, _INT64)],
    "statistics of a wrong size": [(_TYPE, _INT64), (_LEAF_TYPE, _INT64)],
    "histogram of a wrong number of levels": [(_REPETITION, _REQUIRED)],
    "another path": [((*_CHUNK, 3), b"\x18\x01x")],
    "another number of values": [(_VALUES, integer(7))],
    "not inside of the file": [(_SIZE, integer(8000))],
}
"""Bytes of the footer that are replaced, by a part of the error. pyarrow ends the process for the first four of them."""


def offset_of(footer, steps):
    """Where a value begins. steps: field ids of structs, and the indexes of structs in lists as lists of one number."""
    cursor = Cursor(footer)
    for step in steps:
        if isinstance(step, list):
            cursor.list_size()
            for _ in range(step[0]):
                cursor.skip(STRUCT)
        else:
            for field, kind, _ in cursor.fields():
                if field == step:
                    break
                cursor.skip(kind)
    return cursor.at


def damaged(directory: Path, damage, name="damaged.parquet", table=None) -> str:
    """A file with other bytes in its footer."""
    path = directory / name
    if table is None:
        table = pa.table({"k": pa.array([i % 7 for i in range(10)], pa.int32())})
    pq.write_table(table, path, use_dictionary=False, store_schema=False)
    footer = footer_of(path)
    data = bytearray(path.read_bytes())
    start = len(data) - 8 - len(footer)
    for steps, value in damage:
        at = start + offset_of(footer, steps)
        data[at : at + len(value)] = value
    path.write_bytes(data)
    return str(path)


def footer_of(path) -> bytes:
    with pa.OSFile(str(path)) as file:
        footer = read_footer(file)
    assert footer is not None
    return footer


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Mapping[str, str]:
    directory = tmp_path_factory.mktemp("damaged")
    return {
        problem: damaged(directory, damage, f"damaged{number}.parquet")
        for number, (problem, damage) in enumerate(DAMAGE.items())
    }


def in_child(work) -> str:
    """What ``work`` returns in a forked child; fails with what ends the child otherwise."""
    child = Child.forked(lambda write: write(Outcome(0, "", ROWS, work()).to_line()))
    outcomes = list(child.outcomes(60.0))
    ending = child.end()
    assert outcomes, ending.description
    return outcomes[0].detail


@pytest.mark.parametrize("problem", DAMAGE)
def test_a_context_names_the_file(files, problem):
    def read() -> str:
        context = kq.ExecutionContext()
        try:
            context.register_parquet("t", files[problem])
            return f"{context.sql('SELECT * FROM t WHERE k > 2').to_arrow().num_rows} rows"
        except SourceError as error:
            return str(error)

    message = in_child(read)
    assert Path(files[problem]).name in message and problem in message


@pytest.mark.parametrize("problem", DAMAGE)
def test_on_spark_the_answer_is_sparks(spark, files, problem):
    """Runs behind ``test_a_context_names_the_file``, which shows in a child that no signal comes."""
    frame = spark.read.schema("k int").parquet(files[problem]).where("k > 2")
    expected = answer_of(frame.collect)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        assert answer_of(frame.transform(kq.kquery_plan, when="always").collect) == expected
        kq.enable(spark, when="always")
        try:
            with applied(spark, IN_DRIVER):
                assert answer_of(frame.collect) == expected
        finally:
            kq.disable(spark)


def test_files_that_spark_ignores(spark, files):
    frame = spark.read.schema("k int").parquet(files["unknown compression codec"])
    with applied(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}):
        assert frame.transform(kq.kquery_plan, when="always").collect() == frame.collect() == []


def answer_of(run):
    try:
        return run()
    except Exception as error:
        assert "damaged" in str(error)
        return "FAILED_READ_FILE" in str(error)


@pytest.mark.parametrize("problem", ["unknown compression codec", "statistics of a wrong size"])
def test_files_of_deleted_positions(tmp_path, problem):
    table = pa.table({"k": pa.array([0, 1], pa.int32()), "file_path": ["a", "a"], "pos": [0, 1]})
    path = damaged(tmp_path, DAMAGE[problem], table=table)

    def read() -> str:
        try:
            return str(PositionDeletes("a", (path,)).positions())
        except SourceError as error:
            return str(error)

    message = in_child(read)
    assert path in message and problem in message


def test_names_that_are_not_utf_8(tmp_path):
    path = damaged(tmp_path, [((*_LEAF, 4), b"\x01\xff")])
    with pytest.raises(SourceError, match=r"damaged\.parquet.*not UTF-8"):
        kq.ExecutionContext().register_parquet("t", path)


def test_names_with_dots(tmp_path):
    path = str(tmp_path / "dots.parquet")
    table = pa.table({"a.b": [1], "c.": [{"d.e": [2]}], ".": [3]})
    pq.write_table(table, path)
    context = kq.ExecutionContext()
    context.register_parquet("t", path)
    assert context.table("t").to_arrow().to_pylist() == table.to_pylist()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return format_named("parquet").make(tmp_path_factory.mktemp("inputs"))


def test_tables_have_the_numbers_that_pyarrow_has(inputs):
    for pristine in inputs:
        metadata = pq.read_metadata(pristine.files[0])
        tables = footer_tables(footer_of(pristine.files[0]), metadata.num_row_groups, metadata.num_columns)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            assert tables.groups[number].tolist() == [
                group.num_columns,
                group.total_byte_size,
                group.num_rows,
            ]
            for leaf in range(metadata.num_columns):
                chunk, row = group.column(leaf), tables.chunks[number, leaf]
                assert row[Chunk.VALUES] == chunk.num_values
                assert row[Chunk.DATA_PAGE] == chunk.data_page_offset
                assert row[Chunk.COMPRESSED_SIZE] == chunk.total_compressed_size
                assert row[Chunk.UNCOMPRESSED_SIZE] == chunk.total_uncompressed_size
                assert (row[Chunk.DICTIONARY_PAGE] != ABSENT) == chunk.has_dictionary_page
                nulls = chunk.statistics.null_count if chunk.statistics is not None else ABSENT
                assert chunk.statistics is None or row[Chunk.NULLS] == nulls
        assert tables.groups[:, Group.ROWS].sum() == metadata.num_rows


def test_the_scan_is_the_same_compiled_or_not(inputs, monkeypatch):
    assert FILE_LOOPS.compile_now() is not None
    rng = Random(5)
    footers = [footer_of(pristine.files[0]) for pristine in inputs]
    for footer in footers * 10:
        data = bytearray(footer)
        for _ in range(rng.randrange(4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        found = []
        for is_compiled in (True, False):
            with monkeypatch.context() as patch:
                if not is_compiled:
                    patch.setattr(tables_module.FILE_LOOPS, "kernels", lambda *_: None)
                try:
                    tables = footer_tables(bytes(data), 4, 25)
                    found.append([*tables.groups.flat, *tables.chunks.flat])
                except ValueError as error:
                    found.append([str(error)])
        assert np.array_equal(*found)


@pytest.mark.parametrize(
    "data",
    [b"\x1c" * 5000, bytes([0xF0 | TRUE]) + varint(1 << 60), b"\xff" * 20],
    ids=["nested", "long", "wide"],
)
def test_thrift_is_read_within_bounds(data):
    kind = {0x1C: STRUCT, 0xFF: STRUCT}.get(data[0], LIST)
    with pytest.raises(ValueError):
        Cursor(data).skip(kind)


def test_a_sample_of_the_campaign():
    """In a process of its own, as this one may have threads, which do not survive a fork."""
    command = [sys.executable, "-m", "tests.sources.mutated_files", "300", "--seed", "2026"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "300 reads" in found.stdout and "0 findings" in found.stdout


def test_a_campaign_ends_after_its_run_time():
    """It reports the cases that it has read."""
    command = [sys.executable, "-m", "tests.sources.mutated_files", "1000000", "--run-seconds", "5"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "0 findings" in found.stdout


@exhaustive
def test_a_sample_of_the_campaign_on_spark(tmp_path):
    signs = ("signal", "timeout")
    outcomes = list(run("parquet", 2026, range(100), tmp_path, spark=True, seconds=120.0))
    assert [outcome for outcome in outcomes if outcome.kind in signs] == []

"""What a thread reads of files is counted as the system and Arrow see it."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.sources.listing import list_files
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.stored_chunks import StoredChunks
from kquery_spark.sources.prefetch.read_counts import read_counts
from kquery_spark.sources.text import line_blocks

THREAD_READS = Path("/proc/thread-self/io")  # which counts what each thread of a process reads


def wide_table(rows=50_000):
    numbers = np.random.default_rng(1)
    columns = {f"c{i}": numbers.integers(0, 1 << 40, rows) for i in range(12)}
    columns["few"] = np.arange(rows) // 10_000
    return pa.table({**columns, "nested": pa.array([{"a": i, "b": [i, i]} for i in range(rows)])})


def chunks_of(metadata, group, columns):
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    return StoredChunks(metadata, paths).byte_ranges(group, columns)


def system_bytes():
    return int(THREAD_READS.read_text().split()[1])


def data_file(path):
    ((file,), _, _) = list_files([str(path)])
    return file


@pytest.mark.skipif(not THREAD_READS.exists(), reason="the system does not count what threads read")
@pytest.mark.parametrize("columns", [["c3"], ["c1", "few", "c9"], ["nested"]])
def test_bytes_of_column_chunks(tmp_path, columns):
    path = tmp_path / "t.parquet"
    pq.write_table(wide_table(), path, row_group_size=20_000)
    opened = open_file(data_file(path))
    opened.read(0, columns)  # the reader of this thread looks at the footer again
    # reading a count is a read of that file, too, of nearly as many bytes
    first = system_bytes()
    own = system_bytes() - first
    before, counted = system_bytes(), read_counts()
    opened.read(1, columns)
    read = read_counts().since(counted)
    assert read.nbytes == system_bytes() - before - own
    assert read.reads == len(chunks_of(opened.metadata, 1, columns))


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_bytes_of_lines(tmp_path, name):
    path = tmp_path / name
    with pa.output_stream(path) as out:
        out.write(b"some line\n" * 100_000)
    file, counted = data_file(path), read_counts()
    assert sum(map(len, line_blocks(file, 0, file.size))) == 1_000_000
    assert read_counts().since(counted).nbytes == file.size


def test_a_scan_says_what_it_read(spark, tmp_path):
    path = str(tmp_path / "t.parquet")
    pq.write_table(wide_table(), path, row_group_size=20_000)
    metadata = pq.read_metadata(path)
    frame = spark.read.parquet(path).groupBy("few").sum("c1")
    chunks = [c for g in range(3) for c in chunks_of(metadata, g, ["few", "c1"])]
    (found,) = re.findall(r"bytes read ([0-9,]+), reads ([0-9]+)\]", str(kq.explain(frame, analyze=True)))
    nbytes, reads = (int(number.replace(",", "")) for number in found)
    footers = reads - len(chunks)  # of workers that do not know this file yet
    assert footers in (0, 1, 2)  # one per worker
    assert nbytes == sum(c.size for c in chunks) + footers * (64 << 10)

"""Columns whose values are stored otherwise than in Arrow: the compiled loops read them as pyarrow does, and as Spark does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import SourceError
from kquery_spark.fuzz.settings import IN_DRIVER, applied
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.sources.parquet.column_reader import ColumnReader
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.source import parquet_source
from tests.sources.test_parquet_reader import CODECS, NULLS, ROWS, as_read, assert_equal_to_pyarrow, write

DAYS = 86_400_000_000


def table(nulls: float, rows: int = ROWS) -> pa.Table:
    """Times from the year 1 to 9999, as few distinct values and as distinct ones."""
    rng = np.random.default_rng(11)
    mask = rng.random(rows) < nulls if nulls else None
    few = rng.integers(0, 150, rows)
    first, last = -719_162 * DAYS, 2_932_896 * DAYS + DAYS - 1

    def column(values: Any, dtype: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, dtype, mask=mask)

    return pa.table(
        {
            "few_times": column((few - 75) * (DAYS // 2) - few % 2, pa.timestamp("us")),
            "times": column(rng.integers(first, last, rows, endpoint=True), pa.timestamp("us")),
            "ends": column(np.where(few % 2, first, last), pa.timestamp("us")),
        }
    )


INT96 = {"use_deprecated_int96_timestamps": True}


@pytest.mark.parametrize(("codec", "version"), list(product(CODECS, ["1.0", "2.0"])))
def test_dictionary_and_plain_pages_are_read_as_by_pyarrow(tmp_path, kernels, codec, version):
    for nulls in NULLS:
        rows = table(nulls)
        options = {"compression": codec, "data_page_version": version, **INT96}
        opened = write(tmp_path / f"coded{nulls}.parquet", rows, **options)
        assert_equal_to_pyarrow(opened, kernels, read=set(rows.schema.names))
        plain = write(tmp_path / f"plain{nulls}.parquet", rows, use_dictionary=False, **options)
        assert_equal_to_pyarrow(plain, kernels, read=set(rows.schema.names))


@pytest.mark.parametrize("nulls", NULLS)
def test_chunks_whose_dictionary_became_too_large_are_read_as_by_pyarrow(tmp_path, kernels, nulls):
    rows = table(nulls)
    opened = write(tmp_path / "f.parquet", rows, dictionary_pagesize_limit=600, **INT96)
    assert_equal_to_pyarrow(opened, kernels, read=set(rows.schema.names))


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 8, 9])
def test_short_chunks_are_read_as_by_pyarrow(tmp_path, kernels, rows):
    for nulls, use_dictionary in product((0.0, 0.5, 1.0), (True, False)):
        some = table(nulls, rows)
        path = tmp_path / f"{nulls}{use_dictionary}.parquet"
        opened = write(path, some, use_dictionary=use_dictionary, compression="none", **INT96)
        if rows:
            assert_equal_to_pyarrow(opened, kernels, read=set(some.schema.names))
        else:
            assert not opened.groups or opened.column_readers(0, some.schema.names, kernels)


@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_damaged_pages_are_errors_or_what_pyarrow_reads(tmp_path, kernels, codec, use_dictionary):
    rng = np.random.default_rng(3)
    rows = table(0.2, rows=600)
    path = tmp_path / "f.parquet"
    write(path, rows, compression=codec, row_group_size=600, use_dictionary=use_dictionary, **INT96)
    good = path.read_bytes()
    metadata = pq.read_metadata(path).row_group(0)
    outcomes = set()
    for number in range(40 * metadata.num_columns):
        index = number % metadata.num_columns
        chunk = metadata.column(index)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        bad = bytearray(good)
        for _ in range(int(rng.integers(1, 4))):
            bad[int(rng.integers(start, start + chunk.total_compressed_size))] = int(rng.integers(0, 256))
        changed = tmp_path / f"{number}.parquet"
        changed.write_bytes(bad)
        opened, name = open_file(parquet_source([str(changed)]).files[0]), rows.schema.names[index]
        chosen = np.arange(0, 600, 50)
        found = opened.column_readers(0, [name], kernels)[name].read()
        some = opened.column_readers(0, [name], kernels)[name].read(chosen)
        try:
            expected = as_read(opened.read(0, [name]).column(0))
        except SourceError as error:
            assert "row group 0" in str(error) and changed.name in str(error)
            expected = None
        if found is not None and expected is not None:
            assert some is not None
            assert as_read(pa.chunked_array([found])).equals(expected), number
            assert as_read(pa.chunked_array([some])).equals(expected.take(pa.array(chosen))), number
        outcomes.add((found is None, expected is None))
    assert {(False, False), (True, True)} <= outcomes


@pytest.fixture(params=[True, False], ids=["compiled", "interpreted"])
def check_reader(request, monkeypatch, kernels) -> Callable[[], None]:
    """Lets queries use the compiled loops, or hides the loops. Returns a function that checks which reader was used."""
    monkeypatch.setattr(FILE_LOOPS, "kernels", lambda: kernels if request.param else None)
    used: list[bool] = []
    real = ColumnReader.read

    def read(self: ColumnReader, rows: Any = None) -> Any:
        found = real(self, rows)
        used.append(found is not None)
        return found

    monkeypatch.setattr(ColumnReader, "read", read)

    def check() -> None:
        assert all(used)
        assert bool(used) == request.param

    return check


SPARK_TIMES = ("(id % 40) * 43200000000 - 864000000001", "id * 7777777777 - 62135596800000000")


@pytest.mark.parametrize("rebase", ["CORRECTED", "LEGACY"])
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_times_that_spark_wrote_are_read_as_by_spark(spark, tmp_path, check_reader, rebase, zone):
    path = str(tmp_path / "times")
    columns = [f"IF(id % 7 = 3, NULL, timestamp_micros({m})) AS c{i}" for i, m in enumerate(SPARK_TIMES)]
    settings = {
        "spark.sql.parquet.int96RebaseModeInWrite": rebase,
        "spark.sql.session.timeZone": zone,
        **IN_DRIVER,
    }
    with applied(spark, settings):
        spark.range(3000).coalesce(1).selectExpr("id", *columns).write.parquet(path)
        frame = spark.read.parquet(path).where("c0 < TIMESTAMP '1970-01-05'")
        frame = frame.selectExpr("id", "unix_micros(c0) AS a", "unix_micros(c1) AS b")
        expected = sorted(frame.collect())
        fast = frame.transform(kq.kquery_plan, when="always", fallback="error")
        assert sorted(fast.collect()) == expected
    assert expected
    check_reader()
    assert open_file(parquet_source([path]).files[0]).int96 == {"c0", "c1"}

"""Files of positions of deleted rows: of one data file or of several, in any order, and damaged ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.errors import SourceError
from kquery_spark.sources.deletes import position_deletes
from kquery_spark.sources.deletes.live_rows import LiveRows
from kquery_spark.sources.deletes.position_deletes import PositionDeletes
from kquery_spark.sources.lru_cache import LruCache
from kquery_spark.sources.object_stores.connections import connect, store_of_options
from kquery_spark.sources.parquet.path_source import parquet_source


def write(
    path: Path, paths: Sequence[str | None], positions: Sequence[int | None], statistics: bool = True
) -> str:
    table = pa.table({"file_path": pa.array(paths, pa.string()), "pos": pa.array(positions, pa.int64())})
    pq.write_table(table, path, row_group_size=3, write_statistics=statistics)
    return str(path)


@pytest.mark.parametrize("statistics", [True, False])
def test_of_one_data_file(tmp_path, statistics):
    path = write(tmp_path / "1.parquet", ["a"] * 7, [0, 2, 5, 7, 8, 9, 1000], statistics)
    assert PositionDeletes("a", (path,)).positions().tolist() == [0, 2, 5, 7, 8, 9, 1000]
    assert PositionDeletes("b", (path,)).positions().tolist() == []


@pytest.mark.parametrize("statistics", [True, False])
def test_of_several_data_files(tmp_path, statistics):
    path = write(tmp_path / "1.parquet", [*"aaaaabbbcc"], [1, 3, 5, 7, 9, 0, 1, 2, 4, 8], statistics)
    assert [PositionDeletes(name, (path,)).positions().tolist() for name in "abcd"] == [
        [1, 3, 5, 7, 9],
        [0, 1, 2],
        [4, 8],
        [],
    ]


def test_several_files_of_one_data_file_in_any_order(tmp_path):
    paths = [
        write(tmp_path / "1.parquet", ["a"] * 4, [9, 3, 3, 1]),
        write(tmp_path / "2.parquet", ["b", "a", "a", "a"], [0, 4, 2, 1]),
        write(tmp_path / "3.parquet", [], []),
    ]
    assert PositionDeletes("a", tuple(paths)).positions().tolist() == [1, 2, 3, 4, 9]


@pytest.mark.parametrize(
    ("paths", "positions"), [(["a", None, "a"], [1, 2, 3]), (["a", "a", "a"], [1, None, 3])]
)
def test_rows_without_a_path_or_a_position_are_errors(tmp_path, paths, positions):
    path = write(tmp_path / "1.parquet", paths, positions)
    with pytest.raises(SourceError, match=r"1\.parquet has a row without a path or position"):
        PositionDeletes("a", (path,)).positions()


def test_other_files_are_errors(tmp_path):
    pq.write_table(pa.table({"file_path": ["a"], "position": [1]}), tmp_path / "other.parquet")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1")
    for name in ("other", "damaged", "gone"):
        with pytest.raises(SourceError, match=rf"cannot read the position delete file .*{name}\.parquet"):
            PositionDeletes("a", (str(tmp_path / f"{name}.parquet"),)).positions()


def test_errors_do_not_contain_credentials(monkeypatch):
    class Refused:
        def open_input_file(self, path: str) -> None:
            raise OSError(f"GET https://account/{path}?sig=secret-signature: 403")

    path = "abfss://container@account.dfs.core.windows.net/deletes.parquet"
    connect([store_of_options(path, {"sas_token": "secret-signature"})])
    monkeypatch.setattr(position_deletes, "filesystem", lambda path: (Refused(), "deletes.parquet"))
    with pytest.raises(SourceError, match="cannot read the position delete file") as raised:
        PositionDeletes("a", (path,)).positions()
    assert "403" in str(raised.value)
    assert "secret-signature" not in str(raised.value)


def test_the_cache_of_delete_files_has_a_limit_in_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(position_deletes, "POSITION_DELETE_CACHE", cache := LruCache(400))
    for name in ("1", "2", "3"):
        path = write(tmp_path / f"{name}.parquet", ["a"] * 10, range(10))
        assert PositionDeletes("a", (path,)).positions().tolist() == list(range(10))
        assert cache.nbytes == 250 + 1 + 80  # one file: the estimate per entry, its path, and 10 positions


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_delta_encoded_paths(tmp_path, encoding):
    table = pa.table({"file_path": [*"aabba"], "pos": [5, 6, 1, 2, 3]})
    path = str(tmp_path / "1.parquet")
    pq.write_table(table, path, use_dictionary=["pos"], column_encoding={"file_path": encoding})
    assert [PositionDeletes(name, (path,)).positions().tolist() for name in "ab"] == [[3, 5, 6], [1, 2]]


def test_rows_are_left_out(tmp_path):
    data = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": range(10)}), data, row_group_size=4)
    deleted = PositionDeletes("a", (write(tmp_path / "d", ["a"] * 5, [0, 1, 2, 3, 9]),))
    source = LiveRows(parquet_source([data]), (deleted,))
    assert [split.rows for split in source.splits()] == [0, 4, 1]
    assert [b.columns[0].to_pylist() for s in source.splits() for b in source.read(s, ["x"])] == [
        [],
        [4, 5, 6, 7],
        [8],
    ]
    split = source.splits()[2]
    assert source.read_rows(split, ["x"], np.array([0])).columns[0].to_pylist() == [8]

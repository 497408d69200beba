"""Damaged levels of nested Parquet columns: pyarrow uses those of a struct's first leaf, Spark those of its last one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import SourceError
from kquery_spark.sources.parquet.pages import _page_header
from kquery_spark.sources.parquet.thrift_compact import Cursor
from kquery_spark.sources.parquet.value_counts import check_value_counts, has_exact_counts

_ROWS = 240
_STRUCTS = pa.array([{"x": i, "y": f"y{i % 9}"} if i % 5 else None for i in range(_ROWS)])
_MAPS = pa.array(
    [[("a", i), ("b", None)] if i % 4 else [] for i in range(_ROWS)], pa.map_(pa.string(), pa.int32())
)
_FIRST_LEVEL_BYTE = 8


def _damaged(directory: Path, column: pa.Array, leaf: int, version: str) -> str:
    """Write a file in which some definition levels of a leaf are zeroed; return its path."""
    path = directory / f"damaged_{leaf}.parquet"
    pq.write_table(pa.table({"c": column}), path, compression="none", data_page_version=version)
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(leaf)
    cursor = Cursor(bytes(data[chunk.data_page_offset : chunk.data_page_offset + 512]))
    header = _page_header(cursor)
    # in a map, the first half of the level bytes are repetition levels
    body = (
        chunk.data_page_offset + cursor.at + (header.level_bytes // 2 if pa.types.is_map(column.type) else 0)
    )
    start = body + _FIRST_LEVEL_BYTE
    assert any(data[start : start + 5])
    data[start : start + 5] = bytes(5)
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize(("leaf", "name"), [(0, "c.x"), (1, "c.y")])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_zeroed_levels_of_a_struct_raise_an_error(tmp_path: Path, leaf: int, name: str, version: str) -> None:
    context = kq.ExecutionContext()
    context.register_parquet("t", _damaged(tmp_path, _STRUCTS, leaf, version))
    with pytest.raises(SourceError, match=rf"damaged_{leaf}\.parquet: {name} has \d+ values instead of 192"):
        context.sql("SELECT * FROM t").to_arrow()


def test_spark_answers_with_the_levels_of_the_last_leaf(spark, tmp_path: Path) -> None:
    frame = spark.read.parquet(_damaged(tmp_path, _STRUCTS, 0, "2.0"))
    expected = frame.collect()
    assert any(row.c is not None and row.c.x is None for row in expected)
    with pytest.warns(kq.errors.FallbackWarning, match="values instead of 192"):
        assert kq.kquery_plan(frame, when="always").collect() == expected


def test_zeroed_levels_of_keys_raise_an_error(tmp_path: Path) -> None:
    context = kq.ExecutionContext()
    context.register_parquet("t", _damaged(tmp_path, _MAPS, 0, "2.0"))
    with pytest.raises(SourceError, match=r"damaged_0\.parquet"):
        context.sql("SELECT * FROM t").to_arrow()


_NESTED = pa.table(
    {
        "flat": pa.array([i if i % 3 else None for i in range(_ROWS)]),
        "s": _STRUCTS,
        "m": _MAPS,
        "l": pa.array([[None, "a"] * (i % 3) if i % 7 else None for i in range(_ROWS)]),
        "deep": pa.array(
            [[{"z": [[i, None], []]}, None, {"z": None}] if i % 4 else [] for i in range(_ROWS)]
        ),
        "of_lists": pa.array(
            [{"a": {"b": [i] * (i % 3), "c": None}} if i % 6 else None for i in range(_ROWS)]
        ),
        "pairs": pa.array([[i, None] if i % 5 else None for i in range(_ROWS)], pa.list_(pa.int32(), 2)),
        "with.dot": pa.array([{"q": i} if i % 2 else None for i in range(_ROWS)]),
    }
)


@pytest.mark.parametrize(
    "options", [{}, {"data_page_version": "2.0", "data_page_size": 64, "write_batch_size": 7}]
)
def test_sound_columns_have_the_value_counts_of_their_statistics(tmp_path: Path, options) -> None:
    path = tmp_path / "sound.parquet"
    pq.write_table(_NESTED, path, row_group_size=100, **options)
    file = pq.ParquetFile(path)
    paths = [file.metadata.schema.column(i).path for i in range(file.metadata.num_columns)]
    for number in range(file.metadata.num_row_groups):
        table, group = file.read_row_group(number), file.metadata.row_group(number)
        check_value_counts(table, paths, table.column_names, group)
        check_value_counts(table.select(["deep", "s"]), paths, ["deep", "s"], group)
        one_leaf = file.read_row_group(number, columns=["s.y", "of_lists.a.b"])
        check_value_counts(one_leaf, paths, ["s.y", "of_lists.a.b"], group)
        for index, name in enumerate(table.column_names):
            if name in ("flat", "pairs"):
                continue
            empty = table.set_column(
                index, table.schema.field(name), pa.nulls(len(table), table.schema.field(name).type)
            )
            with pytest.raises(ValueError, match=f"{name}.* has 0 values instead of"):
                check_value_counts(empty, paths, empty.column_names, group)


def test_values_of_extension_types_are_counted_by_their_storage(tmp_path: Path) -> None:
    path = tmp_path / "tensors.parquet"
    numbers = pa.array([[i, i, i, i] for i in range(_ROWS)], pa.list_(pa.int32(), 4))
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), [2, 2]), numbers)
    pq.write_table(pa.table({"c": pa.StructArray.from_arrays([tensors], ["x"])}), path)
    file = pq.ParquetFile(path)
    table = file.read()
    assert isinstance(table.column(0).chunk(0).field(0), pa.ExtensionArray)
    check_value_counts(table, ["c.x.list.element"], ["c"], file.metadata.row_group(0))


def test_files_of_spark_have_exact_value_counts(spark, tmp_path: Path) -> None:
    spark.sql(
        "SELECT id, if(id % 3 = 0, NULL, struct(id AS x, if(id % 2 = 0, NULL, 'a') AS y)) AS s, if(id % 5 = 0, NULL, "
        "array(struct(id AS a, if(id % 7 = 0, NULL, array(id, NULL)) AS b), NULL)) AS l, map('k', id, 'n', NULL) AS m "
        "FROM range(1000)"
    ).coalesce(1).write.parquet(str(tmp_path / "t"))
    (path,) = (tmp_path / "t").glob("*.parquet")
    file = pq.ParquetFile(path)
    assert has_exact_counts(file.metadata.created_by)
    paths = [file.metadata.schema.column(i).path for i in range(file.metadata.num_columns)]
    table = file.read_row_group(0)
    check_value_counts(table, paths, table.column_names, file.metadata.row_group(0))
    frame = spark.read.parquet(str(tmp_path / "t")).orderBy("id")
    assert kq.kquery_plan(frame, when="always").collect() == frame.collect()


@pytest.mark.parametrize(
    ("writer", "exact"),
    [
        ("parquet-cpp-arrow version 26.0.1", True),
        ("parquet-cpp-arrow version 9.0.0", False),
        ("parquet-mr version 1.17.1 (build abc)", True),
        ("parquet-mr version 1.8.1", False),
        ("DuckDB version v1.4.0", False),
        ("None", False),
    ],
)
def test_only_some_writers_count_values_exactly(writer: str, exact: bool) -> None:
    assert has_exact_counts(writer) is exact

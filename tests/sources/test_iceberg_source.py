"""Iceberg's files as an Iceberg scan describes them: columns by field id, constants, and what falls back to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.errors import Unsupported
from kquery_spark.sources.base import Source
from kquery_spark.sources.iceberg.source import _constant, iceberg_source
from kquery_spark.sources.iceberg.tasks import Field, PlannedFile, read_schema, read_tasks

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
FIELDS = (Field(1, "a", "long"), Field(2, "b", "string"))


def write(path: Path, ids: dict[str, int | None], rows: int = 3) -> PlannedFile:
    """A file with columns of these names and field ids; column N has the values 10 N, 10 N + 1, ..."""
    fields = [
        pa.field(name, pa.int64(), metadata=None if i is None else {"PARQUET:field_id": str(i)})
        for name, i in ids.items()
    ]
    columns = [[10 * (i or 0) + k for k in range(rows)] for i in ids.values()]
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), path)
    return PlannedFile(str(path), path.stat().st_size)


def rows(source: Source) -> list[tuple[Any, ...]]:
    names = source.schema.names
    batches = [batch for split in source.splits() for batch in source.read(split, names)]
    return [row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)]


def source(
    files: Sequence[PlannedFile],
    fields: Sequence[Field] = FIELDS,
    schema: pa.Schema = SCHEMA,
    names: str | None = None,
) -> Source:
    return iceberg_source(schema, fields, files, lambda path: path, lambda: names)


def test_columns_that_a_file_lacks_have_their_initial_default(tmp_path: Path) -> None:
    file = write(tmp_path / "1.parquet", {"a": 1})
    fields = (FIELDS[0], Field(2, "b", "string", default="before"))
    assert rows(source([file], fields)) == [(10, "before"), (11, "before"), (12, "before")]
    assert rows(source([file])) == [(10, None), (11, None), (12, None)]


def test_files_that_name_columns_differently_are_one_source(tmp_path: Path) -> None:
    files = [write(tmp_path / "1.parquet", {"a": 1}), write(tmp_path / "2.parquet", {"b": 1, "a": 7}, 2)]
    both = source(files)
    assert rows(both) == [(10, None), (11, None), (12, None), (10, None), (11, None)]
    assert both.row_count() == 5
    assert [split.file for split in both.splits()] == [0, 1]
    assert (both.ranges(both.splits()[1], "a").low, both.ranges(both.splits()[1], "a").high) == (10, 11)


def test_no_columns(tmp_path: Path) -> None:
    none = source([write(tmp_path / "1.parquet", {"a": 1})], (), pa.schema([]))
    assert [batch.num_rows for split in none.splits() for batch in none.read(split, [])] == [3]


def test_a_required_column_that_a_file_lacks_is_sparks(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string(), nullable=False)])
    with pytest.raises(Unsupported, match=r"lacks b, although the column cannot be NULL"):
        source([write(tmp_path / "1.parquet", {"a": 1})], schema=schema)


@pytest.mark.parametrize(
    ("ids", "reason"), [({"a": None}, "has no field ids"), ({"a": 1, "c": 1}, "two fields with the id 1")]
)
def test_files_without_clear_field_ids_are_sparks(
    tmp_path: Path, ids: dict[str, int | None], reason: str
) -> None:
    with pytest.raises(Unsupported, match=reason):
        source([write(tmp_path / "1.parquet", ids)])


def test_schemas_are_read_with_all_that_is_nested() -> None:
    text = """{"type": "struct", "fields": [
        {"id": 1, "name": "l", "required": false, "type": {"type": "list", "element-id": 2, "element": "long", "element-required": false}},
        {"id": 3, "name": "m", "required": false, "type": {"type": "map", "key-id": 4, "key": "string", "value-id": 5, "value":
            {"type": "struct", "fields": [{"id": 6, "name": "x", "required": true, "type": "int", "initial-default": 7}]}}}]}"""
    element, key = Field(2, "element", "long"), Field(4, "key", "string", required=True)
    value = Field(5, "value", "struct", (Field(6, "x", "int", default=7, required=True),))
    assert read_schema(text) == (Field(1, "l", "list", (element,)), Field(3, "m", "map", (key, value)))


def task(start: int, length: int, **more: str) -> str:
    file = '"file-path": "/f", "file-size-in-bytes": 100, "file-format": "PARQUET", "partition": {"1000": 5}'
    added = "".join(f', "{name}": {value}' for name, value in more.items())
    spec = '{"spec-id": 2, "fields": [{"source-id": 1, "field-id": 1000, "transform": "identity"}]}'
    return f'{{"data-file": {{{file}}}, "spec": {spec}, "start": {start}, "length": {length}{added}}}'


def test_a_file_is_read_once_however_it_is_cut() -> None:
    (planned,) = read_tasks([task(50, 50), task(4, 46)])
    assert (planned.path, planned.size, planned.constants[1]) == ("/f", 100, 5)
    assert sorted(map(str, planned.constants.values())) == ["/f", "2", "5"]


def test_a_part_of_a_file_is_sparks() -> None:
    with pytest.raises(Unsupported, match="Spark reads a part of /f only"):
        read_tasks([task(4, 46)])


@pytest.mark.parametrize("dtype", [pa.float64(), pa.float32()], ids=str)
def test_constants_that_are_not_finite_numbers_are_declined(dtype: pa.DataType) -> None:
    """Iceberg's JSON has strings for them."""
    field = Field(1, "d", "double")
    assert _constant(1.5, field, dtype) == 1.5
    for text in ("NaN", "Infinity", "-Infinity"):
        with pytest.raises(Unsupported, match=f"the constant {text} of a column"):
            _constant(text, field, dtype)


NAMES = '[{"field-id": 1, "names": ["a", "id"]}, {"field-id": 2, "names": ["b"]}]'


def test_names_stand_for_the_ids_that_a_file_lacks(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "1.parquet", {"id": None}),
        write(tmp_path / "2.parquet", {"id": 5, "a": 1}, 1),  # has ids of its own
        write(tmp_path / "3.parquet", {"A": None, "x": None}, 1),
    ]
    assert rows(source(files, names=NAMES)) == [(0, None), (1, None), (2, None), (10, None), (None, None)]


def test_names_inside_of_columns(tmp_path: Path) -> None:
    inner = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.struct([("z", pa.int64())])))])
    stored = pa.schema([("s", inner), ("m", pa.map_(pa.string(), inner))])
    value = {"x": 1, "y": [{"z": 2}, None]}
    pq.write_table(pa.table([[value], [[("k", value)]]], schema=stored), tmp_path / "1.parquet")
    file = PlannedFile(str(tmp_path / "1.parquet"), (tmp_path / "1.parquet").stat().st_size)
    mapped = '{{"field-id": {0}1, "names": ["x"]}}, {{"field-id": {0}2, "names": ["y"], "fields": [{{"field-id": {0}3, "names": ["element"], "fields": [{{"field-id": {0}4, "names": ["z"]}}]}}]}}'
    names = (
        f'[{{"field-id": 1, "names": ["s"], "fields": [{mapped.format(1)}]}},'
        f' {{"field-id": 2, "names": ["m"], "fields": [{{"field-id": 3, "names": ["key"]}},'
        f' {{"field-id": 4, "names": ["value"], "fields": [{mapped.format(2)}]}}]}}]'
    )

    def struct(number: int) -> tuple[Field, ...]:
        element = Field(10 * number + 3, "element", "struct", (Field(10 * number + 4, "w", "long"),))
        return (
            Field(10 * number + 2, "list", "list", (element,)),
            Field(10 * number + 1, "first", "long"),
            Field(99, "new", "long"),
        )

    read = pa.struct(
        [("list", pa.list_(pa.struct([("w", pa.int64())]))), ("first", pa.int64()), ("new", pa.int64())]
    )
    fields = (
        Field(1, "t", "struct", struct(1)),
        Field(2, "n", "map", (Field(3, "key", "string"), Field(4, "value", "struct", struct(2)))),
    )
    schema = pa.schema([("t", read), ("n", pa.map_(pa.string(), read))])
    expected = {"list": [{"w": 2}, None], "first": 1, "new": None}
    assert rows(source([file], fields, schema, names)) == [(expected, [("k", expected)])]


@pytest.mark.parametrize(
    ("names", "column", "reason"),
    [
        ('[{"field-id": 1, "names": ["a.b"]}]', "a", "the column name a.b is not supported"),
        ('[{"field-id": 1, "names": ["a"]}]', "a.b", "the column name a.b is not supported"),
        (
            '[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}]',
            "a",
            "contains the name a twice",
        ),
    ],
)
def test_names_that_are_not_clear_are_sparks(tmp_path: Path, names: str, column: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        source([write(tmp_path / "1.parquet", {column: None})], names=names)

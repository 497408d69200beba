"""Every method of ``group_rows`` groups the same rows together as Spark: NULL with NULL, NaN with NaN, -0.0 with 0.0."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.physical.grouping import group_rows as group_rows_module
from kquery_spark.physical.grouping import groups as groups_module
from kquery_spark.physical.grouping.group_rows import group_rows
from kquery_spark.physical.grouping.groups import Codes, Groups, compress
from kquery_spark.types.vector import Vector

NAN = float("nan")
LARGEST = 2**63 - 1


@pytest.fixture(autouse=True, params=["compiled", "numpy"])
def with_loop(request: pytest.FixtureRequest, loops: None, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run every test with the compiled loop and without it."""
    is_compiled: bool = request.param == "compiled"
    if not is_compiled:
        monkeypatch.setattr(groups_module, "_compiled_groups", lambda codes: None)
    return is_compiled


def key_of(value: object) -> object:
    """Return a value that Python compares like Spark groups."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def check(groups: Groups, *columns: pa.Array) -> None:
    rows = list(zip(*([key_of(v) for v in column.to_pylist()] for column in columns), strict=True))
    first_rows: dict[tuple[object, ...], int] = {}
    for row, key in enumerate(rows):
        first_rows.setdefault(key, row)
    assert groups.count == len(first_rows)
    assert sorted(groups.first_rows.tolist()) == sorted(first_rows.values())
    assert [groups.first_rows[i] for i in groups.ids] == [first_rows[key] for key in rows]
    np.testing.assert_array_equal(groups.sizes, np.bincount(groups.ids, minlength=groups.count))


def group(*columns: pa.Array) -> Groups:
    return group_rows([Vector(column.type, column) for column in columns], len(columns[0]))


def random_integers(high: int, size: int, nulls: bool, dtype: pa.DataType | None = None) -> pa.Array:
    random = np.random.default_rng(high % 2**32 + size)
    values = random.integers(0, high, size)
    return pa.array(values, dtype or pa.int64(), mask=random.random(size) < 0.1 if nulls else None)


def method_used(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Groups]) -> tuple[str | None, Groups]:
    """Return the name of the method of many groups that ``run`` used (None: one of the others), and the groups."""
    used: list[str] = []
    for name in ("_counted_groups", "_direct_groups", "_hashed_groups"):
        function = getattr(groups_module, name)

        def recorded(
            codes: Codes, name: str = name, function: Callable[[Codes], Groups] = function
        ) -> Groups:
            used.append(name)
            return function(codes)

        monkeypatch.setattr(groups_module, name, recorded)
    groups = run()
    return (used[0] if used else None), groups


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(
    ("size", "high", "method"),
    [
        (5000, 3, "_counted_groups"),
        (5000, 4000, "_counted_groups"),
        (5000, 15_000, "_direct_groups"),
        (20_000, 3, None),
        (20_000, 10_000, "_direct_groups"),
        (20_000, 60_000, "_direct_groups"),
        (20_000, 200_000, "_hashed_groups"),
        (20_000, 2**61, "_hashed_groups"),
        (300, 4000, "_counted_groups"),
        (300, 10**6, "_hashed_groups"),
    ],
)
def test_each_method(
    monkeypatch: pytest.MonkeyPatch, with_loop: bool, size: int, high: int, method: str | None, nulls: bool
) -> None:
    column = random_integers(high, size, nulls)
    used, groups = method_used(monkeypatch, lambda: group(column))
    is_eligible = size >= groups_module._MIN_COMPILED_ROWS and high < groups_module._MAX_TABLE_CODES
    uses_loop = with_loop and is_eligible and groups.count <= groups_module.MAX_COMPILED_GROUPS
    assert used == (None if uses_loop else method)
    assert groups.compact_ids.dtype == (np.uint16 if uses_loop else np.int64)
    check(groups, column)


@pytest.mark.parametrize(("distinct", "uses_loop"), [(16_384, True), (16_385, False)])
def test_the_largest_number_of_groups_of_the_loop(with_loop: bool, distinct: int, uses_loop: bool) -> None:
    """The last group is found in the last row, after all other groups have a number."""
    parts = [np.zeros(20, np.int64), np.arange(distinct - 2, -1, -1), np.array([distinct - 1])]
    column = pa.array(np.concatenate(parts))
    groups = group(column)
    assert groups.compact_ids.dtype == (np.uint16 if with_loop and uses_loop else np.int64)
    check(groups, column)


def test_several_columns_of_narrow_codes() -> None:
    """The combined codes are int32 for these dictionaries, and int64 together with a column of int64."""
    random = np.random.default_rng(5)
    values = pa.array([f"value {i}" for i in range(120)])
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(random.integers(0, high, 9000), dtype), values)
        for high, dtype in ((120, pa.int8()), (3, pa.int32()), (7, pa.int16()))
    ]
    check(group(*columns), *columns)
    columns.append(random_integers(5, 9000, nulls=True))
    check(group(*columns), *columns)


def test_keys_that_do_not_fit_into_a_range() -> None:
    """The distance of the lowest and the highest value exceeds the limit of ranges, so Arrow encodes the values."""
    column = pa.array([LARGEST, -LARGEST - 1, None, 0, LARGEST, None, -LARGEST - 1] * 700)
    check(group(column), column)


@pytest.mark.parametrize("size", [0, 1, 7, 9000])
@pytest.mark.parametrize(
    "values",
    [
        [1.5, NAN, -0.0, 0.0, None, -NAN, 1.5, float("inf")],
        [decimal.Decimal("1.50"), None, decimal.Decimal("-7.25"), decimal.Decimal("0.00")],
        ["b", "", None, "a", "é", "b"],
        [None, None],
        [True, None, False],
    ],
)
def test_types(values: list[object], size: int) -> None:
    column = pa.array((values * (size // len(values) + 1))[:size], pa.array(values).type)
    other = random_integers(10**9, size, nulls=True)
    few = random_integers(5, size, nulls=False, dtype=pa.int32())
    check(group(column), column)
    check(group(column, few), column, few)
    check(group(other, column, few), other, column, few)


def test_floats_with_many_values() -> None:
    random = np.random.default_rng(0)
    values = np.where(random.random(20_000) < 0.1, -0.0, random.integers(0, 9000, 20_000) / 7)
    values[random.random(20_000) < 0.1] = NAN
    column = pa.array(values, mask=random.random(20_000) < 0.1)
    check(group(column), column)


def test_no_keys_are_one_group() -> None:
    assert group_rows([], 0).count == 1
    assert group_rows([], 5).ids.tolist() == [0] * 5


@pytest.mark.parametrize("columns", [2, 5, 9])
def test_wide_keys_are_compressed(columns: int) -> None:
    """The product of 2**50 possible values per column exceeds int64, so the combined codes are renumbered."""
    size = 5000
    pool = np.random.default_rng(columns).integers(0, 2**50, (40, columns))
    rows = np.random.default_rng(1).integers(0, 40, size)
    arrays = [pa.array(np.where(rows % 3, pool[rows, i], pool[rows % 7, i])) for i in range(columns)]
    check(group(*arrays), *arrays)


@pytest.mark.parametrize("high", [3, 10**12])
def test_compress_keeps_sorted_codes_sorted(high: int) -> None:
    values = np.random.default_rng(0).integers(0, high, 4000)
    found = compress(Codes(values, high))
    known, ids = np.unique(values, return_inverse=True)
    assert found.cardinality == len(known)
    assert len(set(zip(found.values.tolist(), ids.tolist(), strict=True))) == len(known)
    in_order = compress(Codes(np.sort(values), high))
    np.testing.assert_array_equal(in_order.values, np.sort(ids))


@pytest.mark.parametrize("index_type", [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("nulls", [False, True])
def test_dictionaries_with_narrow_indices(index_type: pa.DataType, nulls: bool) -> None:
    """128 values use all int8 indices, so NULL and combined codes need more bits."""
    size = 20_000
    random = np.random.default_rng(3)
    mask = random.random(size) < 0.1 if nulls else None
    indices = [pa.array(random.integers(0, 128, size), index_type, mask=mask) for _ in range(3)]
    values = pa.array([f"value {i}" for i in range(128)])
    columns = [pa.DictionaryArray.from_arrays(index, values) for index in indices]
    vectors = [Vector(pa.string(), column) for column in columns]
    for count in (1, 2, 3):
        check(group_rows(vectors[:count], size), *columns[:count])
    check(group_rows([vectors[0], Vector(pa.int64(), pa.array(range(size)))], size), pa.array(range(size)))


@pytest.mark.parametrize("index_type", [pa.int8(), pa.int32()])
def test_dictionaries_with_duplicates_and_null(index_type: pa.DataType) -> None:
    indices = pa.array([0, 1, 2, 3, None, 4, 2, 0] * 600, index_type)
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "a", None, "c"]))
    check(group_rows([Vector(pa.string(), column)], len(column)), column)


def dependent_strings(ids: np.ndarray, dtype: pa.DataType) -> list[pa.Array]:
    """Return a column of strings that the ids determine, and one with a few differences of the same length."""
    values = [None if i % 11 == 0 else b"" if i % 13 == 0 else b"%060d" % i for i in ids.tolist()]
    changed = list(values)
    for row in range(0, len(ids), 1500):
        changed[row] = b"x" * len(values[row] or b"xy")
    return [pa.array(v, pa.binary()).cast(dtype) for v in (values, changed)]


@pytest.mark.parametrize("dtype", [pa.string(), pa.binary()])
@pytest.mark.parametrize("distinct", [40, 3000, 9000, 10**6])
def test_strings_that_other_keys_determine(distinct: int, dtype: pa.DataType) -> None:
    """All numbers of rows per group, including those for which the strings are encoded."""
    random = np.random.default_rng(distinct)
    ids = random.integers(0, distinct, 9000)
    key = pa.array(ids, mask=ids % 17 == 0)
    name, changed = dependent_strings(ids, dtype)
    independent = random_integers(4, 9000, nulls=True).cast(pa.string()).cast(dtype)
    check(group(key, name), key, name)
    check(group(name, key), name, key)
    check(group(key, changed), key, changed)
    check(group(key, name, changed, independent), key, name, changed, independent)
    check(group(name, changed), name, changed)


def test_determined_strings_are_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[pa.DataType] = []
    encode = group_rows_module.encode
    monkeypatch.setattr(group_rows_module, "encode", lambda key: encoded.append(key.dtype) or encode(key))
    ids = np.random.default_rng(0).integers(0, 6000, 9000)
    name, changed = dependent_strings(ids, pa.string())
    group(pa.array(ids), name)
    assert encoded == [pa.int64()]
    group(pa.array(ids), changed)
    assert encoded == [pa.int64(), pa.int64(), pa.string()]


@pytest.mark.parametrize("index_type", [pa.int16(), pa.uint16(), pa.int32()])
def test_large_dictionaries_that_other_keys_determine(index_type: pa.DataType) -> None:
    """Two indices of the dictionary have the same value, so rows with different indices may be one group."""
    ids = np.random.default_rng(0).integers(0, 5000, 9000)
    values = pa.array([f"value {i}" for i in range(4999)] + ["value 0"])
    key = pa.array(np.where(ids == 4999, 0, ids))
    for index in (pa.array(ids, index_type), pa.array(ids, index_type, mask=ids % 5 == 0)):
        column = pa.DictionaryArray.from_arrays(index, values)
        groups = group_rows([Vector(pa.int64(), key), Vector(pa.string(), column)], len(ids))
        check(groups, key, column)

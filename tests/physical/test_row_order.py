"""Rows are sorted as Python sorts tuples: by any number of keys, in groups, and with a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import groupby
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.expr import Column, SortKey
from kquery_spark.physical.sorting import sort_keys as sort_keys_module
from kquery_spark.physical.sorting.row_order import RowOrder, row_order, sorted_rows
from kquery_spark.physical.sorting.sort_keys import KeyStep, key_steps
from kquery_spark.types.vector import Vector

LETTERS = [b"", b"a", b"b", b"\0", b"\xff", b"abcdefg", b"abcdefgh", b"abcdefghi", b"\0" * 8]
TYPES: dict[str, tuple[pa.DataType, Callable[[Random], Any]]] = {
    "long": (
        pa.int64(),
        lambda r: r.choice([r.randint(-3, 3), r.randint(-(2**63), 2**63 - 1), 2**63 - 1, -(2**63)]),
    ),
    "bytes": (pa.binary(), lambda r: b"".join(r.choices(LETTERS, k=r.randint(0, 5)))),
    "string": (pa.string(), lambda r: "".join(r.choices("aé€\U0001f600 ", k=r.randint(0, 12)))),
    "decimal": (
        pa.decimal128(38, 0),
        lambda r: Decimal(r.choice([r.randint(-3, 3), r.randint(-(10**30), 10**30)])),
    ),
    "bool": (pa.bool_(), lambda r: r.random() < 0.5),
}
Key = tuple[str, list[Any], bool, bool]


def random_keys(random: Random) -> tuple[int, list[Key]]:
    """Return a number of rows, and for each key its type, its values, whether it ascends, and whether NULLs come first."""
    rows, keys = random.randint(0, 30), []
    for _ in range(random.randint(1, 4)):
        name = random.choice(sorted(TYPES))
        few = [TYPES[name][1](random) for _ in range(random.randint(1, 6))]
        column = random.choices([*few, None] if random.random() < 0.5 else few, k=rows)
        keys.append((name, column, random.random() < 0.5, random.random() < 0.5))
    return rows, keys


def sort_key(name: str, values: Sequence[Any], ascending: bool, nulls_first: bool) -> tuple[SortKey, Vector]:
    dtype = TYPES[name][0]
    return SortKey(Column("k", dtype, True), ascending, nulls_first), Vector(dtype, pa.array(values, dtype))


def steps_of(keys: Sequence[Key]) -> list[KeyStep]:
    return key_steps(sort_key(*key) for key in keys)


def ranks_of(keys: Sequence[Key], rows: int) -> list[tuple[int, ...]]:
    """Return a tuple for each row. The tuples sort as the rows should."""
    columns = []
    for name, values, ascending, nulls_first in keys:
        encoded = [v.encode() if name == "string" and v is not None else v for v in values]
        distinct = sorted({v for v in encoded if v is not None}, reverse=not ascending)
        null = -1 if nulls_first else len(distinct)
        columns.append([null if v is None else distinct.index(v) for v in encoded])
    return [tuple(column[row] for column in columns) for row in range(rows)]


def expected_order(ranks: Sequence[Any]) -> tuple[list[int], list[bool]]:
    order = sorted(range(len(ranks)), key=lambda row: ranks[row])
    return order, [i == 0 or ranks[row] != ranks[order[i - 1]] for i, row in enumerate(order)]


def as_lists(order: RowOrder) -> tuple[list[int], list[bool]]:
    return order.rows.tolist(), order.is_new.tolist()


@pytest.mark.parametrize("by_parts", [False, True])
def test_rows_are_sorted_like_tuples(by_parts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """by_parts: strings are compared by eight bytes at a time, as if there were many different ones."""
    if by_parts:
        monkeypatch.setattr(
            sort_keys_module, "_is_mostly_distinct", lambda v: v.dtype in (pa.string(), pa.binary())
        )
    for seed in range(1500):
        rows, keys = random_keys(Random(seed))
        expected = expected_order(ranks_of(keys, rows))
        assert as_lists(row_order(steps_of(keys), rows)) == expected, seed
        assert sorted_rows(steps_of(keys), rows).tolist() == expected[0], seed


def test_the_first_rows_of_groups_are_in_order() -> None:
    for seed in range(1000):
        random = Random(seed)
        rows, keys = random_keys(random)
        limit, group_count = random.randint(0, 6), random.randint(1, 5)
        groups = np.array([random.randrange(group_count) for _ in range(rows)], np.int64)
        actual, is_new = as_lists(row_order(steps_of(keys), rows, groups, limit))
        ranks = [(int(group), *rank) for group, rank in zip(groups, ranks_of(keys, rows), strict=True)]
        order, starts = expected_order(ranks)
        assert sorted(actual) == sorted(order), seed
        at = 0
        for _, members in groupby(order, key=lambda row: ranks[row][0]):
            end = at + len(list(members))
            first = slice(at, min(at + limit, end))
            assert (actual[first], is_new[first]) == (order[first], starts[first]), seed
            at = end


def test_the_first_rows_of_one_group() -> None:
    for seed in range(500):
        random = Random(seed)
        rows, keys = random_keys(random)
        limit = random.randint(0, 6)
        actual = sorted_rows(steps_of(keys), rows, limit)
        assert actual.tolist() == expected_order(ranks_of(keys, rows))[0][:limit], seed


def test_many_rows_by_keys_that_do_not_fit_into_one_integer() -> None:
    """The second key is needed for rows that are tied in the first, and the third for few of these."""
    random = np.random.default_rng(7)
    count = 50_000
    columns = [random.integers(-low, low, count) for low in (10**4, 2**62, 3)]
    words = [f"{n % 1000:08d} and {n % 7}" for n in columns[1].tolist()]
    keys: list[Key] = [
        ("long", columns[0].tolist(), True, True),
        ("string", words, False, True),
        ("long", columns[2].tolist(), False, False),
    ]
    ranks = list(
        zip(
            columns[0].tolist(),
            ([-b for b in w.encode()] for w in words),
            (-columns[2]).tolist(),
            strict=True,
        )
    )
    assert as_lists(row_order(steps_of(keys), count)) == expected_order(ranks)


def test_strings_with_long_common_prefixes() -> None:
    values = [b"x" * 1000 + bytes([i % 3]) for i in range(5000)] + [b"x" * 300] * 3 + [b"", b"x" * 256]
    values += [f"{i * 7919 % 100_003:06d} and more".encode() for i in range(70_000)]
    keys: list[Key] = [("bytes", values[::-1], True, True)]
    assert as_lists(row_order(steps_of(keys), len(values))) == expected_order(values[::-1])


def test_expensive_keys_are_read_for_tied_rows_only() -> None:
    """10,000 rows are tied in pairs. Only 100 are read: the first row of each of the 50 groups, and the row tied with it."""
    seen: list[int] = []

    def columns(rows: np.ndarray | None) -> list[np.ndarray]:
        assert rows is not None
        seen.append(len(rows))
        return [np.zeros(len(rows), np.int64)]

    first = np.arange(10_000) // 2
    groups = first // 100
    cheap = steps_of([("long", first.tolist(), True, True)])
    row_order([*cheap, KeyStep(columns, is_cheap=False)], len(first), groups, limit=1)
    assert seen == [100]

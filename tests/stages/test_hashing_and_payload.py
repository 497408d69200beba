"""What crosses a shuffle: hashes that agree whatever the physical form, and batches that come back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.errors import BatchTooLarge
from kquery_spark.expr import Column
from kquery_spark.kernels.hash_index import empty_slots
from kquery_spark.physical.hashing import hash_vector, partition_ids
from kquery_spark.physical.operators import Partitioning
from kquery_spark.physical.operators.base import Metrics
from kquery_spark.physical.spill import SpillDirectory, scatter
from kquery_spark.stages import payload
from kquery_spark.stages.payload import decode_payload, encode, one_cell, partitioned
from kquery_spark.types.batch import Batch, concat
from kquery_spark.types.vector import Vector
from tests.support.memory import MEGABYTES

WORDS = ["", "a", "ab", "abcdefgh", "abcdefghi", "ä", "😀", "abcdefghabcdefgh", None, "abcdefgh\x00"]
DECIMAL = pa.decimal128(20, 2)
MAX_BYTES = 64 << 20


def test_a_dictionary_hashes_as_its_strings_do():
    plain = pa.array(WORDS * 3)
    hashes = hash_vector(Vector(pa.string(), plain))
    assert (hash_vector(Vector(pa.string(), plain.dictionary_encode())) == hashes).all()
    assert len(set(hashes.tolist())) == len(WORDS)


def test_a_sliced_string_column_hashes_its_own_rows():
    plain = pa.array(WORDS)
    whole = hash_vector(Vector(pa.string(), plain))
    assert (hash_vector(Vector(pa.string(), plain.slice(3, 4))) == whole[3:7]).all()


def test_narrow_and_wide_decimals_hash_alike():
    values = [Decimal("0.00"), Decimal("-1.25"), Decimal("123456789012.34"), None]
    wide = Vector(DECIMAL, pa.array(values, DECIMAL))
    narrow = Vector(DECIMAL, pa.array([0, -125, 12345678901234, None], pa.int64()))
    assert narrow.is_narrow and not wide.is_narrow
    assert (hash_vector(wide) == hash_vector(narrow)).all()


def test_nan_and_zero_hash_as_spark_groups_them():
    values = np.array([0.0, -0.0, np.nan, -np.nan, 1.0])
    hashes = hash_vector(Vector(pa.float64(), pa.array(values)))
    assert hashes[0] == hashes[1] and hashes[2] == hashes[3]
    assert len({hashes[0], hashes[2], hashes[4]}) == 3


def test_partitions_are_about_equal_for_dense_and_strided_keys():
    for keys in (np.arange(100_000), np.arange(100_000) * 1024):
        ids = partition_ids([Vector(pa.int64(), pa.array(keys))], len(keys), 7)
        counts = np.bincount(ids, minlength=7)
        assert counts.min() > 0.9 * len(keys) / 7 and counts.max() < 1.1 * len(keys) / 7


def _batch() -> Batch:
    schema = pa.schema([("k", pa.int64()), ("s", pa.string()), ("d", DECIMAL)])
    columns = (
        pa.array([1, 2, None, 4]),
        pa.array(["x", "y", None, "x"]).dictionary_encode(),
        pa.array([100, None, 300, -400], pa.int64()),
    )
    return Batch(schema, columns, 4)


def test_a_payload_keeps_physical_forms():
    batch = _batch()
    back = decode_payload(encode(batch), batch.schema)
    assert back.num_rows == 4
    assert [c.type for c in back.columns] == [c.type for c in batch.columns]
    assert back.to_arrow().equals(batch.to_arrow())


def test_a_payload_without_columns_keeps_its_row_count():
    batch = Batch(pa.schema([]), (), 17)
    assert decode_payload(encode(batch), batch.schema).num_rows == 17


@pytest.mark.parametrize("count", [1, 3])
def test_large_batches_are_divided(count: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(payload, "_MAX_BATCH_BYTES", 4000)
    words = [str(i % 700) * 3 for i in range(3000)]
    columns = {"k": pa.array(range(3000)), "s": pa.array(words), "d": pa.array(words).dictionary_encode()}
    schema = pa.schema([("k", pa.int64()), ("s", pa.string()), ("d", pa.string())])
    batch = Batch(schema, tuple(columns.values()), 3000)
    where = Partitioning((Column("k", pa.int64()),) if count > 1 else (), count)
    pieces = [piece for _, piece in partitioned([batch], where, schema, 1000, MAX_BYTES)]
    assert max(piece.nbytes for piece in pieces) < 5000
    rows = sorted(zip(*(c.to_pylist() for c in concat(schema, pieces).columns), strict=True))
    assert rows == list(zip(range(3000), words, words, strict=True))


def test_batches_with_many_dictionaries_are_divided(monkeypatch: pytest.MonkeyPatch):
    limit = 40_000
    monkeypatch.setattr(payload, "_MAX_BATCH_BYTES", limit)
    plain = pa.array([f"{i % 100:016}" for i in range(1000)])
    column = plain.dictionary_encode()
    # One dictionary is small enough to stay encoded, but the 25 dictionaries together exceed the limit.
    assert limit / 25 < column.dictionary.nbytes < limit / 16
    schema = pa.schema([(f"c{i}", pa.string()) for i in range(25)])
    batch = Batch(schema, (column,) * 25, 1000)
    pieces = [piece for _, piece in partitioned([batch], Partitioning((), 1), schema, 1, MAX_BYTES)]
    assert max(piece.nbytes for piece in pieces) <= limit
    assert len(pieces) <= 2 * 25 * plain.nbytes / limit
    assert all(c.equals(plain) for c in concat(schema, pieces).columns)


def test_a_payload_of_2_gib_or_more_is_declined():
    content = np.zeros(2**31, np.uint8)  # the system provides no memory for zeros that are not written
    with pytest.raises(BatchTooLarge, match="rows that take more than 2 GiB"):
        one_cell(pa.py_buffer(content))


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(("payload_bytes", "max_bytes"), [(1, 1 << 20), (1 << 20, 1 << 20), (1 << 20, 200)])
def test_partitioning_loses_and_repeats_no_row(count: int, payload_bytes: int, max_bytes: int):
    schema = pa.schema([("k", pa.int64())])
    batches = [Batch(schema, (pa.array([i, i + 1, None, i * 7]),), 4) for i in range(50)]
    keys = (Column("k", pa.int64()),) if count > 1 else ()
    where = Partitioning(keys, count)
    pieces = list(partitioned(iter(batches), where, schema, payload_bytes, max_bytes))
    rows = [v for _, b in pieces for v in b.columns[0].to_pylist()]
    expected = [v for b in batches for v in b.columns[0].to_pylist()]
    assert sorted(rows, key=repr) == sorted(expected, key=repr)
    homes: dict[object, set[int]] = {}
    for target, batch in pieces:
        for value in batch.columns[0].to_pylist():
            homes.setdefault(value, set()).add(target)
    assert all(len(targets) == 1 for targets in homes.values())


@pytest.mark.parametrize(
    ("share", "is_dictionary", "max_payloads"), [(0.99, False, 400), (0.99, True, 4000), (0.0, False, 8000)]
)
def test_rows_that_wait_for_their_partition_are_bounded(share: float, is_dictionary: bool, max_payloads: int):
    """A few rows of each batch wait in other partitions than most of its rows, or all partitions grow slowly."""
    schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
    rng = np.random.default_rng(1)
    rows, batches, partitions = 4096, 100, 200
    max_bytes = 8 * MEGABYTES

    def source() -> Iterator[Batch]:
        for i in range(batches):
            keys = np.where(rng.random(rows) < share, 0, rng.integers(0, 10_000, rows))
            strings = pa.array([f"{i} {j}".ljust(1000) for j in range(rows)])
            yield Batch(
                schema, (pa.array(keys), strings.dictionary_encode() if is_dictionary else strings), rows
            )

    where = Partitioning((Column("k", pa.int64()),), partitions)
    total, before, most, payloads = 0, pa.total_allocated_bytes(), 0, 0
    for _, piece in partitioned(source(), where, schema, 8 * MEGABYTES, max_bytes):
        total += piece.num_rows
        payloads += 1
        most = max(most, pa.total_allocated_bytes() - before)
    assert total == rows * batches
    assert most < 4 * max_bytes
    assert payloads < max_payloads


@pytest.mark.parametrize("count", [65_535, 65_536, 65_600, 200_000])
def test_each_row_goes_to_the_task_of_its_key_however_many_tasks_there_are(count: int):
    schema = pa.schema([("k", pa.int64())])
    values = np.arange(100_000) % 40_000
    batch = Batch(schema, (pa.array(values),), len(values))
    by_hash = Partitioning((Column("k", pa.int64()),), count)
    by_range = Partitioning((Column("k", pa.int64()),), count, tuple(range(1, count)))
    hashed = partition_ids([batch.vector(0)], len(values), count)
    for where, ids in ((by_hash, hashed), (by_range, values)):
        pieces = list(partitioned(iter([batch]), where, schema, 1 << 20, MAX_BYTES))
        targets = np.repeat([target for target, _ in pieces], [piece.num_rows for _, piece in pieces])
        rows = np.concatenate([piece.columns[0].to_numpy() for _, piece in pieces])
        assert sorted(zip(targets, rows, strict=True)) == sorted(zip(ids, values, strict=True))


def test_spilled_rows_go_to_the_file_of_their_key():
    schema = pa.schema([("k", pa.int64())])
    batch = Batch(schema, (pa.array(np.arange(10_000) % 3_000),), 10_000)
    with SpillDirectory(Metrics()) as spill:
        files = spill.partitions(schema)
        scatter(batch, [batch.vector(0)], files, level=2)
        homes = [{v for part in file.read() for v in part.columns[0].to_pylist()} for file in files]
    assert sum(map(len, homes)) == len(set().union(*homes)) == 3_000


@pytest.mark.parametrize("tasks", [16, 256, 768, 4096])
def test_every_level_divides_the_rows_of_one_task_of_an_exchange(tasks: int) -> None:
    schema = pa.schema([("k", pa.int64())])
    values = np.arange(2000 * tasks)
    ids = partition_ids([Vector(pa.int64(), pa.array(values))], len(values), tasks)
    batch = Batch(schema, (pa.array(values[ids == 7]),), int((ids == 7).sum()))
    with SpillDirectory(Metrics()) as spill:
        for level in range(3):
            files = spill.partitions(schema)
            scatter(batch, [batch.vector(0)], files, level)
            assert max(file.rows for file in files) < max(batch.num_rows / 4, 8)
            batch = concat(schema, list(max(files, key=lambda file: file.rows).read()))


def test_slots_hold_row_numbers_past_32_bits():
    assert empty_slots(4, 2**31 - 1).dtype == np.int32
    assert empty_slots(4, 2**31).dtype == np.int64


def test_a_dictionary_that_all_batches_share_is_counted_once():
    schema = pa.schema([("k", pa.int32()), ("s", pa.string())])
    words = pa.array([f"{i:0100}" for i in range(1000)])  # 100 KB
    indices = pa.array(np.arange(100, dtype=np.int32))
    column = pa.DictionaryArray.from_arrays(indices, words)
    batches = [Batch(schema, (pa.array(np.arange(100, dtype=np.int32)), column), 100) for _ in range(50)]
    where = Partitioning((Column("k", pa.int32()),), 4)
    pieces = [piece for _, piece in partitioned(batches, where, schema, 10 << 20, 400_000)]
    assert len(pieces) == 4  # no partition was written early
    assert sum(piece.num_rows for piece in pieces) == 5000

"""Dictionaries of a few selected rows lose the entries that no row uses, and stay dictionaries."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.types.batch import Batch, concat, trim_dictionaries

SCHEMA = pa.schema([("s", pa.string()), ("t", pa.string()), ("n", pa.int64())])


def batch_of(indices: list[int | None]) -> Batch:
    """A batch whose first column has a dictionary of 50 entries, and whose second one has a dictionary of two."""
    values = pa.array([f"value {i}" for i in range(50)])
    first = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), values)
    second = pa.array(["a", "b"] * len(indices))[: len(indices)].dictionary_encode()
    return Batch(SCHEMA, (first, second, pa.array(range(len(indices)), pa.int64())), len(indices))


def test_only_entries_that_rows_use_remain() -> None:
    batch = batch_of([7, None, 3, 7])
    trimmed = trim_dictionaries(batch)
    assert trimmed.columns[0].dictionary.to_pylist() == ["value 7", "value 3"]
    assert trimmed.columns[1] is batch.columns[1]
    assert trimmed.to_arrow().equals(batch.to_arrow())


def test_trimmed_rows_do_not_decode_the_batches_after_them() -> None:
    """``concat`` decodes a column if one of its arrays is plain: 250,000 rows with 1 KB strings would take 250 MB."""
    joined = concat(SCHEMA, [trim_dictionaries(batch_of([7, None, 3])), batch_of([1, 2])])
    assert pa.types.is_dictionary(joined.columns[0].type)
    assert joined.columns[0].to_pylist() == ["value 7", None, "value 3", "value 1", "value 2"]

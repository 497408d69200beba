"""Dictionaries of a few selected rows lose the entries that no row uses, and ``concat`` does not decode large columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.types import batch as module
from kquery_spark.types.batch import Batch, concat, concat_arrays, trim_dictionaries

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
    """``concat`` may decode a column if one of its arrays is plain: 250,000 rows with 1 KB strings would take 250 MB."""
    joined = concat(SCHEMA, [trim_dictionaries(batch_of([7, None, 3])), batch_of([1, 2])])
    assert pa.types.is_dictionary(joined.columns[0].type)
    assert joined.columns[0].to_pylist() == ["value 7", None, "value 3", "value 1", "value 2"]


WORDS = pa.array([f"{i:03d}" * 60 for i in range(100)])


def word_array(rows: int, first: int = 0) -> pa.DictionaryArray:
    """Return a dictionary array that cycles through the words. Every 101st row is NULL."""
    indices = np.arange(first, first + rows) % 101
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32(), mask=indices == 100), WORDS)


@pytest.mark.parametrize("limit,is_dictionary", [(1 << 18, True), (1 << 20, False)])
def test_concat_does_not_decode_dictionaries_that_would_grow(
    limit: int, is_dictionary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decoded, 4,000 rows of 180 bytes take 720 kB, but their indices take only 16 kB."""
    monkeypatch.setattr(module, "_MAX_UNCHECKED_BYTES", limit)
    plain = pa.array(["a word that is in no dictionary", None, "003" * 60])
    for arrays in ([word_array(2000), plain, word_array(2000, 7)], [plain, word_array(4000)]):
        joined = concat_arrays(pa.string(), arrays)
        assert pa.types.is_dictionary(joined.type) is is_dictionary
        assert (joined.nbytes < 1 << 18) is is_dictionary
        assert joined.to_pylist() == [value for each in arrays for value in each.to_pylist()]


def test_concat_decodes_dictionaries_beside_larger_plain_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_UNCHECKED_BYTES", 1 << 12)
    plain = pa.array([str(i) * 40 for i in range(4000)])
    joined = concat_arrays(pa.string(), [word_array(100), plain])
    assert pa.types.is_string(joined.type)
    # Now the decoded words do not fit into one array with the plain strings.
    monkeypatch.setattr(module, "MAX_STRING_BYTES", plain.nbytes)
    joined = concat_arrays(pa.string(), [word_array(100), plain])
    assert pa.types.is_dictionary(joined.type) and joined.slice(100).to_pylist() == plain.to_pylist()


def test_concat_does_not_decode_large_dictionaries_if_rows_use_a_long_string(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both dictionaries have more entries than rows, but all rows use the longest entry."""
    monkeypatch.setattr(module, "_MAX_UNCHECKED_BYTES", 1 << 20)
    arrays = [
        pa.DictionaryArray.from_arrays(
            pa.array([0] * 3000, pa.int32()),
            pa.array(["long" * 1000, *(f"{part} {i}" for i in range(40_000))]),
        )
        for part in (1, 2)
    ]
    joined = concat_arrays(pa.string(), arrays)
    assert pa.types.is_dictionary(joined.type) and joined.nbytes < 2 << 20
    assert set(joined.to_pylist()) == {"long" * 1000}


def test_dictionaries_of_numbers_are_decoded() -> None:
    encoded = pa.array([1, 2, 1]).dictionary_encode()
    assert concat_arrays(pa.int64(), [encoded, pa.array([5])]).to_pylist() == [1, 2, 1, 5]

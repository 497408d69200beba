"""Escapes of strings, compared with ``str.translate``."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from kquery_spark.kernels import escapes
from kquery_spark.kernels.escapes import Escapes

_ESCAPES = {"\n": "\\n", '"': '\\"', "\0": "\\u0000", "\\": "\\\\"}
_CHARACTERS = ["", "a", "é", "😀", *_ESCAPES]


@pytest.mark.parametrize("block_bytes", [1, 2, 7, 1 << 18])
def test_every_character_with_an_escape_is_replaced(
    block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(escapes, "_BLOCK_BYTES", block_bytes)
    chosen = random.Random(block_bytes)
    table, translation = Escapes(_ESCAPES), str.maketrans(_ESCAPES)
    for rows in [0, 1, 2, 5, 60] * 10:
        values = [
            None if chosen.random() < 0.2 else "".join(chosen.choices(_CHARACTERS, k=chosen.randrange(9)))
            for _ in range(rows)
        ]
        array = pa.array(values, pa.string())
        for part in (array, array[1:], array[1:-1]):
            actual = table.apply(part)
            actual.validate(full=True)
            assert actual.to_pylist() == [
                v if v is None else v.translate(translation) for v in part.to_pylist()
            ]


def test_strings_without_escapes_are_not_copied() -> None:
    array = pa.array(["a", None, "é"])
    assert Escapes(_ESCAPES).apply(array) is array

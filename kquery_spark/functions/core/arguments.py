"""Converts the values and NULLs of a kernel's arguments to numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kquery_spark.kernels.text import null_mask
from kquery_spark.types.vector import Int64s, Vector, decimal_words


def numbers(vector: Vector, length: int) -> Int64s:
    """Return the values of an integer argument as int64, one per row; 0 for NULL."""
    array = vector.array(length)
    return np.asarray(
        (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False), np.int64
    )


def doubles(vector: Vector, length: int) -> npt.NDArray[np.float64]:
    """Return the values of an argument of doubles, one per row; 1 for NULL."""
    array = vector.array(length)
    return np.asarray((array.fill_null(1.0) if array.null_count else array).to_numpy(zero_copy_only=False))


def unscaled_digits(vector: Vector, length: int) -> Int64s:
    """Return the unscaled integers of an argument of decimals with at most 18 digits, one per row; 0 for NULL."""
    words = decimal_words(vector.array(length))[:, 0]
    mask = joint_mask([vector], length)
    return words if mask is None else np.where(mask, 0, words)


def joint_mask(args: Sequence[Vector], length: int) -> Any:
    """Return a mask that is True for each row with a NULL argument; None if no argument has a NULL."""
    masks: list[Any] = [null_mask(a.array(length)) for a in args if a.null_count]
    return np.logical_or.reduce(masks) if masks else None


def dense_mask(args: Sequence[Vector], length: int) -> npt.NDArray[np.bool_]:
    """Return the mask of ``joint_mask``, but all False instead of None."""
    mask = joint_mask(args, length)
    return np.zeros(length, np.bool_) if mask is None else np.asarray(mask, np.bool_)

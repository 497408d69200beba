"""The values and NULLs of a kernel's arguments as numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kquery_spark.kernels.text import null_mask
from kquery_spark.types.vector import Int64s, Vector


def numbers(vector: Vector, length: int) -> Int64s:
    """The values of an integer argument as int64, one per row; 0 for NULL."""
    array = vector.array(length)
    return np.asarray(
        (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False), np.int64
    )


def joint_mask(args: Sequence[Vector], length: int) -> Any:
    """A mask that is True if any argument is NULL; None if nothing is NULL."""
    masks: list[Any] = [null_mask(a.array(length)) for a in args if a.null_count]
    return np.logical_or.reduce(masks) if masks else None


def dense_mask(args: Sequence[Vector], length: int) -> npt.NDArray[np.bool_]:
    """A mask that is True if any argument is NULL, like ``joint_mask``, but never None."""
    mask = joint_mask(args, length)
    return np.zeros(length, np.bool_) if mask is None else np.asarray(mask, np.bool_)

"""What the optimizer and the cost model know of a function."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Planning:
    """What rules and estimates use.

    deterministic: False if each call may return another value.
    foldable: True if a call with constant arguments is a constant.
    selectivity: expected share of rows that pass it as a condition, if that is unusual.
    distinct_values: number of different results, including NULL, if there are few.
    """

    deterministic: bool = True
    foldable: bool = True
    selectivity: float | None = None
    distinct_values: float | None = None

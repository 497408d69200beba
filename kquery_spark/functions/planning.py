"""The facet of a function that the optimizer and the cost model use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Planning:
    """Properties of a function for optimizer rules and estimates.

    deterministic: False if each call may return another value.
    foldable: True if a call with constant arguments is a constant.
    selectivity: expected share of rows that pass it as a condition, if that is unusual.
    distinct_values: number of different results, including NULL, if there are few.
    """

    deterministic: bool = True
    foldable: bool = True
    selectivity: float | None = None
    distinct_values: float | None = None

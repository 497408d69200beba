"""Reads a sample of the mutated plans; ``python -m tests.frontends.substrait.mutated_plans`` reads more."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("substrait")


def test_mutated_plans_end_in_rows_or_errors():
    from tests.frontends.substrait.mutated_plans import read_mutated

    outcomes = Counter(read_mutated(0, 400, seed=20261129))
    assert {outcome for outcome in outcomes if outcome.startswith("finding")} == set()
    # the mutations reach both the reader and the executor
    assert outcomes["declined"] > 100
    assert outcomes["rows"] > 20

"""Functions whose kernels an older pyarrow lacks are declined, and the others are not."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

from kquery_spark.errors import Unsupported
from kquery_spark.functions.math.math_functions import _require_arrow_kernel


@pytest.mark.parametrize("name", ["expm1", "sinh", "cosh", "tanh"])
def test_a_function_without_its_kernel_is_declined(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(pc, name):
        assert _require_arrow_kernel(name) is None
        monkeypatch.delattr(pc, name)
    decline = _require_arrow_kernel(name)
    assert decline is not None
    with pytest.raises(Unsupported, match=f"{name} needs pyarrow 21 or later"):
        decline([1.0])


def test_functions_with_kernels_of_their_own_are_not_declined() -> None:
    assert _require_arrow_kernel("cbrt") is None

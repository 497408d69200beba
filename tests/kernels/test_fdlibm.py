"""Java's StrictMath, to the last bit: random values of every size, and the values at which its algorithms branch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.functions.math.hyperbolic import acosh, asinh, atanh
from kquery_spark.kernels import fdlibm
from tests.conftest import SPARK_BEFORE_4_3

Doubles = npt.NDArray[np.float64]
SPECIAL = np.array([
    0.0, -0.0, 1, -1, 2, 0.5, -0.5, 0.975, 8, -27, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, 1e-20, -1e-20,
    2.2250738585072014e-308, 1.797e308, 2.0**66, 0.4375, 0.6875, 1.1875, 2.4375, np.pi, np.e, np.sqrt(0.5), np.sqrt(2),
    0.34657359027997264, 1.0397207708399179, 709.782712893384, 709.7827128933841, -708.4, -740.5, -745.1332191019411,
    -745.1332191019412, 2.0**-27, 2.0**-28, 2.0**-57,
])  # fmt: skip


def values(seed: int) -> Doubles:
    random = np.random.default_rng(seed)
    near_one = 1 + random.uniform(-1, 1, 5000) * 2.0 ** -random.integers(5, 52, 5000)
    return np.concatenate(
        [
            random.uniform(-1, 1, 20_000),
            random.uniform(-5, 5, 20_000),
            random.uniform(-750, 712, 20_000),
            random.integers(-(2**63), 2**63 - 1, 30_000).view(np.float64),
            random.uniform(-1, 1, 10_000) * 2.0 ** -random.integers(0, 70, 10_000),
            near_one,
            np.arange(-2000.0, 2000.0),
            np.repeat(SPECIAL, len(SPECIAL)) if seed else np.tile(SPECIAL, len(SPECIAL)),
        ]
    )


@pytest.mark.parametrize(
    ("sql", "ours"),
    [
        ("CASE WHEN x > 0 THEN ln(x) END", fdlibm.log),
        ("exp(x)", fdlibm.exp),
        ("asin(x)", fdlibm.asin),
        ("acos(x)", fdlibm.acos),
        ("atan(x)", fdlibm.atan),
        ("cbrt(x)", fdlibm.cbrt),
        ("CASE WHEN x > -1 THEN log1p(x) END", fdlibm.log1p),
        ("atanh(x)", atanh),
        pytest.param("asinh(x)", asinh, marks=pytest.mark.skipif(SPARK_BEFORE_4_3, reason="another formula")),
        pytest.param("acosh(x)", acosh, marks=pytest.mark.skipif(SPARK_BEFORE_4_3, reason="another formula")),
    ],
)
def test_functions_of_one_value_are_those_of_java(spark: Any, tmp_path: Any, sql: str, ours: Any):
    x = values(0)
    pq.write_table(pa.table({"x": x}), tmp_path / "x.parquet")
    actual = spark.read.parquet(str(tmp_path)).selectExpr("x", f"{sql} AS y").toArrow()
    assert np.array_equal(actual["x"].to_numpy().view(np.int64), x.view(np.int64))
    with np.errstate(all="ignore"):
        same(actual["y"].combine_chunks(), ours(x))


def test_the_angle_of_a_point_is_that_of_java(spark: Any, tmp_path: Any):
    x, y = values(0), values(1)
    pq.write_table(pa.table({"x": x, "y": y}), tmp_path / "x.parquet")
    actual = spark.read.parquet(str(tmp_path)).selectExpr("atan2(y, x) AS z").toArrow()
    with np.errstate(all="ignore"):
        same(actual["z"].combine_chunks(), fdlibm.atan2(y + 0.0, x + 0.0))


def same(java: pa.Array, ours: Doubles) -> None:
    """Equal bits wherever Java has a value; any NaN is as good as another."""
    known = np.asarray(java.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    expected = java.fill_null(0.0).to_numpy()[known]
    actual = ours[known]
    equal = (expected.view(np.int64) == actual.view(np.int64)) | (np.isnan(expected) & np.isnan(actual))
    assert known.sum() > 50_000
    assert equal.all(), list(zip(expected[~equal][:5], actual[~equal][:5], strict=True))

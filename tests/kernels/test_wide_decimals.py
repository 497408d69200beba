"""Decimal arithmetic past int64 against Python's decimals, by Spark's types for the results."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.kernels import wide_decimals
from kquery_spark.types.vector import Vector, narrow

EXACT = decimal.Context(prec=300, rounding=decimal.ROUND_HALF_UP)
NINES = 10**38 - 1
Kind = tuple[int, int]


def result_kind(op: str, left: Kind, right: Kind) -> Kind:
    """Spark's type of the result (``DecimalType.adjustPrecisionScale``)."""
    (p1, s1), (p2, s2) = left, right
    if op in "+-":
        scale = max(s1, s2)
        precision = scale + max(p1 - s1, p2 - s2) + 1
    elif op == "*":
        precision, scale = p1 + p2 + 1, s1 + s2
    else:
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    if precision > 38:
        precision, scale = 38, max(38 - (precision - scale), min(scale, 6))
    return precision, scale


def expected(op: str, left: Decimal | None, right: Decimal | None, kind: Kind) -> Decimal | None:
    if left is None or right is None:
        return None
    operation = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "/": EXACT.divide}[op]
    precision, scale = kind
    found = operation(left, right).quantize(Decimal(1).scaleb(-scale), context=EXACT)
    return found if EXACT.abs(found) < Decimal(10) ** (precision - scale) else None


def column(values: list[Decimal | None], kind: Kind) -> Vector:
    dtype = pa.decimal128(*kind)
    array = pa.array(values, dtype)
    slim = narrow(array)
    return Vector(dtype, array if slim is None else slim)


def digits(precision: int) -> st.SearchStrategy[int]:
    """Numbers of up to ``digits`` digits; many nines are where a quotient's digits are hardest to guess."""
    many_nines = st.builds(
        lambda nines, zeros, rest: int("9" * nines + "0" * zeros + str(rest)) % 10**precision,
        st.integers(1, precision),
        st.integers(0, 8),
        st.integers(0, 10**9),
    )
    return st.one_of(st.integers(0, 10**precision - 1), many_nines)


@st.composite
def operands(draw: st.DrawFn) -> tuple[Kind, Kind, list[int | None], list[int | None]]:
    kinds = [(p, draw(st.integers(0, p))) for p in (draw(st.integers(1, 38)), draw(st.integers(1, 38)))]
    size = draw(st.integers(1, 5))
    columns = [
        [
            draw(st.none() | st.builds(lambda a, b: a * b, digits(p), st.sampled_from([1, -1])))
            for _ in range(size)
        ]
        for p, _ in kinds
    ]
    return kinds[0], kinds[1], columns[0], columns[1]


@pytest.mark.parametrize("op", ["+", "-", "*", "/"])
@given(case=operands())
@example(case=((38, 13), (35, 32), [NINES], [730961]))  # Arrow's own rounding is one too low
@example(case=((38, 0), (38, 38), [10**31], [NINES]))  # a quotient whose steps do not fit 76 digits
@example(case=((38, 0), (38, 38), [NINES, 1], [1, 1]))  # a sum whose steps do not fit them
@example(case=((30, 30), (22, 0), [-149515], [None]))
def test_arithmetic(op: str, case: tuple[Kind, Kind, list[int | None], list[int | None]]) -> None:
    left_kind, right_kind, left, right = case
    if op == "/":
        right = [v or None for v in right]
    kind = result_kind(op, left_kind, right_kind)
    a = [None if v is None else Decimal(v).scaleb(-left_kind[1], EXACT) for v in left]
    b = [None if v is None else Decimal(v).scaleb(-right_kind[1], EXACT) for v in right]
    context = CallContext(pa.decimal128(*kind), EvalMode.LEGACY, num_rows=len(a))
    x, y = column(a, left_kind), column(b, right_kind)
    if op in "+-":
        found = dk.add(x, y, context, 1 if op == "+" else -1)
    else:
        found = (dk.multiply if op == "*" else dk.divide)(x, y, context)
    result = Vector(context.dtype, found).plain().to_pylist()
    assert result == [expected(op, m, n, kind) for m, n in zip(a, b, strict=True)]


@given(
    st.lists(st.builds(lambda a, b: a * b, digits(76), st.sampled_from([1, -1])), min_size=1),
    st.integers(1, 60),
)
@example(numbers=[(2**63 - 1) * 10**38, -1], drop=36)  # Arrow's own rounding is wrong from the tenth digit on
def test_rounding(numbers: list[int], drop: int) -> None:
    values = pa.array([Decimal(n).scaleb(-drop, EXACT) for n in numbers], pa.decimal256(76, drop))
    exact = [int((Decimal(n).scaleb(-drop, EXACT)).to_integral_value(context=EXACT)) for n in numbers]
    assert [int(v) for v in wide_decimals.round_half_up(values, 0).to_pylist()] == exact

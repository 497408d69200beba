"""Numbers formatted many at a time are those formatted one by one, which tests/functions/test_parity.py holds to Spark."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.functions.math.decimal_parts import decimal_parts
from kquery_spark.functions.registry import CallContext
from kquery_spark.functions.strings.format_directives import Directive, directives
from kquery_spark.functions.strings.format_string import _decimals, _exact_decimals
from kquery_spark.functions.strings.number_formats import number_format
from kquery_spark.kernels.text import null_mask
from kquery_spark.types import names as t

FORMATS = ("999,999.99", "S000", "$0,009.99MI", "99PR", ".99", "9" * 25 + ".9", "9.")


@pytest.mark.parametrize(("precision", "scale"), [(10, 3), (18, 0), (18, 18), (20, 0), (30, 15), (38, 18)])
@pytest.mark.parametrize("source", FORMATS)
def test_to_char_of_all_numbers_is_that_of_each(source: str, precision: int, scale: int) -> None:
    chance, form = random.Random(precision * 100 + scale), number_format(source)
    most = min(precision, scale + 18)
    digits = [0, 1, 10**most - 1, *(chance.randrange(10 ** chance.randrange(most + 1)) for _ in range(200))]
    numbers = [Decimal(f"{chance.choice('+-')}{value}E-{scale}") for value in digits]
    for array in (pa.array([None, *numbers], t.decimal(precision, scale)), pa.array([], t.decimal(1, 0))):
        parts = decimal_parts(array)
        assert parts is not None
        expected = [None if number is None else form.write(number) for number in array.to_pylist()]
        assert form.write_all(parts, null_mask(array)).to_pylist() == expected


def test_numbers_that_are_longer_than_64_bits_are_formatted_one_by_one() -> None:
    assert decimal_parts(pa.array([Decimal(2**63)], t.decimal(20, 0))) is None
    assert decimal_parts(pa.array([Decimal(0)], t.decimal(38, 19))) is None
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"d": pa.array([Decimal(-(2**63)), Decimal(7)], t.decimal(20, 0))}))
    table = context.sql(f"SELECT to_char(d, '{'9' * 20}MI') AS x FROM t").to_arrow()
    assert table["x"].to_pylist() == [" 9223372036854775808-", " " * 19 + "7 "]


@pytest.mark.parametrize("source", ["%f", "%.0f", "%,.2f", "%+012.3f", "%-14.1f", "% ,.2f", "%.15f", "%.20f"])
def test_decimals_of_all_doubles_are_those_of_each(source: str) -> None:
    (directive,) = directives(source)
    assert isinstance(directive, Directive)
    chance = random.Random(source)
    doubles = [0.0, -0.0, 0.5, 2.5, -0.0004, 999.995, 1e14, float("nan"), float("inf"), float("-inf")]
    doubles += [round(chance.uniform(-1e6, 1e6), chance.randrange(5)) for _ in range(300)]
    array = pa.array([None, *doubles], t.DOUBLE)
    places = 6 if directive.precision is None else directive.precision
    form = f"{',' if ',' in source else ''}.{places}f"
    context = CallContext(t.STRING, num_rows=len(array))
    assert _decimals(directive, array, context).equals(_exact_decimals(directive, form, array, context))


def test_padded_and_cut_strings_count_the_characters_of_java() -> None:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"s": ["é", "😀", None, "long"], "b": [True, False, None, True]}))
    table = context.sql("SELECT format_string('%4s|%-5b|%3s', s, b, s) AS x FROM t").to_arrow()
    assert table["x"].to_pylist() == [
        "   é|true |  é",
        "  😀|false| 😀",
        "null|false|null",
        "long|true |long",
    ]

"""Maps: building them, and asking them for keys."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from kquery_spark.expr import Call, Expr
from kquery_spark.expr import Case as Case_
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.cases.arrays import LONGS, MAPS, STRINGS
from tests.functions.cases.strings import c
from tests.functions.parity import Arg, Case, text

# Spark's expression is of no use after an error, so a case that raises has one row
KEYS = Arg(t.STRING, ("a", "b", "", "é"))
OTHER_KEYS = Arg(t.STRING, ("x", "aa", "日"), nulls=False)
DOUBLE_KEYS = Arg(t.DOUBLE, (0.0, -0.0, float("nan"), 1.5))
OTHER_DOUBLES = Arg(t.DOUBLE, (-1.5, float("inf")), nulls=False)
DOUBLES = Arg(pa.list_(t.DOUBLE), ([0.0, 1.0], [-0.0, 2.0], [float("nan"), -7.5]))
MORE = Arg(pa.map_(t.STRING, t.INT), ([], [("c", 1)], [("c", None), ("d", 7)]))
NUMBERS = Arg(pa.list_(t.LONG), ([3, 1], [-1, 2**62], [5, 7]))
PAIR = pa.struct([pa.field("k", t.STRING), pa.field("v", t.LONG)])


def _pairs(*arrays: list[Any]) -> Arg:
    as_dict = [[p and dict(zip("kv", p, strict=True)) for p in pairs] for pairs in arrays]
    return Arg(pa.list_(PAIR), tuple(as_dict))


PAIRS = _pairs([], [("a", 1), ("b", None)], [("a", 1), None], [(None, 1), None], [("a", 1), None, ("a", 1)])
WRONG_PAIRS = ([(None, 1)], [("a", 1), ("a", 2), (None, 2)], [(None, 1), ("a", 1), ("a", 2)])
DOUBLE_PAIR = pa.struct([("k", t.DOUBLE), ("v", t.LONG)])
DOUBLE_PAIRS = Arg(
    pa.list_(DOUBLE_PAIR), ([{"k": -0.0, "v": 1}, {"k": math.nan, "v": 2}], [{"k": 0.0, "v": None}])
)
NESTED_KEYS = Arg(pa.list_(pa.list_(t.LONG)), ([[1, 2], [1]], [[None], [1, None]]))
PAIR_STRINGS = Arg(t.STRING, ("", "a:1,b:2", "a,b:,:c", "a:1:2,b", ",b", "é:ü,x:", ":"))


def _constant(dtype: pa.DataType, value: Any) -> Arg:
    return Arg(dtype, (value,), nulls=False)


def _guarded(*args: Arg) -> Case:
    """A map where the first key is not NULL: the harness has rows of NULLs, for which MAP raises."""
    call = f"map({', '.join(f'{{{i}}}' for i in range(len(args)))})"
    return Case("map", f"case when {{0}} is not null then {call} end", args, build=_build)


def _build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
    return Case_(((Call.of("isnotnull", args[0]), Call.of("map", *args, mode=EvalMode.ANSI)),))


CASES: list[Case] = [
    _guarded(KEYS, v.SMALL), _guarded(KEYS, v.SMALL, OTHER_KEYS, v.SMALL), _guarded(v.SMALL, KEYS), _guarded(DOUBLE_KEYS, KEYS, OTHER_DOUBLES, KEYS),
    _guarded(v.DATES, LONGS), _guarded(v.DEC, v.DEC20), _guarded(LONGS, STRINGS),
    *(_guarded(_constant(t.DOUBLE, x), KEYS, _constant(t.DOUBLE, y), KEYS) for x, y in ((0.0, -0.0), (math.nan, math.nan))),
    _guarded(_constant(t.STRING, "a"), KEYS, _constant(t.STRING, "a"), KEYS), _guarded(_constant(pa.list_(t.DOUBLE), [0.0]), KEYS, _constant(pa.list_(t.DOUBLE), [-0.0]), KEYS),
    c("map_from_arrays", NUMBERS, NUMBERS), c("map_from_arrays", DOUBLES, NUMBERS), c("map_from_arrays", NESTED_KEYS, NESTED_KEYS),
    *(c("map_from_arrays", _constant(STRINGS.dtype, x), _constant(LONGS.dtype, y)) for x, y in ((["a", "a"], [1, 2]), (["a", None], [1, 2]), (["a"], [1, 2]), ([], []))),
    _guarded(_constant(t.LONG, 1), _constant(t.STRING, "a"), Arg(t.LONG, ()), _constant(t.STRING, "a")), c("map_from_entries", DOUBLE_PAIRS), c("map_from_entries", PAIRS), *(c("map_from_entries", Arg(PAIRS.dtype, _pairs(x).values)) for x in WRONG_PAIRS),
    c("map_concat", MAPS, MORE), c("map_concat", MAPS), c("map_concat", MAPS, MORE, _constant(MORE.dtype, [("z", 0)])), c("map_concat", _constant(MORE.dtype, [("z", 0)]), _constant(MORE.dtype, [("z", 0)])),
    c("str_to_map", PAIR_STRINGS), c("str_to_map", PAIR_STRINGS, text(":")), c("str_to_map", Arg(t.STRING, ("xay ,z", "b ")), text("a"), text(" ")),
    c("str_to_map", PAIR_STRINGS, text(","), text(":1")), c("str_to_map", _constant(t.STRING, "a:1,a:2")),
]  # fmt: skip

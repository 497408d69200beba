"""LISTAGG: joins strings with a delimiter, in the order of the rows or WITHIN GROUP (ORDER BY ...)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.functions.aggregate_registry import AggregateFunction, ConstantArgument, register_aggregate
from kquery_spark.functions.call_form import CallForm
from kquery_spark.types import names as t


def directions(keys: Iterable[tuple[bool, bool]]) -> str:
    """Encode the third argument of ``listagg_ordered``: for each key, whether it ascends and whether NULLs are first."""
    return " ".join(
        f"{'A' if ascending else 'D'}{'F' if nulls_first else 'L'}" for ascending, nulls_first in keys
    )


def _list_type(types: Sequence[pa.DataType]) -> pa.DataType:
    value = types[0]
    if value not in (t.STRING, t.BINARY):
        raise PlanError(f"listagg joins strings or binaries, not {t.spark_name(value)}")
    if types[1] != value:
        raise PlanError(f"the delimiter of listagg is of its values' type, not {t.spark_name(types[1])}")
    return value


def _ordered_list_type(types: Sequence[pa.DataType]) -> pa.DataType:
    return _list_type([types[0].field(0).type, types[1]])


def _strings(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    value, delimiter = types
    if value != t.BINARY:
        return [t.STRING, t.STRING]
    return [t.BINARY, t.BINARY if delimiter == t.NULL else delimiter]


register_aggregate(
    # the arguments are the string and a constant delimiter, which a frontend adds if it is omitted
    AggregateFunction(
        "listagg",
        _list_type,
        "listagg",
        ("ListAgg",),
        arity=(2, 2),
        coerce=_strings,
        ordered=True,
        constants=(1,),
        constant_meaning=ConstantArgument.DELIMITER,
        calls=CallForm(adds=(1, ", NULL")),
        aliases=("string_agg",),
    ),
    # the arguments are a struct of the value and its sort keys, the delimiter, and the directions of the keys
    AggregateFunction(
        "listagg_ordered",
        _ordered_list_type,
        "listagg_ordered",
        arity=(3, 3),
        ordered=True,
        constants=(1, 2),
        internal=True,
    ),
)

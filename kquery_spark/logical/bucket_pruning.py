"""Which buckets of a bucketed table have rows that can pass filters, as Spark prunes them.

Spark's ``FileSourceStrategy.genBucketSet``: equalities, IN lists and IS NULL of the only column that buckets are chosen by.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.expr import Call, Column, Expr, InList, Literal
from kquery_spark.expr.constants import storage
from kquery_spark.functions.hashes import murmur3_hash
from kquery_spark.sources.bucketing import BucketSpec
from kquery_spark.types.vector import Int64s, Vector

Flags = npt.NDArray[np.bool_]


def possible_buckets(spec: BucketSpec, filters: Sequence[Expr]) -> Flags | None:
    """For each bucket whether rows of it can pass all filters; None where they rule out no bucket."""
    if len(spec.columns) != 1:
        return None
    flags = [_possible(condition, spec) for condition in filters]
    known = [each for each in flags if each is not None]
    return np.logical_and.reduce(known) if known else None


def buckets_of(values: Sequence[Literal], count: int) -> Int64s:
    """The numbers of the buckets that values of one type are in."""
    dtype = values[0].dtype
    plain = [value.value for value in values]
    data = (
        pa.array(plain, storage(dtype)).cast(dtype) if pa.types.is_temporal(dtype) else pa.array(plain, dtype)
    )
    return np.asarray(murmur3_hash(Vector(dtype, data), len(data)).astype(np.int64) % count)


def _possible(condition: Expr, spec: BucketSpec) -> Flags | None:
    match condition:
        case Call(function="and"):
            return possible_buckets(spec, condition.args)
        case Call(function="or"):
            flags = [_possible(term, spec) for term in condition.args]
            known = [each for each in flags if each is not None]
            return np.logical_or.reduce(known) if len(known) == len(flags) else None
    values = _values(condition, spec.columns[0])
    if values is None:
        return None
    possible = np.zeros(spec.count, np.bool_)
    if values:
        possible[buckets_of(values, spec.count)] = True
    return possible


def _values(condition: Expr, column: str) -> Sequence[Literal] | None:
    """The only values of a column for which the condition can be true; None where others may be."""
    match condition:
        case Call(args=(Column() as compared, Literal() as value)) if condition.entry.operator.equality:
            return _of_column(compared, column, [value])
        case Call(args=(Literal() as value, Column() as compared)) if condition.entry.operator.equality:
            return _of_column(compared, column, [value])
        case InList(child=Column() as compared):
            return _of_column(compared, column, condition.values)
        case Call(function="isnull", args=(Column() as compared,)):
            return _of_column(compared, column, [Literal(None, compared.dtype)])
    return None


def _of_column(compared: Column, column: str, values: Sequence[Literal]) -> Sequence[Literal] | None:
    same_type = all(value.dtype == compared.dtype for value in values)
    return values if compared.name == column and same_type else None

"""Bucket pruning: which buckets of a table can have rows that pass filters.

As in Spark's ``FileSourceStrategy.genBucketSet``, equalities, IN lists and IS NULL prune tables with one bucket column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.expr import Call, Column, Expr, InList, Literal
from kquery_spark.expr.constants import storage
from kquery_spark.functions.encoding.hashes import murmur3_hash
from kquery_spark.sources.bucketing import BucketSpec
from kquery_spark.types.vector import Int64s, Vector

Flags = npt.NDArray[np.bool_]


def possible_buckets(spec: BucketSpec, filters: Sequence[Expr]) -> Flags | None:
    """For each bucket whether its rows can pass all filters; None if the filters rule out no bucket."""
    if len(spec.columns) != 1:
        return None
    flags = [_possible(condition, spec) for condition in filters]
    known = [each for each in flags if each is not None]
    return np.logical_and.reduce(known) if known else None


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
        possible[_buckets(values, spec.count)] = True
    return possible


def _values(condition: Expr, column: str) -> Sequence[Literal] | None:
    """The only values of a column for which the condition can be true; None if others may pass."""
    match condition:
        case (
            Call(args=(Column() as compared, Literal() as value))
            | Call(args=(Literal() as value, Column() as compared))
        ) if condition.entry.operator.equality:
            values: Sequence[Literal] = [value]
        case InList(child=Column() as compared):
            values = condition.values
        case Call(function="isnull", args=(Column() as compared,)):
            values = [Literal(None, compared.dtype)]
        case _:
            return None
    same_type = all(value.dtype == compared.dtype for value in values)
    return values if compared.name == column and same_type else None


def _buckets(values: Sequence[Literal], count: int) -> Int64s:
    """The buckets that values of one type are in."""
    dtype = values[0].dtype
    stored = storage(dtype) if pa.types.is_temporal(dtype) else dtype
    data = pa.array([value.value for value in values], stored).cast(dtype)
    return np.asarray(murmur3_hash([Vector(dtype, data)], len(data)).astype(np.int64) % count)

"""Bucket pruning: finds the buckets of a table that can contain rows that pass the filters.

For a table bucketed by ``k`` into 8 buckets, ``k IN (1, 2)`` leaves the two buckets that the values 1 and 2 hash to. As in
Spark's ``FileSourceStrategy.genBucketSet``, equalities, IN lists and IS NULL prune tables that have a single bucket column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.expr import Call, Column, Expr, InList, Literal
from kquery_spark.expr.constants import storage
from kquery_spark.functions.encoding.hashes import murmur3_hash
from kquery_spark.functions.sql_form import Logic
from kquery_spark.sources.bucketing import BucketSpec
from kquery_spark.types.vector import Flags, Int64s, Vector


def possible_buckets(spec: BucketSpec, filters: Sequence[Expr]) -> Flags | None:
    """Return one flag per bucket: whether it can contain rows that pass all filters. None if no filter prunes buckets."""
    if len(spec.columns) != 1:
        return None
    flags = [_buckets_for(condition, spec) for condition in filters]
    known = [each for each in flags if each is not None]
    return np.logical_and.reduce(known) if known else None


def _buckets_for(condition: Expr, spec: BucketSpec) -> Flags | None:
    match condition:
        case Call(logic=Logic.AND):
            return possible_buckets(spec, condition.args)
        case Call(logic=Logic.OR):
            # A term that prunes nothing lets rows of every bucket pass, so the whole OR prunes nothing.
            flags = [_buckets_for(term, spec) for term in condition.args]
            known = [each for each in flags if each is not None]
            return np.logical_or.reduce(known) if len(known) == len(flags) else None
    values = _accepted_values(condition, spec.columns[0])
    if values is None:
        return None
    possible = np.zeros(spec.count, np.bool_)
    if values:
        possible[_bucket_numbers(values, spec.count)] = True
    return possible


def _accepted_values(condition: Expr, column: str) -> Sequence[Literal] | None:
    """Return the only values of the column for which the condition can be true; None if they cannot be listed."""
    match condition:
        case (
            Call(args=(Column() as compared, Literal() as value))
            | Call(args=(Literal() as value, Column() as compared))
        ) if condition.entry.operator.equality:
            values: Sequence[Literal] = [value]
        case InList(child=Column() as compared):
            values = condition.values
        case Call(logic=Logic.IS_NULL, args=(Column() as compared,)):
            values = [Literal(None, compared.dtype)]
        case _:
            return None
    same_type = all(value.dtype == compared.dtype for value in values)
    return values if compared.name == column and same_type else None


def _bucket_numbers(values: Sequence[Literal], count: int) -> Int64s:
    """Return the bucket of each value; all values have the same type. Spark hashes with Murmur3 and takes the modulus."""
    dtype = values[0].dtype
    stored = storage(dtype) if pa.types.is_temporal(dtype) else dtype
    data = pa.array([value.value for value in values], stored).cast(dtype)
    return np.asarray(murmur3_hash([Vector(dtype, data)], len(data)).astype(np.int64) % count)

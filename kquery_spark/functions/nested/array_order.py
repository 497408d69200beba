"""``array_sort``: sorts by the natural order of the elements, NULLs last, or by a lambda that compares two elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.nested.arrays import array_rule, is_orderable
from kquery_spark.functions.nested.higher_order import (
    HigherOrderFunction,
    LambdaCall,
    element_field,
    first_type,
    register_higher_order,
)
from kquery_spark.functions.registry import CallContext, Function, first_argument_type, register_internal
from kquery_spark.kernels.elements import elements, gather_lists, value_ranks
from kquery_spark.kernels.integer_order import lexicographic_order
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector

# With more pairs per element than this, comparing all pairs costs more than sorting in Spark.
_MAX_PAIRS_OF_AN_ELEMENT = 12
_MAX_SHORT_PAIRS = 10_000
_UNORDERED = "array_sort by a lambda that does not order all elements of an array is not supported"


def _sort(args: Sequence[Vector], context: CallContext) -> Data:
    """Sort in ascending order, NULLs last; the sort is stable."""
    items = elements(args[0].array(context.num_rows))
    ranks = value_ranks(items.values)
    ranks = np.where(ranks < 0, ranks.max(initial=0) + 1, ranks)
    order = lexicographic_order([items.rows, ranks])
    return gather_lists(items.values, order, items.sizes, items.nulls, context.dtype)


def _sort_by(args: Sequence[pa.Array], call: LambdaCall) -> Data:
    """Sort arrays by a comparing lambda: evaluate it for all pairs of elements of an array at once, then count.

    If the lambda defines a total order, the rank of an element is the number of smaller elements, and every sorting
    algorithm returns the same array. Otherwise (or if it is NULL or raises an error for a pair), the result would depend on
    the pairs that Java's algorithm compares, so the call is not supported.
    """
    items = elements(args[0])
    sizes, starts = items.sizes, items.starts
    pairs = int((sizes * sizes).sum())
    if pairs > max(_MAX_SHORT_PAIRS, _MAX_PAIRS_OF_AN_ELEMENT * len(items.rows)):
        raise Unsupported("array_sort of long arrays by a lambda is not supported")
    width = np.repeat(sizes, sizes)  # for each element, the number of elements that it is compared with
    left = np.repeat(np.arange(len(items.rows)), width)
    right = np.arange(pairs) - np.repeat(np.cumsum(width) - width, width) + starts[items.rows[left]]
    distinct = np.flatnonzero(left != right)
    signs = np.zeros(pairs, np.int64)
    signs[distinct] = _comparison_signs(items.values, left[distinct], right[distinct], items.rows, call)
    ranks = np.bincount(left[signs > 0], minlength=len(items.rows))  # the number of smaller elements
    if (np.sign(ranks[left] - ranks[right]) != signs).any():
        raise Unsupported(_UNORDERED)
    order = lexicographic_order([items.rows, ranks])
    return gather_lists(items.values, order, sizes, items.nulls, call.dtype)


def _comparison_signs(
    values: pa.Array, left: Int64s, right: Int64s, rows: Int64s, call: LambdaCall
) -> Int64s:
    """Return the sign of the lambda's result for pairs of elements at two lists of positions."""
    if not len(left):
        return np.zeros(0, np.int64)
    try:
        result = call.function([values.take(pa.array(left)), values.take(pa.array(right))], rows[left])
    except ExecutionError as error:
        raise Unsupported(_UNORDERED) from error
    answers = result.array(len(left))
    if answers.null_count:
        raise Unsupported(_UNORDERED)
    signs: Int64s = np.sign(answers.to_numpy(zero_copy_only=False).astype(np.int64))
    return signs


def _two_elements(types: Sequence[pa.DataType]) -> Sequence[pa.Field]:
    return element_field(types[0], "left"), element_field(types[0], "right")


def _compares(types: Sequence[pa.DataType], value: pa.Field) -> pa.DataType:
    if value.type != t.INT:
        raise PlanError(
            f"[DATATYPE_MISMATCH.UNEXPECTED_RETURN_TYPE] the lambda of array_sort gives an int, "
            f"not {t.spark_name(value.type)}"
        )
    return first_type(types, value)


_SHOWN = (
    "lambdafunction((IF(((namedlambdavariable() IS NULL) AND (namedlambdavariable() IS NULL)), 0, "
    "(IF((namedlambdavariable() IS NULL), 1, (IF((namedlambdavariable() IS NULL), -1, "
    "(IF((namedlambdavariable() < namedlambdavariable()), -1, "
    "(IF((namedlambdavariable() > namedlambdavariable()), 1, 0)))))))))), "
    "namedlambdavariable(), namedlambdavariable())"
)

register_internal(
    Function(
        "sort_nulls_last",
        _sort,
        array_rule("array_sort", first_argument_type, is_orderable),
        invalid_utf8=InvalidUtf8.BYTES,
    )
)
register_higher_order(
    HigherOrderFunction(
        "array_sort",
        calls=CallForm(adds=(1, f", {_SHOWN}")),
        catalyst="ArraySort",
        parameters=_two_elements,
        result=_compares,
        kernel=_sort_by,
        without_lambda="sort_nulls_last",
    ),
)

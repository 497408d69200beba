"""Builds semi joins that reduce an input of a join tree by a small join that no key connects with it.

``c_nationkey = s_nationkey AND s_nationkey = n_nationkey`` implies ``c_nationkey = n_nationkey``. No key connects customer
with nation, but only customers of the nations that ``r_name = 'ASIA'`` leaves can be in the result:

    nation JOIN region  ->  5 of 25 nations
    customer            ->  customer SEMI JOIN (nation JOIN region) ON c_nationkey = n_nationkey

The reducer, here nation JOIN region, also remains where it is in the tree, so it is computed twice. The implied key is used
only for the semi join. As a key of the join order, it could join customer directly with nation. That join can be larger than
the join of customer with supplier by the query's own key, and nation would then no longer reduce supplier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kquery_spark.expr import Column
from kquery_spark.logical import Filter, Join, JoinKind, LogicalPlan, Projection, Scan
from kquery_spark.logical.join import JoinKey
from kquery_spark.optimizer.repeatable_plans import is_repeatable
from kquery_spark.optimizer.statistics import Estimator

_MAX_REDUCER_BYTES = 1 << 20  # the bytes that a reducer may scan, because it is computed twice
_MAX_KEY_SHARE = 0.5  # the share of all values of its keys that a reducer may keep
_MIN_INPUT_ROWS = 100_000  # smaller inputs are not reduced


def equal_columns(keys: Iterable[JoinKey]) -> list[frozenset[str]]:
    """Return the classes of columns that the keys of inner joins make equal to each other.

    Keys that compare expressions other than columns are ignored, and so is ``<=>``, which also matches NULLs.
    """
    classes: list[frozenset[str]] = []
    for key in keys:
        if isinstance(key.left, Column) and isinstance(key.right, Column) and not key.null_safe:
            names = frozenset({key.left.name, key.right.name})
            merged = names.union(*(c for c in classes if c & names))
            classes = [c for c in classes if not c & names] + [merged]
    return classes


def reduced_input(
    plan: LogicalPlan, reducer: LogicalPlan, classes: Sequence[frozenset[str]], estimator: Estimator
) -> LogicalPlan | None:
    """Return the semi join of an input with a reducer by the classes of equal columns that both have.

    None if no class has columns of both, if the input is small, or if the reducer is large, keeps most values of its keys,
    or is not repeatable.
    """
    shared = [(names & plan.column_names, names & reducer.column_names) for names in classes]
    keys = [
        JoinKey(plan.column(min(left)), reducer.column(min(right)))
        for left, right in shared
        if left and right
    ]
    if not keys or estimator.estimate(plan).rows < _MIN_INPUT_ROWS:
        return None
    if estimator.estimate(reducer).scanned > _MAX_REDUCER_BYTES:
        return None
    if estimator.share(reducer, [key.right for key in keys]) > _MAX_KEY_SHARE:
        return None
    if not is_repeatable(reducer, (Scan, Filter, Projection, Join)):
        return None
    return Join(plan, reducer, JoinKind.SEMI, tuple(keys))

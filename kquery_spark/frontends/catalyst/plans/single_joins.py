"""LeftSingle joins, to which Spark converts correlated scalar subqueries: each left row may match at most one right row."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.expr import AggregateCall, Call, Named
from kquery_spark.frontends.catalyst.plans.context import Context
from kquery_spark.frontends.catalyst.scope import PlanScope, check_key
from kquery_spark.logical import Aggregate, Filter, Join, JoinKind
from kquery_spark.logical.join import JoinKey


def single_join(left: PlanScope, right: PlanScope, keys: Sequence[JoinKey], context: Context) -> PlanScope:
    """Join each left row with the only right row that has its key; more than one right row is an error of the query.

    Only keys that occur in a left row may raise the error. So the right rows are grouped and counted by key before the join,
    and the counts are checked after it.
    """
    named_keys = []
    for key in keys:
        check_key(key.right.dtype)
        named_keys.append(Named(key.right, context.names.fresh("key")))
    firsts = {
        name: Named(AggregateCall.of("first", right.plan.column(name)), context.names.fresh(name))
        for name in right.names()
    }
    count = Named(AggregateCall.of("count"), context.names.fresh("rows"))
    groups = Aggregate(right.plan, tuple(named_keys), (*firsts.values(), count))
    by_group = tuple(
        JoinKey(key.left, named.column, key.null_safe) for key, named in zip(keys, named_keys, strict=True)
    )
    joined = Join(left.plan, groups, JoinKind.LEFT, by_group)
    checked = Filter(joined, Call.of("at_most_one_row", joined.column(count.name)))
    output = ((expr_id, firsts[name].name) for expr_id, name in right.output)
    return PlanScope(checked, (*left.output, *output))

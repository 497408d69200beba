"""TABLESAMPLE of a number of rows, of all rows, or of no rows; random samples are not supported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.logical import Limit
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer


def sampled(queries: QueryAnalyzer, relation: ResolvedRelation, node: r.Sampled) -> ResolvedRelation:
    """TABLESAMPLE of some, all or no rows. Spark draws other samples at random per partition, so these are declined."""
    if node.unit == "ROWS":
        return ResolvedRelation(
            Limit(relation.plan, queries.row_count(node.size, "TABLESAMPLE")), relation.scope
        )
    size = constant_of(queries.expressions(Scope((), queries.facts), None, "TABLESAMPLE").expr(node.size))
    share = None if size is None or size.value is None or not t.is_numeric(size.dtype) else float(size.value)
    if share == 100:
        return relation
    if share == 0:
        return ResolvedRelation(Limit(relation.plan, 0), relation.scope)
    queries.fail("TABLESAMPLE of a share of the rows draws at random, which is not supported; use ROWS", node)

"""Imports leaves whose rows are part of the query: ranges, ``VALUES``, and the single row of a query without a table."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.leaf_scopes import columns_read, leaf_scope, read_relation
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.logical import Scan
from kquery_spark.sources.memory import local_source, one_row_source
from kquery_spark.sources.ranges import RangeSource
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.relations.leaves import LocalRows, RangeRelation
from kquery_spark.types.spark_json import arrow_type

# Every task and the query's plan contain these rows, so their number is limited.
_MAX_INLINE_VALUES = 20_000
_MAX_RANGE_WIDTH = 1 << 62


@PLANS.handles(
    "LocalRelation", family="leaves", partly="up to 20,000 values, binary or nested ones in up to 200 rows"
)
def local_relation(node: CatalystNode, context: Context) -> PlanScope:
    """Literal rows (``VALUES``), reduced to the columns that are read."""
    attributes = node.trees("output")
    positions = [i for i, attribute in enumerate(attributes) if context.required(node, attribute)]
    relation = read_relation(node, context, LocalRows)
    if relation.count * max(1, len(positions)) > _MAX_INLINE_VALUES:
        raise Unsupported(f"inline tables of {relation.count:,} rows are not supported")
    read_attributes = [attributes[i] for i in positions]
    types = [arrow_type(a["dataType"], context.settings.time_zone) for a in read_attributes]
    # columns of a local relation may share a name, and it may have none
    fields = [pa.field("row", pa.null())]
    arrays = [pa.nulls(relation.count)]
    output, names = [], []
    for position, attribute, dtype in zip(positions, read_attributes, types, strict=True):
        nullable = bool(attribute["nullable"])
        name = context.names.fresh(attribute["name"])
        fields.append(pa.field(name, dtype, nullable))
        arrays.append(relation.column(position, attribute["dataType"], dtype))
        output.append((attribute["exprId"], name))
        names.append(name)
    rows = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    return PlanScope(Scan("values", local_source(rows), tuple(names)), tuple(output))


@PLANS.handles("Range", family="leaves")
def range_(node: CatalystNode, context: Context) -> PlanScope:
    """``spark.range``: numbers that each task generates."""
    relation = read_relation(node, context, RangeRelation)
    if max(abs(relation.end - relation.start), abs(relation.step)) >= _MAX_RANGE_WIDTH:
        raise Unsupported("a range that is wider than 62 bits is not supported")
    (attribute,) = node.trees("output")
    source = RangeSource(relation.start, relation.end, relation.step, attribute["name"])
    return leaf_scope(Scan("range", source), columns_read(node, context), context)


@PLANS.handles("OneRowRelation", family="leaves")
def one_row(node: CatalystNode, context: Context) -> PlanScope:
    """The single row of a query without a table, which has no columns; Spark creates such queries for merged subqueries."""
    return PlanScope(Scan("one_row", one_row_source(), ()), ())

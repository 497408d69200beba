"""Imports Iceberg tables: the files that Iceberg's own scan plans."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.leaf_scopes import columns_read, leaf_scope, read_relation
from kquery_spark.frontends.catalyst.plans.many_files import check_many_files
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.logical import Scan
from kquery_spark.sources.base import Source
from kquery_spark.sources.iceberg.features import METADATA_COLUMNS
from kquery_spark.sources.iceberg.source import FILE_FORMAT, data_file, iceberg_source
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.relations.iceberg import IcebergScan
from kquery_spark.spark_bridge.relations.leaves import V2_SCAN
from kquery_spark.types.spark_json import arrow_type


@PLANS.handles(V2_SCAN, family="leaves", partly="Iceberg tables, as docs/sources.md says")
def iceberg_relation(node: CatalystNode, context: Context) -> PlanScope:
    """The rows of an Iceberg table's snapshot."""
    scan = read_relation(node, context, IcebergScan)
    source = context.sources.setdefault(scan, lambda: _iceberg_source(node, scan, context))
    return leaf_scope(
        Scan(scan.table.rsplit(".", 1)[-1] or "iceberg", source), columns_read(node, context), context
    )


def _iceberg_source(node: CatalystNode, scan: IcebergScan, context: Context) -> Source:
    """The source of a scan, whose columns Spark has reduced to those that the query reads."""
    schema = pa.schema(
        [
            pa.field(a["name"], arrow_type(a["dataType"], context.settings.time_zone), bool(a["nullable"]))
            for a in node.trees("output")
        ]
    )
    by_name = {field.name: field for field in scan.fields if field.is_readable}
    for name in schema.names if scan.files else ():
        if name not in by_name:
            raise METADATA_COLUMNS.declined(column=name)
    fields = [by_name[name] for name in schema.names] if scan.files else []
    try:
        path_of = context.relations.path
        sizes = [file.size for file in scan.files]
        check_many_files(
            sizes, lambda: data_file(scan.files[0], path_of), FILE_FORMAT, context.relations.parallelism
        )
        source = iceberg_source(schema, fields, scan.files, path_of, scan.name_mapping)
        source.check_files(schema.names)
    except SourceError as error:
        raise Unsupported(f"Iceberg files are not supported: {error}") from error
    return source

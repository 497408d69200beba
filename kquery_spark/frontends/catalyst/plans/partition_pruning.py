"""Partition pruning: skips files in directories that the filter directly above a table excludes."""

from __future__ import annotations

from contextlib import suppress

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.expr import Column, Expr
from kquery_spark.frontends.catalyst.plans.context import Context
from kquery_spark.frontends.catalyst.plans.projections import conjunct_nodes
from kquery_spark.logical.partition_conditions import passing_partitions
from kquery_spark.sources.file_relation import FileRelation
from kquery_spark.sources.partitions import plain_value
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode


def prune_partitions(relation: FileRelation, node: CatalystNode, context: Context) -> FileRelation:
    """Prune the partition directories whose values do not satisfy every condition on partition columns.

    If a condition raises an error for a directory, no file is pruned, and the filter raises the error.
    """
    condition = context.required.conditions.get(id(node))
    if condition is None or not len(relation.partition_schema):
        return relation
    terms = tuple(_on_partitions(condition, _partition_columns(relation, node), context))
    if not terms:
        return relation
    names = relation.partition_schema.names

    def positions() -> list[int]:
        directories = [tuple(map(plain_value, file.partition)) for file in relation.files]
        return passing_partitions(names, directories, terms)

    try:
        return context.relations.with_files(relation, terms, positions)
    except (ExecutionError, Unsupported):
        return relation


def _partition_columns(relation: FileRelation, node: CatalystNode) -> dict[int, Column]:
    """The partition columns of a leaf by expression id, with their names in the directories."""
    columns = {}
    for attribute in node.trees("output"):
        position = relation.partition_schema.get_field_index(relation.stored_name(attribute["name"]))
        if position >= 0:
            field = relation.partition_schema.field(position)
            columns[attribute["exprId"]] = Column(field.name, field.type, field.nullable)
    return columns


def _on_partitions(condition: CatalystNode, columns: dict[int, Column], context: Context) -> list[Expr]:
    """The terms of a condition that read only partition columns and that the engine can evaluate."""
    translate = context.translator(columns)
    terms = []
    for term in conjunct_nodes(condition):
        ids = {part["exprId"] for part in term.walk() if part.cls == "AttributeReference"}
        if ids and ids <= columns.keys():
            with suppress(Unsupported):
                terms.append(translate(term))
    return terms

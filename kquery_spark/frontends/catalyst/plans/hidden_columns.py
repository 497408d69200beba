"""Hidden columns that a query reads from a relation: ``_metadata``, its fields, ``input_file_name()`` etc."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.expr import Call, Expr, Literal, Named
from kquery_spark.frontends.catalyst.file_columns import INPUT_FILE_COLUMNS, field_id
from kquery_spark.frontends.catalyst.plans.context import Context
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.logical import Projection
from kquery_spark.sources.file_columns import (
    METADATA,
    METADATA_FIELDS,
    has_own_metadata,
    metadata_column,
)
from kquery_spark.sources.file_columns import ROW_INDEX as ROW_INDEX_FIELD
from kquery_spark.sources.file_features import FILE_BLOCKS, FILE_COLUMN
from kquery_spark.sources.file_relation import FileRelation
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t

ROW_INDEX = metadata_column(ROW_INDEX_FIELD)
"""The only hidden column that differs between the rows of a file."""

_COLUMNS = frozenset({*map(metadata_column, METADATA_FIELDS), ROW_INDEX})


def is_metadata(attribute: CatalystNode, relation: FileRelation) -> bool:
    """Return whether a column of a relation is the hidden struct ``_metadata``."""
    return bool(attribute["name"] == METADATA) and not has_own_metadata(relation)


def hidden_columns(node: CatalystNode, relation: FileRelation, context: Context) -> dict[int, str]:
    """The hidden columns that the query reads, by id; raises Unsupported for fields that only Spark can provide."""
    columns = dict(INPUT_FILE_COLUMNS[cls] for cls in context.required.named.get(id(node), ()))
    for attribute in _metadata(node, relation, context):
        ordinals = _ordinals(node, attribute, context)
        columns.update(_column(attribute, ordinal) for ordinal in ordinals)
    return columns


def check_blocks(hidden: dict[int, str], relation: FileRelation) -> None:
    """Raise Unsupported for columns that depend on how Spark splits files, if it may split some of the relation's files.

    relation: has the hidden columns that are known for all of its files.
    """
    for column in hidden.values():
        if column != ROW_INDEX and column not in relation.partition_schema.names:
            raise FILE_BLOCKS.declined(column=column)


def with_metadata(
    scope: PlanScope, node: CatalystNode, relation: FileRelation, context: Context
) -> PlanScope:
    """Build the struct ``_metadata`` from hidden columns above a scan, if the query reads it as a whole."""
    structs, output = [], []
    for attribute in _metadata(node, relation, context):
        if not _reads_whole_struct(node, attribute, context):
            continue
        parts: list[Expr] = []
        for ordinal, field in enumerate(attribute["dataType"]["fields"]):
            column_id, _ = _column(attribute, ordinal)
            parts += [Literal(field["name"], t.STRING), scope.columns[column_id]]
        name = context.names.fresh(METADATA)
        structs.append(Named(Call.of("named_struct", *parts), name))
        output.append((attribute["exprId"], name))
    if not structs:
        return scope
    columns = [Named(scope.plan.column(name), name) for name in scope.plan.schema.names]
    plan = Projection(scope.plan, (*columns, *structs))
    return PlanScope(plan, (*scope.output, *output), scope.hidden)


def _metadata(node: CatalystNode, relation: FileRelation, context: Context) -> Sequence[CatalystNode]:
    """Return the ``_metadata`` columns of a leaf that the query reads, entirely or in part."""
    return [a for a in node.trees("output") if is_metadata(a, relation) and context.required(node, a)]


def _reads_whole_struct(node: CatalystNode, attribute: CatalystNode, context: Context) -> bool:
    """Return whether the struct itself is read, not only some of its fields."""
    read = context.required.metadata.get(attribute["exprId"])
    return id(node) in context.required.whole or read is None or None in read


def _ordinals(node: CatalystNode, attribute: CatalystNode, context: Context) -> list[int]:
    """The positions of the fields that the query reads."""
    if _reads_whole_struct(node, attribute, context):
        return list(range(len(attribute["dataType"]["fields"])))
    read = context.required.metadata[attribute["exprId"]]
    return [ordinal for ordinal in read if ordinal is not None]


def _column(attribute: CatalystNode, ordinal: int) -> tuple[int, str]:
    """The id and the hidden column of a field of ``_metadata``; raises Unsupported if only Spark can provide it."""
    name = metadata_column(attribute["dataType"]["fields"][ordinal]["name"])
    column_id = field_id(attribute, ordinal)
    if name not in _COLUMNS or column_id is None:
        raise FILE_COLUMN.declined(column=name)
    return column_id, name

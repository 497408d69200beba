"""The state of one import: gives handlers the plans of their children, and records the subtrees that fall back to Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported, UnsupportedQuery
from kquery_spark.expr import Column
from kquery_spark.frontends.catalyst.expressions import Translator
from kquery_spark.frontends.catalyst.expressions.translator import AggregateSink, Subqueries, WindowSink
from kquery_spark.frontends.catalyst.required_columns import RequiredColumns
from kquery_spark.frontends.catalyst.rounds import reads_last_round
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.frontends.catalyst.support import Table
from kquery_spark.frontends.catalyst.versions import changed_calls, check_expressions, declined_classes
from kquery_spark.frontends.unique_names import UniqueNames
from kquery_spark.logical import Input
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.sources.base import Source
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python.functions import PythonFunctions
from kquery_spark.spark_bridge.relations.leaves import RelationReader
from kquery_spark.spark_bridge.session.settings import SessionSettings
from kquery_spark.types.spark_json import arrow_type


@dataclass(frozen=True)
class Handover:
    """A subtree that Spark computes; its rows are the input of the engine's ``logical.Input(key=key)``.

    positions: the positions in the node's output of the columns that the engine needs, in the order of ``schema``, which has
    the engine's names and types. rows: the estimated number of rows.
    """

    key: str
    node: CatalystNode
    schema: pa.Schema
    positions: tuple[int, ...]
    rows: float


class Declined(Unsupported):
    """An Unsupported error with the node that caused it. Nodes that would only pass rows through propagate the error.

    whole_query: True if Spark has to run the whole query, so that no part of it is handed over.
    """

    def __init__(self, node: CatalystNode, reason: str, whole_query: bool = False) -> None:
        super().__init__(reason)
        self.node = node
        self.whole_query = whole_query


class Context:
    """The state of one import.

    functions: reads Python functions; None if they fall back to Spark. rounds: the keys of the recursive queries whose last
    round the plan reads, as far as it is imported.
    """

    def __init__(
        self,
        facts: Facts,
        relations: RelationReader,
        settings: SessionSettings,
        sources: NodeMap[Source],
        required: RequiredColumns,
        functions: PythonFunctions | None = None,
    ) -> None:
        self.facts = facts
        self.relations = relations
        self.settings = settings
        self.sources = sources
        self.required = required
        self.functions = functions
        self.names = UniqueNames()
        self.inputs: list[Handover] = []
        self.declined: list[tuple[CatalystNode, str]] = []
        self.rounds: set[str] = set()
        self._declined_classes = declined_classes(settings)
        self._changed_calls = changed_calls(settings)

    def subtree(self, node: CatalystNode) -> PlanScope:
        """Import a subtree; raises Declined with the node that the engine cannot run."""
        entry = PLANS.entries.get(node.cls)
        marks = self.names.mark(), len(self.inputs), len(self.declined)
        try:
            if entry is None:
                raise Unsupported(f"{node.cls.rsplit('.', 1)[-1]} is not supported")
            if entry.handler is None:
                raise Unsupported(entry.note)
            check_expressions(node, self._declined_classes)
            return entry.handler(node, self)
        except (Unsupported, PlanError, RecursionError) as error:
            self.names.rollback(marks[0])
            del self.inputs[marks[1] :]
            del self.declined[marks[2] :]
            if isinstance(error, Declined):
                raise
            raise Declined(node, _reason(error), isinstance(error, UnsupportedQuery)) from error

    def subtree_or_handover(self, node: CatalystNode) -> PlanScope:
        """Import a subtree; if the engine cannot run it, create a hand-over of the rows that Spark computes."""
        try:
            return self.subtree(node)
        except Declined as error:
            scope = self._hand_over(node, error)
            self.declined.append((error.node, error.reason))
            return scope

    def translator(
        self,
        columns: Mapping[int, Column | None],
        subqueries: Subqueries | None = None,
        aggregates: AggregateSink | None = None,
        arguments: Translator | None = None,
        windows: WindowSink | None = None,
    ) -> Translator:
        """A translator of expressions over these columns."""
        return Translator(
            columns,
            self.facts,
            self.settings.time_zone,
            subqueries,
            aggregates,
            arguments,
            windows,
            self._changed_calls,
            self.settings.last_key_wins,
        )

    def _hand_over(self, node: CatalystNode, why: Declined) -> PlanScope:
        if why.whole_query or reads_last_round(node):
            raise why
        attributes = node.trees("output") if "output" in node.fields else self.facts.output(node)
        fields, output, positions = [], [], []
        for position, attribute in enumerate(attributes):
            try:
                dtype = arrow_type(attribute["dataType"], self.settings.time_zone)
            except Unsupported:
                continue  # an expression that reads the column is declined later
            name = self.names.fresh(attribute["name"])
            fields.append(pa.field(name, dtype, bool(attribute["nullable"])))
            output.append((attribute["exprId"], name))
            positions.append(position)
        if not fields:
            raise why
        key = f"input_{len(self.inputs) + 1}"
        schema = pa.schema(fields)
        rows = self.facts.rows(node)
        self.inputs.append(Handover(key, node, schema, tuple(positions), rows))
        return PlanScope(Input(key, schema, key, rows), tuple(output))


def _reason(error: Exception) -> str:
    if isinstance(error, Unsupported):
        return error.reason
    if isinstance(error, RecursionError):
        return "the expressions are nested too deeply for the engine"
    return str(error)


PlanHandler = Callable[[CatalystNode, Context], PlanScope]
PLANS: Table[PlanHandler] = Table()

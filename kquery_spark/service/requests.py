"""The requests of clients, in a command or a ticket: SQL, a plan, or Flight SQL's metadata about tables.

Everything a request needs is in its bytes, so the service keeps nothing between two calls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message
from typing_extensions import override

from kquery_spark.config.engine import EngineConfig
from kquery_spark.context.execution_context import ExecutionContext
from kquery_spark.errors import PlanError, SerializationError, Unsupported
from kquery_spark.expr import UserCall
from kquery_spark.frontends.sql.analyzer import Analyzed
from kquery_spark.logical import Input, LogicalPlan, Scan
from kquery_spark.logical.subqueries import transform_with_subqueries
from kquery_spark.logical.type_check import check_types
from kquery_spark.physical.operators import PhysicalPlan
from kquery_spark.runtime.local import ReadAheadBudget, Stop
from kquery_spark.service import flight_sql_pb2 as pb
from kquery_spark.service import metadata
from kquery_spark.sources.base import Source
from kquery_spark.sources.memory import MemorySource, memory_source
from kquery_spark.sources.remote import RemoteTable
from kquery_spark.stages.graph import Stage, StageGraph
from kquery_spark.stages.serialization import ReadLimits, from_bytes, to_bytes

# Client plans must not contain Python functions, file sources, or physical plans: these would run arbitrary code, read any
# file of this machine, or bypass planning.
_NOT_FROM_CLIENTS = (UserCall, Source, PhysicalPlan, Stage, StageGraph, EngineConfig)
_SOURCES_OF_CLIENTS = (MemorySource, RemoteTable)


def _is_allowed(cls: type) -> bool:
    """Whether a plan of a client's may have values of a class."""
    is_code = issubclass(cls, LogicalPlan) and cls.calls_python
    return cls in _SOURCES_OF_CLIENTS or not (is_code or issubclass(cls, _NOT_FROM_CLIENTS))


CLIENT_PLANS = ReadLimits(
    size=500_000,
    total=5_000_000,
    allows=_is_allowed,
)

_FLIGHT_SQL = "type.googleapis.com/arrow.flight.protocol.sql."
_OURS = "type.googleapis.com/kquery_spark.service."

M = TypeVar("M", bound=Message)


class Request(Protocol):
    """A decoded request; ``ticket`` encodes it again."""

    @property
    def ticket(self) -> bytes:
        """Bytes that ``read_request`` makes this request of."""

    def schema(self, context: ExecutionContext) -> pa.Schema:
        """The answer's columns; nothing is run."""

    def answer(
        self, context: ExecutionContext, stop: Stop, budget: ReadAheadBudget | None = None
    ) -> pa.RecordBatchReader:
        """The answer, batch by batch, until ``stop`` is set; ``budget`` bounds what is ahead of the client."""

    def explain(self, context: ExecutionContext, trace: bool) -> str:
        """How it is answered; ``trace``: and what each optimizer rule did to it."""


@dataclass(frozen=True)
class SqlRequest(Request):
    """A query in Spark's SQL."""

    text: str

    @property
    @override
    def ticket(self) -> bytes:
        return packed("TicketStatementQuery", pb.TicketStatementQuery(statement_handle=self.text.encode()))

    @override
    def schema(self, context: ExecutionContext) -> pa.Schema:
        return context.sql(self.text).schema

    @override
    def answer(
        self, context: ExecutionContext, stop: Stop, budget: ReadAheadBudget | None = None
    ) -> pa.RecordBatchReader:
        return context.stream(context.sql(self.text).analyzed, stop, budget)

    @override
    def explain(self, context: ExecutionContext, trace: bool) -> str:
        return context.sql(self.text).explain(trace)


@dataclass(frozen=True)
class PlanRequest(Request):
    """A resolved query whose scans name tables of the service, or bring rows of the client with them."""

    query: Analyzed

    @property
    @override
    def ticket(self) -> bytes:
        message = pb.CommandPlan(plan=to_bytes(self.query.plan), names=self.query.names)
        return packed("CommandPlan", message, _OURS)

    def resolved(self, context: ExecutionContext) -> Analyzed:
        """The query over the service's own tables; PlanError where they are not what the client took them for."""

        def own(node: LogicalPlan) -> LogicalPlan:
            if isinstance(node, Input):
                raise PlanError(f"the plan has an open input, {node.name}; only whole plans can be sent")
            if not isinstance(node, Scan):
                return node
            if isinstance(node.source, MemorySource):
                return _own_rows(context, node, node.source)
            if not isinstance(node.source, RemoteTable):
                raise PlanError(
                    f"the plan reads {node.table} by itself; only tables of the service and rows can be sent"
                )
            return _own_table(context, node, node.source)

        plan = transform_with_subqueries(self.query.plan, own)
        check_types(plan)
        return Analyzed(plan, self.query.names)

    @override
    def schema(self, context: ExecutionContext) -> pa.Schema:
        plan, names = self.resolved(context).plan, self.query.names
        return pa.schema([f.with_name(n) for f, n in zip(plan.schema, names, strict=True)])

    @override
    def answer(
        self, context: ExecutionContext, stop: Stop, budget: ReadAheadBudget | None = None
    ) -> pa.RecordBatchReader:
        return context.stream(self.resolved(context), stop, budget)

    @override
    def explain(self, context: ExecutionContext, trace: bool) -> str:
        return context.explain(self.resolved(context), trace)


def _own_rows(context: ExecutionContext, scan: Scan, source: MemorySource) -> LogicalPlan:
    """The client's rows under an identity given here: what a client says of it could be that of other rows."""
    for field, column in zip(source.table.schema, source.table.columns, strict=True):
        if column.null_count and not field.nullable:
            raise PlanError(f"column {field.name} of {scan.table} is NOT NULL and has NULLs")
    return replace(scan, source=memory_source(source.table, context.facts.time_zone))


def _own_table(context: ExecutionContext, scan: Scan, source: RemoteTable) -> LogicalPlan:
    plan = context.table_plan(source.table)
    if plan is None:
        there = ", ".join(context.table_names()) or "none"
        raise PlanError(f"the service has no table {source.table} any more; its tables are {there}")
    if not plan.schema.equals(source.schema):
        raise PlanError(
            f"{source.table} has other columns than it had when the client connected; connect again"
        )
    if scan.projection is not None or scan.filters:
        raise PlanError("plans are sent as they were written; the service optimizes them")
    return plan


@dataclass(frozen=True)
class MetadataRequest(Request):
    """A table of facts that Flight SQL defines."""

    kind: str
    command: Message

    @property
    @override
    def ticket(self) -> bytes:
        return packed(self.kind, self.command)

    @override
    def schema(self, context: ExecutionContext) -> pa.Schema:
        return self._table(context).schema

    @override
    def answer(
        self, context: ExecutionContext, stop: Stop, budget: ReadAheadBudget | None = None
    ) -> pa.RecordBatchReader:
        return self._table(context).to_reader()

    def _table(self, context: ExecutionContext) -> pa.Table:
        return metadata.TABLES[self.kind][1](context, self.command)

    @override
    def explain(self, context: ExecutionContext, trace: bool) -> str:
        return f"{self.kind}: told from the service's tables"


def packed(kind: str, message: Message, protocol: str = _FLIGHT_SQL) -> bytes:
    """A message as it is sent: with its kind."""
    return AnyMessage(type_url=protocol + kind, value=message.SerializeToString()).SerializeToString()


def read_request(data: bytes) -> Request:
    """The request in a command or a ticket; PlanError or SerializationError for a malformed one."""
    kind, value = unpacked(data)
    if kind == "":
        try:
            return SqlRequest(data.decode())
        except UnicodeDecodeError:
            raise PlanError("a command is SQL in UTF-8, a command of Flight SQL, or a plan") from None
    if kind == "CommandStatementQuery":
        return SqlRequest(parsed(pb.CommandStatementQuery, value).query)
    if kind == "TicketStatementQuery":
        return read_request(parsed(pb.TicketStatementQuery, value).statement_handle)
    if kind == "CommandPreparedStatementQuery":
        return read_request(parsed(pb.CommandPreparedStatementQuery, value).prepared_statement_handle)
    if kind == "CommandPlan":
        message = parsed(pb.CommandPlan, value)
        plan = from_bytes(message.plan, LogicalPlan, CLIENT_PLANS)
        if len(message.names) != len(plan.schema):
            raise SerializationError(f"{len(message.names)} names for {len(plan.schema)} columns")
        return PlanRequest(Analyzed(plan, tuple(message.names)))
    if kind in metadata.TABLES:
        return MetadataRequest(kind, parsed(metadata.TABLES[kind][0], value))
    raise Unsupported(f"this service does not answer {kind}")


def unpacked(data: bytes) -> tuple[str, bytes]:
    """The kind of a message of Flight SQL or of ours, and the message; no kind when it is neither."""
    message = AnyMessage()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return "", data
    for prefix in (_FLIGHT_SQL, _OURS):
        if message.type_url.startswith(prefix):
            return message.type_url.removeprefix(prefix), message.value
    return "", data


def parsed(kind: type[M], data: bytes) -> M:
    """A message of a kind; SerializationError when the bytes are something else."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise SerializationError(f"these bytes are not a {kind.__name__}") from None
    return message

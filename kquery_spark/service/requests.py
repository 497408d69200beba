"""Decodes client requests from commands and tickets: SQL, a plan of this engine, a Substrait plan, or a metadata command.

The bytes of a request contain all that is needed to answer it, so the service keeps no state between two calls.
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

# Plans of clients must not contain Python functions, file sources, or physical plans: these would run arbitrary code,
# read any file of this machine, or bypass planning.
_FORBIDDEN_CLASSES = (UserCall, Source, PhysicalPlan, Stage, StageGraph, EngineConfig)
_CLIENT_SOURCES = (MemorySource, RemoteTable)


def _is_allowed(cls: type) -> bool:
    """Return whether a client's plan may contain values of a class."""
    calls_python = issubclass(cls, LogicalPlan) and cls.calls_python
    return cls in _CLIENT_SOURCES or not (calls_python or issubclass(cls, _FORBIDDEN_CLASSES))


_CLIENT_PLAN_LIMITS = ReadLimits(
    size=500_000,
    total=5_000_000,
    allows=_is_allowed,
)

# Prefixes of the type URLs of messages: Flight SQL's messages, and the service's own.
_FLIGHT_SQL = "type.googleapis.com/arrow.flight.protocol.sql."
_KQUERY_SERVICE = "type.googleapis.com/kquery_spark.service."

M = TypeVar("M", bound=Message)


class Request(Protocol):
    """A decoded request. Its ``ticket`` encodes it, so that a later call can answer it."""

    @property
    def ticket(self) -> bytes:
        """The encoded request, which ``read_request`` decodes."""

    def schema(self, context: ExecutionContext) -> pa.Schema:
        """Return the schema of the answer without running the query."""

    def answer(
        self, context: ExecutionContext, stop: Stop, budget: ReadAheadBudget | None = None
    ) -> pa.RecordBatchReader:
        """Return the answer batch by batch until ``stop`` is set.

        ``budget`` bounds the bytes of batches that are computed before the client reads them.
        """

    def explain(self, context: ExecutionContext, trace: bool) -> str:
        """Return the plans and stages of the answer; with ``trace`` also the change by each optimizer rule."""


class QueryRequest(Request, Protocol):
    """A request for the rows of a query."""

    def resolved(self, context: ExecutionContext) -> Analyzed:
        """Return the resolved query over the tables of the service."""

    @override
    def schema(self, context: ExecutionContext) -> pa.Schema:
        return self.resolved(context).schema

    @override
    def answer(
        self, context: ExecutionContext, stop: Stop, budget: ReadAheadBudget | None = None
    ) -> pa.RecordBatchReader:
        return context.stream(self.resolved(context), stop, budget)

    @override
    def explain(self, context: ExecutionContext, trace: bool) -> str:
        return context.explain(self.resolved(context), trace)


@dataclass(frozen=True)
class SqlRequest(QueryRequest):
    """A query in Spark's SQL dialect."""

    sql: str

    @property
    @override
    def ticket(self) -> bytes:
        return packed("TicketStatementQuery", pb.TicketStatementQuery(statement_handle=self.sql.encode()))

    @override
    def resolved(self, context: ExecutionContext) -> Analyzed:
        return context.sql(self.sql).analyzed


@dataclass(frozen=True)
class SubstraitRequest(QueryRequest):
    """A Substrait plan over the tables of the service. It must not read files, as clients must not choose paths here."""

    plan: bytes

    @property
    @override
    def ticket(self) -> bytes:
        message = pb.CommandStatementSubstraitPlan(plan=pb.SubstraitPlan(plan=self.plan))
        return packed("CommandStatementSubstraitPlan", message)

    @override
    def resolved(self, context: ExecutionContext) -> Analyzed:
        return context.substrait_query(self.plan, reads_files=False)


@dataclass(frozen=True)
class PlanRequest(QueryRequest):
    """A resolved query whose scans read tables of the service, or rows that the client sends in the plan."""

    query: Analyzed

    @property
    @override
    def ticket(self) -> bytes:
        message = pb.CommandPlan(plan=to_bytes(self.query.plan), names=self.query.names)
        return packed("CommandPlan", message, _KQUERY_SERVICE)

    @override
    def resolved(self, context: ExecutionContext) -> Analyzed:
        """Return the query with the service's own tables in place of remote tables.

        Raises PlanError if a table is missing or has other columns than when the client connected.
        """

        def with_service_tables(node: LogicalPlan) -> LogicalPlan:
            if isinstance(node, Input):
                raise PlanError(f"the plan has the open input {node.name}; only complete plans can be sent")
            if not isinstance(node, Scan):
                return node
            if isinstance(node.source, MemorySource):
                return _checked_rows(context, node, node.source)
            if not isinstance(node.source, RemoteTable):
                raise PlanError(
                    f"the plan reads {node.table} from a source of the client; "
                    "plans can read only tables of the service, and rows that are in the plan"
                )
            return _service_table(context, node, node.source)

        plan = transform_with_subqueries(self.query.plan, with_service_tables)
        check_types(plan)
        return Analyzed(plan, self.query.names)


def _checked_rows(context: ExecutionContext, scan: Scan, source: MemorySource) -> LogicalPlan:
    """Return a scan of the client's rows with a new identity.

    The identity in a client's plan cannot be trusted: it could be the identity of other rows, and caches compare identities.
    """
    for field, column in zip(source.table.schema, source.table.columns, strict=True):
        if column.null_count and not field.nullable:
            raise PlanError(f"column {field.name} of {scan.table} is declared NOT NULL but contains NULLs")
    return replace(scan, source=memory_source(source.table, context.facts.time_zone))


def _service_table(context: ExecutionContext, scan: Scan, source: RemoteTable) -> LogicalPlan:
    """Return the plan of the service's table that a client's scan names."""
    plan = context.table_plan(source.table)
    if plan is None:
        tables = ", ".join(context.table_names()) or "none"
        raise PlanError(f"the service has no table {source.table} any more; its tables are {tables}")
    if not plan.schema.equals(source.schema):
        raise PlanError(
            f"{source.table} has other columns than it had when the client connected; connect again"
        )
    if scan.projection is not None or scan.filters:
        raise PlanError("the plan is optimized already; send the plan that the optimizer has not changed")
    return plan


@dataclass(frozen=True)
class MetadataRequest(Request):
    """One of Flight SQL's metadata commands. kind: the name of the command, a key of ``metadata.TABLES``."""

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
        return f"{self.kind}: answered from the list of the service's tables"


def packed(kind: str, message: Message, protocol: str = _FLIGHT_SQL) -> bytes:
    """Encode a message as an Any message. kind: its name. protocol: the prefix of its type URL."""
    return AnyMessage(type_url=protocol + kind, value=message.SerializeToString()).SerializeToString()


def read_request(data: bytes) -> Request:
    """Decode the request in a command or ticket; raises PlanError or SerializationError for a malformed one."""
    kind, value = unpacked(data)
    if kind == "":
        try:
            return SqlRequest(data.decode())
        except UnicodeDecodeError:
            raise PlanError("a command must be SQL in UTF-8, a Flight SQL command, or a plan") from None
    if kind == "CommandStatementQuery":
        return SqlRequest(parsed(pb.CommandStatementQuery, value).query)
    if kind == "CommandStatementSubstraitPlan":
        return SubstraitRequest(parsed(pb.CommandStatementSubstraitPlan, value).plan.plan)
    if kind == "TicketStatementQuery":
        return read_request(parsed(pb.TicketStatementQuery, value).statement_handle)
    if kind == "CommandPreparedStatementQuery":
        return read_request(parsed(pb.CommandPreparedStatementQuery, value).prepared_statement_handle)
    if kind == "CommandPlan":
        message = parsed(pb.CommandPlan, value)
        plan = from_bytes(message.plan, LogicalPlan, _CLIENT_PLAN_LIMITS)
        if len(message.names) != len(plan.schema):
            raise SerializationError(f"{len(message.names)} names for {len(plan.schema)} columns")
        return PlanRequest(Analyzed(plan, tuple(message.names)))
    if kind in metadata.TABLES:
        return MetadataRequest(kind, parsed(metadata.TABLES[kind][0], value))
    raise Unsupported(f"this service does not answer {kind}")


def unpacked(data: bytes) -> tuple[str, bytes]:
    """Decode an Any message; return its kind, and the bytes of the message in it.

    The kind is "" if the bytes are neither a Flight SQL message nor one of the service's own.
    """
    message = AnyMessage()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return "", data
    for prefix in (_FLIGHT_SQL, _KQUERY_SERVICE):
        if message.type_url.startswith(prefix):
            return message.type_url.removeprefix(prefix), message.value
    return "", data


def parsed(kind: type[M], data: bytes) -> M:
    """Decode a message of a class; raises SerializationError if the bytes are not one."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise SerializationError(f"these bytes are not a {kind.__name__}") from None
    return message

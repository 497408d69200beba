"""QueryService: an Arrow Flight and Flight SQL server that runs queries over the tables of an ExecutionContext."""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NoReturn

import pyarrow as pa
from pyarrow import flight

import kquery_spark
from kquery_spark.context.execution_context import ExecutionContext
from kquery_spark.errors import ConfigError, PlanError, Unsupported
from kquery_spark.service import flight_sql_pb2 as pb
from kquery_spark.service.answers import Answers, Query, ServiceLimits
from kquery_spark.service.failures import as_flight_errors
from kquery_spark.service.freed_memory import FreedMemory
from kquery_spark.service.listening import check_location
from kquery_spark.service.requests import (
    Request,
    SqlRequest,
    SubstraitRequest,
    packed,
    parsed,
    read_request,
    unpacked,
)

_RELEASE_POLL_SECONDS = 0.5
#: The name and description of each action, as ``list_actions`` returns them.
_ACTIONS = {
    "session": "Return the settings that decide the meaning of queries, as JSON.",
    "explain": "Explain SQL or a plan: return its plans and its stages.",
    "trace": "Like explain, with the change that each optimizer rule made.",
    "CreatePreparedStatement": "Flight SQL: check a query and return its columns.",
    "CreatePreparedSubstraitPlan": "Flight SQL: check a Substrait plan and return its columns.",
    "ClosePreparedStatement": "Flight SQL: does nothing, because the service has no state.",
}


class QueryService(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow.flight has no types
    """Serves a context until ``shutdown``; every query reads the current state of the tables.

    Clients send SQL as the command of a descriptor or as a ticket, Flight SQL commands (as ADBC does), Substrait plans, or
    plans of this engine (``kq.connect``). Results are Arrow record batches. ``port`` is the port in use.

    location: ``grpc://HOST:PORT``, with port 0 for any free port; ``grpc+tls://HOST:PORT`` with ``tls``. token: the bearer
    token that clients must send as ``authorization: Bearer TOKEN``; None to accept all clients. tls: a PEM certificate and
    its private key. limits: the load that clients may cause. Raises ConfigError if the service cannot listen at the
    location.
    """

    def __init__(
        self,
        context: ExecutionContext,
        location: str = "grpc://127.0.0.1:0",
        *,
        token: str | None = None,
        tls: tuple[bytes, bytes] | None = None,
        limits: ServiceLimits | None = None,
    ) -> None:
        self._tables = context  # in the methods of Flight, ``context`` is the one of the call
        self._limits = limits or ServiceLimits()
        self._answers = Answers(self._limits)
        check_location(location)
        try:
            super().__init__(
                location,
                middleware={"token": _TokenCheck(token)} if token else {},
                tls_certificates=[tls] if tls else None,
            )
        except (pa.ArrowException, OSError) as error:
            cause = "the TLS certificate and its key must be PEM files that belong together" if tls else error
            raise ConfigError(f"cannot listen at {location}: {cause}") from error

    def serve_until(self, ended: threading.Event) -> None:
        """Block until ``ended`` is set, then finish the running queries; call this from the main thread.

        Unlike ``serve``, this also returns the memory of finished queries to the operating system.
        """
        freed = FreedMemory()
        while not ended.wait(_RELEASE_POLL_SECONDS):
            self._answers.release_memory(freed)
        self.shutdown()

    def list_flights(self, context: Any, criteria: bytes) -> Iterator[flight.FlightInfo]:
        """Yield one entry per table."""
        with as_flight_errors():
            for name in self._tables.table_names():
                yield self._info(flight.FlightDescriptor.for_path(name))

    def get_flight_info(self, context: Any, descriptor: flight.FlightDescriptor) -> flight.FlightInfo:
        """Return the schema of an answer and its ticket. The query runs when the client sends the ticket to ``do_get``."""
        with as_flight_errors():
            return self._answers.plan(_query(context), lambda: self._info(descriptor))

    def get_schema(self, context: Any, descriptor: flight.FlightDescriptor) -> flight.SchemaResult:
        """Return the schema of an answer."""
        with as_flight_errors():
            return self._answers.plan(
                _query(context),
                lambda: flight.SchemaResult(self._read(_command(descriptor)).schema(self._tables)),
            )

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.GeneratorStream:
        """Run the ticket's request; streams batches as they are computed, and stops when the client disconnects."""
        with as_flight_errors():
            query = _query(context)
            answer = self._answers.plan(
                query,
                lambda: self._read(ticket.ticket).answer(self._tables, query.stop, self._answers.budget),
            )
        # Errors while the batches are computed are translated in _batches, because the generator runs after this method.
        return flight.GeneratorStream(answer.schema, self._batches(answer, query))

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> NoReturn:
        """Refuse uploads: the service is read-only."""
        with as_flight_errors():
            raise Unsupported("uploads and query parameters are not supported; write values into the query")

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """Return the names and descriptions of the actions."""
        return list(_ACTIONS.items())

    def do_action(self, context: Any, action: flight.Action) -> Iterator[flight.Result]:
        """Run one of the actions that ``list_actions`` returns."""
        with as_flight_errors():
            self._check_size(action.body.size)
            kind, body = action.type, action.body.to_pybytes()
            return iter(self._answers.plan(_query(context), lambda: self._run_action(kind, body)))

    def _run_action(self, kind: str, body: bytes) -> list[flight.Result]:
        if kind == "session":
            session = {"version": kquery_spark.__version__, **asdict(self._tables.facts)}
            return [flight.Result(json.dumps(session).encode())]
        if kind in ("explain", "trace"):
            return [flight.Result(self._read(body).explain(self._tables, kind == "trace").encode())]
        if kind == "CreatePreparedStatement":
            sql = parsed(pb.ActionCreatePreparedStatementRequest, unpacked(body)[1]).query
            return [_prepared(sql.encode(), SqlRequest(sql).schema(self._tables))]
        if kind == "CreatePreparedSubstraitPlan":
            message = parsed(pb.ActionCreatePreparedSubstraitPlanRequest, unpacked(body)[1])
            request = SubstraitRequest(message.plan.plan)
            return [_prepared(request.ticket, request.schema(self._tables))]
        if kind == "ClosePreparedStatement":
            return []
        raise Unsupported(f"unknown action {kind}; the actions are {', '.join(_ACTIONS)}")

    def _info(self, descriptor: flight.FlightDescriptor) -> flight.FlightInfo:
        request = self._read(_command(descriptor))
        # An empty list of locations means this service. -1: the numbers of rows and bytes are unknown before the query runs.
        endpoint = flight.FlightEndpoint(request.ticket, [])
        return flight.FlightInfo(request.schema(self._tables), descriptor, [endpoint], -1, -1)

    def _batches(self, answer: pa.RecordBatchReader, query: Query) -> Iterator[pa.RecordBatch]:
        with as_flight_errors():
            yield from self._answers.stream(answer, query)

    def _read(self, data: bytes) -> Request:
        self._check_size(len(data))
        return read_request(data)

    def _check_size(self, size: int) -> None:
        if size > self._limits.request_bytes:
            raise PlanError(
                f"a request of {size:,} bytes is too large; this service accepts {self._limits.request_bytes:,} bytes"
            )


def _query(context: Any) -> Query:
    return Query(context.is_cancelled)


def _command(descriptor: flight.FlightDescriptor) -> bytes:
    """Return the command of a descriptor. A path, as in the entries of ``list_flights``, means all rows of a table."""
    if descriptor.descriptor_type == flight.DescriptorType.CMD:
        return bytes(descriptor.command)
    if len(descriptor.path) != 1:
        raise PlanError("the path of a descriptor must be the name of one table")
    name: bytes = descriptor.path[0]
    return b"SELECT * FROM `" + name.replace(b"`", b"``") + b"`"


class _TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Requires the bearer token in every call."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: Mapping[str, Sequence[Any]]) -> None:
        """Raise FlightUnauthenticatedError for a call without the token."""
        received = [v.encode() if isinstance(v, str) else v for v in headers.get("authorization", ())]
        # compare_digest takes the same time for all wrong tokens of one length.
        if not any(hmac.compare_digest(self._expected, v) for v in received):
            raise flight.FlightUnauthenticatedError(
                "this service requires a bearer token; send the header authorization: Bearer TOKEN"
            )


def _prepared(handle: bytes, schema: pa.Schema) -> flight.Result:
    """Return the result of CreatePreparedStatement: the handle of the query, and its schema. Queries have no parameters."""
    result = pb.ActionCreatePreparedStatementResult(
        prepared_statement_handle=handle,
        dataset_schema=schema.serialize().to_pybytes(),
        parameter_schema=pa.schema([]).serialize().to_pybytes(),
    )
    return flight.Result(packed("ActionCreatePreparedStatementResult", result))

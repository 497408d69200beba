"""The client of a service: an ExecutionContext that resolves queries locally and runs them in the service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pyarrow as pa
from pyarrow import flight
from typing_extensions import Self

from kquery_spark.context.execution_context import ExecutionContext
from kquery_spark.errors import PlanError
from kquery_spark.frontends.sql.analyzer import Analyzed
from kquery_spark.frontends.sql.analyzer.catalog import SessionFacts
from kquery_spark.logical import Scan
from kquery_spark.logical.subqueries import walk_with_subqueries
from kquery_spark.runtime.local import ReadAheadBudget, Stop
from kquery_spark.service.failures import as_engine_errors
from kquery_spark.service.requests import PlanRequest
from kquery_spark.sources.memory import MemorySource
from kquery_spark.sources.remote import RemoteTable


def connect(location: str, *, token: str | None = None, tls_root_certs: bytes | None = None) -> RemoteContext:
    """Connect to the service at ``grpc://HOST:PORT`` (``grpc+tls://`` with TLS).

    token: the bearer token that the service requires, if it requires one. tls_root_certs: PEM certificates to trust instead
    of the system's. Raises SourceError if no service answers, and ConfigError if the service rejects the token.
    """
    return RemoteContext(location, token=token, tls_root_certs=tls_root_certs)


class RemoteContext(ExecutionContext):
    """An ``ExecutionContext`` whose queries run in a service, with rows of ``register_arrow`` sent along with each query.

    Use it in a ``with`` statement, or ``close`` it.
    """

    def __init__(
        self, location: str, *, token: str | None = None, tls_root_certs: bytes | None = None
    ) -> None:
        self._location = location
        headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
        self._options = flight.FlightCallOptions(headers=headers)
        with as_engine_errors(location):
            try:
                self._client = flight.FlightClient(location, tls_root_certs=tls_root_certs)
            except pa.ArrowInvalid as error:
                raise PlanError(
                    f"{location!r} is not the address of a service; write grpc://HOST:PORT"
                ) from error
            session = json.loads(self._act("session"))
        super().__init__()
        # This process resolves the names and the types of a query, so it needs all settings that decide its meaning.
        self._facts = SessionFacts(
            **{f.name: session[f.name] for f in fields(SessionFacts) if f.name in session}
        )
        self.refresh()

    def refresh(self) -> None:
        """Replace the list of remote tables by the tables that the service has now."""
        with as_engine_errors(self._location):
            flights = list(self._client.list_flights(options=self._options))
        for name in [n for n, p in self._tables.items() if _is_remote(p)]:
            del self._tables[name]
        for info in flights:
            name = info.descriptor.path[0].decode()
            self.register_source(name, RemoteTable(name, info.schema))

    def run(self, analyzed: Analyzed) -> pa.Table:
        """Send a resolved query and read its rows."""
        return self.stream(analyzed).read_all()

    def explain(self, analyzed: Analyzed, trace: bool = False) -> str:
        """Return the plans and stages of a resolved query, as the service explains them."""
        with as_engine_errors(self._location):
            return self._act("trace" if trace else "explain", _encoded_request(analyzed))

    def stream(
        self, analyzed: Analyzed, stop: Stop | None = None, budget: ReadAheadBudget | None = None
    ) -> pa.RecordBatchReader:
        """Send a resolved query and read its rows batch by batch. The query ends when the reader is deleted.

        Closing the reader is not enough, because pyarrow does not close the generator of a closed reader.
        ``stop`` and ``budget`` have no effect, because the service applies limits of its own.
        """
        with as_engine_errors(self._location):
            reader = self._client.do_get(flight.Ticket(_encoded_request(analyzed)), self._options)
            schema = reader.schema

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                with as_engine_errors(self._location):
                    for chunk in reader:
                        yield chunk.data
            finally:
                reader.cancel()

        return pa.RecordBatchReader.from_batches(schema, batches())

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def _act(self, kind: str, body: bytes = b"") -> str:
        results: list[Any] = list(self._client.do_action(flight.Action(kind, body), self._options))
        answer: str = results[0].body.to_pybytes().decode()
        return answer


def _encoded_request(analyzed: Analyzed) -> bytes:
    for node in walk_with_subqueries(analyzed.plan):
        if isinstance(node, Scan) and not isinstance(node.source, RemoteTable | MemorySource):
            raise PlanError(
                f"{node.table} is a file of this machine, which the service cannot read; "
                "register the table in the service, or send its rows with register_arrow"
            )
    return PlanRequest(analyzed).ticket


def _is_remote(plan: object) -> bool:
    return isinstance(plan, Scan) and isinstance(plan.source, RemoteTable)

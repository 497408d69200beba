"""Hostile clients of a service that runs as a process of its own: mutated requests of every kind, bytes that are no request.

``python -m tests.service.hostile 100000 --seed 1 --seconds 3600`` sends that many, or as many as the time allows; every
call has a limit of its own. The test suite sends a few hundred.
"""

from __future__ import annotations

import argparse
import random
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from pyarrow import flight

from kquery_spark.context.execution_context import ExecutionContext
from kquery_spark.expr import AggregateCall, Call, Cast, Column, HigherOrder, InList, Literal, Named, SortKey
from kquery_spark.frontends.sql.analyzer import Analyzed
from kquery_spark.logical import Aggregate, Filter, Join, JoinKind, Limit, LogicalPlan, Projection, Scan, Sort
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.subqueries import ScalarSubquery
from kquery_spark.service import flight_sql_pb2 as pb
from kquery_spark.service.requests import PlanRequest, packed
from kquery_spark.sources.memory import memory_source
from kquery_spark.sources.remote import RemoteTable
from tests.service.server_process import CALL_SECONDS, ROWS, Server, running_server
from tests.stages.mutations import BYTES, PLANS, mutate

GROWTH_BYTES = 1 << 30
_ID, _NAME, _TAGS = (
    Column("id", pa.int64()),
    Column("name", pa.string()),
    Column("tags", ROWS.schema.field("tags").type),
)
_LEAK = re.compile(r"Traceback|File \"|\.py\b|\bline \d+, in ")


SQL = [
    "SELECT id, name FROM items WHERE id BETWEEN 3 AND 9 AND name LIKE 'n%' ORDER BY id DESC LIMIT 5",
    "SELECT name, count(*), sum(price), max(id) FROM items GROUP BY name HAVING count(*) > 2",
    "SELECT a.id FROM items a JOIN items b ON a.id = b.id + 1 WHERE b.name IN (SELECT name FROM items LIMIT 3)",
    "SELECT row_number() OVER (PARTITION BY name ORDER BY id), lag(id) OVER (ORDER BY id) FROM items",
    "SELECT CASE WHEN id > 5 THEN upper(name) ELSE NULL END, regexp_replace(name, '[a-z]+', 'x'), split(name, ' ') FROM items",
    "SELECT transform(tags, x -> x + 1), explode(tags), CAST(price AS decimal(10,2)), date_add(DATE '2020-01-01', 5) FROM items",
    "WITH c AS (SELECT id % 7 AS k FROM items) SELECT k FROM c UNION ALL SELECT id FROM range(10) EXCEPT SELECT 3",
    "SELECT * FROM parquet.`/etc/passwd`", "SELECT * FROM csv.`/etc/passwd`", "SELECT * FROM read_files('/etc/passwd')",
    "CREATE TABLE x AS SELECT 1", "INSERT INTO items VALUES (1)", "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1",
    "DROP TABLE items", "SET spark.sql.ansi.enabled=false", "ADD JAR 'http://127.0.0.1/x.jar'", "CACHE TABLE items",
    "SELECT reflect('java.lang.Runtime', 'getRuntime')", "SELECT java_method('java.lang.System', 'exit', 1)",
    "SELECT repeat('x', 2147483647) FROM items", "SELECT sequence(1, 100000000000)", "SELECT rlike(name, '(a+)+$') FROM items",
    "SELECT 'a' RLIKE '(((((((((((a{1,100}){1,100}){1,100})))))))))'", "EXPLAIN SELECT 1", "DESCRIBE items", "SHOW TABLES",
]  # fmt: skip


def _plans() -> list[LogicalPlan]:
    items = Scan("items", RemoteTable("items", ROWS.schema))
    rows = Scan("rows", memory_source(ROWS.slice(0, 20)))
    renamed = Projection(rows, (Named(_ID, "key"), Named(_NAME, "label")))
    top = Aggregate(items, (), (Named(AggregateCall.of("max", _ID), "top"),))
    x = Column("x", pa.int64())
    return [
        Filter(items, Call.of("gt", _ID, Literal(3, pa.int64()))),
        Projection(items, (Named(Call.of("upper", _NAME), "u"), Named(Cast(_ID, pa.string()), "s"))),
        Join(items, renamed, JoinKind.INNER, (JoinKey(_ID, Column("key", pa.int64())),)),
        Aggregate(items, (Named(_NAME, "name"),), (Named(AggregateCall.of("sum", _ID), "s"),)),
        Limit(Sort(rows, (SortKey(_ID, False, False),)), 5), Filter(items, InList(_ID, (Literal(1, pa.int64()),))),
        Projection(rows, (Named(ScalarSubquery(top), "top"), Named(_TAGS, "tags"))),
        Projection(items, (Named(HigherOrder.of("transform", [_TAGS], Call.of("negative", x), [x]), "t"),)),
    ]  # fmt: skip


def _plan_tickets() -> list[bytes]:
    return [PlanRequest(Analyzed(plan, tuple(plan.schema.names))).ticket for plan in _plans()]


def _substrait() -> list[bytes]:
    """Requests with Substrait plans; none without the package."""
    if find_spec("substrait") is None:
        return []
    context = ExecutionContext()
    context.register_arrow("items", ROWS)
    plans = [pb.SubstraitPlan(plan=context.sql(sql).to_substrait()) for sql in SQL[1:3]]
    return [
        *(packed("CommandStatementSubstraitPlan", pb.CommandStatementSubstraitPlan(plan=p)) for p in plans),
        packed(
            "ActionCreatePreparedSubstraitPlanRequest",
            pb.ActionCreatePreparedSubstraitPlanRequest(plan=plans[0]),
        ),
    ]


def _flight_sql() -> list[bytes]:
    sql = SQL[0]
    return [
        *_substrait(),
        packed("CommandStatementQuery", pb.CommandStatementQuery(query=sql)),
        packed("TicketStatementQuery", pb.TicketStatementQuery(statement_handle=sql.encode())),
        packed("CommandPreparedStatementQuery", pb.CommandPreparedStatementQuery(prepared_statement_handle=sql.encode())),
        packed("ActionCreatePreparedStatementRequest", pb.ActionCreatePreparedStatementRequest(query=sql)),
        packed("CommandGetSqlInfo", pb.CommandGetSqlInfo(info=[0, 3, 504])),
        packed("CommandGetTables", pb.CommandGetTables(table_name_filter_pattern="%i%", include_schema=True)),
        packed("CommandGetDbSchemas", pb.CommandGetDbSchemas(catalog="", db_schema_filter_pattern="%")),
        packed("CommandGetCatalogs", pb.CommandGetSqlInfo()),
    ]  # fmt: skip


def _mutated_plan(chance: random.Random, tickets: Sequence[bytes]) -> tuple[str, bytes]:
    """A plan whose frame stays valid: only the plan in it is mutated."""
    message = AnyMessage.FromString(chance.choice(tickets))
    command = pb.CommandPlan.FromString(message.value)
    inner = [pb.CommandPlan.FromString(AnyMessage.FromString(t).value).plan for t in tickets]
    name, command.plan = mutate(chance, [command.plan, *inner], (*PLANS, *PLANS, *BYTES))
    if chance.randrange(4) == 0:
        command.names.extend(["x"] * chance.randrange(4))
    message.value = command.SerializeToString()
    return name, message.SerializeToString()


def _mutated_sql(chance: random.Random) -> tuple[str, bytes]:
    text = chance.choice(SQL)
    words = re.findall(r"\w+|\s+|.", text)
    for _ in range(chance.choice((0, 1, 2, 5))):
        at = chance.randrange(len(words) + 1)
        new = chance.choice((*re.findall(r"\w+|[^\w\s]", chance.choice(SQL)), "NULL", "(", "))", "'", "`", "/*", "--", "\x00",
                             "9" * 50, "1e999", "\u2028", "\U0001f600", "x" * 3000, "-1", "0x", "${x}"))  # fmt: skip
        words[at : at + chance.randrange(3)] = [new]
    return "sql", "".join(words).encode("utf-8", "replace")


@dataclass
class Report:
    """How requests ended, by kind of request and of end."""

    outcomes: Counter[str] = field(default_factory=Counter)
    unforeseen: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "none")

    def add(self, state: str, kind: str, number: int, seconds: float) -> None:
        """Count a request that ended like this."""
        self.outcomes[state] += 1
        self.slowest = max(self.slowest, (seconds, f"request {number}, {kind}"))

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in self.outcomes.most_common())
        lines = [f"{sum(self.outcomes.values())} requests: {counts}; {len(self.findings)} findings"]
        lines += [f"slowest: {self.slowest[1]}, {self.slowest[0]:.1f} s", *self.facts]
        lines += [f"not one of our own errors: {n} x {text}" for text, n in self.unforeseen.most_common(40)]
        return "\n".join([*lines, *self.findings[:20]])


class Attack:
    """Requests of one seed to one server."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server, self.chance, self.report = server, random.Random(seed), Report()
        self._plans, self._commands = _plan_tickets(), _flight_sql()
        self._client = flight.FlightClient(server.location)

    def send(self, count: int, check_every: int = 1000, seconds: float = 7200.0) -> Report:
        """Send ``count`` requests, or as many as ``seconds`` allow.

        The server has to be the same process, of bounded memory, and answer a valid request afterwards.
        """
        server, report = self.server, self.report
        resident, start = server.status("VmRSS"), time.monotonic()
        for number in range(count):
            if time.monotonic() - start > seconds:
                break
            kind = self.chance.choices(
                ("plan", "flight sql", "sql", "action", "header", "raw"), (40, 20, 20, 8, 8, 4)
            )[0]
            begun = time.monotonic()
            state = self._request_outcome(kind, number)
            report.add(state, kind, number, time.monotonic() - begun)
            if number % check_every == check_every - 1 and not server.answers():
                report.findings.append(f"no answer after request {number}: {server.log()[-2000:]}")
                break
            if number % 10_000 == 9999:
                print(f"{number + 1} requests, {time.monotonic() - start:.0f} s, {dict(report.outcomes)}, "
                      f"{len(report.findings)} findings", file=sys.stderr, flush=True)  # fmt: skip
        if not report.findings and not server.answers():
            report.findings.append(f"no answer at the end: {server.log()[-2000:]}")
        if server.process.poll() is None:
            grown = (server.status("VmRSS") - resident) >> 10
            peak = (server.status("VmHWM") - resident) >> 10
            report.facts.append(
                f"process {server.process.pid} lives; resident memory {resident >> 10} MiB before, {grown} MiB more after, "
                f"peak {peak} MiB more; {server.status('Threads')} threads; {time.monotonic() - start:.0f} s"
            )
            if grown << 20 > GROWTH_BYTES:
                report.findings.append(f"memory grew by {grown} MiB")
        if server.token in server.log():
            report.findings.append("the token is in the log")
        return report

    def _request_outcome(self, kind: str, number: int) -> str:
        name = kind
        try:
            name = getattr(self, "_" + kind.replace(" ", "_"))()
        except flight.FlightUnauthenticatedError:
            return "unauthenticated"
        except flight.FlightTimedOutError:
            self.report.findings.append(f"request {number} ({name}) took more than {CALL_SECONDS:g} s")
            return "timed out"
        except (
            flight.FlightError,
            pa.ArrowException,
            OSError,
            ValueError,
            UnicodeError,
            StopIteration,
        ) as error:
            return self._refused(error, number, name)
        return "answered"

    def _refused(self, error: Exception, number: int, name: str) -> str:
        text = str(error)
        if _LEAK.search(text) or self.server.token in text:
            self.report.findings.append(f"request {number} ({name}) shows the inside: {text[:300]}")
        if "the service failed" in text or not isinstance(error, flight.FlightServerError):
            self.report.unforeseen[re.sub(r"[\d:]+", "#", f"{type(error).__name__} {text}")[:110]] += 1
            return "failed"
        return "refused"

    def _call(self, data: bytes) -> None:
        options = self.server.options()
        match self.chance.randrange(4):
            case 0:
                self._client.get_flight_info(flight.FlightDescriptor.for_command(data), options)
            case 1:
                self._schema(data, options)
            case _:
                reader = self._client.do_get(flight.Ticket(data), options)
                for count, _ in enumerate(reader):
                    if count > 20:
                        reader.cancel()
                        break

    def _schema(self, data: bytes, options: flight.FlightCallOptions) -> None:
        try:
            self._client.get_schema(flight.FlightDescriptor.for_command(data), options)
        except pa.ArrowException as error:
            if isinstance(error, flight.FlightError):
                raise
            # pyarrow has no errors of Flight in this one call: it adds the frames of its own and of the service's
            raise flight.FlightServerError(str(error).partition(" Detail: Python exception")[0]) from None

    def _plan(self) -> str:
        name, data = _mutated_plan(self.chance, self._plans)
        self._call(data)
        return name

    def _flight_sql(self) -> str:
        name, data = mutate(self.chance, [*self._commands, *self._plans], BYTES)
        self._call(data)
        return name

    def _sql(self) -> str:
        name, data = _mutated_sql(self.chance)
        self._call(data)
        return name

    def _action(self) -> str:
        kinds = (
            "session",
            "explain",
            "trace",
            "CreatePreparedStatement",
            "CreatePreparedSubstraitPlan",
            "ClosePreparedStatement",
            "",
            "x" * 5000,
            "os.system",
        )
        kind = self.chance.choice(kinds)
        _, body = mutate(self.chance, [*self._commands, *self._plans, SQL[0].encode()], BYTES)
        list(self._client.do_action(flight.Action(kind, body), self.server.options()))
        return f"action {kind}"

    def _header(self) -> str:
        token = self.server.token
        wrong = (b"", b"Bearer", b"Bearer ", b"Bearer x", f"bearer {token}".encode(), f"Bearer {token[:-1]}".encode(),
                 f"Bearer {token}x".encode(), f"Basic {token}".encode(), token.encode(), b"Bearer " + b"x" * 4000)  # fmt: skip
        headers = [
            (b"authorization", self.chance.choice(wrong)) for _ in range(self.chance.choice((0, 1, 1, 3)))
        ]
        headers += [(b"x-" + bytes([97 + self.chance.randrange(26)]), b"y")] * self.chance.randrange(3)
        options = flight.FlightCallOptions(timeout=CALL_SECONDS, headers=headers)
        match self.chance.randrange(4):
            case 0:
                list(self._client.list_flights(options=options))
            case 1:
                list(self._client.do_action(flight.Action("session", b""), options))
            case 2:
                self._client.do_get(flight.Ticket(SQL[0].encode()), options).read_all()
            case _:
                self._client.authenticate_basic_token("user", token, options)
        self.report.findings.append(f"let in with the headers {headers}")
        return "header"

    def _raw(self) -> str:
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
        frame = b"\x00\x00\x20\x01\x05\x00\x00\x00\x01" + self.chance.randbytes(32)
        get, noise = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", self.chance.randbytes(200)
        _, data = mutate(self.chance, [preface + frame, preface, get, noise], BYTES)
        with socket.create_connection(("127.0.0.1", self.server.port), 10) as connection:
            connection.sendall(data[:100_000])
        return "raw"


def main() -> None:
    """Send as many requests as the command line says; exit code 1 for findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=7200.0, help="run time (default: 7200)")
    options = parser.parse_args()
    with running_server() as server:
        report = Attack(server, options.seed).send(options.count, seconds=options.seconds)
    print(report)
    sys.exit(bool(report.findings))


if __name__ == "__main__":
    main()

"""Queries whose planning takes long end at the time limit of the service, or when their client leaves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyarrow import flight
from typing_extensions import override

import kquery_spark as kq
from kquery_spark.compiler import compile_query
from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Call, Case, Column, Literal
from kquery_spark.frontends.sql import parse_query
from kquery_spark.logical import LogicalPlan
from kquery_spark.physical.expr import Program
from kquery_spark.run_control import RunControl
from kquery_spark.service import ServiceLimits
from kquery_spark.stages.serialization import from_bytes, to_bytes
from kquery_spark.types.batch import Batch

TABLE = pa.table({"id": pa.array(range(1000), pa.int64())})
LONG = pa.int64()


def small_context() -> kq.ExecutionContext:
    context = kq.ExecutionContext()
    context.register_arrow("t", TABLE)
    return context


def many_columns(count: int) -> str:
    return f"SELECT {', '.join(f'id + {i} AS c{i}' for i in range(count))} FROM t"


def many_branches(count: int) -> str:
    return f"SELECT CASE {' '.join(f'WHEN id = {i} THEN {i}' for i in range(count))} END AS x FROM t"


class Counting(RunControl):
    """Counts how often a run asks whether it has to end."""

    def __init__(self) -> None:
        super().__init__()
        self.checks = 0

    @override
    def check(self) -> None:
        self.checks += 1


@pytest.mark.parametrize("query", [many_columns(300), many_branches(300)], ids=["columns", "branches"])
def test_every_step_of_planning_asks_whether_to_end(query: str):
    def checks(step: Callable[[], object]) -> int:
        control = Counting()
        control.controlled(step)()
        return control.checks

    context, config = small_context(), EngineConfig()
    analyzed = context.sql(query).analyzed
    assert checks(lambda: parse_query(query)) > 300
    assert checks(lambda: context.sql(query)) > checks(lambda: parse_query(query)) + 300
    assert checks(lambda: compile_query(analyzed.plan, config)) > 600


def test_reading_a_plan_of_a_client_asks_whether_to_end():
    plan = small_context().sql(many_columns(300)).analyzed.plan
    data, control = to_bytes(plan), Counting()
    assert control.controlled(from_bytes)(data, LogicalPlan) == plan
    assert control.checks > 600


def test_a_case_of_many_branches_asks_while_it_runs():
    column = Column("id", LONG)
    branches = tuple((Call.of("eq", column, Literal(i, LONG)), Literal(i, LONG)) for i in range(300))
    program = Program([Case(branches, None)], TABLE.schema)
    batch = Batch.from_arrow(TABLE.to_batches()[0], TABLE.schema)
    control = Counting()
    control.controlled(program.run)(batch)
    assert control.checks >= 600


@pytest.mark.parametrize("query", [many_columns(50_000), many_branches(20_000)], ids=["columns", "branches"])
@pytest.mark.parametrize("call", ["do_get", "get_flight_info"])
def test_planning_ends_at_the_time_limit(query: str, call: str):
    limits = ServiceLimits(query_seconds=0.5)
    with (
        kq.QueryService(small_context(), limits=limits) as service,
        flight.FlightClient(f"grpc://127.0.0.1:{service.port}") as client,
    ):
        start = time.monotonic()
        with pytest.raises(flight.FlightServerError, match=r"it took more than 0\.5 s"):
            if call == "do_get":
                client.do_get(flight.Ticket(query.encode())).read_all()
            else:
                client.get_flight_info(flight.FlightDescriptor.for_command(query.encode()))
        assert time.monotonic() - start < 8
        assert service._answers.running == 0


def test_planning_ends_when_the_client_leaves():
    query = many_columns(100_000).encode()
    with kq.QueryService(small_context()) as service:
        started = threading.Event()
        plan = service._answers.plan

        def planned(query, step):
            started.set()
            try:
                return plan(query, step)
            finally:
                ended.set()

        ended = threading.Event()
        service._answers.plan = planned
        options = flight.FlightCallOptions(timeout=1)
        with (
            flight.FlightClient(f"grpc://127.0.0.1:{service.port}") as client,
            pytest.raises(flight.FlightTimedOutError),
        ):
            client.get_flight_info(flight.FlightDescriptor.for_command(query), options)
        assert started.is_set() and ended.wait(8)

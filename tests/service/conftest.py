from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import flight

import kquery_spark as kq

EMPLOYEES = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "state": ["CA", "CO", "CO", None],
        "salary": pa.array([12000, 10000, 11500, 11500], pa.int32()),
    },
    schema=pa.schema(
        [pa.field("id", pa.int64(), False), pa.field("state", pa.string()), pa.field("salary", pa.int32())]
    ),
)


@pytest.fixture
def context(tmp_path: Path) -> kq.ExecutionContext:
    context = kq.ExecutionContext()
    context.register_arrow("employee", EMPLOYEES)
    pq.write_table(
        pa.table({"code": ["CA", "CO"], "name": ["California", "Colorado"]}), tmp_path / "s.parquet"
    )
    context.register_parquet("states", tmp_path / "s.parquet")
    return context


@pytest.fixture
def service(context: kq.ExecutionContext) -> Iterator[kq.QueryService]:
    with kq.QueryService(context) as service:
        yield service


@pytest.fixture
def place(service: kq.QueryService) -> str:
    return f"grpc://127.0.0.1:{service.port}"


@pytest.fixture
def client(place: str) -> Iterator[flight.FlightClient]:
    with flight.FlightClient(place) as client:
        yield client

"""parse_url declines URLs that Java accepts but the engine does not parse."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kquery_spark.functions  # noqa: F401  fills the registry
from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Column, Literal
from kquery_spark.functions.registry import EvalMode
from kquery_spark.physical.expr.program import Program
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch


@pytest.mark.parametrize("mode", [EvalMode.ANSI, EvalMode.LEGACY])
@pytest.mark.parametrize("url", ["http://[fe80::1]/p", "http://[fe80::1%eth0]/p"])
def test_ipv6_addresses_are_declined(url: str, mode: EvalMode) -> None:
    """Spark's host is ``[fe80::1%eth0]``: a percent sign before a zone is not an error."""
    schema = pa.schema([("u", t.STRING)])
    host = Call.of("parse_url", Column("u", t.STRING), Literal("HOST", t.STRING), mode=mode)
    with pytest.raises(Unsupported, match="for plain URLs with a host only"):
        Program([host], schema).run(Batch(schema, (pa.array([url]),), 1))

"""Converts a mismatch to a pytest module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from kquery_spark.fuzz.generate import Case
from kquery_spark.fuzz.oracle import CaseOutcome
from kquery_spark.fuzz.settings import TIME_ZONE, is_ansi
from kquery_spark.fuzz.tables import FuzzTable


@dataclass(frozen=True)
class Mismatch:
    """A case that differs, after shrinking, with its original and its seed and batch number."""

    seed: int
    number: int
    original: Case
    case: Case
    outcome: CaseOutcome

    def __str__(self) -> str:
        where = "without Spark" if self.outcome.local else "on Spark"
        head = (
            f"# case {self.number} of seed {self.seed}, {where}: {self.outcome.kind}\n# {self.outcome.detail}"
        )
        return f"{head}\n{as_pytest(self.case, f'seed_{self.seed}_case_{self.number}', self.outcome.local)}"


def as_pytest(case: Case, name: str, local: bool = False) -> str:
    """Return the source of a test module that fails while Spark and the engine differ on ``case``.

    local: the engine runs without Spark. The test uses the fixture ``spark``, a session.
    """
    settings = dict(case.settings)
    ordered = ", ordered=True" if getattr(case.query, "order", ()) else ""
    kquery = "" if local else "from kquery_spark import kquery_plan\n"
    if local:
        zone = f"spark.conf.get({TIME_ZONE!r})"
        context = f"store.context(TABLES, engine_config(SETTINGS), {is_ansi(settings)}, {zone})"
        actual = f"{context}.sql(sql).to_arrow()"
    else:
        actual = f'spark.sql(sql).transform(kquery_plan, when="{case.when}").toArrow()'
    lines = [
        "import datetime",
        "from decimal import Decimal",
        "",
        "import pyarrow as pa",
        "",
        f"{kquery}from kquery_spark.fuzz.settings import applied{', engine_config' if local else ''}",
        "from kquery_spark.fuzz.store import TableStore",
        "from kquery_spark.fuzz.tables import FuzzTable",
        "from kquery_spark.verify import compare_tables",
        "",
        "TABLES = [",
        *(f"    {_table(table)}," for table in case.tables),
        "]",
        f"SETTINGS = {settings!r}",
        "",
        "",
        f"def test_{re.sub(r'[^a-z0-9_]', '_', name.lower())}(spark):",
        f'    sql = """{case.query.sql()}"""',
        "    with TableStore(spark) as store, applied(spark, SETTINGS):",
        "        store.register(TABLES)",
        "        expected = spark.sql(sql).toArrow()",
        f"        actual = {actual}",
        f"    assert compare_tables(expected, actual{ordered}) == []",
    ]
    return "\n".join(lines) + "\n"


def _table(table: FuzzTable) -> str:
    schema = ", ".join(f'("{field.name}", {_type(field.type)})' for field in table.data.schema)
    columns = ", ".join(
        f'"{name}": [{", ".join(_literal(value) for value in table.data[name].to_pylist())}]'
        for name in table.data.column_names
    )
    data = f"pa.table({{{columns}}}, schema=pa.schema([{schema}]))"
    return f'FuzzTable("{table.name}", {data}, {table.pieces}, "{table.format}")'


def _type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"pa.decimal128({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return f'pa.timestamp("us"{f", {kind.tz!r}" if kind.tz else ""})'
    if pa.types.is_map(kind):
        return f"pa.map_({_type(kind.key_type)}, {_type(kind.item_type)})"
    if pa.types.is_list(kind):
        return f"pa.list_({_type(kind.value_type)})"
    if pa.types.is_struct(kind):
        return f"pa.struct([{', '.join(f'({field.name!r}, {_type(field.type)})' for field in kind)}])"
    names = {"bool": "bool_", "float": "float32", "double": "float64", "date32[day]": "date32"}
    return f"pa.{names.get(str(kind), str(kind))}()"


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        inside = ", ".join(_literal(part) for part in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_literal(part)}' for key, part in value.items())}}}"
    if isinstance(value, float):
        return f'float("{value}")'
    if isinstance(value, Decimal):
        return f'Decimal("{value}")'
    if isinstance(value, datetime):
        zone = ", tzinfo=datetime.timezone.utc" if value.tzinfo else ""
        fields = f"{value.year}, {value.month}, {value.day}, {value.hour}, {value.minute}, {value.second}"
        return f"datetime.datetime({fields}, {value.microsecond}{zone})"
    if isinstance(value, date):
        return f"datetime.date({value.year}, {value.month}, {value.day})"
    return repr(value)

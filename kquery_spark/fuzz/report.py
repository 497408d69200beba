"""A mismatch as a ready-made pytest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from kquery_spark.fuzz.generate import Case
from kquery_spark.fuzz.oracle import READER_OPTIONS, Outcome


@dataclass(frozen=True)
class Mismatch:
    """A case that differs, as small as it got, and where it came from."""

    seed: int
    number: int
    original: Case
    case: Case
    outcome: Outcome

    def __str__(self) -> str:
        where = "without Spark" if self.outcome.local else "on Spark"
        head = (
            f"# case {self.number} of seed {self.seed}, {where}: {self.outcome.kind}\n# {self.outcome.detail}"
        )
        return f"{head}\n{as_pytest(self.case, f'seed_{self.seed}_case_{self.number}', self.outcome.local)}"


def as_pytest(case: Case, name: str, local: bool = False) -> str:
    """The text of a test module that fails while Spark and the engine differ on ``case``.

    ``local``: the engine without Spark. It asks for the fixtures ``spark`` (a session) and ``tmp_path``.
    """
    lines = [
        "import datetime",
        "from decimal import Decimal",
        "",
        "import pyarrow as pa",
        "import pyarrow.parquet as pq",
        "",
        "from kquery_spark import ExecutionContext" if local else "from kquery_spark import kquery_plan",
        *(["from kquery_spark.config.engine import EngineConfig"] if local else []),
        "from kquery_spark.verify import compare_tables",
        "",
        "",
        f"def test_{re.sub(r'[^a-z0-9_]', '_', name.lower())}(spark, tmp_path):",
    ]
    for table in case.tables:
        schema = ", ".join(f'("{field.name}", {_type(field.type)})' for field in table.data.schema)
        lines.append(f"    {table.name} = pa.table(")
        lines.append("        {")
        for column in table.data.column_names:
            values = ", ".join(_literal(value) for value in table.data[column].to_pylist())
            lines.append(f'            "{column}": [{values}],')
        lines.append("        },")
        lines.append(f"        schema=pa.schema([{schema}]),")
        lines.append("    )")
        lines.append(f'    folder = tmp_path / "{table.name}"')
        lines.append("    folder.mkdir()")
        rows = table.data.num_rows
        size = max(1, -(-rows // table.pieces))
        for piece, start in enumerate(range(0, max(rows, 1), size)):
            cut = table.name if table.pieces == 1 else f"{table.name}.slice({start}, {size})"
            lines.append(f'    pq.write_table({cut}, folder / "{piece}.parquet")')
        options = f"options(**{READER_OPTIONS!r})"
        lines.append(f'    spark.read.{options}.parquet(str(folder)).createOrReplaceTempView("{table.name}")')
    settings = {} if local else case.settings
    for key, value in settings.items():
        lines.append(f'    spark.conf.set("{key}", "{value}")')
    lines.append(f'    sql = """{case.query.sql()}"""')
    ordered = ", ordered=True" if getattr(case.query, "order", ()) else ""
    run = [
        "expected = spark.sql(sql).toArrow()",
        f'actual = spark.sql(sql).transform(kquery_plan, when="{case.when}").toArrow()',
        f"assert compare_tables(expected, actual{ordered}) == []",
    ]
    if local:
        lines.append(f"    config = EngineConfig(parallelism=2).with_settings({case.settings!r})")
        lines.append("    context = ExecutionContext(config=config)")
        lines += [
            f'    context.register_parquet("{table.name}", tmp_path / "{table.name}")'
            for table in case.tables
        ]
        run[1] = "actual = context.sql(sql).to_arrow()"
    if settings:
        lines.append("    try:")
        lines += [f"        {line}" for line in run]
        lines.append("    finally:")
        lines += [f'        spark.conf.unset("{key}")' for key in settings]
    else:
        lines += [f"    {line}" for line in run]
    return "\n".join(lines) + "\n"


def _type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"pa.decimal128({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return f'pa.timestamp("us"{f", {kind.tz!r}" if kind.tz else ""})'
    if pa.types.is_list(kind):
        return f"pa.list_({_type(kind.value_type)})"
    if pa.types.is_struct(kind):
        return f"pa.struct([{', '.join(f'({field.name!r}, {_type(field.type)})' for field in kind)}])"
    names = {"bool": "bool_", "float": "float32", "double": "float64", "date32[day]": "date32"}
    return f"pa.{names.get(str(kind), str(kind))}()"


def _literal(value: Any) -> str:
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

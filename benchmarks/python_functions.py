"""Python functions between a scan and an aggregate, Spark and the engine in turns.

``python -m benchmarks.python_functions --data DIR``: ten million rows of Parquet; a pandas UDF, an Arrow-optimized UDF and a
pickled UDF, each a sum by key of what it gives.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.compare import compare, machine, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = """
    SELECT id % 1000 AS k, CAST(id % 97 AS double) + 0.5 AS x, IF(id % 50 = 0, NULL, CAST(id % 89 AS double)) AS y
    FROM range({rows})
"""
_SUMS = "SELECT k, sum({call}) AS s, count(*) AS n FROM rows GROUP BY k"
QUERIES = {
    "pandas_udf": _SUMS.format(call="pandas_share(x, y)"),
    "pandas_udf_filter": "SELECT k, count(*) AS n FROM rows WHERE pandas_share(x, y) > 0.5 GROUP BY k",
    "arrow_batched_udf": _SUMS.format(call="arrow_share(x, y)"),
    "udf": _SUMS.format(call="share(x, y)"),
    "two_udfs": "SELECT k, sum(pandas_share(x, y)) AS s, max(share(x, y)) AS m FROM rows GROUP BY k",
}


def register(spark: SparkSession) -> None:
    """Make the functions known to SQL."""
    import pandas as pd
    from pyspark.sql.functions import udf
    from pyspark.sql.pandas.functions import pandas_udf

    def quotient(x: float | None, y: float | None) -> float | None:
        return None if x is None or y is None else x / (x + y)

    def share(x: Any, y: Any) -> Any:
        return x / (x + y)

    share.__annotations__ = {"x": pd.Series, "y": pd.Series, "return": pd.Series}
    vectorized: Any = pandas_udf  # whose annotations ask for the kind of the function
    functions: dict[str, Any] = {
        "pandas_share": vectorized(share, "double"),
        "arrow_share": udf(quotient, "double", useArrow=True),
        "share": udf(quotient, "double", useArrow=False),
    }
    for name, function in functions.items():
        spark.udf.register(name, function)


def files(spark: SparkSession, folder: Path, rows: int) -> Path:
    """The folder of the rows in eight files, written unless it is there."""
    path = folder / f"python-functions-{rows}"
    if not (path / "_SUCCESS").exists():
        spark.sql(_ROWS.format(rows=rows)).repartition(8).write.mode("overwrite").parquet(str(path))
    return path


def main() -> None:
    """Write the rows, run the queries, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder for the data")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--queries", default="", help="names by commas; all by default")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    spark = session("kquery_spark bench python functions")
    spark.read.parquet(str(files(spark, arguments.data, arguments.rows))).createOrReplaceTempView("rows")
    register(spark)
    report: dict[str, object] = {"machine": machine(), "rows": arguments.rows}
    for name, sql in _chosen(arguments.queries):
        result, _ = compare(spark, name, sql, arguments.runs)
        whole = result.accelerated and not result.reasons
        print(
            f"{name}: spark {result.spark_median:.3f}, engine {result.engine_median:.3f}, {result.ratio:.2f} times as fast, "
            f"{'whole' if whole else 'NOT WHOLE'}, {'equal' if result.same else 'NOT EQUAL'} {' | '.join(result.reasons)}",
            flush=True,
        )
        report[name] = result.as_json()
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1))
    spark.stop()


def _chosen(names: str) -> Iterator[tuple[str, str]]:
    wanted = names.split(",") if names else list(QUERIES)
    return ((name, QUERIES[name]) for name in wanted)


if __name__ == "__main__":
    main()

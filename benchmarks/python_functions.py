"""Python functions between a scan and an aggregate, or of groups, Spark and the engine in turns.

``python -m benchmarks.python_functions --data DIR`` reads ten million rows of Parquet. The queries sum by key the results of a
pandas UDF, an Arrow-optimized UDF, and a pickled UDF; others call a grouped aggregate UDF, ``applyInPandas`` after a join
and an aggregate, and ``mapInArrow`` before an aggregate.
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
    "grouped_aggregate_udf": "SELECT k, pandas_spread(x, y) AS s FROM rows GROUP BY k",
    "apply_in_pandas": "SELECT * FROM scaled",
    "map_in_arrow": "SELECT k, sum(x) AS s, count(*) AS n FROM filtered GROUP BY k",
}
_JOINED = """
    SELECT s.k % 50 AS g, s.k, s.s, n.n FROM (SELECT k, sum(x) AS s FROM rows GROUP BY k) s
    JOIN (SELECT k, count(y) AS n FROM rows GROUP BY k) n ON s.k = n.k
"""


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


def register_tables(spark: SparkSession) -> None:
    """Make views of what functions of groups and of batches give."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql.pandas.functions import pandas_udf

    def spread(x: Any, y: Any) -> Any:
        return float((x - y.mean()).abs().mean())

    def scaled(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(s=frame["s"] / frame["s"].max())

    def filtered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.filter(pc.greater(batch.column("x"), 20.0))

    spread.__annotations__ = {"x": pd.Series, "y": pd.Series, "return": float}
    vectorized: Any = pandas_udf
    spark.udf.register("pandas_spread", vectorized(spread, "double"))
    groups = spark.sql(_JOINED).groupBy("g")
    groups.applyInPandas(scaled, "g long, k long, s double, n long").createOrReplaceTempView("scaled")
    rows = spark.table("rows").select("k", "x")
    rows.mapInArrow(filtered, "k long, x double").createOrReplaceTempView("filtered")


def files(spark: SparkSession, directory: Path, rows: int) -> Path:
    """The directory of the rows in eight files, written unless it is there."""
    path = directory / f"python-functions-{rows}"
    if not (path / "_SUCCESS").exists():
        spark.sql(_ROWS.format(rows=rows)).repartition(8).write.mode("overwrite").parquet(str(path))
    return path


def main() -> None:
    """Write the rows, run the queries, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a directory for the data")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--queries", default="", help="names separated by commas (default: all)")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    spark = session("kquery_spark bench python functions")
    spark.read.parquet(str(files(spark, arguments.data, arguments.rows))).createOrReplaceTempView("rows")
    register(spark)
    register_tables(spark)
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
    selected = names.split(",") if names else list(QUERIES)
    return ((name, QUERIES[name]) for name in selected)


if __name__ == "__main__":
    main()

"""The 22 queries derived from TPC-H over tables of Delta or Iceberg, Spark and the engine in turns.

``python -m benchmarks.table_formats delta --jars a.jar,b.jar --data DIR``: plain tables, tables of whose rows 5 % are deleted by
deletion vectors or position deletes, and tables with column mapping. The JARs are those of the installed PySpark.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import tpch
from benchmarks.compare import Comparison, compare, machine, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # of logs of a few entries; the default of 50 tasks for each table takes longer than many a query
        "spark.databricks.delta.snapshotPartitions": "2",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
    },
}
_DELETED = {"lineitem": "(l_orderkey + l_linenumber) % 20 = 3", "orders": "o_orderkey % 20 = 7"}
VARIANTS = {
    "delta": {
        "plain": "",
        "deleted": "'delta.enableDeletionVectors' = 'true'",
        "mapped": "'delta.columnMapping.mode' = 'name'",
    },
    "iceberg": {
        "plain": "",
        "deleted": "'write.delete.mode' = 'merge-on-read', 'format-version' = '2'",
        "vectors": "'write.delete.mode' = 'merge-on-read', 'format-version' = '3'",
    },
}
_MAPPED = "mapped"


def make(spark: SparkSession, kind: str, variant: str, files: Path, folder: Path) -> None:
    """Write the tables of a variant below a folder unless they are there, and make them temporary views."""
    properties = VARIANTS[kind][variant]
    clause = f"TBLPROPERTIES ({properties})" if properties else ""
    for table in tpch.TABLES:
        path = folder / variant / table
        name = f"delta.`{path}`" if kind == "delta" else f"ice.{variant}.{table}"
        source = f"parquet.`{files / table}.parquet`"
        done = path.with_suffix(".done")
        if not done.exists():
            spark.sql(f"CREATE TABLE {name} USING {kind} {clause} AS SELECT * FROM {source}")
            if variant not in ("plain", _MAPPED) and table in _DELETED:
                spark.sql(f"DELETE FROM {name} WHERE {_DELETED[table]}")
            done.parent.mkdir(parents=True, exist_ok=True)
            done.touch()
        spark.table(name).createOrReplaceTempView(table)


def summary(title: str, results: Sequence[Comparison]) -> str:
    """One line: how many are whole and equal, the geometric mean of the ratios, the lowest."""
    mean = math.exp(sum(math.log(r.ratio) for r in results) / len(results))
    lowest = min(results, key=lambda r: r.ratio)
    whole = sum(r.accelerated and not r.reasons for r in results)
    equal = sum(r.same for r in results)
    return (
        f"{title}: {whole} of {len(results)} whole, {equal} equal, {mean:.2f} times as fast as Spark, "
        f"lowest {lowest.ratio:.2f} (query {lowest.name})"
    )


def main() -> None:
    """Make the tables, run the queries, print a line for each variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=sorted(SETTINGS))
    parser.add_argument("--jars", required=True, help="the format's JARs, by commas")
    parser.add_argument("--data", type=Path, required=True, help="a folder for the data")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--variants", default="", help="by commas; all by default")
    parser.add_argument("--queries", default="", help="numbers by commas; all by default")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    files = tpch.generate(arguments.data / f"tpch-{arguments.scale:g}", arguments.scale)
    folder = arguments.data / f"{arguments.kind}-{arguments.scale:g}"
    conf = {**SETTINGS[arguments.kind], "spark.jars": arguments.jars}
    if arguments.kind == "iceberg":
        conf["spark.sql.catalog.ice.warehouse"] = str(folder / "warehouse")
    spark = session(f"kquery_spark bench {arguments.kind}", conf=conf)
    numbers = [int(n) for n in arguments.queries.split(",") if n] or list(tpch.QUERIES)
    report: dict[str, object] = {"machine": machine(), "kind": arguments.kind, "scale": arguments.scale}
    for variant in filter(
        None, arguments.variants.split(",") if arguments.variants else VARIANTS[arguments.kind]
    ):
        make(spark, arguments.kind, variant, files, folder)
        results = []
        for number in numbers:
            result, _ = compare(spark, str(number), tpch.query(number), arguments.runs)
            results.append(result)
            print(
                f"{variant} {number}: spark {result.spark_median:.3f}, engine {result.engine_median:.3f}, "
                f"{'equal' if result.same else 'NOT EQUAL'} {' | '.join(result.reasons)}",
                flush=True,
            )
        print(summary(f"{arguments.kind} {variant}", results), flush=True)
        report[variant] = [result.as_json() for result in results]
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1))
    spark.stop()


if __name__ == "__main__":
    main()

"""Times the 22 queries derived from TPC-H over Delta, Iceberg, or cached tables, alternating between Spark and the engine.

``python -m benchmarks.table_formats delta --jars a.jar,b.jar --data DIR`` uses plain tables, tables in which deletion vectors
or position deletes remove 5 % of the rows, and tables whose columns have other names in their files. The JARs must match the
installed PySpark. ``cached --data DIR``: ``lineitem`` is in Spark's cache, the other tables are files. ``--runs 0``
measures nothing: it checks which queries run whole and return equal rows, with ``when="always"`` and ``"auto"``.
``--endpoint URL --bucket NAME`` stores the tables in a bucket of an S3 server such as moto; the JARs must then include
hadoop-aws.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import kquery_spark as kq
from benchmarks import tpch
from benchmarks.compare import Comparison, compare, machine, run_engine, run_spark, session
from kquery_spark.verify.compare import compare_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # The logs have only a few entries. The default of 50 tasks per table would take longer than many queries.
        "spark.databricks.delta.snapshotPartitions": "2",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
    },
    "cached": {},
}
S3_SETTINGS = {
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.access.key": "someone",
    "spark.hadoop.fs.s3a.secret.key": "something",
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
}
_DELETED = {"lineitem": "(l_orderkey + l_linenumber) % 20 = 3", "orders": "o_orderkey % 20 = 7"}
_FORMER = "former_"


@dataclass(frozen=True)
class Variant:
    """How a run stores its tables: their properties, whether 5 % of the rows are deleted, whether columns are renamed."""

    properties: str = ""
    deleted: bool = False
    renamed: bool = False


_VECTORS, _BY_NAME = "'delta.enableDeletionVectors' = 'true'", "'delta.columnMapping.mode' = 'name'"
_ON_READ = "'write.delete.mode' = 'merge-on-read'"
VARIANTS = {
    "delta": {
        "plain": Variant(),
        "deleted": Variant(_VECTORS, deleted=True),
        "mapped": Variant(_BY_NAME, renamed=True),
        "mapped_deleted": Variant(f"{_BY_NAME}, {_VECTORS}", deleted=True, renamed=True),
    },
    "iceberg": {
        "plain": Variant(),
        "deleted": Variant(f"{_ON_READ}, 'format-version' = '2'", deleted=True),
        "vectors": Variant(f"{_ON_READ}, 'format-version' = '3'", deleted=True),
        "renamed": Variant(renamed=True),
        "renamed_deleted": Variant(f"{_ON_READ}, 'format-version' = '2'", deleted=True, renamed=True),
    },
    "cached": {"lineitem": Variant()},
}


def make_tables(spark: SparkSession, kind: str, name: str, files: Path, directory: str) -> None:
    """Write the tables of a variant below a directory unless they are there, and make them temporary views."""
    for table in tpch.TABLES:
        stored = f"delta.`{directory}/{name}/{table}`" if kind == "delta" else f"ice.{name}.{table}"
        if not _exists(spark, stored):
            _make_table(spark, kind, VARIANTS[kind][name], table, stored, f"{files / table}.parquet")
        spark.table(stored).createOrReplaceTempView(table)


def cache_table(spark: SparkSession, name: str, files: Path) -> None:
    """Register the files as temporary views, cache one of them in Spark, and fill the cache."""
    tpch.register(spark, files)
    spark.catalog.cacheTable(name)
    spark.table(name).count()


def _exists(spark: SparkSession, stored: str) -> bool:
    try:
        return bool(spark.table(stored).columns)
    except Exception as error:
        if "NOT_FOUND" in str(error) or "PATH" in str(error):
            return False
        raise


def _make_table(spark: SparkSession, kind: str, variant: Variant, table: str, stored: str, file: str) -> None:
    frame = spark.read.parquet(file)
    columns = frame.columns
    if variant.renamed:
        frame = frame.toDF(*(f"{_FORMER}{column}" for column in columns))
    frame.createOrReplaceTempView("rows_of_table")
    clause = f"TBLPROPERTIES ({variant.properties})" if variant.properties else ""
    spark.sql(f"CREATE TABLE {stored} USING {kind} {clause} AS SELECT * FROM rows_of_table")
    for column in columns if variant.renamed else ():
        spark.sql(f"ALTER TABLE {stored} RENAME COLUMN {_FORMER}{column} TO {column}")
    if variant.deleted and table in _DELETED:
        spark.sql(f"DELETE FROM {stored} WHERE {_DELETED[table]}")


def differences(spark: SparkSession, sql: str) -> list[str]:
    """Reasons why a query does not run whole, and differences from Spark's rows; empty if there are none."""
    explained = kq.explain(spark.sql(sql))
    wrong = [f"{node}: {sentence}" for node, sentence in explained.reasons]
    if explained.coverage < 1:
        wrong.append(f"coverage is {explained.coverage}")
    with warnings.catch_warnings():
        warnings.simplefilter("error", kq.FallbackWarning)
        report = kq.verify(spark.sql(sql))
        if not report.ok:
            wrong.append(str(report))
        wrong += map(str, compare_tables(run_spark(spark, sql), run_engine(spark, sql)))
    return wrong


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
    arguments = _arguments()
    kind = arguments.kind
    files = tpch.generate(arguments.data / f"tpch-{arguments.scale:g}", arguments.scale)
    root = f"s3a://{arguments.bucket}" if arguments.endpoint else str(arguments.data)
    directory = f"{root}/{kind}-{arguments.scale:g}"
    conf = {**SETTINGS[kind], **({"spark.jars": arguments.jars} if arguments.jars else {})}
    if arguments.endpoint:
        conf |= S3_SETTINGS | {"spark.hadoop.fs.s3a.endpoint": arguments.endpoint}
    if kind == "iceberg":
        conf["spark.sql.catalog.ice.warehouse"] = f"{directory}/warehouse"
    spark = session(f"kquery_spark bench {kind}", conf=conf)
    numbers = [int(n) for n in arguments.queries.split(",") if n] or list(tpch.QUERIES)
    report: dict[str, object] = {"machine": machine(), "kind": kind, "scale": arguments.scale}
    for variant in arguments.variants.split(",") if arguments.variants else VARIANTS[kind]:
        if kind == "cached":
            cache_table(spark, variant, files)
        else:
            make_tables(spark, kind, variant, files, directory)
        if arguments.runs:
            report[variant] = _timed(spark, f"{kind} {variant}", numbers, arguments.runs)
        else:
            report[variant] = _checked(spark, f"{kind} {variant}", numbers)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1))
    spark.stop()


def _timed(spark: SparkSession, title: str, numbers: Sequence[int], runs: int) -> object:
    results = []
    for number in numbers:
        result, _ = compare(spark, str(number), tpch.query(number), runs)
        results.append(result)
        print(
            f"{title} {number}: spark {result.spark_median:.3f}, engine {result.engine_median:.3f}, "
            f"{'equal' if result.same else 'NOT EQUAL'} {' | '.join(result.reasons)}",
            flush=True,
        )
    print(summary(title, results), flush=True)
    return [result.as_json() for result in results]


def _checked(spark: SparkSession, title: str, numbers: Sequence[int]) -> object:
    wrong = {}
    for number in numbers:
        problems = differences(spark, tpch.query(number))
        if problems:
            wrong[number] = problems
            print(f"{title} {number}: {' | '.join(problems)}", flush=True)
    print(f"{title}: {len(numbers) - len(wrong)} of {len(numbers)} whole and equal", flush=True)
    return wrong


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=sorted(SETTINGS))
    parser.add_argument("--jars", default="", help="JARs of the format, separated by commas")
    parser.add_argument("--data", type=Path, required=True, help="a directory for the data")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument(
        "--runs", type=int, default=3, help="timed runs of each engine; 0 only compares the rows"
    )
    parser.add_argument("--variants", default="", help="names separated by commas (default: all)")
    parser.add_argument("--queries", default="", help="numbers separated by commas (default: all)")
    parser.add_argument("--endpoint", default="", help="endpoint of an S3 server for the tables")
    parser.add_argument("--bucket", default="tables")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()

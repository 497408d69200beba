"""Scans of files in a bucket, Spark and the engine in turns: of many files, of one, of ORC, CSV, compressed CSV and JSON.

``python -m benchmarks.object_store --jars hadoop-aws.jar,... --data DIR --endpoint URL --bucket NAME``. A server on the same machine
answers in a millisecond; for the delays of a real store, let the endpoint be a proxy that adds them, such as Toxiproxy with a
latency of 30 ms and a bandwidth of 80 MB/s for each connection. ``--write`` only writes the files; for this run, let the
endpoint be the server itself instead of the proxy.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import tpch
from benchmarks.compare import compare, machine, session
from benchmarks.table_formats import S3_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SUMS = "SELECT l_returnflag, sum({column}), count(*) FROM {table} GROUP BY l_returnflag"
_LOOKUP = "SELECT * FROM {table} WHERE l_orderkey = 3000001"
QUERIES = {
    "many files: sums": ("many", _SUMS.format(column="l_extendedprice", table="many")),
    "many files: a filter": (
        "many",
        "SELECT sum(l_extendedprice) FROM many WHERE l_shipdate > DATE'1998-11-01' AND l_discount > 0.05",
    ),
    "many files: a key": ("many", _LOOKUP.format(table="many")),
    "one file: sums": ("one", _SUMS.format(column="l_extendedprice", table="one")),
    "one file: a key": ("one", _LOOKUP.format(table="one")),
    "one file: a range of keys": (
        "one",
        "SELECT sum(l_extendedprice), max(l_comment) FROM one WHERE l_orderkey BETWEEN 1000000 AND 1020000",
    ),
    "one file: count": ("one", "SELECT count(*) FROM one"),
    "ORC: sums": ("orc", _SUMS.format(column="l_extendedprice", table="orc")),
    "ORC: a filter": (
        "orc",
        "SELECT max(l_comment), sum(l_tax), max(l_shipmode), min(l_commitdate) FROM orc WHERE l_quantity > 30",
    ),
    "ORC: a key": ("orc", _LOOKUP.format(table="orc")),
    "CSV: sums": ("csv", _SUMS.format(column="l_quantity", table="csv")),
    "CSV with gzip: sums": ("gzip", _SUMS.format(column="l_quantity", table="gzip")),
    "JSON: sums": ("json", _SUMS.format(column="l_quantity", table="json")),
}
_WRITERS: dict[str, Callable[[DataFrame, str], None]] = {
    "many": lambda rows, path: rows.repartitionByRange(200, "l_orderkey").write.parquet(path),
    "one": lambda rows, path: rows.coalesce(1).sortWithinPartitions("l_orderkey").write.parquet(path),
    "orc": lambda rows, path: rows.coalesce(4).write.orc(path),
    "csv": lambda rows, path: rows.limit(3_000_000).repartition(2).write.csv(path),
    "gzip": lambda rows, path: rows.limit(1_000_000).repartition(4).write.csv(path, compression="gzip"),
    "json": lambda rows, path: rows.limit(1_000_000).repartition(2).write.json(path),
}


def store(spark: SparkSession, rows: DataFrame, directory: str, names: set[str]) -> None:
    """Write the tables that are not there yet, and make them temporary views."""
    jvm = spark._jvm
    assert jvm is not None
    for name in sorted(names):
        path = f"{directory}/{name}"
        location = jvm.org.apache.hadoop.fs.Path(f"{path}/_SUCCESS")
        if not location.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).exists(location):
            _WRITERS[name](rows, path)
        form = {"many": "parquet", "one": "parquet", "gzip": "csv"}.get(name, name)
        spark.read.schema(rows.schema).format(form).load(path).createOrReplaceTempView(name)


def main() -> None:
    """Store the files, run the queries, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--jars", required=True, help="JARs of hadoop-aws and its dependencies, separated by commas"
    )
    parser.add_argument("--data", type=Path, required=True, help="a directory for the data")
    parser.add_argument(
        "--endpoint", required=True, help="endpoint of the S3 server, or of a proxy in front of it"
    )
    parser.add_argument("--write", action="store_true", help="only write the files")
    parser.add_argument("--bucket", default="tables")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--queries", default="", help="prefixes of query names, separated by commas (default: all)"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    files = tpch.generate(arguments.data / "tpch-1", 1.0)
    conf = S3_SETTINGS | {
        "spark.hadoop.fs.s3a.endpoint": arguments.endpoint,
        "spark.jars": arguments.jars,
    }
    spark = session("kquery_spark bench of an object store", conf=conf)
    asked = tuple(filter(None, arguments.queries.split(","))) or ("",)
    queries = {name: query for name, query in QUERIES.items() if name.startswith(asked)}
    rows = spark.read.parquet(f"{files / 'lineitem'}.parquet")
    store(spark, rows, f"s3a://{arguments.bucket}/scans", {table for table, _ in queries.values()})
    results = []
    for name, (_, sql) in queries.items() if not arguments.write else ():
        result, _ = compare(spark, name, sql, arguments.runs)
        results.append(result.as_json())
        print(
            f"{name}: spark {result.spark_median:.3f}, engine {result.engine_median:.3f}, {result.ratio:.2f}, "
            f"{'equal' if result.same else 'NOT EQUAL'} {' | '.join(result.reasons)}",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "queries": results}, indent=1))
    spark.stop()


if __name__ == "__main__":
    main()

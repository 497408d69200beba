"""Tables in Hive's format, in a session with Hive support; prints ``table coverage same`` for each. Run by test_hive_tables.py."""

import sys

from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark.config.spark_settings import configure

FORMATS = {
    "parquet": "'parquet.compress'='SNAPPY', 'parquet.block.size'='1048576'",
    "orc": "'orc.compress'='ZLIB'",
}


def main(directory: str) -> None:
    builder = configure(SparkSession.builder).master("local[1]").enableHiveSupport()
    given = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": f"{directory}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:{directory}/metastore;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={directory}",
        "hive.exec.dynamic.partition.mode": "nonstrict",
    }
    for name, value in given.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for kind, properties in FORMATS.items():
        for how in (f"STORED AS {kind}", f"USING {kind}"):
            for partitioned in (True, False):
                table = f"{kind}_{how.split()[0]}_{partitioned}".lower()
                using, stored = (how, "") if how.startswith("USING") else ("", how)
                parts = "PARTITIONED BY (p INT)" if partitioned else ""
                spark.sql(
                    f"CREATE TABLE {table} (a INT, b STRING) {using} {parts} {stored} TBLPROPERTIES ({properties})"
                )
                for n in (1, 2):  # the second one writes to partitions that are there
                    values = f"SELECT id, concat('v', id % {n + 2}) {', id % 2' if partitioned else ''} FROM range(20)"
                    spark.sql(f"INSERT INTO {table} {values}")
                where = "WHERE p = 1" if partitioned else ""
                report = kq.verify(spark.sql(f"SELECT b, count(*), sum(a) FROM {table} {where} GROUP BY b"))
                print(table, report.coverage, report.ok, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])

"""Run by test_standalone.py through spark-submit: one query by Spark and by the engine. Prints one line of JSON."""

import json
import sys
import warnings

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import kquery_spark as kq

spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
path = f"{sys.argv[1]}/t"
spark.range(20_000).selectExpr("id", "id % 7 k", "concat('s', id % 11) s").repartition(4).write.parquet(path)
frame = spark.read.parquet(path)
query = (
    frame.join(frame.groupBy("s").count(), "s")
    .groupBy("k")
    .agg(F.sum("id").alias("t"), F.max("count").alias("n"))
)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    fast = query.transform(kq.kquery_plan, when="always")
    rows = sorted(map(list, fast.collect()))
    coverage = kq.explain(query).coverage
print(
    json.dumps(
        {
            "warnings": [str(w.message) for w in caught if issubclass(w.category, kq.FallbackWarning)],
            "accelerated": type(fast).__name__ == "EngineFrame",
            "coverage": coverage,
            "engine": rows,
            "spark": sorted(map(list, query.collect())),
            "python": spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).first(),
        }
    )
)
spark.stop()

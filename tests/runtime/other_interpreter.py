"""Run by test_other_interpreter.py: a job with Python functions, by plain Spark or beside the engine.

Prints one line of JSON: the answers, which must not depend on the engine, and what the engine says for itself.
"""

import json
import os
import sys
import warnings

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf, udf


def surroundings(_):
    """What a function of the user's sees of its process."""
    import gc
    import os
    import sys

    import numpy

    return [
        sys.executable,
        sorted(name for name in os.environ if "KQUERY" in name or name.startswith("NPY")),
        gc.get_freeze_count(),
        sorted({name.partition(".")[0] for name in sys.modules} & {"kquery_spark", "numba"}),
        [float(x).hex() for x in numpy.exp(numpy.linspace(-3, 3, 50))],
        [float(x).hex() for x in numpy.sin(numpy.linspace(-3, 3, 50))],
        float(numpy.sum(1 / numpy.arange(1.0, 1001.0))).hex(),
    ]


def answers(spark, first, path):
    """Queries with functions: some were made before the engine was first asked."""
    context = spark.sparkContext
    half = pandas_udf(lambda values: values / 2, "double")
    frame = spark.read.parquet(path)
    return {
        "RDD": context.parallelize(range(10), 2).map(lambda x: x * x).collect(),
        "surroundings": context.parallelize([0], 1).map(surroundings).collect(),
        "first function": spark.range(5).select(first("id").alias("x")).agg(F.sum("x")).first()[0],
        "function": [r[0] for r in spark.range(3).select(udf(lambda x: x + 1, "long", useArrow=False)("id")).collect()],
        "pandas": frame.select(half("v").alias("h")).agg(F.sum("h")).first()[0],
        "grouped": sorted(map(list, frame.groupBy("k").agg(F.sum("v")).collect())),
        "further": sorted(map(list, further(frame).groupBy("s").count().collect())),
        "both": sorted(map(list, further(frame).select(first("k"), "s").collect())),
        "written": written(spark, frame, f"{path}.out"),
    }  # fmt: skip


def further(frame):
    """A query that Spark extends: nothing could run it again without the engine."""
    query = frame.groupBy("k").agg(F.sum("v").alias("s"))
    if "engine" not in sys.argv:
        return query
    from kquery_spark import kquery_plan

    return query.transform(kquery_plan, when="always")


def written(spark, frame, path):
    frame.groupBy("k").agg(F.max("v").alias("m")).write.mode("overwrite").parquet(path)
    return sorted(map(list, spark.read.parquet(path).collect()))


def main(directory, kind, master):
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "1g")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    said = {}
    if kind == "engine":
        import kquery_spark as kq

        builder = kq.configure(builder)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    first = udf(lambda x: x * 10, "long", useArrow=False)
    path = f"{directory}/data"
    spark.range(1000).selectExpr("id % 7 AS k", "id AS v").coalesce(1).write.mode("overwrite").parquet(path)
    before = dict(os.environ), spark.sparkContext.pythonExec
    if kind == "engine":
        query = spark.read.parquet(path).groupBy("k").count()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kq.enable(spark, when="always")
            found = answers(spark, first, path)
            kq.disable(spark)
            said["warnings"] = [str(w.message) for w in caught if w.category is kq.FallbackWarning]
        said["accelerated"] = kq.explain(query).coverage > 0
        said["planned"] = "MapInArrow" in further(spark.read.parquet(path))._jdf.queryExecution().toString()
        said["reasons"] = [reason for _, reason in kq.explain(query).reasons]
        try:
            query.transform(kq.kquery_plan, when="always", fallback="error")
        except kq.KQueryError as error:
            said["error"] = str(error)
        after = answers(spark, first, path)
        said["after"] = after == found
        said["untouched"] = before == (dict(os.environ), spark.sparkContext.pythonExec)
    else:
        found = answers(spark, first, path)
    spark.stop()
    print(json.dumps({"answers": found, **said}))


main(*sys.argv[1:])

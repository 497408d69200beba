"""Expressions that fall back to Spark with a specific reason."""

from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS

EXPRESSIONS.declines(
    "user code",
    PythonUDF="a Python UDF outside of a node that evaluates it runs in Spark",
    PythonUDAF="a Python aggregate function outside of an aggregate or a window runs in Spark",
    PythonUDTF="a Python table function outside of a node that evaluates it runs in Spark",
    ScalaUDF="a Scala or Java UDF runs in Spark",
    ScalaAggregator="a Scala or Java aggregate function runs in Spark",
    HiveSimpleUDF="a Hive UDF runs in Spark",
    HiveGenericUDF="a Hive UDF runs in Spark",
)
EXPRESSIONS.declines(
    "not repeatable",
    Rand="random numbers are drawn by Spark",
    Randn="random numbers are drawn by Spark",
    RandStr="random strings are drawn by Spark",
    Uuid="random identifiers are drawn by Spark",
    Shuffle="random orders are drawn by Spark",
    MonotonicallyIncreasingID="ids that depend on Spark's partitions are made by Spark",
    SparkPartitionID="the number of a Spark partition is known to Spark only",
)
EXPRESSIONS.declines(
    "subqueries",
    OuterReference="a correlated subquery that Spark did not turn into a join is not supported",
    Exists="an EXISTS that Spark did not turn into a join is not supported",
    ListQuery="an IN subquery that Spark did not turn into a join is not supported",
    InSubquery="an IN subquery that Spark did not turn into a join is not supported",
    LateralSubquery="a lateral subquery is not supported",
    BloomFilterMightContain="a Bloom filter outside of a filter's conjunction is not supported",
    DynamicPruningSubquery="dynamic pruning outside of a filter's conjunction is not supported",
)

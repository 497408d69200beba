"""Expressions that fall back to Spark with a specific reason."""

from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS

EXPRESSIONS.declines(
    "user code",
    PythonUDF="a Python UDF outside of a node that evaluates it is not supported",
    PythonUDAF="a Python aggregate function outside of an aggregate or a window is not supported",
    PythonUDTF="a Python table function outside of a node that evaluates it is not supported",
    ScalaUDF="a Scala or Java UDF is not supported",
    ScalaAggregator="a Scala or Java aggregate function is not supported",
    HiveSimpleUDF="a Hive UDF is not supported",
    HiveGenericUDF="a Hive UDF is not supported",
)
EXPRESSIONS.declines(
    "not repeatable",
    Rand="random numbers are not supported",
    Randn="random numbers are not supported",
    RandStr="random strings are not supported",
    Uuid="random identifiers are not supported",
    Shuffle="random orders are not supported",
    MonotonicallyIncreasingID="ids that depend on Spark's partitions are not supported",
    SparkPartitionID="the number of a Spark partition is not supported",
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

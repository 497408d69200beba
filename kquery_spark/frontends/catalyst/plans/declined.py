"""Plan nodes that fall back to Spark with a specific reason."""

from kquery_spark.frontends.catalyst.plans.context import PLANS

PLANS.declines(
    "leaves",
    LogicalRDD="the rows of an RDD are given by Spark",
    ExternalRDD="the rows of an RDD are given by Spark",
    StreamingDataSourceV2ScanRelation="streams are not supported",
    HiveTableRelation="Hive tables in their own formats are read by Spark",
    CTERelationRef="a shared subquery that Spark did not inline is not supported",
)
PLANS.declines(
    "user code",
    MapElements="a function on objects runs in Spark",
    MapPartitions="a function on partitions runs in Spark",
    DeserializeToObject="a function on objects runs in Spark",
    SerializeFromObject="a function on objects runs in Spark",
    MapGroups="a function on groups of objects runs in Spark",
    TypedFilter="a function on objects runs in Spark",
)
PLANS.declines(
    "partitions",
    Sample="random samples are drawn by Spark",
    CollectMetrics="observed metrics are collected by Spark",
)
PLANS.declines(
    "limits",
    Tail="the last rows are taken by Spark",
)

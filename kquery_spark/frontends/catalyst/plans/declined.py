"""Plan nodes that fall back to Spark with a specific reason."""

from kquery_spark.frontends.catalyst.plans.context import PLANS

PLANS.declines(
    "leaves",
    LogicalRDD="rows of an RDD are not supported",
    ExternalRDD="rows of an RDD are not supported",
    StreamingDataSourceV2ScanRelation="streams are not supported",
    HiveTableRelation="Hive tables in their own formats are not supported",
    CTERelationRef="a shared subquery that Spark did not inline is not supported",
)
PLANS.declines(
    "user code",
    MapElements="a function on objects is not supported",
    MapPartitions="a function on partitions is not supported",
    DeserializeToObject="a function on objects is not supported",
    SerializeFromObject="a function on objects is not supported",
    MapGroups="a function on groups of objects is not supported",
    TypedFilter="a function on objects is not supported",
)
PLANS.declines(
    "partitions",
    Sample="random samples are not supported",
    CollectMetrics="observed metrics are not supported",
)
PLANS.declines(
    "limits",
    Tail="taking the last rows is not supported",
)

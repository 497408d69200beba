"""Window functions over sorted partitions, vectorized with numpy: segments, frames, and the functions over them."""

from kquery_spark.physical.windows.functions import WindowEvaluator
from kquery_spark.physical.windows.group_limit import GroupLimit
from kquery_spark.physical.windows.results import max_window_result_bytes, with_results
from kquery_spark.physical.windows.segments import arrange, window_keys
from kquery_spark.physical.windows.streamed import StreamedPartition, streamable

__all__ = [
    "GroupLimit",
    "StreamedPartition",
    "WindowEvaluator",
    "arrange",
    "max_window_result_bytes",
    "streamable",
    "window_keys",
    "with_results",
]

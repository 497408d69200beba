"""Window functions over sorted partitions: segments, frames, and what is computed over them, by numpy."""

from kquery_spark.physical.windows.functions import Windowed
from kquery_spark.physical.windows.segments import Segments, arrange
from kquery_spark.physical.windows.streamed import StreamedPartition, streamable

__all__ = ["Segments", "StreamedPartition", "Windowed", "arrange", "streamable"]

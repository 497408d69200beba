"""Engine and Spark side by side."""

from kquery_spark.verify.compare import Difference, compare_tables
from kquery_spark.verify.verify import Report, verify

__all__ = ["Difference", "Report", "compare_tables", "verify"]

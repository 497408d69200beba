"""JSON files with one object a line, read as Spark reads them."""

from kquery_spark.sources.json.options import JsonOptions, json_options
from kquery_spark.sources.json.source import JsonSource, json_source

__all__ = ["JsonOptions", "JsonSource", "json_options", "json_source"]

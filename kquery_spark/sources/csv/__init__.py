"""CSV files, read as Spark reads them."""

from kquery_spark.sources.csv.options import CsvOptions, csv_options
from kquery_spark.sources.csv.source import CsvSource, csv_source

__all__ = ["CsvOptions", "CsvSource", "csv_options", "csv_source"]

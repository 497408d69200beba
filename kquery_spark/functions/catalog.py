"""Importing this module fills both registries; everything that looks functions up imports it once."""

from kquery_spark.functions import aggregates as _aggregates
from kquery_spark.functions import arithmetic as _arithmetic
from kquery_spark.functions import comparison as _comparison
from kquery_spark.functions import logic as _logic
from kquery_spark.functions import unscaled as _unscaled

del _aggregates, _arithmetic, _comparison, _logic, _unscaled

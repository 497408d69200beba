"""Importing this module fills both registries; everything that looks functions up imports it once."""

from kquery_spark.functions import aggregates as _aggregates
from kquery_spark.functions import arithmetic as _arithmetic
from kquery_spark.functions import case_mapping as _case_mapping
from kquery_spark.functions import comparison as _comparison
from kquery_spark.functions import conditional as _conditional
from kquery_spark.functions import logic as _logic
from kquery_spark.functions import matching as _matching
from kquery_spark.functions import strings as _strings

del _aggregates, _arithmetic, _case_mapping, _comparison, _conditional, _logic, _matching, _strings

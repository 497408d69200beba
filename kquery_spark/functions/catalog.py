"""Importing this module fills both registries; everything that looks functions up imports it once."""

from kquery_spark.functions import aggregates as _aggregates
from kquery_spark.functions import arithmetic as _arithmetic
from kquery_spark.functions import arrays as _arrays
from kquery_spark.functions import buckets as _buckets
from kquery_spark.functions import calendar_units as _calendar_units
from kquery_spark.functions import case_mapping as _case_mapping
from kquery_spark.functions import comparison as _comparison
from kquery_spark.functions import conditional as _conditional
from kquery_spark.functions import date_fields as _date_fields
from kquery_spark.functions import dates as _dates
from kquery_spark.functions import encodings as _encodings
from kquery_spark.functions import formatting as _formatting
from kquery_spark.functions import hashes as _hashes
from kquery_spark.functions import intervals as _intervals
from kquery_spark.functions import logic as _logic
from kquery_spark.functions import matching as _matching
from kquery_spark.functions import math_functions as _math
from kquery_spark.functions import nested as _nested
from kquery_spark.functions import parsing as _parsing
from kquery_spark.functions import rounding as _rounding
from kquery_spark.functions import sequences as _sequences
from kquery_spark.functions import strings as _strings
from kquery_spark.functions import unscaled as _unscaled

del (
    _aggregates,
    _arithmetic,
    _arrays,
    _buckets,
    _calendar_units,
    _case_mapping,
    _comparison,
    _conditional,
    _date_fields,
    _dates,
    _encodings,
    _formatting,
    _hashes,
    _intervals,
    _logic,
    _matching,
    _math,
    _parsing,
)
del _nested, _rounding, _sequences, _strings, _unscaled

"""Every scalar and aggregate function: one registry entry each, read by all frontends and the kernel compiler."""

from kquery_spark.functions import catalog as _catalog

del _catalog

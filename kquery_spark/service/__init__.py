"""Serves the tables of an ExecutionContext over Arrow Flight and Flight SQL, and connects to such a service."""

from kquery_spark.service.answers import ServiceLimits
from kquery_spark.service.client import RemoteContext, connect
from kquery_spark.service.listening import check_location
from kquery_spark.service.server import QueryService

__all__ = ["QueryService", "RemoteContext", "ServiceLimits", "check_location", "connect"]

"""Tables of a context served over Arrow Flight and Flight SQL, and a context whose tables are a service's."""

from kquery_spark.service.answers import ServiceLimits
from kquery_spark.service.client import RemoteContext, connect
from kquery_spark.service.server import QueryService

__all__ = ["QueryService", "RemoteContext", "ServiceLimits", "connect"]

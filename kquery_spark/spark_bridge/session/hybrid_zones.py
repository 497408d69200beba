"""Reads Spark's rebase tables of the hybrid calendar for each time zone, for values that Spark before 3.0 wrote."""

from __future__ import annotations

import json
from typing import Any

from kquery_spark.sources.hybrid_calendar import HybridZone
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.types.units import SECOND_MICROS

_REBASE = "org.apache.spark.sql.catalyst.util.RebaseDateTime"
_TABLES = "/julian-gregorian-rebase-micros.json"
_IO = "org.apache.commons.io.IOUtils"
_LONG_AGO_SECONDS = -100_000_000_000  # 1200 BC, before all transitions of time zones


class HybridZones:
    """The rebase tables of one JVM (``RebaseDateTime``)."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._known: dict[str, HybridZone | None] = {}
        self._tables: dict[str, dict[str, Any]] | None = None

    def default(self) -> str | None:
        """The time zone that Spark's tasks use for files without one; None if each executor may have its own."""
        if not self._jvm.is_local():
            return None
        return self._jvm.time_zone()

    def get(self, name: str) -> HybridZone | None:
        """The table of a time zone; None for a region for which Spark has none."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> HybridZone | None:
        # Java returns GMT for a name that it does not know.
        zone = self._jvm.call("java.util.TimeZone", "getTimeZone", name)
        rules = zone.toZoneId().getRules()
        table = self._read_tables().get(name)
        if table is None and not rules.isFixedOffset():
            return None
        long_ago = self._jvm.call("java.time.Instant", "ofEpochSecond", _LONG_AGO_SECONDS)
        return HybridZone(
            name,
            tuple(s * SECOND_MICROS for s in table["switches"]) if table else (),
            tuple(s * SECOND_MICROS for s in table["diffs"]) if table else (),
            zone.getOffset(_LONG_AGO_SECONDS * 1000) * 1000,
            rules.getOffset(long_ago).getTotalSeconds() * SECOND_MICROS,
        )

    def _read_tables(self) -> dict[str, dict[str, Any]]:
        if self._tables is None:
            stream = self._jvm.cls(_REBASE).getResourceAsStream(_TABLES)
            # Java 8 has no InputStream.readAllBytes
            records = json.loads(bytes(self._jvm.call(_IO, "toByteArray", stream)))
            stream.close()
            self._tables = {record["tz"]: record for record in records}
        return self._tables

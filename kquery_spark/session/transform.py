"""``df.transform(kquery_plan)``: a Spark DataFrame in, the same DataFrame run by the engine out."""

from __future__ import annotations

from typing import Any, Literal

from pyspark.sql import DataFrame

from kquery_spark.errors import ConfigError, Unsupported
from kquery_spark.runtime.spark.frames import to_dataframe
from kquery_spark.session.bridge import check_frame
from kquery_spark.session.decision import decide
from kquery_spark.session.planning import Part, PlannedQuery, handover_frame, plan_frame

Fallback = Literal["spark", "error"]
When = Literal["auto", "always", "never"]


def kquery_plan(frame: DataFrame, *, fallback: Fallback = "spark", when: When = "auto") -> DataFrame:
    """The same query with as much of it as possible run by the engine.

    frame: any batch DataFrame of a classic Spark session. Returns a lazy DataFrame of exactly its schema and rows.
    fallback: "spark" leaves to Spark what the engine declines; "error" raises Unsupported with the first reason.
    when: "auto" uses the engine where it should win, "always" wherever it can, "never" gives ``frame`` back.
    No job runs here; file footers are read for planning.
    """
    if fallback not in ("spark", "error"):
        raise ConfigError(f"fallback must be 'spark' or 'error', not {fallback!r}")
    if when not in ("auto", "always", "never"):
        raise ConfigError(f"when must be 'auto', 'always' or 'never', not {when!r}")
    check_frame(frame, "kquery_plan")
    if when == "never":
        return frame
    planned = plan_frame(frame)
    if not planned.config.enabled:
        return frame
    if fallback == "error" and (not planned.whole or planned.reasons):
        node, reason = (
            planned.reasons[0] if planned.reasons else ("Query", "A part of the query is left to Spark.")
        )
        raise Unsupported(f"{node}: {reason}")
    chosen = [p for p in planned.parts if when == "always" or decide(planned, p).accelerate]
    return accelerate(planned, chosen)


def accelerate(planned: PlannedQuery, parts: list[Part]) -> DataFrame:
    """The planned query with the given parts run by the engine and the rest by Spark."""
    if not parts:
        return planned.frame
    if len(parts) == 1 and parts[0].position == ():
        return _part_frame(planned, parts[0], planned.frame.schema)
    replacements = {}
    for part in parts:
        assert planned.facts is not None
        original = planned.bridge.frame(planned.facts.jvm_object(part.node))
        replacements[part.position] = _part_frame(planned, part, original.schema)
    return planned.bridge.replaced(planned.plan, replacements)


def _part_frame(planned: PlannedQuery, part: Part, schema: Any) -> DataFrame:
    inputs = {h.key: handover_frame(planned, h) for h in part.imported.inputs}
    return to_dataframe(planned.bridge.spark, part.graph, schema, planned.config, inputs)

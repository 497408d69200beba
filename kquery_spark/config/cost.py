"""What running a part of a query in the engine costs and saves: the constants of the cost model, each with its unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from kquery_spark.config.names import camel_case
from kquery_spark.errors import ConfigError

COST_PREFIX = "spark.kquery.cost."


@dataclass(frozen=True)
class CostModel:
    """Seconds that ``when="auto"`` weighs, as measured on two cores with Spark 4.3 and warm workers.

    Only the proportions matter. ``kquery-spark calibrate`` measures them on other machines.

    Costs of the engine:
    result_row_seconds: to pass one row of the result from Arrow to Spark, or to hand one over to the engine.
    counted_row_seconds: to count one number of a range or of inline rows, which Spark's generated code does for free.
    stage_seconds: to start a Python stage in addition to one of Spark's own. planning_seconds: to plan in the engine.
    exchanged_text_byte_seconds: to exchange one byte of text between stages, which Spark does faster; texts of at most
    short_text_bytes on average do not count.

    Savings of the engine:
    decoded_byte_seconds: one byte that the engine, not Spark, reads and decodes. step_seconds: Spark's exchange, stage and
    generated code for one join, aggregate, window or sort. step_row_seconds: one input row of the largest of these.
    called_row_seconds: one row for which Spark sends arguments to Python and results back.
    top_seconds: one top-k; little, as Spark does not exchange all rows for it either.

    The last sort: spark_sort_row_seconds: one row in Spark, whose tasks share the sort. sort_row_seconds,
    sort_value_seconds, sort_byte_seconds: one row, value and byte in the engine, where one task may have to sort alone.

    Collecting to the driver as Arrow: arrow_result_seconds: fixed cost. arrow_value_seconds: saved for one value.
    arrow_text_byte_seconds: lost for one byte of text.
    """

    result_row_seconds: float = 1.5e-7
    counted_row_seconds: float = 1.0e-8
    stage_seconds: float = 0.03
    planning_seconds: float = 0.05
    exchanged_text_byte_seconds: float = 1.0e-8
    short_text_bytes: float = 24.0
    decoded_byte_seconds: float = 2.0e-9
    step_seconds: float = 0.12
    step_row_seconds: float = 2.5e-7
    called_row_seconds: float = 3.0e-7
    top_seconds: float = 0.02
    spark_sort_row_seconds: float = 1.4e-6
    sort_row_seconds: float = 1.5e-7
    sort_value_seconds: float = 2.0e-8
    sort_byte_seconds: float = 4.0e-9
    arrow_result_seconds: float = 0.018
    arrow_value_seconds: float = 2.0e-8
    arrow_text_byte_seconds: float = 1.5e-9

    @property
    def least_bytes_of_top_k(self) -> float:
        """Bytes to decode below which the first rows in an order of a table are Spark's, whatever else there is of them."""
        cost = self.planning_seconds + self.stage_seconds - self.top_seconds
        return max(0.0, cost) / self.decoded_byte_seconds if self.decoded_byte_seconds else float("inf")

    def with_settings(self, settings: Mapping[str, str]) -> CostModel:
        """Apply ``spark.kquery.cost.<camelCaseName>`` settings; ConfigError names a bad one and what is allowed."""
        names = {COST_PREFIX + camel_case(f.name): f.name for f in fields(self)}
        changes = {}
        for key, text in settings.items():
            if not key.startswith(COST_PREFIX):
                continue
            if key not in names:
                raise ConfigError(f"there is no setting {key}; the settings are {', '.join(sorted(names))}")
            changes[names[key]] = _seconds(key, text)
        return replace(self, **changes)

    def settings(self) -> dict[str, str]:
        """The model as settings."""
        return {COST_PREFIX + camel_case(f.name): f"{getattr(self, f.name):.3g}" for f in fields(self)}


def _seconds(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ConfigError(f"{key} must be a number that is not negative, not {text!r}")
    return value

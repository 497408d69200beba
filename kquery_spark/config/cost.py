"""The constants of the cost model, which estimates the seconds that a query saves in the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from kquery_spark.config.names import key_of, quoted, setting
from kquery_spark.errors import ConfigError

COST_PREFIX = "spark.kquery.cost."


@dataclass(frozen=True)
class CostModel:
    """The constants that decide where a query runs: limits, and seconds measured on two cores with Spark 4.3.

    ``when="auto"`` runs a part of a query in the engine if its savings exceed its costs. Only the proportions of the seconds
    matter. ``kquery-spark calibrate`` measures them on other machines.
    """

    result_row_seconds: float = setting(1.5e-7, "Cost: to pass one row of the result from Arrow to Spark.")
    handed_value_seconds: float = setting(
        3.0e-7, "Cost: to move one value from Spark to the engine; Spark writes it to Arrow row by row."
    )
    counted_row_seconds: float = setting(
        1.0e-8,
        "Cost: to generate one row of a range or of inline rows, which Spark's generated code does for free.",
    )
    stage_seconds: float = setting(0.03, "Cost: to start a Python stage in addition to one of Spark's own.")
    planning_seconds: float = setting(0.05, "Cost: to plan in the engine.")
    exchanged_string_byte_seconds: float = setting(
        1.0e-8,
        "Cost: to exchange one byte of strings between stages, which Spark does faster.",
        key="exchangedTextByteSeconds",
    )
    short_string_bytes: float = setting(
        24.0, "Strings up to this average length cost nothing to exchange.", key="shortTextBytes"
    )
    decoded_byte_seconds: float = setting(
        2.0e-9, "Saving: one byte that the engine reads and decodes instead of Spark."
    )
    cached_number_bytes: float = setting(
        4.0,
        "Cached numeric columns that take more bytes per row than this in files are not decoded faster than Spark reads its "
        "cache, so simple queries over them fall back to Spark.",
    )
    step_seconds: float = setting(
        0.12, "Saving: Spark's exchange, stage and generated code for one join, aggregate, window or sort."
    )
    step_row_seconds: float = setting(
        2.5e-7, "Saving: one input row of the largest join, aggregate, window or sort."
    )
    called_row_seconds: float = setting(
        3.0e-7, "Saving: one row for which Spark would send arguments to Python and results back."
    )
    top_seconds: float = setting(
        0.02, "Saving: one top-k; small, because Spark does not exchange all rows for a top-k either."
    )
    spark_sort_row_seconds: float = setting(
        1.4e-6, "The last sort: one row in Spark, where several tasks share the sort."
    )
    sort_row_seconds: float = setting(
        1.5e-7, "The last sort: one row in the engine, where one task may have to sort all rows."
    )
    sort_value_seconds: float = setting(2.0e-8, "The last sort: one value in the engine.")
    sort_byte_seconds: float = setting(4.0e-9, "The last sort: one byte in the engine.")
    few_groups: float = setting(
        1000.0, "An aggregate with at most this many groups takes Spark little longer than reading its input."
    )
    driver_rows: float = setting(
        1e6,
        "The driver runs a query only if the result and each join are estimated to have at most this many rows, or no more "
        "rows than the largest scan. Its threads also need aggregates of at most this many groups.",
    )
    threaded_bytes: float = setting(
        3.15e6, "Bytes to decode from which on several threads of the driver are faster than one."
    )
    file_bytes_per_decoded_byte: float = setting(
        0.75,
        "File bytes of a decoded byte, at most: columns are larger than files, mostly by less than a factor of four.",
    )
    least_file_bytes_per_decoded_byte: float = setting(0.27, "File bytes of a decoded byte, at least.")
    worker_start_seconds: float = setting(
        1.0,
        "Collecting to the driver as Arrow: cost of starting the first Python workers of a session. It is not counted for "
        "other queries, because later queries benefit from the workers, too.",
    )
    arrow_result_seconds: float = setting(0.018, "Collecting to the driver as Arrow: fixed cost.")
    arrow_value_seconds: float = setting(2.0e-8, "Collecting to the driver as Arrow: saving per value.")
    arrow_string_byte_seconds: float = setting(
        1.5e-9,
        "Collecting to the driver as Arrow: cost per byte of strings.",
        key="arrowTextByteSeconds",
    )

    @property
    def min_top_k_bytes(self) -> float:
        """The smallest number of decoded bytes for which a top-k over a table can save time in the engine."""
        cost = self.planning_seconds + self.stage_seconds - self.top_seconds
        return max(0.0, cost) / self.decoded_byte_seconds if self.decoded_byte_seconds else float("inf")

    def with_settings(self, settings: Mapping[str, str]) -> CostModel:
        """Apply ``spark.kquery.cost.*`` settings; raises ConfigError with the allowed values for an invalid setting."""
        names = {COST_PREFIX + key_of(f): f.name for f in fields(self)}
        changes = {}
        for key, value in settings.items():
            if not key.startswith(COST_PREFIX):
                continue
            if key not in names:
                raise ConfigError(f"unknown setting {key}; the settings are {', '.join(sorted(names))}")
            changes[names[key]] = _parse(key, value)
        return replace(self, **changes)

    def settings(self) -> dict[str, str]:
        """Return the constants as settings."""
        return {COST_PREFIX + key_of(f): f"{getattr(self, f.name):.3g}" for f in fields(self)}


def _parse(key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ConfigError(f"{key} must be a number that is not negative, not {quoted(value)}")
    return number

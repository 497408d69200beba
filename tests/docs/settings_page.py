"""Generates the documentation's tables of settings from the settings themselves.

``python -m tests.docs.settings_page docs/guide/tuning.md`` replaces the tables between the page's marks.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from benchmarks.overview import replace_table
from kquery_spark.config.cost import COST_PREFIX, CostModel
from kquery_spark.config.engine import PREFIX, EngineConfig
from kquery_spark.config.names import DescribedSetting, described_settings, format_value
from kquery_spark.config.spark_settings import OPTIONAL, SETTINGS

_START, _END = "<!-- settings -->", "<!-- end of settings -->"


def settings_tables() -> str:
    """Return Markdown tables of the engine's settings, the cost model's constants, and the recommended Spark settings."""
    spark = (DescribedSetting(s.key, s.value, s.reason) for s in SETTINGS + OPTIONAL)
    return "\n".join(
        [
            "### The engine",
            "",
            _table(described_settings(EngineConfig, PREFIX)),
            "### The cost model",
            "",
            'The seconds and limits with which `when="auto"` decides where a query runs. '
            "Only the proportions of the seconds matter; `kquery-spark calibrate` measures them.",
            "",
            _table(described_settings(CostModel, COST_PREFIX)),
            "### Spark",
            "",
            "The settings that `kq.configure` applies, most important first. The last one is optional, for clusters.",
            "",
            _table(spark),
        ]
    )


def render_properties() -> str:
    """Render ``conf/kquery-spark.conf``, a properties file in which a comment explains each line."""
    blocks = [
        "# Settings for spark-submit --properties-file: what kq.configure(SparkSession.builder) applies.\n"
        "# Written from kquery_spark/config/spark_settings.py; a test compares the two.\n"
    ]
    for setting in SETTINGS + OPTIONAL:
        comment = textwrap.fill(setting.reason, width=108, initial_indent="# ", subsequent_indent="# ")
        line = f"{setting.key}={setting.value}"
        blocks.append(f"{comment}\n{line if setting in SETTINGS else f'#{line}'}\n")
    return "\n".join(blocks)


def with_tables(page: str) -> str:
    """Return the page with new tables between its marks."""
    return replace_table(page, settings_tables().rstrip("\n"), _START, _END)


def _table(settings: Iterable[DescribedSetting]) -> str:
    rows = (
        f"| `{s.name}` | `{format_value(s.name, s.default) or ' '}` | {s.description} |" for s in settings
    )
    return "\n".join(["| setting | default | |", "|---|---|---|", *rows, ""])


def main(path: str) -> None:
    """Write the tables into a page."""
    file = Path(path)
    file.write_text(with_tables(file.read_text()))


if __name__ == "__main__":
    main(sys.argv[1])

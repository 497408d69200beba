"""The documentation's tables of settings, written from the settings themselves.

``python -m kquery_spark.config.settings_page docs/guide/tuning.md`` writes those between the page's marks anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from kquery_spark.config.cost import COST_PREFIX, CostModel
from kquery_spark.config.engine import PREFIX, EngineConfig
from kquery_spark.config.names import DescribedSetting, described_settings, value_text
from kquery_spark.config.spark_settings import OPTIONAL, SETTINGS

_START, _END = "<!-- settings -->", "<!-- end of settings -->"


def settings_tables() -> str:
    """Tables of the engine's settings, of the cost model's, and of Spark's that the engine likes, in Markdown."""
    spark = (DescribedSetting(s.key, s.value, s.reason) for s in SETTINGS + OPTIONAL)
    return "\n".join(
        [
            "### The engine",
            "",
            _table(described_settings(EngineConfig, PREFIX)),
            "### The cost model",
            "",
            "What decides where a query runs: seconds, and limits. `kquery-spark calibrate` measures the seconds.",
            "",
            _table(described_settings(CostModel, COST_PREFIX)),
            "### Spark",
            "",
            "What `kq.configure` sets, most important first; the last one is for clusters, and for you to set.",
            "",
            _table(spark),
        ]
    )


def with_tables(page: str) -> str:
    """A page with the tables between its marks."""
    head, rest = page.split(_START)
    _, tail = rest.split(_END)
    return f"{head}{_START}\n\n{settings_tables()}\n{_END}{tail}"


def _table(settings: Iterable[DescribedSetting]) -> str:
    rows = (f"| `{s.name}` | `{value_text(s.name, s.default) or ' '}` | {s.description} |" for s in settings)
    return "\n".join(["| setting | default | |", "|---|---|---|", *rows, ""])


def main(path: str) -> None:
    """Write the tables into a page."""
    file = Path(path)
    file.write_text(with_tables(file.read_text()))


if __name__ == "__main__":
    main(sys.argv[1])

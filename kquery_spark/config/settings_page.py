"""The documentation's tables of settings, written from the settings themselves.

``python -m kquery_spark.config.settings_page docs/guide/tuning.md`` writes those between the page's marks anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from kquery_spark.config.cost import COST_PREFIX, CostModel
from kquery_spark.config.engine import PREFIX, EngineConfig
from kquery_spark.config.names import DescribedSetting, described_settings
from kquery_spark.config.spark_settings import OPTIONAL, SETTINGS

_START, _END = "<!-- settings -->", "<!-- end of settings -->"
_BYTE_UNITS = ((2**30, "g"), (2**20, "m"), (2**10, "k"))


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
            'What `when="auto"` weighs, in seconds. Only the proportions matter; `kquery-spark calibrate` measures them.',
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
    rows = (f"| `{s.name}` | `{_shown(s)}` | {s.description} |" for s in settings)
    return "\n".join(["| setting | default | |", "|---|---|---|", *rows, ""])


def _shown(setting: DescribedSetting) -> str:
    """The default as it is written in a setting."""
    value = setting.default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value) or " "
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int) and setting.name.endswith("Bytes"):
        for size, unit in _BYTE_UNITS:
            if value and value % size == 0:
                return f"{value // size}{unit}"
    return str(value)


def main(path: str) -> None:
    """Write the tables into a page."""
    file = Path(path)
    file.write_text(with_tables(file.read_text()))


if __name__ == "__main__":
    main(sys.argv[1])

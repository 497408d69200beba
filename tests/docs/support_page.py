"""Generates the documentation's page of supported classes from the support table.

``python -m tests.docs.support_page docs/support.md`` writes the page.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from kquery_spark.frontends.catalyst.support import Level, Row

# The kinds of classes in the order of the page, each with its heading and the meaning of its notes.
_SECTIONS = {
    "plan": ("Plan nodes", "condition or reason"),
    "expression": ("Expressions", "name in the engine, condition or reason"),
    "aggregate": ("Aggregate functions", "name in the engine, or reason"),
    "window function": ("Window functions", "name in the engine"),
}
_HEAD = """# What runs in the engine

Written by `python -m tests.docs.support_page docs/support.md`; do not edit. The same rows in
Python: `kquery_spark.support_table()`.

Classes are those of Spark's optimized plan. *engine*: over all types that it computes exactly as Spark does.
*engine, with conditions*: the note says when. *Spark*: the node falls back to Spark for the reason in the note, and so
does every class that is not listed; the rest of the query runs in the engine where it can. `kq.explain(df)` shows
what applies to a query.
"""


def support_page(rows: Sequence[Row]) -> str:
    """The page as Markdown: the counts, then a table for each kind of class."""
    lines = [_HEAD]
    for kind, (heading, note) in _SECTIONS.items():
        section_rows = [row for row in rows if row.kind == kind]
        inside = sum(row.level is not Level.NONE for row in section_rows)
        lines += [
            f"## {heading}",
            "",
            f"{inside} run in the engine, {len(section_rows) - inside} always fall back to Spark.",
            "",
            f"| family | class | runs in | {note} |",
            "|---|---|---|---|",
            *(f"| {row.family} | `{row.cls}` | {row.level} | {row.note} |" for row in section_rows),
            "",
        ]
    return "\n".join(lines)


def main(path: str) -> None:
    """Write the page to a file."""
    from kquery_spark.frontends.catalyst.importer import support_table

    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(support_page(support_table()))


if __name__ == "__main__":
    main(sys.argv[1])

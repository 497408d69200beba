"""Renders a qualification as one self-contained HTML page with a light and a dark theme."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from kquery_spark.qualify.judgment import RunsOn
from kquery_spark.qualify.report import Qualification, QueryReport, ReportNode
from kquery_spark.qualify.text import duration, query_cells, summary

_QUERY_HEADINGS = ("saves", "of", "times as fast", "in the engine", "query")
_CAUSE_HEADINGS = ("queries", "of tasks", "reason", "operators")
_NUMBERS = frozenset({"saves", "of", "times as fast", "queries", "of tasks"})
_STYLE = """
:root { color-scheme: light dark; --line: #d0d7de; --engine: #1a7f37; --spark: #9a6700; --soft: #59636e; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3d444d; --engine: #3fb950; --spark: #d29922; --soft: #9198a1; }
}
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: 0.35em 0.6em; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
pre { margin: 0.3em 0; line-height: 1.35; overflow-x: auto; }
p, h1, summary, td.name { overflow-wrap: anywhere; }
.engine { color: var(--engine); } .Spark { color: var(--spark); }
.bar { background: var(--line); height: 0.5em; min-width: 3em; } .bar div { background: var(--engine); height: 100%; }
small, .soft { color: var(--soft); }
@media (max-width: 45em) {
  body { margin: 1em auto; }
  table.cards, .cards tbody, .cards tr, .cards td { display: block; }
  .cards tr.head { display: none; }
  .cards tr { border-bottom: 1px solid var(--line); padding: 0.5em 0; }
  .cards td, .cards td.number { border: 0; padding: 0.1em 0; text-align: left; white-space: normal; }
  .cards td[data-label]::before { content: attr(data-label) ": "; color: var(--soft); }
  .cards td:empty { display: none; }
}
"""


def render_html(result: Qualification, title: str) -> str:
    """Render the summary, a table of the queries with their folded plans, and the reasons for falling back to Spark."""
    lines = [f"<p>{escape(line)}</p>" for line in summary(result)]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            *lines,
            "<h2>Queries</h2>",
            *_queries(result),
            "<h2>What falls back to Spark</h2>",
            *_causes(result),
            "</body></html>",
            "",
        ]
    )


def _queries(result: Qualification) -> Iterator[str]:
    yield _table_start(_QUERY_HEADINGS)
    for query in result.by_saving:
        *numbers, share, name = map(escape, query_cells(query))
        cells = [_number(label, cell) for label, cell in zip(_QUERY_HEADINGS, numbers, strict=False)]
        bar = f'<div class=bar><div style="width:{query.engine_share:.0%}"></div></div>'
        cells.append(f'<td data-label="{_QUERY_HEADINGS[3]}">{share}{bar}</td>')
        yield f"<tr>{''.join(cells)}<td class=name>{_details(name, query)}</td></tr>"
    yield "</table>"


def _table_start(headings: tuple[str, ...]) -> str:
    """Return the start of a table. Narrow screens show its rows as cards, with the heading of each cell in front of it."""
    cells = "".join(f"<th{' class=number' if h in _NUMBERS else ''}>{h}</th>" for h in headings)
    return f"<table class=cards><tr class=head>{cells}</tr>"


def _number(label: str, cell: str) -> str:
    # an empty cell has no label, so that a card leaves it out
    return f'<td class=number data-label="{label}">{cell}</td>' if cell else "<td class=number></td>"


def _details(name: str, query: QueryReport) -> str:
    """Render the name of a query. A click on it unfolds the query's numbers and plan."""
    facts = [
        *([query.detail] if query.detail else []),
        f"{query.application}, query {query.number}",
        f"tasks {duration(query.task_seconds)}, processor {duration(query.cpu_seconds)}",
        f"{query.bytes_read / 1e6:,.1f} MB read, {query.shuffle_bytes / 1e6:,.1f} MB shuffled",
    ]
    if query.error:
        facts.append(query.error)
    nodes = "\n".join(map(_node, query.nodes))
    text = escape("; ".join(facts))
    return f"<details><summary>{name}</summary><p class=soft>{text}</p><pre>{nodes}</pre></details>"


def _node(node: ReportNode) -> str:
    detail = f": {node.reason}" if node.reason else ""
    if node.runs is RunsOn.ENGINE and node.conditions:
        detail = f", if: {'; '.join(node.conditions)}"
    name = f'{"  " * node.depth}<span class="{node.runs}">{escape(node.name)}</span>'
    return f"{name} <small>{node.runs}{escape(detail)}</small>"


def _causes(result: Qualification) -> Iterator[str]:
    if not result.causes:
        yield "<p>Nothing.</p>"
        return
    yield _table_start(_CAUSE_HEADINGS)
    for cause in result.causes:
        numbers = f"{cause.queries:,}", duration(cause.task_seconds)
        cells = "".join(_number(label, cell) for label, cell in zip(_CAUSE_HEADINGS, numbers, strict=False))
        operators = f'<td data-label="operators">{escape(", ".join(cause.operators))}</td>'
        yield f"<tr>{cells}<td class=name>{escape(cause.reason)}</td>{operators}</tr>"
    yield "</table>"

"""Renders a qualification as one HTML page with a light and a dark theme, which loads no other files."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from kquery_spark.qualify.judgment import RunsOn
from kquery_spark.qualify.report import Qualification, QueryReport, ReportNode
from kquery_spark.qualify.text import duration, query_cells, summary

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
.engine { color: var(--engine); } .Spark { color: var(--spark); }
.bar { background: var(--line); height: 0.5em; min-width: 6em; } .bar div { background: var(--engine); height: 100%; }
small, .soft { color: var(--soft); }
"""


def render_html(result: Qualification, title: str) -> str:
    """Render the sums, each query with its plan folded below its name, and the reasons for falling back to Spark."""
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
    yield "<table><tr><th class=number>saves</th><th class=number>of</th><th class=number>times as fast</th>"
    yield "<th>in the engine</th><th>query</th></tr>"
    for query in result.by_saving:
        saved, took, speed, share, name = map(escape, query_cells(query))
        numbers = "".join(f"<td class=number>{cell}</td>" for cell in (saved, took, speed))
        bar = f'<div class=bar><div style="width:{query.engine_share:.0%}"></div></div>'
        yield f"<tr>{numbers}<td>{share}{bar}</td><td>{_details(name, query)}</td></tr>"
    yield "</table>"


def _details(name: str, query: QueryReport) -> str:
    """Render the name of a query; a click on it unfolds its numbers and its plan."""
    facts = [
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
    yield "<table><tr><th class=number>queries</th><th class=number>of tasks</th><th>reason</th><th>operators</th></tr>"
    for cause in result.causes:
        numbers = (
            f"<td class=number>{cause.queries:,}</td><td class=number>{duration(cause.task_seconds)}</td>"
        )
        yield f"<tr>{numbers}<td>{escape(cause.reason)}</td><td>{escape(', '.join(cause.operators))}</td></tr>"
    yield "</table>"

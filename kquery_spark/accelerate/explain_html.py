"""Formats an explanation as HTML for notebooks: a colored plan and folded sections, without external resources."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kquery_spark.accelerate.explain import Explanation

_COLORS = {"engine": "#2da44e", "Spark": "#bf8700", "hand-over": "#218bff"}  # legible on white and on black
_PRE = "margin:0.3em 0;line-height:1.35;overflow-x:auto"


def render(explanation: Explanation) -> str:
    """Return the explanation as one ``div``."""
    share = f"{explanation.coverage:.0%}"
    verdict = "runs in the engine" if explanation.accelerated else "falls back to Spark"
    parts = [f"<b>{share} of the plan can run in the engine; the query {verdict}</b>"]
    if explanation.nodes:
        rows = "\n".join(
            f'{"  " * n.depth}<span style="color:{_COLORS[n.runs]}">{escape(n.name)}</span> '
            f'<small style="color:{_COLORS[n.runs]}">{n.runs}{_reason(n.reason)}</small>'
            for n in explanation.nodes
        )
        parts.append(f'<pre style="{_PRE}">{rows}</pre>')
    for section in explanation.sections():
        if section.title and not section.is_query:
            opened, title = " open" if section.is_open else "", escape(section.title)
            parts.append(
                f'<details{opened}><summary>{title}</summary><pre style="{_PRE}">{escape(section.text)}</pre></details>'
            )
    return f'<div class="kquery-explain">{"".join(parts)}</div>'


def _reason(reason: str | None) -> str:
    return f": {escape(reason)}" if reason else ""

"""Formats the stages of an explanation as a Mermaid flowchart, which GitHub, GitLab, and documentation sites draw."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kquery_spark.accelerate.explain import ExplainedStage, Explanation

_LONGEST_LABEL = 60
# Characters that have a meaning in Mermaid, HTML or Markdown are written as Mermaid's entities, which begin with "#". For
# example, Markdown would drop two asterisks around a word, and a line break in a literal would end the box.
_ENTITIES = str.maketrans({c: f"#{ord(c)};" for c in '#"<>&`*~\\\n\r'})
# Markdown treats underscores like asterisks, except between letters or digits, as in most names of columns.
_OUTER_UNDERSCORES = re.compile(r"(?<!\w)_+|_+(?!\w)")


def flowchart(explanation: Explanation) -> str:
    """Return the stages as boxes with their operators, and the exchanges between them as arrows."""
    parts = explanation.stages
    lines = ["flowchart TD"]
    for number, stages in enumerate(parts, 1):
        boxes = {stage.stage_id: f"part{number}_{index}" for index, stage in enumerate(stages, 1)}
        lines.append(f'  subgraph part{number}["part {number} of {len(parts)}"]')
        for stage in stages:
            lines.append(f'    {boxes[stage.stage_id]}["{"<br/>".join(_box(stage))}"]')
        for stage in stages:
            for source in stage.reads:
                if source not in boxes:  # a node that Spark runs, which passes its rows to the engine
                    boxes[source] = f"part{number}_{len(boxes) + 1}"
                    lines.append(f'    {boxes[source]}["rows from Spark"]')
                writer = next((s for s in stages if s.stage_id == source), None)
                label = f'|"{_exchange(writer)}"|' if writer is not None else ""
                lines.append(f"    {boxes[source]} -->{label} {boxes[stage.stage_id]}")
        lines.append("  end")
    if not parts:
        lines.append('  spark["Spark runs all of this query"]')
    return "\n".join(lines)


def _box(stage: ExplainedStage) -> Iterator[str]:
    """Yield the lines of a stage's box: its tasks, and each operator with the metrics of a run."""
    tasks = stage.tasks if stage.metrics is None else stage.metrics.tasks
    yield f"{stage.stage_id}: {tasks} task{'s' if tasks != 1 else ''}"
    if stage.metrics is None:
        for label in stage.operators:
            yield _escaped(label)
        return
    for (label, metrics), seconds in zip(stage.metrics.operators, _own_seconds(stage), strict=True):
        numbers = f"{metrics.rows:,} rows, {size_text(metrics.nbytes)}, {seconds * 1000:,.0f} ms"
        yield f"{_escaped(label)} [{numbers}]"


def _exchange(stage: ExplainedStage) -> str:
    """Return the exchange that a stage writes to and, after a run, the bytes that it moved."""
    sent = "" if stage.metrics is None else f", {size_text(stage.metrics.sent)}"
    return f"{_escaped(stage.output)}{sent}"


def _own_seconds(stage: ExplainedStage) -> Iterator[float]:
    """Yield each operator's own seconds: its metric minus the metrics of its children, which it includes.

    The indentation of a label, two spaces per level, shows which operators are children.
    """
    if stage.metrics is None:
        return
    operators = stage.metrics.operators
    depths = [len(label) - len(label.lstrip(" ")) for label, _ in operators]
    for i, (_, metrics) in enumerate(operators):
        below = 0.0
        for j in range(i + 1, len(operators)):
            if depths[j] <= depths[i]:
                break
            if depths[j] == depths[i] + 2:
                below += operators[j][1].seconds
        yield max(metrics.seconds - below, 0.0)


def _escaped(label: str) -> str:
    """Return a label without ``Exec``, shortened, with its indentation and special characters as entities."""
    text = label.replace("Exec: ", ": ", 1).removesuffix("Exec").lstrip(" ")
    indent = len(label) - len(label.lstrip(" "))
    shortened = text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
    escaped = _OUTER_UNDERSCORES.sub(lambda match: "#95;" * len(match[0]), shortened.translate(_ENTITIES))
    return "#nbsp;" * indent + escaped


def size_text(nbytes: float) -> str:
    """Format a number of bytes with a unit."""
    for unit in ("B", "KB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:,.0f} {unit}" if unit == "B" else f"{nbytes:,.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:,.1f} GB"

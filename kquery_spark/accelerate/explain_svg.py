"""Draws an explanation: stages as boxes of operators, exchanges as arrows, and after a run the metrics of each operator.

Text and lines use ``currentColor`` and fills are transparent, so one picture suits light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from kquery_spark.accelerate.stage_layout import Box, Layout, Spot

if TYPE_CHECKING:
    from kquery_spark.accelerate.explain import ExplainedStage, Explanation

_CHARACTER = 6.7
"""Width of a character at a font size of 11 pixels, in the widest of the common monospaced fonts."""
_LINE = 17.0
_PADDING = 10.0
_HEAD = 40.0
_LONGEST_LABEL = 44
_MARGIN = 16.0
_TITLE = 30.0
_FONT = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:11px"
_STANDALONE = (
    "<style>svg{color:#1f2328;background:#ffffff}"
    "@media(prefers-color-scheme:dark){svg{color:#e6edf3;background:#0d1117}}</style>"
)
_ENGINE, _DRIVER, _HANDED_OVER, _TIME = "#2da44e", "#8250df", "#0969da", "#d4a72c"


@dataclass(frozen=True)
class _Line:
    """An operator of a box: its label, the full label for the tooltip, its metrics, and its time.

    share: the operator's own time relative to that of the slowest operator, 0 to 1; the length of its bar.
    """

    text: str
    tooltip: str
    figures: str = ""
    share: float = 0.0


def draw(explanation: Explanation, standalone: bool = True) -> str:
    """Return the picture as an ``svg`` element. standalone: with its own colors, for a separate file."""
    parts = explanation.stages
    drawings, y, width = [], _MARGIN, 0.0
    for number, stages in enumerate(parts, 1):
        title = f"part {number} of {len(parts)}" if len(parts) > 1 else ""
        y += _TITLE if title else 0.0
        body, (own_width, height) = _part(stages)
        heading = f'<text x="0" y="-14" font-weight="bold">{title}</text>' if title else ""
        drawings.append(f'<g transform="translate({_MARGIN:.0f} {y:.0f})">{heading}{body}</g>')
        y += height + _MARGIN
        width = max(width, own_width)
    if not parts:
        drawings.append(_text(_MARGIN, y + _LINE, "Spark runs all of this query"))
        width, y = 260.0, y + 2 * _LINE
    size = f'width="{width + 2 * _MARGIN:.0f}" height="{y:.0f}"'
    view = f'viewBox="0 0 {width + 2 * _MARGIN:.0f} {y:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} role="img" style="{_FONT}" fill="currentColor">'
    name = "<title>Stages of the query and the exchanges between them</title>"
    return f"{head}{name}{_STANDALONE if standalone else ''}{''.join(drawings)}</svg>"


def _part(stages: Sequence[ExplainedStage]) -> tuple[str, tuple[float, float]]:
    """Return the drawing of one part of the query, and its width and height."""
    by_id = {stage.stage_id: stage for stage in stages}
    handed = dict.fromkeys(key for stage in stages for key in stage.reads if key not in by_id)
    lines = _lines(stages)
    boxes = [Box(key, 150.0, _HEAD) for key in handed]
    boxes += [_box(stage, lines[stage.stage_id]) for stage in stages]
    layout = Layout(boxes)
    drawn = [_edge(layout, source, box.key, by_id.get(source)) for box in boxes for source in box.reads]
    for key in handed:
        drawn.append(_handed_over(layout.spots[key]))
    for stage in stages:
        drawn.append(_stage(stage, layout.spots[stage.stage_id], lines[stage.stage_id]))
    return "".join(drawn), layout.size


def _lines(stages: Sequence[ExplainedStage]) -> dict[str, list[_Line]]:
    """Return the lines of each stage's box, one for each operator."""
    own = {stage.stage_id: list(_own_seconds(stage)) for stage in stages}
    slowest = max((seconds for times in own.values() for seconds in times), default=0.0)
    lines = {}
    for stage in stages:
        if stage.metrics is None:
            lines[stage.stage_id] = [_Line(_short(label), label.strip()) for label in stage.operators]
            continue
        lines[stage.stage_id] = [
            _Line(
                _short(label),
                ", ".join(
                    [label.strip(), *(f"{k.replace('_', ' ')} {v:,}" for k, v in sorted(m.extra.items()))]
                ),
                f"{m.rows:,} rows  {size_text(m.nbytes)}  {seconds * 1000:,.0f} ms",
                seconds / slowest if slowest else 0.0,
            )
            for (label, m), seconds in zip(stage.metrics.operators, own[stage.stage_id], strict=True)
        ]
    return lines


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


def _box(stage: ExplainedStage, lines: Sequence[_Line]) -> Box:
    longest = max(len(line.text) + (len(line.figures) + 3 if line.figures else 0) for line in lines)
    longest = max(longest, len(_stage_numbers(stage)))
    return Box(
        stage.stage_id,
        longest * _CHARACTER + 2 * _PADDING,
        _HEAD + len(lines) * _LINE + _PADDING,
        stage.reads,
    )


def _stage_numbers(stage: ExplainedStage) -> str:
    """Return the tasks, splits, and bytes of a stage, for the head of its box."""
    tasks = stage.tasks if stage.metrics is None else stage.metrics.tasks
    numbers = [f"{tasks} task{'' if tasks == 1 else 's'}"]
    if stage.all_splits:
        numbers.append(f"{stage.splits} of {stage.all_splits} splits")
        numbers.append(f"about {size_text(stage.scan_bytes)}")
    if stage.in_driver:
        numbers.append("in the driver if an action collects the rows")
    return ", ".join(numbers)


def _stage(stage: ExplainedStage, spot: Spot, lines: Sequence[_Line]) -> str:
    color = _DRIVER if stage.in_driver else _ENGINE
    drawn = [
        _frame(spot, color),
        _text(spot.x + _PADDING, spot.y + 16, stage.stage_id, "font-weight:bold"),
        _text(spot.x + _PADDING, spot.y + 31, _stage_numbers(stage), "opacity:0.75"),
    ]
    for i, line in enumerate(lines):
        y = spot.y + _HEAD + i * _LINE
        inner = spot.width - 2 * _PADDING
        bar = (
            f'<rect x="{spot.x + _PADDING:.1f}" y="{y + 2:.1f}" width="{inner * line.share:.1f}" height="{_LINE - 3:.1f}"'
            f' fill="{_TIME}" fill-opacity="0.35"/>'
        )
        figures = _text(spot.x + spot.width - _PADDING, y + 13, line.figures, "text-anchor:end;opacity:0.85")
        text = _text(spot.x + _PADDING, y + 13, line.text)
        drawn.append(
            f"<g><title>{escape(line.tooltip)}</title>{bar if line.share else ''}{text}"
            f"{figures if line.figures else ''}</g>"
        )
    return "".join(drawn)


def _handed_over(spot: Spot) -> str:
    label = _text(spot.middle, spot.y + 24, "rows from Spark", "text-anchor:middle")
    return _frame(spot, _HANDED_OVER) + label


def _frame(spot: Spot, color: str) -> str:
    return (
        f'<rect x="{spot.x:.1f}" y="{spot.y:.1f}" width="{spot.width:.1f}" height="{spot.height:.1f}" rx="6"'
        f' fill="{color}" fill-opacity="0.10" stroke="{color}" stroke-width="1.2"/>'
    )


def _edge(layout: Layout, source: str, target: str, stage: ExplainedStage | None) -> str:
    """Return an arrow. The label at its start is the exchange and, after a run, the bytes that it moved."""
    (x, y), *points = layout.route(source, target)
    path, at = f"M{x:.1f} {y:.1f}", (x, y)
    for next_x, next_y in points:
        half = (at[1] + next_y) / 2
        path += f" C{at[0]:.1f} {half:.1f} {next_x:.1f} {half:.1f} {next_x:.1f} {next_y:.1f}"
        at = (next_x, next_y)
    tip = f"M{at[0] - 4:.1f} {at[1] - 7:.1f} L{at[0]:.1f} {at[1]:.1f} L{at[0] + 4:.1f} {at[1] - 7:.1f}"
    label = ""
    if stage is not None:
        sent = "" if stage.metrics is None else f", {size_text(stage.metrics.sent)}"
        turns_right = points[0][0] > x  # the label is on the other side
        side, anchor = (-6, ";text-anchor:end") if turns_right else (6, "")
        label = _text(x + side, y + 14, f"{stage.output}{sent}", f"opacity:0.75{anchor}")
    return f'<path d="{path} {tip}" fill="none" stroke="currentColor" stroke-opacity="0.55"/>{label}'


def _text(x: float, y: float, text: str, style: str = "") -> str:
    styled = f' style="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" xml:space="preserve"{styled}>{escape(text)}</text>'


def _short(label: str) -> str:
    """Return an operator's label for a box: indented, without ``Exec``, and shortened."""
    text = label.replace("Exec: ", ": ", 1).removesuffix("Exec")
    longest = len(text) - len(text.lstrip(" ")) + _LONGEST_LABEL
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def size_text(nbytes: float) -> str:
    """Format a number of bytes with a unit."""
    for unit in ("B", "KB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:,.0f} {unit}" if unit == "B" else f"{nbytes:,.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:,.1f} GB"

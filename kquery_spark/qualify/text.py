"""Renders a qualification for a terminal: the sums, the queries that save most, and the reasons for fallbacks."""

from __future__ import annotations

from collections.abc import Iterator

from kquery_spark.qualify.estimate import Saving
from kquery_spark.qualify.report import Qualification, QueryOutcome, QueryReport

_HEADINGS = ("saves", "of", "times as fast", "engine", "query")
_WIDTHS = (26, 9, 17, 7)
_HOUR_SECONDS = 3600.0
_NAME_CHARACTERS = 90


def render_text(result: Qualification, rows: int) -> str:
    """Render the report with at most ``rows`` queries and at most ``rows`` reasons."""
    lines = [*summary(result), "", *_queries(result, rows)]
    if result.causes:
        lines += ["", "What falls back to Spark:", *_causes(result, rows)]
    return "\n".join(lines)


def summary(result: Qualification) -> Iterator[str]:
    """Yield the lines with the sums and with notes about applications."""
    whole = sum(query.runs_whole for query in result.queries)
    applications = f" of {_count(len(result.applications), 'application')}" if result.applications else ""
    line = f"{_count(len(result.queries), 'query')}{applications}; the engine would run {whole:,} of them completely"
    others = sum(query.outcome in (QueryOutcome.FAILED, QueryOutcome.RUNNING) for query in result.queries)
    yield line + (f"; {others:,} failed or never ended and are not counted" if others else "")
    if not result.applications:
        yield f"the cost model expects the engine to save {duration(result.wall.expected)}; no query was run to measure it"
        return
    yield f"{duration(result.seconds)} of queries: the engine should save {_range(result.wall, result.seconds)}"
    yield f"{duration(result.task_seconds)} of tasks: the engine should save {_range(result.tasks, result.task_seconds)}"
    if result.left_out:
        yield f"{result.left_out:,} executions without tasks, mostly commands, are left out"
    if result.accelerated:
        one = result.accelerated == 1
        yield f"{_count(result.accelerated, 'query')} already ran in the engine and {'is' if one else 'are'} left out"
    for sentence in result.unreadable:
        yield f"note: not counted: {sentence}"
    for application in result.applications:
        for note in application.notes:
            yield f"note: {application.name or application.id}: {note}"
        if application.other_task_seconds >= 1:
            spent = duration(application.other_task_seconds)
            yield f"note: {application.name or application.id}: {spent} of tasks belong to no query and fall back to Spark"


def _count(number: int, what: str) -> str:
    """Format a number with a noun: ``1 query``, ``2 queries``."""
    plural = f"{what.removesuffix('y')}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


def duration(seconds: float) -> str:
    """Format a duration: hours from one hour on, otherwise seconds."""
    return f"{seconds / _HOUR_SECONDS:,.1f} h" if seconds >= _HOUR_SECONDS else f"{seconds:,.1f} s"


def _range(saving: Saving, total_seconds: float) -> str:
    if not total_seconds:
        return "nothing"
    share = f"{saving.expected / total_seconds:.0%}"
    return f"{duration(saving.expected)}, {share} ({duration(saving.low)} to {duration(saving.high)})"


def _queries(result: Qualification, rows: int) -> Iterator[str]:
    yield _row(*_HEADINGS)
    ordered = result.by_saving
    for query in ordered[:rows]:
        *cells, name = query_cells(query)
        detail = f" ({query.detail})" if query.detail else ""
        yield _row(*cells, _shortened(f"{name}{detail}"))
    if len(ordered) > rows:
        yield f"... and {len(ordered) - rows:,} more (--rows shows them)"


def query_cells(query: QueryReport) -> tuple[str, str, str, str, str]:
    """Return the cells of a query's row: saved seconds, run time, speed-up, the engine's share, and the name."""
    name = _shortened(query.name)
    share = f"{query.engine_share:.0%}"
    if query.outcome is QueryOutcome.NOT_RUN:
        return duration(query.wall.expected) if query.wall.expected else "nothing", "", "", share, name
    if query.outcome is not QueryOutcome.ENDED:
        return (
            "",
            "" if query.seconds is None else duration(query.seconds),
            "",
            share,
            f"{name} ({query.outcome})",
        )
    wall = query.wall
    if not wall.expected:
        return "nothing", duration(query.seconds or 0.0), "", share, name
    saved = f"{duration(wall.expected)} ({duration(wall.low)} to {duration(wall.high)})"
    low, high = query.speed_up(wall.low), query.speed_up(wall.high)
    speed = f"{query.speed_up(wall.expected):.1f} ({low:.1f} to {high:.1f})"
    return saved, duration(query.seconds or 0.0), speed, share, name


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS else f"{name[: _NAME_CHARACTERS - 3]}..."


def _row(*cells: str) -> str:
    *numbers, name = cells
    return "  ".join([*(cell.rjust(width) for cell, width in zip(numbers, _WIDTHS, strict=True)), name])


def _causes(result: Qualification, rows: int) -> Iterator[str]:
    for cause in result.causes[:rows]:
        took = f", {duration(cause.task_seconds)} of tasks" if cause.task_seconds else ""
        yield f"  {_count(cause.queries, 'query')}{took}: {cause.reason} ({', '.join(cause.operators)})"
    if len(result.causes) > rows:
        yield f"  ... and {len(result.causes) - rows:,} more reasons"

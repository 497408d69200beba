"""Tables of one run, and two runs compared in percent."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from benchmarks.results import QueryResult, Results


@dataclass(frozen=True)
class Change:
    """One query on one engine in two runs, seconds; ``percent`` above 0 means the second run took longer."""

    query: str
    engine: str
    before: float
    after: float

    @property
    def percent(self) -> float:
        """The change of the time in percent of the first run."""
        return (self.after / self.before - 1) * 100


def changes(before: Results, after: Results, engine: str) -> list[Change]:
    """Every query that has right answers on ``engine`` in both runs."""
    later = {query.name: query for query in after.queries}
    found = []
    for query in before.queries:
        other = later.get(query.name)
        a, b = query.median(engine), other.median(engine) if other else None
        if a is not None and b is not None:
            found.append(Change(query.name, engine, a, b))
    return found


def total_change(found: list[Change]) -> Change | None:
    """The sums over all queries compared; None when there are none."""
    if not found:
        return None
    return Change("all", found[0].engine, sum(c.before for c in found), sum(c.after for c in found))


def unlike(before: Results, after: Results) -> list[str]:
    """Return what makes two runs hard to compare, one line each: different data, machines, or settings."""
    lines = []
    if (before.suite, before.scale) != (after.suite, after.scale):
        lines.append(
            f"{before.suite} at scale {before.scale:g} against {after.suite} at scale {after.scale:g}"
        )
    elif {f["sha256"] for f in before.files} != {f["sha256"] for f in after.files}:
        lines.append("the data files differ")
    for key in ("processor", "cores", "memory_gib"):
        a, b = before.environment.get(key), after.environment.get(key)
        if a != b:
            lines.append(f"{key}: {a} against {b}")
    for key in ("cores", "shuffle_partitions", "driver_memory", "when", "conf"):
        a, b = before.options.get(key), after.options.get(key)
        if a != b:
            lines.append(f"option {key}: {a} against {b}")
    return lines


def change_table(before: Results, after: Results) -> Table:
    """One line a query and engine, totals last; changes below 5 percent are left uncolored, as noise."""
    table = Table(title="second run against first, warm medians")
    for heading in ("query", "engine", "first, ms", "second, ms", "change"):
        table.add_column(heading, justify="left" if heading in ("query", "engine") else "right")
    for engine in before.engines:
        found = changes(before, after, engine)
        total = total_change(found)
        for change in [*found, *([total] if total else [])]:
            style = "" if abs(change.percent) < 5 else "green" if change.percent < 0 else "red"
            table.add_row(
                change.query,
                engine,
                _milliseconds(change.before),
                _milliseconds(change.after),
                Text(f"{change.percent:+.1f} %", style=style),
            )
    return table


def memory_lines(before: Results, after: Results) -> list[str]:
    """Peak memory of every engine in both runs, and the change in percent."""
    lines = []
    for engine in dict.fromkeys((*before.engines, *after.engines)):
        a, b = before.peak_memory(engine), after.peak_memory(engine)
        if a and b:
            lines.append(f"peak memory, {engine}: {_mib(a)} and {_mib(b)}, {(b / a - 1) * 100:+.1f} %")
    return lines


def result_table(results: Results) -> Table:
    """One line a query: every engine's median, how many times as long Spark takes as our engine, its share of the plan.

    With first runs in new processes, their medians and ratio follow.
    """
    table = Table(title=f"{results.suite}, scale {results.scale:g}: warm medians in ms")
    table.add_column("query")
    for engine in results.engines:
        table.add_column(engine, justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("covered", justify="right")
    has_first_runs = bool(results.first_ratios())
    for heading in ("first spark", "first kquery", "first ratio") if has_first_runs else ():
        table.add_column(heading, justify="right")
    for query in results.queries:
        cells = []
        for engine in results.engines:
            one = query.engines.get(engine)
            shown = "" if one is None else one.status
            cells.append(shown if one is None or one.median is None else _milliseconds(one.median))
        ratio = query.ratio("spark", "kquery")
        decision = query.engines["kquery"].decision if "kquery" in query.engines else {}
        share = f"{decision['coverage']:.0%}" if decision.get("accelerated") else "no" if decision else ""
        table.add_row(
            query.name, *cells, _ratio(ratio), share, *(_first_cells(query) if has_first_runs else ())
        )
    return table


def _first_cells(query: QueryResult) -> list[str]:
    medians = [one.first if (one := query.engines.get(name)) else None for name in ("spark", "kquery")]
    shown = ["" if median is None else _milliseconds(median) for median in medians]
    return [*shown, _ratio(query.first_ratio("spark", "kquery"))]


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}x"


def summary_lines(results: Results) -> list[str]:
    """The figures under the table."""
    summary = results.summary()
    lines = []
    for engine in results.engines:
        total, memory = summary["total_seconds"][engine], summary["peak_memory"][engine]
        right = f"{summary['answered'][engine]} of {len(results.queries)} answered as Spark"
        seconds = f", sum of medians {total:.2f} s" if total is not None else ""
        lines.append(f"{engine}: {right}{seconds}" + (f", peak memory {_mib(memory)}" if memory else ""))
    for key, title in (("spark_over_kquery", ""), ("spark_over_kquery_first_runs", ", first runs")):
        ratios = summary.get(key, {})
        if ratios.get("geometric_mean") is not None:
            name, lowest = ratios["lowest"]
            mean = ratios["geometric_mean"]
            lines.append(
                f"spark/kquery{title}: geometric mean {mean:.2f}, lowest {lowest:.2f} (query {name})"
            )
    if summary["kquery_planning_median_seconds"] is not None:
        lines.append(
            f"planning by the engine: median {summary['kquery_planning_median_seconds'] * 1000:.0f} ms"
        )
    return lines


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f}"


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"

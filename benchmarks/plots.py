"""Charts of results: bars a query, speed-up, scaling over data size and cores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import Results

_COLORS = {
    "spark": "#e25a1c",
    "kquery": "#1f6fb2",
    "local": "#7fb3de",
    "duckdb": "#c9a400",
    "datafusion": "#6b4fa0",
    "polars": "#2a9d8f",
    "sail": "#888888",
    "comet": "#b5438a",
}


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")  # no display is needed to write a file
    from matplotlib import pyplot

    return pyplot


def bars(results: Results, path: Path) -> Path:
    """Warm medians a query, one bar an engine, on a logarithmic axis."""
    pyplot = _pyplot()
    queries = results.queries
    figure, axes = pyplot.subplots(figsize=(max(6.0, len(queries) * 0.45), 4.2), layout="constrained")
    width = 0.8 / max(1, len(results.engines))
    for index, engine in enumerate(results.engines):
        places = [i + index * width for i in range(len(queries))]
        heights = [query.median(engine) or float("nan") for query in queries]
        axes.bar(places, heights, width, label=engine, color=_COLORS.get(engine))
    axes.set_yscale("log")
    axes.set_xticks(
        [i + 0.4 - width / 2 for i in range(len(queries))], [q.name for q in queries], rotation=90
    )
    axes.set_ylabel("seconds, warm median")
    axes.set_title(_title(results), fontsize=10)
    axes.legend(fontsize=8)
    return _save(figure, path, results.note)


def speed_up(results: Results, path: Path) -> Path:
    """How many times as long Spark takes as the engine, queries sorted; the line at 1 is a tie."""
    pyplot = _pyplot()
    ratios = sorted(results.ratios().items(), key=lambda item: item[1])
    figure, axes = pyplot.subplots(figsize=(6.5, max(2.5, len(ratios) * 0.22)), layout="constrained")
    colors = [_COLORS["kquery"] if ratio >= 1 else _COLORS["spark"] for _, ratio in ratios]
    axes.barh([name for name, _ in ratios], [ratio for _, ratio in ratios], color=colors)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("Spark's time / kquery_spark's time")
    axes.set_title(_title(results), fontsize=10)
    return _save(figure, path, results.note)


def overview(workloads: Sequence[tuple[str, float, float]], path: Path) -> Path:
    """Draw the geometric mean of each workload as a bar and its lowest query as a marker.

    workloads: title, geometric mean and lowest ratio of Spark's time to the engine's, from top to bottom. The SVG has no
    date and no random names and keeps its strings as strings, so that equal results give an equal file.
    """
    pyplot = _pyplot()
    titles, means, lowest = zip(*workloads, strict=True)
    positions = range(len(workloads))
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "overview", "font.size": 10}):
        figure, axes = pyplot.subplots(figsize=(8.5, 0.55 * len(workloads) + 1.2), layout="constrained")
        bars_drawn = axes.barh(positions, means, height=0.6, color=_COLORS["kquery"], label="geometric mean")
        axes.bar_label(bars_drawn, [f"{mean:.1f}" for mean in means], padding=4, fontweight="bold")
        axes.scatter(
            lowest,
            positions,
            marker="D",
            s=30,
            color="white",
            edgecolor="black",
            zorder=3,
            label="lowest query",
        )
        axes.axvline(1, color="black", linewidth=1, linestyle="--", label="1: a tie")
        axes.set_yticks(positions, titles)
        axes.invert_yaxis()
        axes.set_xlim(0, max(means) + 0.6)
        axes.set_xlabel("Spark's time / kquery_spark's time (more is better)")
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)
    return path


def scaling(many: Sequence[Results], path: Path, over: str) -> Path:
    """Total time of each engine over ``scale`` or ``cores``: the queries it answered right in every run."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(5.5, 4), layout="constrained")
    for engine in dict.fromkeys(engine for results in many for engine in results.engines):
        points = scaling_points(many, engine, over)
        if len(points) > 1:
            axes.plot(*zip(*points, strict=True), marker="o", label=engine, color=_COLORS.get(engine))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel({"scale": "scale factor", "cores": "cores"}[over])
    axes.set_ylabel("seconds, sum of warm medians")
    axes.set_title(many[0].suite, fontsize=10)
    axes.legend(fontsize=8)
    return _save(figure, path, many[0].note)


def scaling_points(many: Sequence[Results], engine: str, over: str) -> list[tuple[float, float]]:
    """(scale or cores, seconds) of the runs that have the engine, over the queries right in all of them."""
    having = [results for results in many if engine in results.engines]
    right = [{q.name for q in results.queries if q.median(engine) is not None} for results in having]
    common = set.intersection(*right) if right else set()
    points = []
    for results in having:
        medians = [q.median(engine) or 0.0 for q in results.queries if q.name in common]
        where = results.scale if over == "scale" else float(results.options["cores"])
        if medians:
            points.append((where, sum(medians)))
    return sorted(points)


def draw(many: Sequence[Results], directory: Path) -> list[Path]:
    """Every chart the results allow, as SVG files in ``directory``."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn = []
    for results in many:
        stem = f"{results.suite}-{results.scale:g}-{results.options['cores']}cores"
        drawn.append(bars(results, directory / f"{stem}-bars.svg"))
        if results.ratios():
            drawn.append(speed_up(results, directory / f"{stem}-speedup.svg"))
    for suite in dict.fromkeys(results.suite for results in many):
        same = [results for results in many if results.suite == suite]
        if len({results.scale for results in same}) > 1:
            drawn.append(scaling(same, directory / f"{suite}-scaling.svg", "scale"))
        if len({results.options["cores"] for results in same}) > 1:
            drawn.append(scaling(same, directory / f"{suite}-cores.svg", "cores"))
    return drawn


def _title(results: Results) -> str:
    return f"{results.suite}, scale {results.scale:g}, {results.options['cores']} cores"


def _save(figure: Any, path: Path, note: str) -> Path:
    if note:
        figure.supxlabel(note, fontsize=6)
    figure.savefig(path)
    _pyplot().close(figure)
    return path

"""Makes the pictures of the documentation: the stages of a TPC-H query after a run, as an SVG, and screenshots of it.

    python docs/make_pictures.py [DIRECTORY] [--query 8] [--scale 0.01] [--chromium PATH]

Writes ``stages.svg`` into the directory (docs/pictures). Where a Chromium is at hand, also ``explain-light.png`` and
``explain-dark.png``: what a notebook shows, on both kinds of page.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pyspark.sql import SparkSession  # noqa: E402

import kquery_spark as kq  # noqa: E402
from benchmarks import tpch  # noqa: E402

_PAGES = {"light": ("#1f2328", "#ffffff"), "dark": ("#e6edf3", "#0d1117")}
_WINDOW = "1500,1700"


def explanation(query: int, scale: float) -> kq.accelerate.explain.Explanation:
    """The explanation of a query after a run, with as many stages as over large data."""
    builder = kq.configure(SparkSession.builder).master("local[2]").config("spark.ui.enabled", "false")
    spark = (
        builder.config("spark.kquery.smallBytes", "0")
        .config("spark.kquery.broadcastBytes", "20k")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as directory:
        tpch.register(spark, tpch.generate(Path(directory), scale=scale))
        return kq.explain(spark.sql(tpch.query(query)), analyze=True)


def screenshots(html: str, directory: Path, chromium: str) -> None:
    """The HTML on a light and on a dark page."""
    for name, (color, background) in _PAGES.items():
        page = directory / f"{name}.html"
        style = f"color:{color};background:{background};font-family:sans-serif;padding:1em"
        page.write_text(f'<!doctype html><meta charset="utf-8"><body style="{style}">{html}</body>')
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={_WINDOW}"]
        picture = f"--screenshot={directory / f'explain-{name}.png'}"
        subprocess.run([chromium, *options, picture, page.as_uri()], check=True, timeout=240)
        page.unlink()


def main() -> None:
    """Make the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", nargs="?", type=Path, default=ROOT / "docs" / "pictures")
    parser.add_argument("--query", type=int, default=8)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args()
    directory = options.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    explained = explanation(options.query, options.scale)
    (directory / "stages.svg").write_text(explained.svg())
    if options.chromium:
        screenshots(explained._repr_html_(), directory, options.chromium)


if __name__ == "__main__":
    main()

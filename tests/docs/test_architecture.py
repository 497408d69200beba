"""``docs/architecture.md``: the walk names functions that are defined in the files that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
WALK = PAGE[PAGE.index("## The walk") : PAGE.index("## Where to add")]
# A line of the walk: calls, at least two spaces, files or a directory, and perhaps a comment.
LINE = re.compile(r"^ *(?P<calls>\S.*?) {2,}(?P<paths>[a-z_/]+/\w+(?:\.py)?(?:, [\w/]+\.py)*)(?: |$)")


def walk() -> list[tuple[str, list[Path]]]:
    """The calls of the walk, each with the paths that its line names."""
    blocks = re.findall(r"```\n(.*?)```", WALK, re.DOTALL)
    matches = [match for block in blocks for line in block.splitlines() if (match := LINE.match(line))]
    calls = []
    for match in matches:
        names = match["paths"].split(", ")
        first = ROOT / "kquery_spark" / names[0]
        paths = [first, *((first.parent if "/" not in n else ROOT / "kquery_spark") / n for n in names[1:])]
        calls += [(call.strip(), paths) for call in match["calls"].split(", ")]
    return calls


@pytest.mark.parametrize(("call", "paths"), [pytest.param(c, p, id=c) for c, p in walk()])
def test_the_walk_names_what_there_is(call: str, paths: list[Path]) -> None:
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
    defined = "\n".join(file.read_text() for file in files)
    for name in re.sub(r"\(.*", "", call).split("."):
        assert re.search(rf"\b(?:def|class) {name}\b", defined), f"{name} is not defined in {paths}"


def test_the_walk_has_many_lines() -> None:
    assert len(walk()) > 40

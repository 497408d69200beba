"""The lowest versions that the tests can be run with are the ones that pyproject.toml allows."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT


def test_the_constraints_are_the_lower_bounds() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has none")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = dict(m.groups() for d in project["dependencies"] if (m := re.match(r"([\w-]+)>=([\d.]+)", d)))
    lines = (ROOT / ".ci" / "lowest.txt").read_text().splitlines()
    lowest = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert lowest.keys() == bounds.keys()
    for name, version in lowest.items():
        expected = bounds[name].split(".")
        assert version.split(".")[: len(expected)] == expected, name

"""The documentation as a site: what the search ranks first, the API page, and diagrams."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytest.importorskip("mkdocstrings_handlers")
markdown = pytest.importorskip("markdown")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(directory)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    return directory


def test_the_search_ranks_the_api_before_the_release_notes(site):
    entries = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    boosts = {entry["location"]: entry.get("boost", 1) for entry in entries if "#" not in entry["location"]}
    assert boosts["changelog/"] < 1 < boosts["api/"]
    assert boosts["guide/using/"] == 1


def test_the_api_page_has_each_public_name_and_arguments_as_lists(site):
    page = (site / "api" / "index.html").read_text()
    for name in (
        "kquery_plan",
        "enable",
        "explain",
        "configure",
        "Window",
        "col",
        "arrow_udf",
        "ExecutionContext",
    ):
        assert f'id="kquery_spark.{name}"' in page, name
    assert re.search(r">\s*kquery_spark\.verify\s*<", page)
    for argument in ("fallback", "when", "tls_root_certs"):
        assert f"<li><strong>{argument}</strong>: " in page


def test_a_diagram_is_drawn():
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"))
    text = "```mermaid\ngraph LR\n  a --> b\n```\n"
    converter = markdown.Markdown(
        extensions=config["markdown_extensions"], extension_configs=config["mdx_configs"]
    )
    assert re.search(r'<pre class="mermaid">\s*<code>graph LR', converter.convert(text))


@pytest.fixture(scope="module")
def with_argument_lists():
    spec = importlib.util.spec_from_file_location("site_docstrings", ROOT / "docs" / "site_docstrings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.with_argument_lists


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Do it.\n\na: one\nthing. b, c: two (or\nthree). Raises E.", "Do it.\n\n- **a**: one thing.\n- **b**, **c**: two (or three).\n\nRaises E."),
        ("Do it.\n\nIt is quick. a: one.", "Do it.\n\nIt is quick.\n\n- **a**: one."),
        ("Do it.\n\nThe value of a: none.", "Do it.\n\nThe value of a: none."),
        ("Do it.\n\nother: one.", "Do it.\n\nother: one."),
        ("Do it.\n\n- a: one. b: two.", "Do it.\n\n- a: one. b: two."),
    ],
    ids=["several", "after a sentence", "inside a sentence", "another name", "a list"],
)  # fmt: skip
def test_arguments_in_a_row_become_a_list(with_argument_lists, docstring, expected):
    assert with_argument_lists(docstring, ["a", "b", "c"]) == expected

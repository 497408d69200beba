"""The package page is the README, without links that lead nowhere."""

from __future__ import annotations

import importlib.util
import re

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", text)


def test_the_page_has_no_relative_link(hook):
    readme = (ROOT / "README.md").read_text()
    assert len(links(readme)) > 5
    for repository in (None, "https://example.org/us/project"):
        page = hook.package_page(readme, repository)
        assert [target for target in links(page) if not target.startswith("https://")] == []
        assert page.count("```") == readme.count("```")


@pytest.mark.parametrize(
    ("link", "repository", "expected"),
    [
        ("[the guide](docs/guide.md#a)", None, "the guide (`docs/guide.md`)"),
        ("it ([the guide](docs/guide.md))", None, "it (the guide, `docs/guide.md`)"),
        ("[docs/guide.md](docs/guide.md)", None, "docs/guide.md"),
        (
            "[the guide](docs/guide.md#a)",
            "https://x.org/p/",
            "[the guide](https://x.org/p/blob/main/docs/guide.md#a)",
        ),
        ("[Spark](https://spark.apache.org)", None, "[Spark](https://spark.apache.org)"),
        ("[below](#install)", "https://x.org/p", "[below](#install)"),
    ],
)
def test_a_relative_link_becomes_text_or_absolute(hook, link, repository, expected):
    assert hook.package_page(f"See {link}.", repository) == f"See {expected}."


def test_the_build_uses_the_hook(hook, tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text("See [the guide](docs/guide.md).")
    page = hook.PackagePage.__new__(hook.PackagePage)
    monkeypatch.setattr(hook.PackagePage, "root", str(tmp_path), raising=False)
    metadata = {"urls": {"Repository": "https://x.org/p"}}
    page.update(metadata)
    assert metadata["readme"]["text"] == "See [the guide](https://x.org/p/blob/main/docs/guide.md)."
    project = (ROOT / "pyproject.toml").read_text()
    assert 'dynamic = ["readme"]' in project
    assert "[tool.hatch.metadata.hooks.custom]" in project

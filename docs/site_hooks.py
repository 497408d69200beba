"""MkDocs hooks: pages for CHANGELOG.md and CONTRIBUTING.md; links out of docs/ lead to pages or become plain text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
# Release notes name every function; without this, a search finds them before the pages that explain it.
_RANKED_LAST = "---\nsearch:\n  boost: 0.2\n---\n\n"
LINKS = {**PAGES, "README.md": "index.md"}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that stand in the root."""
    for name, page in PAGES.items():
        text = _RANKED_LAST + re.sub(r"\]\(docs/", "](", (ROOT / name).read_text())
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to files of the root lead to their pages; other links out of the directory become plain text."""
    up = "../" * page.file.src_uri.count("/")
    for name, target in LINKS.items():
        markdown = markdown.replace(f"]({up}../{name}", f"]({up}{target}")
    return re.sub(rf"\[([^\]]+)\]\({re.escape(up)}\.\./[^)]+\)", r"\1", markdown)

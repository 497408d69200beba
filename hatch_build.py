"""A build hook that derives the package page from README.md, whose relative links work only in the repository.

If ``project.urls`` has a ``Repository``, the links become absolute. Otherwise a link becomes its text and the path of the
file, for example ``[coverage](docs/support.md)`` becomes ``coverage (`docs/support.md`)``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ModuleNotFoundError:  # tests read this file without the build backend
    MetadataHookInterface = object

_RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#|mailto:)([^)]+)\)")


class PackagePage(MetadataHookInterface):
    """Sets the project's ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the package page to the project's metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {"content-type": "text/markdown", "text": package_page(text, repository)}


def package_page(readme: str, repository: str | None) -> str:
    """Return the text of the package page. repository: the URL of the repository, or None if it is not public."""

    def link(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        if repository is not None:
            return f"[{text}]({repository.rstrip('/')}/blob/main/{target})"
        path = target.partition("#")[0]
        if text.strip("`") == path:
            return text
        in_parentheses = readme[: match.start()].endswith("(")
        return f"{text}, `{path}`" if in_parentheses else f"{text} (`{path}`)"

    return _RELATIVE_LINK.sub(link, readme)

"""Names of settings."""

from __future__ import annotations


def camel_case(name: str) -> str:
    """``batch_rows`` as ``batchRows``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)

"""The options of ``kquery_plan``, ``kq.enable`` and the command line."""

from __future__ import annotations

from typing import Literal

from kquery_spark.errors import ConfigError

Fallback = Literal["spark", "error"]
When = Literal["auto", "always", "never"]


def check_options(fallback: str, when: str) -> None:
    """Raise ConfigError if an option has a value that is not allowed."""
    if fallback not in ("spark", "error"):
        raise ConfigError(f"fallback must be 'spark' or 'error', not {fallback!r}")
    if when not in ("auto", "always", "never"):
        raise ConfigError(f"when must be 'auto', 'always' or 'never', not {when!r}")

"""The versions of Spark whose plans, classes and private names the bridge knows."""

from __future__ import annotations

import re

from kquery_spark.errors import KQueryError

SUPPORTED = ("4.2", "4.3")
"""Minor versions that the test suite passes with, oldest first."""


def check_version(version: str) -> str | None:
    """Look at the version of a session's Spark: KQueryError for one that is too old, a sentence for one that is too new.

    None for a supported version.
    """
    numbers = _minor(version)
    if numbers < _minor(SUPPORTED[0]):
        raise KQueryError(
            f"kquery_spark needs Spark {SUPPORTED[0]} or later, and this session runs {version}: "
            "upgrade PySpark, or run the query on Spark alone."
        )
    if numbers > _minor(SUPPORTED[-1]):
        return (
            f"kquery_spark is tested with Spark {' and '.join(SUPPORTED)}, and this session runs {version}."
        )
    return None


def _minor(version: str) -> tuple[int, ...]:
    """Major and minor number, whatever follows them."""
    return tuple(int(digits) for digits in re.findall(r"\d+", version)[:2])

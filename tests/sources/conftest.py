"""Servers of the tests of sources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.s3 import s3_server


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of an S3 server without buckets of one's own."""
    with s3_server() as endpoint:
        yield endpoint

"""Reads buckets of Amazon S3 and of servers with the same protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow.fs as pafs
from typing_extensions import override

from kquery_spark.sources.object_stores.store import BucketStore


class S3Store(BucketStore):
    """A bucket of S3. options: arguments of ``pyarrow.fs.S3FileSystem``."""

    schemes = ("s3", "s3a", "s3n")
    path_pattern = re.compile(r"(?:s3|s3a|s3n)://([^/@?]+)(?:/[^?]*)?$")
    secrets = frozenset({"access_key", "secret_key", "session_token", "proxy_options", "external_id"})
    option_names = frozenset(
        {
            *secrets,
            *("region", "endpoint_override", "scheme", "anonymous", "role_arn", "session_name"),
            *("force_virtual_addressing", "connect_timeout", "request_timeout"),
        }
    )
    synonyms: ClassVar[Mapping[str, str]] = {
        "aws_access_key_id": "access_key",
        "aws_secret_access_key": "secret_key",
        "aws_session_token": "session_token",
        "aws_region": "region",
        "aws_endpoint_url": "endpoint_override",
    }

    @override
    def open_filesystem(self, options: dict[str, Any]) -> pafs.FileSystem:
        if "region" not in options and "endpoint_override" not in options:
            options["region"] = pafs.resolve_s3_region(self.bucket)
        return pafs.S3FileSystem(**options)

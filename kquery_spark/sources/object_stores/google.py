"""Reads buckets of Google Cloud Storage."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.fs as pafs
from typing_extensions import override

from kquery_spark.errors import ConfigError, SourceError
from kquery_spark.sources.hadoop.environment import variable_set
from kquery_spark.sources.object_stores.store import BucketStore, is_true

RETRY_SECONDS = (
    20  # how long to retry before giving up; Arrow's default of 15 minutes looks as if the query hung
)
CREDENTIALS_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
_TOKEN_HOURS = 1  # the default lifetime of Google's access tokens
_ENVIRONMENT = threading.Lock()


class GoogleStore(BucketStore):
    """A bucket of Google Cloud Storage.

    options: arguments of ``pyarrow.fs.GcsFileSystem``, and ``key_file``: the path of a file of credentials.
    """

    schemes = ("gs", "gcs")
    path_pattern = re.compile(r"(?:gs|gcs)://([^/@?]+)(?:/[^?]*)?$")
    secrets = frozenset({"access_token"})
    option_names = frozenset(
        {
            *secrets,
            *("anonymous", "key_file", "target_service_account", "credential_token_expiration"),
            *("endpoint_override", "scheme", "project_id", "retry_time_limit"),
        }
    )
    synonyms: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            (
                *("google_application_credentials", "application_credentials"),
                *("google_service_account", "service_account"),
                *("google_service_account_path", "service_account_path"),
            ),
            "key_file",
        ),
        **dict.fromkeys(("google_skip_signature", "skip_signature"), "anonymous"),
        **dict.fromkeys(("google_cloud_project", "project"), "project_id"),
        **dict.fromkeys(("endpoint_url", "google_endpoint_url"), "endpoint_override"),
    }

    @classmethod
    @override
    def _completed(cls, options: dict[str, Any]) -> dict[str, Any]:
        completed = {name: value for name, value in options.items() if name != "token"}
        if "token" in options:
            completed |= _of_token(options["token"])
        if "anonymous" in completed:
            completed["anonymous"] = is_true(completed["anonymous"])
        return super()._completed(completed)

    @override
    def check_opened(self, file: pa.NativeFile) -> None:
        encoding = file.metadata().get("Content-Encoding", b"").decode()
        if "gzip" in encoding:
            raise OSError(
                "the store keeps it compressed (Content-Encoding: gzip), and what it sends may be decompressed"
            )

    @override
    def open_filesystem(self, options: dict[str, Any]) -> pafs.FileSystem:
        key_file = options.pop("key_file", None)
        options.setdefault("retry_time_limit", timedelta(seconds=RETRY_SECONDS))
        if "access_token" in options:
            late = datetime.now(timezone.utc) + timedelta(hours=_TOKEN_HOURS)
            options.setdefault("credential_token_expiration", late)
        elif key_file is not None:
            with _credentials_of(str(key_file)):
                return pafs.GcsFileSystem(**options)
        elif not options.get("anonymous"):
            check_default_credentials()
        return pafs.GcsFileSystem(**options)


def check_default_credentials() -> None:
    """Raise SourceError without default credentials, which Google's libraries would report only after minutes."""
    if has_credentials_file():
        return
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    try:
        socket.getaddrinfo(host.partition(":")[0], None)
    except OSError:
        raise SourceError(
            f"no credentials for Google Cloud: {CREDENTIALS_VARIABLE} is not set, gcloud has no login, "
            "and this machine is not in Google Cloud"
        ) from None


def has_credentials_file() -> bool:
    """True if an environment variable or a gcloud login provides credentials, which take precedence over the machine's."""
    if os.environ.get(CREDENTIALS_VARIABLE):
        return True
    return Path("~/.config/gcloud/application_default_credentials.json").expanduser().exists()


def _of_token(token: object) -> dict[str, Any]:
    """Translate the option that ``gcsfs`` calls a token into this store's options."""
    if token == "anon":
        return {"anonymous": True}
    if token in (None, "google_default"):
        return {}
    if isinstance(token, str) and os.path.exists(token):
        return {"key_file": token}
    raise ConfigError(
        "the storage option token must be 'anon', 'google_default' or the path of a credentials file"
    )


@contextmanager
def _credentials_of(path: str) -> Iterator[None]:
    """Make Arrow read a credentials file. It has no option for that, but reads an environment variable at creation."""
    if not os.path.exists(path):
        raise SourceError(f"the credentials file {path} does not exist")
    with _ENVIRONMENT, variable_set(CREDENTIALS_VARIABLE, path):
        yield

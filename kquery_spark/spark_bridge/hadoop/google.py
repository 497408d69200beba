"""Translates Spark's settings for buckets of Google Cloud Storage to options of Arrow's filesystem.

The connector is Google's or, since its release 3.5, Hadoop's own; the CONFIGURATION.md of each says what the settings mean.
Google's has ``auth.type`` since its release 3; release 2 has ``auth.service.account.enable`` instead. Settings of ``fs.gs``
override those of ``google.cloud``.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any
from urllib.parse import urlparse

from kquery_spark.sources.object_stores.google import (
    CREDENTIALS_VARIABLE,
    GoogleStore,
    has_credentials_file,
)
from kquery_spark.spark_bridge.hadoop.object_store_features import (
    AMBIGUOUS_CREDENTIALS,
    GOOGLE_CREDENTIALS,
    HTTP_HEADERS,
    IMPERSONATION_BY_USER,
    MACHINE_ACCOUNT,
)
from kquery_spark.spark_bridge.hadoop.settings import StoreSettings

GOOGLES_CONNECTOR = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
HADOOPS_CONNECTOR = "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem"
_RETRY_SECONDS = 120  # about the duration of the connector's ten attempts
_GOOGLE = "https://storage.googleapis.com"
_PREFIX = "fs.gs."
_AFFIXES = ((_PREFIX, ""), ("google.cloud.", ""))
# Settings with which Arrow would read other data than Hadoop, or none; each with the values for which it does not.
_HARMLESS = {
    "encryption.key": ("",),
    "requester.pays.mode": ("", "DISABLED"),
    "proxy.address": ("",),
    "storage.service.path": ("", "storage/v1/", "storage/v1"),
    "token.server.url": ("", "https://oauth2.googleapis.com/token"),
    "delegation.token.binding": ("",),
    "authorization.handler.impl": ("",),
    "config.override.file": ("",),
    "inputstream.support.gzip.encoding.enable": ("", "false"),
}
# Settings of Google's connector that Hadoop's does not know.
_GOOGLES_ONLY = {
    "storage.root.url": ("", _GOOGLE, f"{_GOOGLE}/"),
    "auth.impersonation.service.account": ("",),
}
_SECRET_SETTINGS = frozenset({"encryption.key"})
_SETTINGS_OF_RELEASE_2 = (
    *("auth.service.account.enable", "enable.service.account.auth", "auth.null.enable"),
    *("auth.service.account.keyfile", "service.account.auth.keyfile", "auth.access.token.provider.impl"),
    *("auth.service.account.private.key.id", "auth.service.account.private.key"),
)
_BY_USER = ("auth.impersonation.service.account.for.user.", "auth.impersonation.service.account.for.group.")
_HEADERS = "storage.http.headers."


def google_store(configuration: Any, bucket: str) -> GoogleStore:
    """Return the options to connect to a bucket; raises Unsupported if Arrow cannot connect as Google's connector does."""
    settings = StoreSettings(configuration, *_AFFIXES)
    settings.check_harmless("gs", _PREFIX, _HARMLESS, _SECRET_SETTINGS)
    if settings.any_below(_HEADERS):
        raise HTTP_HEADERS.declined()
    options = {
        **_endpoint(settings),
        **_impersonated(settings, _credentials(settings)),
        "retry_time_limit": timedelta(seconds=_RETRY_SECONDS),
    }
    return GoogleStore(bucket, tuple(sorted(options.items())))


def google_store_of_hadoop(configuration: Any, bucket: str) -> GoogleStore:
    """Like ``google_store`` for Hadoop's own connector, which has fewer settings."""
    StoreSettings(configuration, *_AFFIXES).check_harmless("gs", _PREFIX, _GOOGLES_ONLY)
    return google_store(configuration, bucket)


def _endpoint(settings: StoreSettings) -> dict[str, Any]:
    url = settings.text("storage.root.url").rstrip("/")
    if url in ("", _GOOGLE):
        return {}
    parsed = urlparse(url)
    return {"scheme": parsed.scheme, "endpoint_override": parsed.netloc + parsed.path}


def _credentials(settings: StoreSettings) -> dict[str, Any]:
    """The options for the connector's credentials; settings of both releases are accepted only if they agree."""
    kind, older = settings.text("auth.type").upper(), _auth_type_of_release_2(settings)
    if kind and kind != older and any(settings.text(name) for name in _SETTINGS_OF_RELEASE_2):
        raise AMBIGUOUS_CREDENTIALS.declined()
    kind = kind or older
    if kind == "UNAUTHENTICATED":
        return {"anonymous": True}
    if kind == "SERVICE_ACCOUNT_JSON_KEYFILE":
        return {"key_file": settings.text("auth.service.account.json.keyfile")}
    if kind == "APPLICATION_DEFAULT":
        return {}
    if kind == "COMPUTE_ENGINE":
        if has_credentials_file():
            raise MACHINE_ACCOUNT.declined()
        return {}
    raise GOOGLE_CREDENTIALS.declined(kind=kind)


def _auth_type_of_release_2(settings: StoreSettings) -> str:
    """Translate the settings of release 2 of the connector to a value of ``auth.type``."""
    if settings.text("auth.access.token.provider.impl"):
        return "ACCESS_TOKEN_PROVIDER"
    enabled = settings.text("auth.service.account.enable") or settings.text("enable.service.account.auth")
    if enabled.lower() == "false":
        return (
            "UNAUTHENTICATED" if settings.text("auth.null.enable").lower() == "true" else "USER_CREDENTIALS"
        )
    if any(settings.text(f"auth.service.account.private.key{end}") for end in ("", ".id")):
        return "a private key among the settings"
    if settings.text("auth.service.account.json.keyfile"):
        return "SERVICE_ACCOUNT_JSON_KEYFILE"
    if settings.text("auth.service.account.keyfile") or settings.text("service.account.auth.keyfile"):
        return "a P12 key file"
    return "APPLICATION_DEFAULT" if os.environ.get(CREDENTIALS_VARIABLE) else "COMPUTE_ENGINE"


def _impersonated(settings: StoreSettings, options: dict[str, Any]) -> dict[str, Any]:
    """The options with the service account that the credentials impersonate, if any."""
    if any(settings.any_below(name) for name in _BY_USER):
        raise IMPERSONATION_BY_USER.declined()
    account = settings.text("auth.impersonation.service.account")
    if not account:
        return options
    if options.get("anonymous"):
        raise GOOGLE_CREDENTIALS.declined(kind="a service account without impersonation")
    return {**options, "target_service_account": account}

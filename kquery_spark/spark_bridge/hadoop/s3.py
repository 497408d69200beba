"""Translates Hadoop's settings for buckets of S3 (``s3a://``) to options of Arrow's filesystem.

Hadoop's documentation, "Hadoop-AWS module", describes each setting, and how it is overridden for a bucket.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlparse

from kquery_spark.sources.object_stores.s3 import S3Store
from kquery_spark.spark_bridge.hadoop.object_store_features import (
    NO_CREDENTIALS,
    OTHER_PROVIDER,
    PROXY_USER,
    ROLE_BY_KEYS,
)
from kquery_spark.spark_bridge.hadoop.settings import StoreSettings

_PREFIX = "fs.s3a."
S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_HADOOP, _SDK1, _SDK2 = (
    "org.apache.hadoop.fs.s3a.",
    "com.amazonaws.auth.",
    "software.amazon.awssdk.auth.credentials.",
)
# Credential providers. Those of the default chain are the ones that Arrow tries, too: environment, profiles, the instance.
_KEY_PROVIDERS = frozenset(
    {f"{_HADOOP}SimpleAWSCredentialsProvider", f"{_HADOOP}TemporaryAWSCredentialsProvider"}
)
_ANONYMOUS = f"{_HADOOP}AnonymousAWSCredentialsProvider"
_ASSUMED_ROLES = frozenset(
    {f"{_HADOOP}auth.AssumedRoleCredentialProvider", f"{_HADOOP}AssumedRoleCredentialProvider"}
)
_DEFAULT_CHAIN = frozenset(
    {
        f"{_HADOOP}auth.IAMInstanceCredentialsProvider",
        f"{_SDK1}EnvironmentVariableCredentialsProvider",
        f"{_SDK1}InstanceProfileCredentialsProvider",
        f"{_SDK1}DefaultAWSCredentialsProviderChain",
        f"{_SDK1}profile.ProfileCredentialsProvider",
        f"{_SDK1}WebIdentityTokenCredentialsProvider",
        f"{_SDK1}EC2ContainerCredentialsProviderWrapper",
        f"{_SDK2}EnvironmentVariableCredentialsProvider",
        f"{_SDK2}InstanceProfileCredentialsProvider",
        f"{_SDK2}DefaultCredentialsProvider",
        f"{_SDK2}ProfileCredentialsProvider",
        f"{_SDK2}WebIdentityTokenFileCredentialsProvider",
        f"{_SDK2}ContainerCredentialsProvider",
    }
)
# Settings with which Arrow would read other data than Hadoop, or none; each with the values for which it does not.
_HARMLESS = {
    "encryption.algorithm": ("", "AES256", "SSE-S3", "SSE-KMS", "DSSE-KMS"),
    "server-side-encryption-algorithm": ("", "AES256", "SSE-S3", "SSE-KMS", "DSSE-KMS"),
    "requester.pays.enabled": ("", "false"),
    "accesspoint.arn": ("",),
    "custom.signers": ("",),
    "signing-algorithm": ("",),
    "delegation.token.binding": ("",),
}


def s3_store(configuration: Any, bucket: str) -> S3Store:
    """Return the options to connect to a bucket; raises Unsupported if Arrow cannot connect as Hadoop does."""
    settings = StoreSettings(configuration, (f"{_PREFIX}bucket.{bucket}.", ""), (_PREFIX, ""))
    settings.check_harmless("s3a", _PREFIX, _HARMLESS)
    options = {**_endpoint(settings), **_proxy(settings), **_credentials(settings)}
    return S3Store(bucket, tuple(sorted(options.items())))


def _endpoint(settings: StoreSettings) -> dict[str, Any]:
    endpoint, region = settings.text("endpoint"), settings.text("endpoint.region")
    options: dict[str, Any] = {}
    if region:
        options["region"] = region
    if endpoint and not _is_aws(endpoint):
        parsed = urlparse(endpoint if "://" in endpoint else f"//{endpoint}")
        encrypted = settings.text("connection.ssl.enabled") != "false"
        options["scheme"] = parsed.scheme or ("https" if encrypted else "http")
        options["endpoint_override"] = parsed.netloc + parsed.path.rstrip("/")
        options["force_virtual_addressing"] = settings.text("path.style.access") != "true"
        options.setdefault("region", "us-east-1")
    return options


def _is_aws(endpoint: str) -> bool:
    """Return whether an endpoint is Amazon's own, which the SDK derives from the region."""
    host = urlparse(endpoint if "://" in endpoint else f"//{endpoint}").hostname or ""
    return host.startswith("s3.") and host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


def _proxy(settings: StoreSettings) -> dict[str, Any]:
    host = settings.text("proxy.host")
    if not host:
        return {}
    if settings.text("proxy.username"):
        raise PROXY_USER.declined()
    encrypted = settings.text("proxy.ssl.enabled") == "true"
    port = settings.text("proxy.port") or ("443" if encrypted else "80")
    return {"proxy_options": f"{'https' if encrypted else 'http'}://{host}:{port}"}


def _credentials(settings: StoreSettings) -> dict[str, Any]:
    """The options for the credentials of the first provider that has any."""
    for provider in _providers(settings):
        if provider in _KEY_PROVIDERS:
            keys = _keys(settings, needs_token=provider.endswith("TemporaryAWSCredentialsProvider"))
            if keys:
                return keys
        elif provider == _ANONYMOUS:
            return {"anonymous": True}
        elif provider in _DEFAULT_CHAIN:
            return {}
        elif provider in _ASSUMED_ROLES:
            return _assumed_role(settings)
        else:
            raise OTHER_PROVIDER.declined(provider=provider)
    raise NO_CREDENTIALS.declined()


def _providers(settings: StoreSettings) -> list[str]:
    given = settings.text("aws.credentials.provider").replace("\n", "").split(",")
    named = [name.strip() for name in given if name.strip()]
    return named or [
        f"{_HADOOP}SimpleAWSCredentialsProvider",
        f"{_HADOOP}auth.IAMInstanceCredentialsProvider",
    ]


def _keys(settings: StoreSettings, needs_token: bool) -> dict[str, Any]:
    keys = {"access_key": settings.secret("access.key"), "secret_key": settings.secret("secret.key")}
    if needs_token:
        keys["session_token"] = settings.secret("session.token")
    return keys if all(keys.values()) else {}


def _assumed_role(settings: StoreSettings) -> dict[str, Any]:
    """The options for a role that is assumed with the credentials of AWS's default chain."""
    base = [
        name.strip() for name in settings.text("assumed.role.credentials.provider").split(",") if name.strip()
    ]
    if not base or not _DEFAULT_CHAIN.issuperset(base) or settings.text("assumed.role.policy"):
        raise ROLE_BY_KEYS.declined()
    options = {"role_arn": settings.text("assumed.role.arn")}
    if settings.text("assumed.role.session.name"):
        options["session_name"] = settings.text("assumed.role.session.name")
    if settings.text("assumed.role.external.id"):
        options["external_id"] = settings.text("assumed.role.external.id")
    return options

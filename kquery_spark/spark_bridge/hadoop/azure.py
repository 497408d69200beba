"""Translates Hadoop's settings for containers of Azure (``abfss://``) to options of Arrow's filesystem.

Hadoop's documentation, "Hadoop Azure Support: ABFS", says what each setting means. A setting whose name ends with the
container and its account, or with the account, overrides the general one.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import Any

from kquery_spark.sources.object_stores.azure import AzureStore, at_endpoint, has_filesystem
from kquery_spark.spark_bridge.hadoop.object_store_features import (
    AZURE_ACCOUNT,
    AZURE_CREDENTIALS,
    AZURE_NO_CREDENTIALS,
    AZURE_OLD_ARROW,
    AZURE_OTHER_IDENTITY,
)
from kquery_spark.spark_bridge.hadoop.settings import StoreSettings

ABFS = "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem"
ABFSS = "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem"
_PREFIX = "fs.azure."
_SERVICES = "org.apache.hadoop.fs.azurebfs.services."
_OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2."
_KEY_PROVIDERS = ("", f"{_SERVICES}SimpleKeyProvider")
_SAS_PROVIDERS = ("", f"{_SERVICES}FixedSASTokenProvider")
# In a token endpoint's URL, the tenant is the first directory. Arrow supports the endpoints of Azure's public cloud only.
_TENANT = re.compile(r"https://login\.microsoftonline\.com/([^/]+)/oauth2/(?:v2\.0/)?token/?")
_IDENTITY_VARIABLES = (
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
)
# Settings with which Arrow would read other data than Hadoop, or none; each with the values for which it does not.
_HARMLESS = {
    "encryption.context.provider.type": ("",),
    "encryption.encoded.client-provided-key": ("",),
    "client-provided-encryption-key": ("",),
    "enable.delegation.token": ("", "false"),
}
_SECRET_SETTINGS = frozenset({"encryption.encoded.client-provided-key", "client-provided-encryption-key"})


def azure_store(configuration: Any, bucket: str, encrypted: bool) -> AzureStore:
    """Return the options to connect to a container (``container@account.dfs...``); raises Unsupported if Arrow cannot.

    encrypted: True if the path's scheme requires TLS, whatever the settings are.
    """
    container, _, host = bucket.partition("@")
    if "." not in host:
        raise AZURE_ACCOUNT.declined()
    if not has_filesystem():
        raise AZURE_OLD_ARROW.declined()
    settings = StoreSettings(
        configuration, (_PREFIX, f".{container}.{host}"), (_PREFIX, f".{host}"), (_PREFIX, "")
    )
    settings.check_harmless("abfss", _PREFIX, _HARMLESS, _SECRET_SETTINGS)
    encrypted = encrypted or settings.text("always.use.https") != "false"
    account = host.partition(".")[0]
    options = {"account_name": account, **_endpoint(settings, encrypted), **_credentials(settings)}
    return AzureStore(bucket, tuple(sorted(options.items())))


def _endpoint(settings: StoreSettings, encrypted: bool) -> dict[str, Any]:
    """The options for a custom endpoint, which must have a port; otherwise Hadoop ignores it."""
    scheme, host = "https" if encrypted else "http", settings.text("abfs.endpoint")
    if ":" in host:
        return dict(at_endpoint(f"{scheme}://{host}"))
    return {} if encrypted else {"blob_storage_scheme": scheme, "dfs_storage_scheme": scheme}


def _credentials(settings: StoreSettings) -> dict[str, Any]:
    kind = settings.text("account.auth.type") or "SharedKey"
    if kind == "SharedKey":
        return _shared_key(settings)
    if kind == "SAS":
        return _shared_access_signature(settings)
    if kind == "OAuth":
        return _oauth(settings)
    raise AZURE_CREDENTIALS.declined(kind=kind)


def _shared_key(settings: StoreSettings) -> dict[str, Any]:
    provider = settings.text("account.keyprovider")
    if provider not in _KEY_PROVIDERS:
        raise AZURE_CREDENTIALS.declined(kind=provider)
    key = settings.secret("account.key")
    if not key:
        raise AZURE_NO_CREDENTIALS.declined()
    return {"account_key": key}


def _shared_access_signature(settings: StoreSettings) -> dict[str, Any]:
    provider = settings.text("sas.token.provider.type")
    token = settings.secret("sas.fixed.token")
    if provider not in _SAS_PROVIDERS or not token:
        raise AZURE_CREDENTIALS.declined(kind=provider or "SAS")
    return {"sas_token": token.removeprefix("?")}


def _oauth(settings: StoreSettings) -> dict[str, Any]:
    provider = settings.text("account.oauth.provider.type")
    client = settings.secret("account.oauth2.client.id")
    if provider == f"{_OAUTH}ClientCredsTokenProvider":
        tenant = _TENANT.fullmatch(settings.text("account.oauth2.client.endpoint"))
        secret = settings.secret("account.oauth2.client.secret")
        if tenant is None or not client or not secret:
            raise AZURE_CREDENTIALS.declined(kind=provider)
        return {"tenant_id": tenant[1], "client_id": client, "client_secret": secret}
    if provider == f"{_OAUTH}MsiTokenProvider":
        return _managed_identity(settings, client)
    raise AZURE_CREDENTIALS.declined(kind=provider)


def _managed_identity(settings: StoreSettings, client: str) -> dict[str, Any]:
    """The options for a managed identity of the machine: one that the client id selects, or the only one."""
    if settings.text("account.oauth2.msi.endpoint") or settings.text("account.oauth2.msi.authority"):
        raise AZURE_CREDENTIALS.declined(kind="MsiTokenProvider at an endpoint of its own")
    if client:
        return {"client_id": client}
    if any(os.environ.get(name) for name in _IDENTITY_VARIABLES) or shutil.which("az"):
        raise AZURE_OTHER_IDENTITY.declined()
    return {}

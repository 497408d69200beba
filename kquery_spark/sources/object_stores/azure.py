"""Reads containers of Azure Blob Storage and Azure Data Lake Storage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.fs as pafs
from typing_extensions import override

from kquery_spark.errors import ConfigError, SourceError
from kquery_spark.sources.object_stores.store import (
    Location,
    ObjectStore,
    endpoint_stamp,
    is_true,
    split_endpoint,
)

# ``container@account.dfs.core.windows.net`` as in Hadoop, or the container alone, with the account as an option
_PATH = re.compile(r"(?:abfss|abfs|az)://([^/@?:.]+(?:@[^/@?:]+)?)(?:/[^?]*)?$")
_DOMAIN = "core.windows.net"
# The well-known account name and key of emulators such as Azurite, from Microsoft's documentation.
_EMULATOR = {
    "account_name": "devstoreaccount1",
    "account_key": "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    "endpoint": "http://127.0.0.1:10000",
}


class AzureStore(ObjectStore):
    """An Azure container. options: arguments of ``pyarrow.fs.AzureFileSystem``.

    bucket: the container and, if the path names it, the account.
    """

    schemes = ("abfss", "abfs", "az")
    secrets = frozenset({"account_key", "sas_token", "client_secret"})
    option_names = frozenset(
        {
            *secrets,
            *("account_name", "client_id", "tenant_id"),
            *("blob_storage_authority", "blob_storage_scheme", "dfs_storage_authority", "dfs_storage_scheme"),
        }
    )
    synonyms: ClassVar[Mapping[str, str]] = {
        "azure_storage_account_name": "account_name",
        **dict.fromkeys(
            ("azure_storage_account_key", "azure_storage_access_key", "access_key"), "account_key"
        ),
        **dict.fromkeys(("azure_storage_sas_token", "azure_storage_sas_key", "sas_key"), "sas_token"),
        **dict.fromkeys(("azure_client_id", "azure_storage_client_id"), "client_id"),
        **dict.fromkeys(("azure_client_secret", "azure_storage_client_secret"), "client_secret"),
        **dict.fromkeys(
            ("azure_tenant_id", "azure_storage_tenant_id", "azure_authority_id", "authority_id"), "tenant_id"
        ),
        **dict.fromkeys(("azure_storage_endpoint", "azure_endpoint", "endpoint_url"), "endpoint"),
        **dict.fromkeys(("azure_storage_use_emulator", "azure_use_emulator"), "use_emulator"),
    }

    @classmethod
    @override
    def locate(cls, path: str) -> Location | None:
        match = _PATH.match(path)
        if match is None:
            return None
        authority, _, key = path.partition("://")[2].partition("/")
        container = authority.partition("@")[0]
        return Location(match[1], f"{container}/{key}".rstrip("/"))

    @classmethod
    @override
    def of_options(cls, path: str, options: Any) -> AzureStore:
        store = super().of_options(path, options)
        named = dict(store.options)
        account, _, _ = store.bucket.partition("@")[2].partition(".")
        if account and named.setdefault("account_name", account) != account:
            raise ConfigError(f"the storage option account_name is not the account {account} of {path}")
        return cls(store.bucket, tuple(sorted(named.items())))

    @classmethod
    @override
    def _completed(cls, options: dict[str, Any]) -> dict[str, Any]:
        completed = dict(options)
        if is_true(completed.pop("use_emulator", False)):
            completed = {**_EMULATOR, **completed}
        endpoint = completed.pop("endpoint", None)
        return completed if endpoint is None else {**at_endpoint(str(endpoint)), **completed}

    @property
    @override
    def stamp(self) -> int:
        options = dict(self.options)
        endpoint = options.get("blob_storage_authority")
        return endpoint_stamp((options.get("account_name", self._account[0]), endpoint))

    @property
    def _account(self) -> tuple[str, str]:
        """The account in the path, and the domain of its services; both are empty if the path does not name an account."""
        account, _, host = self.bucket.partition("@")[2].partition(".")
        return account, host.partition(".")[2]

    @override
    def open_filesystem(self, options: dict[str, Any]) -> pafs.FileSystem:
        account, domain = self._account
        options.setdefault("account_name", account)
        if not options["account_name"]:
            raise SourceError("give its account as the storage option account_name")
        if domain and domain != _DOMAIN:
            options.setdefault("blob_storage_authority", f".blob.{domain}")
            options.setdefault("dfs_storage_authority", f".dfs.{domain}")
        if "sas_token" in options:
            # Arrow appends the token to URLs without a question mark
            options["sas_token"] = "?" + options["sas_token"].removeprefix("?")
        try:
            return _filesystem_class()(**options)
        except TypeError as error:
            raise SourceError(f"pyarrow {pa.__version__} has no such option: {error}") from None


def at_endpoint(url: str) -> dict[str, str]:
    """The options for a custom endpoint, such as an emulator, whose URLs have the account in the path."""
    scheme, host = split_endpoint(url)
    host, scheme = host.partition("/")[0], scheme or "https"
    return {
        "blob_storage_authority": host,
        "blob_storage_scheme": scheme,
        "dfs_storage_authority": host,
        "dfs_storage_scheme": scheme,
    }


def has_filesystem() -> bool:
    """True if the installed pyarrow can read Azure containers."""
    try:
        _filesystem_class()
    except SourceError:
        return False
    return True


def _filesystem_class() -> type[pafs.FileSystem]:
    found: type[pafs.FileSystem] | None = getattr(pafs, "AzureFileSystem", None)
    if found is None:
        raise SourceError(f"pyarrow {pa.__version__} cannot read Azure containers; install a newer release")
    return found

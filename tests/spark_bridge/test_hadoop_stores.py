"""Hadoop's settings of object stores, put as what Arrow's filesystems take, without a JVM."""

from __future__ import annotations

import os
from typing import Any

import pytest

from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.hadoop.object_stores import object_store

_CONNECTOR = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
_HOST = "account.dfs.core.windows.net"
_OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2."
_LOGIN = "https://login.microsoftonline.com/a-tenant/oauth2/token"


class _Properties(dict[str, str]):
    def isEmpty(self) -> bool:
        return not self


class _Configuration:
    """What a Configuration of Hadoop answers."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings

    def getTrimmed(self, name: str) -> str | None:
        return self._settings.get(name)

    def getPassword(self, name: str) -> list[str] | None:
        value = self._settings.get(name)
        return None if value is None else list(value)

    def getPropsWithPrefix(self, prefix: str) -> _Properties:
        return _Properties({k: v for k, v in self._settings.items() if k.startswith(prefix)})


@pytest.fixture(autouse=True)
def no_credentials_around(monkeypatch, tmp_path) -> None:
    for name in [name for name in os.environ if name.startswith(("AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))


def options(scheme: str, bucket: str, settings: dict[str, str]) -> dict[str, Any]:
    given = dict(object_store(_Configuration(settings), scheme, bucket).options)
    given.pop("retry_time_limit", None)
    return given


def google(**settings: str) -> dict[str, Any]:
    named = {f"fs.gs.{name.replace('__', '.')}": value for name, value in settings.items()}
    return options("gs", "bucket", {"fs.gs.impl": _CONNECTOR, **named})


def azure(settings: dict[str, str], scheme: str = "abfss") -> dict[str, Any]:
    named = {f"fs.azure.{name}": value for name, value in settings.items()}
    return options(scheme, f"container@{_HOST}", named)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"auth__type": "COMPUTE_ENGINE"}, {}),
        ({"auth__type": "APPLICATION_DEFAULT"}, {}),
        ({"auth__type": "UNAUTHENTICATED"}, {"anonymous": True}),
        ({"auth__service__account__enable": "false", "auth__null__enable": "true"}, {"anonymous": True}),
        ({"auth__service__account__json__keyfile": "/k"}, {"key_file": "/k"}),
        (
            {
                "auth__type": "SERVICE_ACCOUNT_JSON_KEYFILE",
                "auth__service__account__enable": "true",
                "auth__service__account__json__keyfile": "/k",
            },
            {"key_file": "/k"},
        ),
        (
            {"auth__impersonation__service__account": "someone@b.c"},
            {"target_service_account": "someone@b.c"},
        ),
        ({"storage__root__url": "https://storage.googleapis.com/"}, {}),
        ({"storage__root__url": "http://h:1/"}, {"scheme": "http", "endpoint_override": "h:1"}),
    ],
)
def test_settings_of_google(settings, expected):
    assert google(**settings) == expected


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"auth__type": "ACCESS_TOKEN_PROVIDER"}, "the credentials of ACCESS_TOKEN_PROVIDER"),
        ({"auth__type": "USER_CREDENTIALS"}, "the credentials of USER_CREDENTIALS"),
        ({"auth__access__token__provider__impl": "x"}, "the credentials of ACCESS_TOKEN_PROVIDER"),
        ({"auth__service__account__enable": "false"}, "the credentials of USER_CREDENTIALS"),
        ({"auth__service__account__keyfile": "/k.p12"}, "the credentials of a P12 key file"),
        ({"auth__service__account__private__key": "x"}, "the credentials of a private key"),
        (
            {"auth__type": "UNAUTHENTICATED", "auth__service__account__enable": "true"},
            "auth.service.account.* differ",
        ),
        ({"auth__impersonation__service__account__for__user__a": "x"}, "depends on the user"),
        ({"encryption__key": "a-secret"}, "while fs.gs.encryption.key is set"),
        ({"delegation__token__binding": "x"}, "while fs.gs.delegation.token.binding is x"),
        ({"impl": "org.example.Other"}, "files of the filesystem gs: are not supported"),
    ],
)
def test_what_arrow_has_no_google_credentials_for(settings, sentence):
    with pytest.raises(Unsupported, match=sentence) as raised:
        google(**settings)
    assert "a-secret" not in str(raised.value)


def test_a_machines_account_is_not_mistaken_for_a_file(monkeypatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/k")
    assert google(auth__service__account__enable="true") == {}
    with pytest.raises(Unsupported, match="because Arrow would use a credentials file"):
        google(auth__type="COMPUTE_ENGINE")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"account.key": "k"}, {"account_key": "k"}),
        ({f"account.key.{_HOST}": "k", "account.key": "another"}, {"account_key": "k"}),
        ({"account.auth.type": "SAS", "sas.fixed.token": "?sig=x"}, {"sas_token": "sig=x"}),
        (
            {
                f"account.auth.type.{_HOST}": "OAuth",
                "account.oauth.provider.type": f"{_OAUTH}ClientCredsTokenProvider",
                "account.oauth2.client.endpoint": _LOGIN,
                "account.oauth2.client.id": "me",
                "account.oauth2.client.secret": "s",
            },
            {"tenant_id": "a-tenant", "client_id": "me", "client_secret": "s"},
        ),
        (
            {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": f"{_OAUTH}MsiTokenProvider",
                "account.oauth2.client.id": "me",
            },
            {"client_id": "me"},
        ),
        ({"account.auth.type": "OAuth", "account.oauth.provider.type": f"{_OAUTH}MsiTokenProvider"}, {}),
        ({"account.key": "k", "abfs.endpoint": "an-ignored-host"}, {"account_key": "k"}),
    ],
)
def test_settings_of_azure(settings, expected):
    assert azure(settings) == {"account_name": "account", **expected}


def test_an_endpoint_and_a_scheme_of_azure():
    settings = {"account.key": "k", "abfs.endpoint": "h:1", "always.use.https": "false"}
    assert azure(settings, "abfs")["blob_storage_scheme"] == "http"
    assert azure(settings, "abfss")["blob_storage_scheme"] == "https"
    assert azure(settings, "abfs")["dfs_storage_authority"] == "h:1"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "without fs.azure.account.key"),
        ({"account.auth.type": "Custom"}, "the credentials of Custom"),
        ({"account.key": "k", "account.keyprovider": "a.Shell"}, "the credentials of a.Shell"),
        ({"account.auth.type": "SAS", "sas.token.provider.type": "a.Tokens"}, "the credentials of a.Tokens"),
        (
            {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": f"{_OAUTH}ClientCredsTokenProvider",
                "account.oauth2.client.endpoint": "https://login.example.com/t/oauth2/token",
                "account.oauth2.client.id": "me",
                "account.oauth2.client.secret": "a-secret",
            },
            "the credentials of .*ClientCredsTokenProvider",
        ),
        ({"account.key": "k", "enable.delegation.token": "true"}, "enable.delegation.token is true"),
        ({"account.key": "k", "client-provided-encryption-key": "a-secret"}, "encryption-key is set"),
    ],
)
def test_what_arrow_has_no_azure_credentials_for(settings, sentence):
    with pytest.raises(Unsupported, match=sentence) as raised:
        azure(settings)
    assert "a-secret" not in str(raised.value)


def test_the_machines_identity_is_not_mistaken_for_another(monkeypatch):
    monkeypatch.setenv("AZURE_CLIENT_ID", "another")
    with pytest.raises(Unsupported, match="with the machine's identity"):
        azure({"account.auth.type": "OAuth", "account.oauth.provider.type": f"{_OAUTH}MsiTokenProvider"})


@pytest.mark.parametrize("path", ["hdfs", "wasbs", "s3"])
def test_other_filesystems_are_sparks(path):
    with pytest.raises(Unsupported, match=f"files of the filesystem {path}: are not supported"):
        object_store(_Configuration({}), path, "bucket")

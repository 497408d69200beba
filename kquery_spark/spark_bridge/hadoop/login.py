"""Finds the user as whom Spark reads a cluster of HDFS, and logs the engine in as the same user.

On YARN and Kubernetes, Spark gets delegation tokens for clusters with Kerberos, and its executors log in with them. The
engine's workers and the driver's Python use the same tokens. If Spark has no tokens, the driver's Python and local workers
log in with Kerberos tickets.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kquery_spark.sources.hadoop.hdfs import DEFAULT_PORT, hadoop_user
from kquery_spark.sources.hadoop.kerberos import HOLDS_TOKENS, TOKEN_FILE, DelegationToken, default_principal
from kquery_spark.spark_bridge.hadoop.hdfs_features import NO_LOGIN, NO_TOKEN, OTHER_USER, SECURE_CLUSTER
from kquery_spark.spark_bridge.jvm.calls import Jvm

_USERS = "org.apache.hadoop.security.UserGroupInformation"
_CREDENTIALS = "org.apache.hadoop.security.Credentials"
_TEXT = "org.apache.hadoop.io.Text"
_AUTHENTICATION = "hadoop.security.authentication"
_TRANSFER = "dfs.data.transfer.protection"
_KIND = "HDFS_DELEGATION_TOKEN"


@dataclass(frozen=True)
class Login:
    """A login. user: for clusters without Kerberos. token: for clusters with Kerberos. settings: Hadoop settings by name."""

    user: str | None = None
    token: DelegationToken | None = None
    settings: tuple[tuple[str, str], ...] = ()


def login_for(jvm: Jvm, configuration: Any, system: Any, authority: str) -> Login:
    """Return the login for the cluster of a Hadoop FileSystem; raises Unsupported if the engine would be another user."""
    method = (configuration.getTrimmed(_AUTHENTICATION) or "simple").lower()
    is_secure = bool(jvm.call(_USERS, "isSecurityEnabled"))
    if is_secure != (method == "kerberos") or method not in ("simple", "kerberos"):
        raise SECURE_CLUSTER.declined(method=method)
    current = jvm.call(_USERS, "getCurrentUser")
    if not is_secure:
        return Login(_simple_user(jvm, current))
    service = jvm.new(_TEXT, system.getCanonicalServiceName())
    token = _token_of_spark(current, service, authority)
    if token is None or not HOLDS_TOKENS:
        _check_driver(jvm, configuration, current, service)
    if token is None and not jvm.is_local():
        raise NO_TOKEN.declined(authority=authority)
    protection = configuration.getTrimmed(_TRANSFER)
    settings = ((_AUTHENTICATION, method), *(((_TRANSFER, protection),) if protection else ()))
    return Login(None, token, settings)


def _simple_user(jvm: Jvm, current: Any) -> str:
    user, own = str(current.getUserName()), hadoop_user()
    of_executors = jvm.static("org.apache.spark.SparkContext", "getOrCreate").sparkUser()
    if str(current.getAuthenticationMethod()) != "SIMPLE" or not user == own == of_executors:
        raise OTHER_USER.declined(user=user if user != own else of_executors, own=own)
    return user


def _check_driver(jvm: Jvm, configuration: Any, current: Any, service: Any) -> None:
    """Raise Unsupported if the driver's Python would log in as another user than its JVM, or not at all."""
    user = str(current.getUserName())
    file = os.environ.get(TOKEN_FILE)
    if file and Path(file).is_file():  # tokens take precedence over tickets
        stored = jvm.call(_CREDENTIALS, "readTokenStorageFile", jvm.new("java.io.File", file), configuration)
        if stored.getToken(service) is not None:
            raise SECURE_CLUSTER.declined(method="kerberos, by tokens that Spark's JVM does not have")
    principal = default_principal()
    if principal is None:
        raise NO_LOGIN.declined(user=user)
    if principal != user or str(current.getAuthenticationMethod()) != "KERBEROS":
        raise OTHER_USER.declined(user=user, own=principal)


def _token_of_spark(current: Any, service: Any, authority: str) -> DelegationToken | None:
    """Spark's delegation token for a cluster; None if it has none, for example with a local master."""
    token = current.getCredentials().getToken(service)
    if token is None or not _is_for_hdfs(token):
        return None
    _check_owner(token, current)
    text = str(service)
    if not text.startswith("ha-"):  # the client looks for a name node by its address as it is written
        text = authority if ":" in authority else f"{authority}:{DEFAULT_PORT}"
    return DelegationToken(bytes(token.getIdentifier()), bytes(token.getPassword()), _KIND, text)


def _check_owner(token: Any, current: Any) -> None:
    """Raise Unsupported for the token of another user."""
    owner = token.decodeIdentifier().getUser()
    if str(owner.getShortUserName()) != str(current.getShortUserName()):
        raise OTHER_USER.declined(user=current.getUserName(), own=owner.getUserName())


def _is_for_hdfs(token: Any) -> bool:
    return str(token.getKind()) == _KIND

"""A Kerberos realm on this machine: Apache Kerby's server of tickets, in the Java process of a cluster."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.maven import artifact

REALM = "EXAMPLE.COM"
SERVICE = f"hdfs/localhost@{REALM}"
"""Who the servers of a cluster are."""
USER = f"alice@{REALM}"
_VERSION = "2.1.1"
_PARTS = (
    *(
        "kerb-simplekdc",
        "kerb-client",
        "kerb-admin",
        "kerb-server",
        "kerb-identity",
        "kerb-common",
        "kerb-core",
    ),
    *("kerb-crypto", "kerb-util", "kerby-config", "kerby-asn1", "kerby-pkix", "kerby-util", "kerby-xdr"),
    "token-provider",
)
_CONFIGURATION = """\
[libdefaults]
  default_realm = {realm}
  udp_preference_limit = 1
  dns_canonicalize_hostname = false
  rdns = false
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""


@dataclass(frozen=True)
class Realm:
    """A running realm. configuration: of clients, the file that ``KRB5_CONFIG`` names. keytab: the keys of everybody."""

    configuration: Path
    keytab: Path
    _server: Any
    _jvm: Any

    def log_in(self, principal: str, cache: Path) -> None:
        """What ``kinit`` does: write a cache of tickets."""
        client, file = self._server.getKrbClient(), self._jvm.java.io.File
        client.storeTicket(client.requestTgt(principal, file(str(self.keytab))), file(str(cache)))


def jars() -> list[Path]:
    """The JARs of the server; maven.Unreachable where they cannot be had."""
    found = [artifact(f"org.apache.kerby:{part}:{_VERSION}") for part in _PARTS]
    return [jar for jar in found if jar is not None]


def start_realm(jvm: Any, directory: Path) -> Realm:
    """Start a realm in a Java process, which uses it from then on; it ends with the process."""
    directory.mkdir()
    file, port = jvm.java.io.File, _free_port()
    server = jvm.org.apache.kerby.kerberos.kerb.server.SimpleKdcServer()
    server.setWorkDir(file(str(directory)))
    server.setKdcRealm(REALM)
    server.setKdcHost("127.0.0.1")
    server.setAllowUdp(False)
    server.setKdcTcpPort(port)
    server.init()
    server.start()
    configuration, keytab = directory / "clients.conf", directory / "keytab"
    configuration.write_text(_CONFIGURATION.format(realm=REALM, port=port))
    for principal in (SERVICE, USER):
        server.createPrincipal(principal)
        server.exportPrincipal(principal, file(str(keytab)))
    jvm.java.lang.System.setProperty("java.security.krb5.conf", str(configuration))
    return Realm(configuration, keytab, server, jvm)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port

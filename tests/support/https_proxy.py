"""A proxy for HTTPS that answers for hosts of the internet by a plain HTTP server on this machine."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_PASSWORD = "changeit"
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class HttpsProxy:
    """port: of a running proxy. trust: Java's store of the one certificate that clients have to trust."""

    port: int
    trust: Path

    @property
    def java_options(self) -> str:
        """Options of a JVM whose HTTPS goes through the proxy."""
        options = {
            "https.proxyHost": "127.0.0.1",
            "https.proxyPort": self.port,
            "javax.net.ssl.trustStore": self.trust,
            "javax.net.ssl.trustStorePassword": _PASSWORD,
        }
        return " ".join(f"-D{name}={value}" for name, value in options.items())


@contextmanager
def https_proxy(hosts: Sequence[str], server: tuple[str, int], directory: Path) -> Iterator[HttpsProxy]:
    """A proxy that is these hosts to its clients, as long as the block runs. server: who answers."""
    key, certificate, trust = directory / "key.pem", directory / "certificate.pem", directory / "trust.p12"
    _run(
        *(
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={hosts[0]}",
        ),
        *("-addext", f"subjectAltName={','.join(f'DNS:{host}' for host in hosts)}"),
        *("-keyout", str(key), "-out", str(certificate)),
    )
    keytool = Path(os.environ["JAVA_HOME"]) / "bin" / "keytool" if "JAVA_HOME" in os.environ else "keytool"
    _run(
        *(str(keytool), "-importcert", "-noprompt", "-alias", "proxy", "-file", str(certificate)),
        *("-keystore", str(trust), "-storetype", "PKCS12", "-storepass", _PASSWORD),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_serve, args=(listening, context, server), daemon=True).start()
        yield HttpsProxy(listening.getsockname()[1], trust)


def _run(*command: str) -> None:
    subprocess.run(command, capture_output=True, check=True)


def _serve(listening: socket.socket, context: ssl.SSLContext, server: tuple[str, int]) -> None:
    with suppress(OSError):  # the socket is closed when the block ends
        while True:
            client, _ = listening.accept()
            threading.Thread(target=_answer, args=(client, context, server), daemon=True).start()


def _answer(client: socket.socket, context: ssl.SSLContext, server: tuple[str, int]) -> None:
    """What a client asks by CONNECT for any host, and all that comes after it."""
    with suppress(OSError), client, socket.create_connection(server) as answering:
        request = b""
        while b"\r\n\r\n" not in request:
            request += client.recv(_CHUNK_BYTES)
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with context.wrap_socket(client, server_side=True) as asking:
            back = threading.Thread(target=_pump, args=(answering, asking), daemon=True)
            back.start()
            _pump(asking, answering)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

"""Checks an address before a service listens on it, because gRPC reports each failure as an unknown error."""

from __future__ import annotations

import errno
import socket
from urllib.parse import urlsplit

from kquery_spark.errors import ConfigError

_SCHEMES = ("grpc", "grpc+tcp", "grpc+tls")


def check_location(location: str) -> None:
    """Raise ConfigError unless a service can listen at a location such as ``grpc://127.0.0.1:32010``.

    Other schemes, such as Unix sockets, are not checked.
    """
    try:
        parts = urlsplit(location)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"cannot listen at {location}: {error}") from None
    if scheme not in _SCHEMES:
        return
    if not host or port is None:
        raise ConfigError(
            f"cannot listen at {location}: a location is grpc://HOST:PORT, with port 0 for a free port"
        )
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise ConfigError(f"cannot listen at {location}: no address is known for host {host}") from None
    failures = [failure for family, _, _, _, address in addresses if (failure := _bind(family, address))]
    if len(failures) == len(addresses):
        raise ConfigError(f"cannot listen at {location}: {_reason(failures[0], host, port)}")


def _bind(family: int, address: tuple[object, ...]) -> OSError | None:
    """Bind a socket for a moment; returns the error if that fails."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # A port whose last connections have just been closed is free, as it is for gRPC.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return error
    return None


def _reason(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"another process listens on port {port}; choose another port, or 0 for a free one"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine"
    if error.errno == errno.EACCES:
        return f"port {port} needs the rights of an administrator; choose a port from 1024"
    return error.strerror or str(error)

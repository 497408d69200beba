"""Checks an address before a service listens on it, because gRPC reports every failure as an unknown error."""

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
            f"cannot listen at {location}: the location must be grpc://HOST:PORT, with port 0 for any free port"
        )
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise ConfigError(f"cannot listen at {location}: the host name {host} cannot be resolved") from None
    # A host can have several addresses (IPv4 and IPv6). The service can listen if one of them works.
    failures = [failure for family, _, _, _, address in addresses if (failure := _bind(family, address))]
    if len(failures) == len(addresses):
        raise ConfigError(f"cannot listen at {location}: {_reason(failures[0], host, port)}")


def _bind(family: int, address: tuple[object, ...]) -> OSError | None:
    """Bind a socket and close it again; returns the error if that fails."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # With this option, as in gRPC, a port is free although connections that were closed are in TIME_WAIT.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return error
    return None


def _reason(error: OSError, host: str, port: int) -> str:
    """Return what is wrong with an address that cannot be bound, and what would be right."""
    if error.errno == errno.EADDRINUSE:
        return f"another process listens on port {port}; choose another port, or 0 for any free port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine"
    if error.errno == errno.EACCES:
        return f"port {port} requires administrator rights; choose a port of 1024 or above"
    return error.strerror or str(error)

"""``kquery-spark serve``: reads the address and the secrets of a service from the command line, and runs it."""

from __future__ import annotations

import importlib
import ipaddress
import os
import signal
import stat
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

import kquery_spark as kq
from kquery_spark.cached_property import cached_property
from kquery_spark.cli.failures import Exit, Failure, reading

if TYPE_CHECKING:
    from kquery_spark.service import ServiceLimits


@dataclass(frozen=True)
class Address:
    """The address of the service and the files for its authentication and encryption, from the command line."""

    host: str
    port: int
    token_file: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None

    def __post_init__(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise click.UsageError("--tls-certificate and --tls-key go together")
        if self.token_file is None and not _is_loopback(self.host):
            raise click.UsageError(
                f"other machines can connect to {self.host}: pass --token-file with the token that clients must send"
            )

    @property
    def location(self) -> str:
        """The address as a URI of Arrow Flight."""
        scheme = "grpc" if self.tls_key is None else "grpc+tls"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"

    @cached_property
    def token(self) -> str | None:
        """The bearer token that clients have to send; None if no token is required."""
        if self.token_file is None:
            return None
        _warn_if_others_read(self.token_file)
        with reading(self.token_file):
            token = Path(self.token_file).read_text(encoding="utf-8").strip()
        if not token:
            raise Failure(Exit.USAGE, f"no token in {self.token_file}")
        return token

    @cached_property
    def tls(self) -> tuple[bytes, bytes] | None:
        """The contents of the TLS certificate and of its key; None without encryption."""
        if self.tls_certificate is None or self.tls_key is None:
            return None
        _warn_if_others_read(self.tls_key)
        return _read(self.tls_certificate), _read(self.tls_key)


def service_limits(
    running_queries: int | None, query_seconds: float | None, read_ahead_mib: int | None
) -> ServiceLimits:
    """Return the limits of the command line; None selects the default of a limit."""
    limits: ServiceLimits = _service().ServiceLimits(query_seconds=query_seconds)
    if running_queries is not None:
        limits = replace(limits, running_queries=running_queries)
    if read_ahead_mib is not None:
        limits = replace(limits, read_ahead_bytes=read_ahead_mib << 20)
    return limits


def check_address(address: Address) -> None:
    """Raise an error before Spark starts if the service cannot listen, or if a token, certificate or key cannot be read."""
    _ = address.token, address.tls
    _service().check_location(address.location)


def serve_tables(context: kq.ExecutionContext, address: Address, limits: ServiceLimits) -> None:
    """Serve until SIGINT or SIGTERM. Queries that are running then can still finish."""
    token, tls = address.token, address.tls
    service = _service().QueryService(context, address.location, token=token, tls=tls, limits=limits)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    bound_address = replace(address, port=service.port)
    tables = ", ".join(context.table_names())
    click.echo(f"serving {tables} at {bound_address.location}; press Ctrl+C to stop")
    service.serve_until(stop)
    click.echo("stopped")


def _service() -> ModuleType:
    """Return the package of the service. Raises Failure if it cannot be imported."""
    try:
        return importlib.import_module("kquery_spark.service")
    except ImportError as error:
        raise Failure(Exit.USAGE, f"this build of pyarrow does not include Flight: {error}") from error


def _read(path: str) -> bytes:
    with reading(path):
        return Path(path).read_bytes()


def _warn_if_others_read(path: str) -> None:
    """Warn if all users of the machine can read or change a secret. This is not an error: mounted secrets often allow it."""
    with reading(path):
        mode = os.stat(path).st_mode
    if os.name == "posix" and mode & (stat.S_IROTH | stat.S_IWOTH):
        click.echo(
            f"warning: every user of this machine can read or change {path}; run chmod 600 on it", err=True
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

"""Azurite, Microsoft's emulator of Azure's storage, on this machine: its one account, and containers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow.fs as pafs
import pytest

ACCOUNT = "devstoreaccount1"
HOST = f"{ACCOUNT}.dfs.core.windows.net"
# All emulators have this key; Microsoft's documentation gives it.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_COMMAND = "azurite-blob"
_START_SECONDS = 60


@contextmanager
def azure_server() -> Iterator[str]:
    """The server's address, as long as the block runs; skips the test where the server is not installed."""
    command = shutil.which(_COMMAND)
    if command is None:
        pytest.skip(f"{_COMMAND} is not installed: npm install -g azurite")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ("--inMemoryPersistence", "--skipApiVersionCheck", "--silent", "--disableTelemetry")
    process = subprocess.Popen(
        [command, "--blobPort", str(port), "--disableProductStyleUrl", *options], stdout=subprocess.DEVNULL
    )
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    latest = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > latest:
                raise
            time.sleep(0.1)


def storage_options(endpoint: str) -> dict[str, str]:
    """How a context reaches the server."""
    return {
        "azure_storage_account_name": ACCOUNT,
        "azure_storage_account_key": KEY,
        "azure_endpoint": endpoint,
    }


def shared_access_signature() -> str:
    """A token that allows to read and list everything until the year 2099, as Microsoft's documentation has it signed."""
    version, services, kinds, rights, expiry = "2020-08-04", "b", "sco", "rl", "2099-01-01T00:00:00Z"
    text = "\n".join((ACCOUNT, rights, services, kinds, "", expiry, "", "", version, ""))
    signature = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    values = {"sv": version, "ss": services, "srt": kinds, "sp": rights, "se": expiry}
    return urlencode({**values, "sig": base64.b64encode(signature).decode()})


def new_container(endpoint: str, name: str) -> Any:
    """Make a container; gives the filesystem to write to it."""
    host = endpoint.removeprefix("http://")
    fs = pafs.AzureFileSystem(
        ACCOUNT,
        account_key=KEY,
        blob_storage_authority=host,
        blob_storage_scheme="http",
        dfs_storage_authority=host,
        dfs_storage_scheme="http",
    )
    fs.create_dir(name)
    return fs


def put_directory(fs: Any, target: str, directory: Path) -> None:
    """Write the files of a directory."""
    for file in sorted(directory.rglob("*")):
        if file.is_file():
            with fs.open_output_stream(f"{target}/{file.relative_to(directory)}") as stream:
                stream.write(file.read_bytes())

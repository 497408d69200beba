"""An S3 server on this machine, its one user, and buckets."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow.fs as pafs
from moto.server import ThreadedMotoServer

USER, SECRET, REGION = "someone", "a-secret-that-nothing-shows", "us-east-1"


@contextmanager
def s3_server() -> Iterator[str]:
    """The server's address, as long as the block runs."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def storage_options(endpoint: str) -> dict[str, str]:
    """How a context reaches the server."""
    return {
        "aws_access_key_id": USER,
        "aws_secret_access_key": SECRET,
        "aws_region": REGION,
        "aws_endpoint_url": endpoint,
    }


def new_bucket(endpoint: str, name: str) -> pafs.S3FileSystem:
    """Make a bucket; gives the filesystem to write to it."""
    fs = pafs.S3FileSystem(
        access_key=USER,
        secret_key=SECRET,
        region=REGION,
        endpoint_override=endpoint,
        allow_bucket_creation=True,
    )
    fs.create_dir(name)
    return fs

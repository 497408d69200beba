"""A server of one object that speaks as much of S3's protocol as a reader needs, and can be slow or cut connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from typing_extensions import override

from tests.support.s3 import storage_options

_MODIFIED = "Wed, 01 Jan 2025 00:00:00 GMT"


class SlowStore:
    """The object and how it is served.

    data: its bytes. fault: ``trickle`` sends 4,000 bytes a second, ``cut`` ends each connection after 1,000 bytes.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.fault: str | None = None
        self.stopped = threading.Event()
        self.options: dict[str, str] = {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: ClassVar[SlowStore]

    def do_HEAD(self) -> None:
        self._head(200, len(self.store.data))

    def do_GET(self) -> None:
        start, end = self.headers["Range"].removeprefix("bytes=").split("-")
        data = self.store.data[int(start) : int(end) + 1]
        self._head(206, len(data))
        if self.store.fault == "cut":
            self.wfile.write(data[:1000])
            self.close_connection = True
        elif self.store.fault == "trickle":
            self._trickle(data)
        else:
            self.wfile.write(data)

    def _head(self, status: int, size: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.send_header("Last-Modified", _MODIFIED)
        self.send_header("ETag", '"an-etag"')
        self.end_headers()

    def _trickle(self, data: bytes) -> None:
        for at in range(0, len(data), 400):
            if self.store.stopped.is_set():
                self.close_connection = True
                return
            self.wfile.write(data[at : at + 400])
            time.sleep(0.1)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@contextmanager
def slow_store(data: bytes) -> Iterator[SlowStore]:
    """The server, as long as the block runs."""
    store = SlowStore(data)
    handler = type("Handler", (_Handler,), {"store": store})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    store.options = storage_options(f"http://127.0.0.1:{server.server_port}")
    try:
        yield store
    finally:
        store.stopped.set()
        server.shutdown()
        server.server_close()

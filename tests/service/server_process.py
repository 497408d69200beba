"""Runs the Flight service over one table in its own process, for tests that send arbitrary requests."""

from __future__ import annotations

import re
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import flight

SERVE = [sys.executable, "-c", "from kquery_spark.cli import main; main()", "serve"]
CALL_SECONDS = 60.0
ROWS = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "name": [f"name {i % 17}" for i in range(1000)],
        "price": pa.array([i / 8 for i in range(1000)], pa.float64()),
        "tags": pa.array([[i, i + 1] for i in range(1000)], pa.list_(pa.int64())),
    }
)


class Server:
    """``kquery-spark serve`` with a token, over one table."""

    def __init__(self, directory: Path, *options: str) -> None:
        pq.write_table(ROWS, directory / "items.parquet")
        self.token = secrets.token_hex(16)
        (directory / "token").write_text(self.token)
        (directory / "token").chmod(0o600)
        tables = ["--table", f"items={directory / 'items.parquet'}"]
        self._log = (directory / "log").open("w+")
        self.process = subprocess.Popen(
            [*SERVE, *tables, "--port", "0", "--token-file", str(directory / "token"), *options],
            stdout=subprocess.PIPE, stderr=self._log, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"grpc://127\.0\.0\.1:(\d+)", line)
        if found is None:
            raise RuntimeError(f"the service did not start: {line} {self.log()}")
        self.port = int(found[1])
        self.location = f"grpc://127.0.0.1:{self.port}"

    def log(self) -> str:
        """Return what the service wrote to its error stream."""
        self._log.flush()
        return Path(self._log.name).read_text(errors="replace")

    def options(self, seconds: float = CALL_SECONDS) -> flight.FlightCallOptions:
        """Return the options of a call that carries the token."""
        return flight.FlightCallOptions(
            timeout=seconds, headers=[(b"authorization", f"Bearer {self.token}".encode())]
        )

    def status(self, name: str) -> int:
        """Return a number of /proc/PID/status: VmRSS or VmHWM in KiB, or Threads."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)[1])  # type: ignore[index]

    def answers(self) -> bool:
        """Return whether the same process still answers a valid request."""
        if self.process.poll() is not None:
            return False
        with flight.FlightClient(self.location) as client:
            table = client.do_get(flight.Ticket(b"SELECT sum(id) AS s FROM items"), self.options()).read_all()
        return bool(table.to_pydict() == {"s": [499500]})

    def close(self) -> None:
        """Stop the process, and kill it if it does not end."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()


@contextmanager
def running_server(*options: str) -> Iterator[Server]:
    """Run a server until the ``with`` statement ends."""
    with tempfile.TemporaryDirectory() as directory:
        server = Server(Path(directory), *options)
        try:
            yield server
        finally:
            server.close()

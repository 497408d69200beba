"""A server of Google Cloud Storage on this machine: what Arrow's and Google's own clients ask to read objects."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from email import message_from_bytes
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

TOKEN = "a-token-that-nothing-shows"
ACCOUNT = "someone@a-project.iam.gserviceaccount.com"
#: How names of buckets start that are read with ``TOKEN``, or with one that ``ACCOUNT`` signs.
PRIVATE = "private"


@dataclass(frozen=True)
class GoogleServer:
    """The address of a running server, by which tests write objects: they say in the path that it is a test's request."""

    endpoint: str

    def put(self, bucket: str, key: str, content: bytes, encoding: str = "") -> None:
        """Write an object, in a bucket that is made if there is none. encoding: what it says of its content."""
        self._request("PUT", bucket, key, content, encoding)

    def put_directory(self, bucket: str, key: str, directory: Path) -> None:
        """Write the files of a directory."""
        for file in sorted(directory.rglob("*")):
            if file.is_file():
                self.put(bucket, f"{key}/{file.relative_to(directory)}".lstrip("/"), file.read_bytes())

    def delete(self, bucket: str, key: str) -> None:
        """Remove an object."""
        self._request("DELETE", bucket, key, None)

    def _request(self, method: str, bucket: str, key: str, content: bytes | None, encoding: str = "") -> None:
        url = f"{self.endpoint}/storage/v1/b/{bucket}/o/{quote(key, safe='')}"
        headers = {"Content-Encoding": encoding} if encoding else {}
        urllib.request.urlopen(urllib.request.Request(url, content, headers, method=method)).close()


def key_file(directory: Path) -> str:
    """The path of a new key file of ``ACCOUNT``."""
    key = subprocess.run(["openssl", "genrsa", "2048"], capture_output=True, text=True, check=True).stdout
    account = {"type": "service_account", "private_key_id": "1", "client_email": ACCOUNT, "client_id": "2"}
    token_uri = "https://oauth2.googleapis.com/token"
    path = directory / "key.json"
    path.write_text(json.dumps({**account, "private_key": key, "token_uri": token_uri}))
    return str(path)


@contextmanager
def google_server() -> Iterator[GoogleServer]:
    """The server in a process of its own, as long as the block runs: pyarrow keeps Python's lock while it reads."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.support.google_storage"]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield GoogleServer(process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class _Object:
    content: bytes
    generation: int
    written: str
    encoding: str


_buckets: dict[str, dict[str, _Object]] = {}
_generations = itertools.count(1)


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_PUT(self) -> None:
        """Write an object of a test."""
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        content = self.rfile.read(int(self.headers["Content-Length"]))
        bucket, key = self._names()
        _buckets.setdefault(bucket, {})[key] = _Object(
            content, next(_generations), now, self.headers.get("Content-Encoding", "")
        )
        self._json({})

    def do_DELETE(self) -> None:
        """Remove an object of a test."""
        bucket, key = self._names()
        del _buckets[bucket][key]
        self._json({})

    def do_POST(self) -> None:
        """Several requests at once, or a token for whoever signs a request for one, which Google's own server would check."""
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.startswith("/batch/"):
            return self._json({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})
        kind = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        parts = message_from_bytes(kind + content).get_payload()
        assert isinstance(parts, list)
        answers = [_answer_of_part(str(part["Content-ID"]), str(part.get_payload())) for part in parts]
        body = b"".join(b"--answers\r\n" + answer + b"\r\n" for answer in answers) + b"--answers--\r\n"
        self._answer(HTTPStatus.OK, body, "multipart/mixed; boundary=answers", {})

    def do_GET(self) -> None:
        """A bucket, a list of objects, an object's metadata or its content."""
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        bucket, key = self._names()
        if bucket.startswith(PRIVATE) and not _is_known(self.headers.get("Authorization", "")):
            return self._error(HTTPStatus.UNAUTHORIZED, "authError")
        objects = _buckets.get(bucket)
        if objects is None:
            return self._error(HTTPStatus.NOT_FOUND, "notFound")
        if key is None:
            return self._json({"kind": "storage#bucket", "id": bucket, "name": bucket, "location": "US"})
        if not key:
            return self._json(_listing(bucket, objects, query))
        found = objects.get(key)
        if found is None or query.get("generation", str(found.generation)) != str(found.generation):
            return self._error(HTTPStatus.NOT_FOUND, "notFound")
        return (
            self._content(found) if query.get("alt") == "media" else self._json(_metadata(bucket, key, found))
        )

    def _names(self) -> tuple[str, Any]:
        """The bucket and the key; no text for the bucket itself, an empty one for its list of objects."""
        steps = urlsplit(self.path).path.partition("/storage/v1/")[2].split("/")
        return unquote(steps[1]), None if len(steps) == 2 else unquote("/".join(steps[3:]))

    def _content(self, found: _Object) -> None:
        content, status = found.content, HTTPStatus.OK
        unit, _, ranges = self.headers.get("Range", "").partition("=")
        extra = {"X-Goog-Generation": str(found.generation), "X-Goog-Hash": f"md5={_md5(found)}"}
        if unit == "bytes":
            first, _, last = ranges.partition("-")
            size = len(content)
            start = int(first) if first else max(size - int(last), 0)
            end = min(int(last) + 1, size) if first and last else size
            if start >= size:
                return self._error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "requestedRangeNotSatisfiable")
            content, status = content[start:end], HTTPStatus.PARTIAL_CONTENT
            extra["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        self._answer(status, content, "application/octet-stream", extra)

    def _json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._answer(status, json.dumps(value).encode(), "application/json; charset=UTF-8", {})

    def _error(self, status: HTTPStatus, reason: str) -> None:
        details = [{"domain": "global", "reason": reason, "message": status.phrase}]
        self._json({"error": {"code": status.value, "message": status.phrase, "errors": details}}, status)

    def _answer(self, status: HTTPStatus, content: bytes, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        # Arrow opens an object by asking for all of it, and goes away
        with suppress(ConnectionError):
            self.wfile.write(content)


def _answer_of_part(number: str, request: str) -> bytes:
    """What a request for metadata in a batch of requests gets: ``GET /storage/v1/b/bucket/o/key HTTP/1.1``."""
    bucket, _, key = urlsplit(request.split()[1]).path.partition("/storage/v1/b/")[2].partition("/o/")
    found = _buckets.get(unquote(bucket), {}).get(unquote(key))
    status = HTTPStatus.NOT_FOUND if found is None else HTTPStatus.OK
    error = {"error": {"code": status.value, "message": status.phrase}}
    content = json.dumps(error if found is None else _metadata(unquote(bucket), unquote(key), found))
    lines = [
        *("Content-Type: application/http", f"Content-ID: <response-{number.strip('<>')}>", ""),
        *(f"HTTP/1.1 {status.value} {status.phrase}", "Content-Type: application/json; charset=UTF-8"),
        *(f"Content-Length: {len(content)}", "", content),
    ]
    return "\r\n".join(lines).encode()


def _is_known(authorization: str) -> bool:
    """Whether a request shows the token, or one that names the account, whose signature is not checked."""
    token = authorization.removeprefix("Bearer ")
    if token == TOKEN:
        return True
    parts = token.split(".")
    return len(parts) == 3 and json.loads(base64.urlsafe_b64decode(f"{parts[1]}=="))["iss"] == ACCOUNT


def _listing(bucket: str, objects: dict[str, _Object], query: dict[str, str]) -> dict[str, Any]:
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    keys = sorted(key for key in objects if key.startswith(prefix) and key >= query.get("startOffset", ""))
    items, directories = [], set()
    for key in keys:
        head, cut, rest = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
        if cut:
            directories.add(f"{prefix}{head}{delimiter}")
        if not cut or (not rest and query.get("includeTrailingDelimiter") == "true"):
            items.append(_metadata(bucket, key, objects[key]))
    return {"kind": "storage#objects", "items": items, "prefixes": sorted(directories)}


def _metadata(bucket: str, key: str, found: _Object) -> dict[str, Any]:
    return {
        "kind": "storage#object",
        "id": f"{bucket}/{key}/{found.generation}",
        "name": key,
        "bucket": bucket,
        "generation": str(found.generation),
        "metageneration": "1",
        "contentType": "application/octet-stream",
        "size": str(len(found.content)),
        "timeCreated": found.written,
        "updated": found.written,
        "storageClass": "STANDARD",
        "md5Hash": _md5(found),
        **({"contentEncoding": found.encoding} if found.encoding else {}),
    }


def _md5(found: _Object) -> str:
    return base64.b64encode(hashlib.md5(found.content, usedforsecurity=False).digest()).decode()


if __name__ == "__main__":
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Requests)
    print(f"http://127.0.0.1:{http.server_port}", flush=True)
    http.serve_forever()

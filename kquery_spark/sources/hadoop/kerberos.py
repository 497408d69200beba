"""Kerberos logins and Hadoop delegation tokens, with which this process reads secure clusters."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

TOKEN_FILE = "HADOOP_TOKEN_FILE_LOCATION"
"""The environment variable by which Hadoop's clients find a file of delegation tokens."""
HOLDS_TOKENS = hasattr(os, "memfd_create")
"""True if this process can pass tokens to a client, which is so on Linux."""
_LIBRARY = "libkrb5.so.3"
# Hadoop's Credentials: magic number and version of a file whose entries are written as Writables.
_HEADER = b"HDTS\x00"


@dataclass(frozen=True)
class DelegationToken:
    """A delegation token, which a name node accepts instead of a Kerberos login.

    identifier, password, kind: as Hadoop defines them. service: the cluster for which a client uses the token.
    """

    identifier: bytes = field(repr=False)
    password: bytes = field(repr=False)
    kind: str
    service: str


def default_principal() -> str | None:
    """The principal of the default ticket cache, for example ``alice@EXAMPLE.COM``; None without such a cache."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    context, cache, principal, name = (ctypes.c_void_p() for _ in range(4))
    with ExitStack() as held:
        if library.krb5_init_context(ctypes.byref(context)):
            return None
        held.callback(library.krb5_free_context, context)
        if library.krb5_cc_default(context, ctypes.byref(cache)):
            return None
        held.callback(library.krb5_cc_close, context, cache)
        if library.krb5_cc_get_principal(context, cache, ctypes.byref(principal)):
            return None
        held.callback(library.krb5_free_principal, context, principal)
        if library.krb5_unparse_name(context, principal, ctypes.byref(name)):
            return None
        held.callback(library.krb5_free_unparsed_name, context, name)
        return ctypes.string_at(name.value or 0).decode()


class _TokenFile:
    """An anonymous file of tokens in memory. An environment variable points to it as long as a caller needs it.

    The file stays open until the tokens change, because a child process that was started meanwhile may open it later.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before: str | None = None
        self._content = b""
        self._files: list[int] = []

    def take(self, content: bytes) -> None:
        """Make the environment variable name a file with this content until ``release``."""
        with self._lock:
            if content != self._content:
                self._write(content)
            if not self._users:
                self._before = os.environ.get(TOKEN_FILE)
            self._users += 1
            os.environ[TOKEN_FILE] = f"/proc/{os.getpid()}/fd/{self._files[-1]}"

    def release(self) -> None:
        """End one use. The last one restores the value that the environment variable had before the first one."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if self._before is None:
                del os.environ[TOKEN_FILE]
            else:
                os.environ[TOKEN_FILE] = self._before

    def _write(self, content: bytes) -> None:
        if not self._users:
            for old in self._files:
                os.close(old)
            self._files.clear()
        self._files.append(os.memfd_create("tokens"))
        os.write(self._files[-1], content)
        self._content = content


_token_file = _TokenFile()


@contextmanager
def logged_in_by(tokens: Sequence[DelegationToken]) -> Iterator[None]:
    """Make HDFS clients in this process log in with these tokens while the block runs; without tokens, do nothing.

    The tokens are stored in memory only. If blocks overlap in several threads, the tokens of the latest one apply to all.
    """
    if not tokens or not HOLDS_TOKENS:
        yield
        return
    _token_file.take(_HEADER + _written(tokens))
    try:
        yield
    finally:
        _token_file.release()


def _written(tokens: Sequence[DelegationToken]) -> bytes:
    """Encode tokens like Hadoop's ``Credentials.write``, with an empty list of secret keys."""
    parts = [_number(len(tokens))]
    for token in tokens:
        service = token.service.encode()
        for value in (service, token.identifier, token.password, token.kind.encode(), service):
            parts += [_number(len(value)), value]
    return b"".join((*parts, _number(0)))


def _number(value: int) -> bytes:
    """Encode a length like Hadoop's ``WritableUtils.writeVInt``: one byte below 128, else a size byte and big-endian bytes.

    For example, 300 becomes 8E 01 2C.
    """
    if value < 128:
        return bytes([value])
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([256 - 112 - len(data)]) + data

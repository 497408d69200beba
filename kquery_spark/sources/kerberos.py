"""Logins of Kerberos and Hadoop's delegation tokens, by which this process reads clusters that ask for them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from kquery_spark.errors import SourceError
from kquery_spark.sources.environment import variable_set

TOKEN_FILE = "HADOOP_TOKEN_FILE_LOCATION"
"""The environment variable of Hadoop's clients that names a file of delegation tokens."""
_LIBRARY = "libkrb5.so.3"
# Hadoop's Credentials: magic number and version of a file whose entries are written as Writables.
_HEADER = b"HDTS\x00"


@dataclass(frozen=True)
class DelegationToken:
    """What a name node takes for a login. identifier, password, kind: Hadoop's. service: the cluster, for its client."""

    identifier: bytes = field(repr=False)
    password: bytes = field(repr=False)
    kind: str
    service: str


def default_principal() -> str | None:
    """Whose tickets the default cache of this process holds, like ``alice@EXAMPLE.COM``; None where there are none."""
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


@contextmanager
def logged_in_by(tokens: Sequence[DelegationToken]) -> Iterator[None]:
    """Have clients of HDFS in this process log in by tokens while the block runs; by other means where there are none.

    The tokens are in memory only, in a file without a name, which processes that are started meanwhile find, too.
    """
    if not tokens:
        yield
        return
    if not hasattr(os, "memfd_create"):
        raise SourceError("delegation tokens of HDFS need Linux")
    file = os.memfd_create("tokens")
    try:
        os.write(file, _HEADER + _written(tokens))
        with variable_set(TOKEN_FILE, f"/proc/{os.getpid()}/fd/{file}"):
            yield
    finally:
        os.close(file)


def _written(tokens: Sequence[DelegationToken]) -> bytes:
    """Tokens as Hadoop's ``Credentials.write`` writes them, and no secret keys."""
    parts = [_number(len(tokens))]
    for token in tokens:
        service = token.service.encode()
        for value in (service, token.identifier, token.password, token.kind.encode(), service):
            parts += [_number(len(value)), value]
    return b"".join((*parts, _number(0)))


def _number(value: int) -> bytes:
    """A length as Hadoop's ``WritableUtils.writeVInt`` writes it."""
    if value < 128:
        return bytes([value])
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([256 - 112 - len(data)]) + data

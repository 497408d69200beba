"""AES by its modes: what is encrypted, decrypted again, and what cannot be."""

from __future__ import annotations

from typing import Any

from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from tests.functions.parity import Arg, Case

DATA = Arg(
    t.BINARY,
    (
        b"",
        b"a",
        b"fifteen bytes..",
        b"sixteen bytes...",
        b"more than sixteen bytes",
        bytes(range(256)),
        b"\xff\x00",
    ),
)
KEYS = (b"0123456789abcdef", b"0123456789abcdef01234567", b"0123456789abcdef0123456789abcdef")
WRONG = Arg(t.BINARY, (b"0123456789abcdef", bytes(28), bytes(33)))
MODES = (
    ("ECB", "PKCS", b"", b""),
    ("cbc", "DEFAULT", b"sixteen bytes iv", b""),
    ("GCM", "NONE", b"twelve bytes", b""),
    ("GCM", "default", b"twelve bytes", b"and more"),
)


def _binary(value: bytes) -> str:
    return f"X'{value.hex()}'"


def _encrypted(key: bytes, mode: tuple[str, str, bytes, bytes]) -> Case:
    name, padding, iv, more = mode
    options = [
        Literal(name, t.STRING),
        Literal(padding, t.STRING),
        Literal(iv, t.BINARY),
        Literal(more, t.BINARY),
    ]

    def build(args: list[Expr], evaluation: EvalMode, tz: str) -> Expr:
        return Call.of("aes_encrypt", args[0], Literal(key, t.BINARY), *options, mode=evaluation)

    given = (
        f"'{name}', '{padding}'" + (f", {_binary(iv)}" if iv else "") + (f", {_binary(more)}" if more else "")
    )
    return Case("aes_encrypt", f"aes_encrypt({{0}}, {_binary(key)}, {given})", (DATA,), build)


def _decrypted(
    data: Arg, key: bytes, by: tuple[str, str, bytes, bytes], encrypted: bool, **options: Any
) -> Case:
    name, padding, iv, more = by
    first = [Literal(key, t.BINARY), Literal(name, t.STRING), Literal(padding, t.STRING)]
    vector, further = Literal(iv, t.BINARY), Literal(more, t.BINARY)

    def build(args: list[Expr], evaluation: EvalMode, tz: str) -> Expr:
        text: Expr = args[0]
        if encrypted:
            text = Call.of("aes_encrypt", text, *first, vector, further, mode=EvalMode.ANSI)
        return Call.of("aes_decrypt", text, *first, further, mode=evaluation)

    added = f", {_binary(more)}" if more else ""
    vector_text = _binary(iv) if iv else "cast('' as binary)"
    encryption = f"aes_encrypt({{0}}, {_binary(key)}, '{name}', '{padding}', {vector_text}{added})"
    text = encryption if encrypted else "{0}"
    function = "try_aes_decrypt" if options.get("mode") is EvalMode.TRY else "aes_decrypt"
    return Case(
        "aes_decrypt",
        f"{function}({text}, {_binary(key)}, '{name}', '{padding}'{added})",
        (data,),
        build,
        **options,
    )


CASES = [
    *[_encrypted(KEYS[0], mode) for mode in MODES],
    *[_decrypted(DATA, key, mode, encrypted=True) for key, mode in zip((*KEYS, KEYS[0]), MODES, strict=True)],
    *[_decrypted(WRONG, KEYS[0], mode, encrypted=False, mode=EvalMode.TRY) for mode in MODES],
]

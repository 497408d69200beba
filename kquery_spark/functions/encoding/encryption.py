"""AES_ENCRYPT and AES_DECRYPT, by the package ``cryptography`` where it is installed.

Spark's ``ExpressionImplUtils``: GCM and CBC write the initialization vector in front of the string, GCM its tag after it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.core.attempts import in_mode
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.registry import (
    COLUMN,
    CallContext,
    EvalMode,
    Function,
    JavaMethod,
    Kernel,
    Nullability,
    accept,
    register_internal,
)
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import CBC, ECB

_PACKAGE = "cryptography"
_KEY_BYTES = (16, 24, 32)
_IV_BYTES = {"ECB": 0, "CBC": 16, "GCM": 12}
_BLOCK_BITS, _BLOCK_BYTES = 128, 16
_TAG_BYTES = 16
_PADDINGS = {"ECB": ("PKCS", "DEFAULT"), "CBC": ("PKCS", "DEFAULT"), "GCM": ("NONE", "DEFAULT")}


def _encrypt(args: Sequence[Vector], context: CallContext) -> Data:
    """AES_ENCRYPT of text, key, mode, padding, initialization vector and additional authenticated data."""
    return _run(_encrypt_bytes, args, context)


def _decrypt(args: Sequence[Vector], context: CallContext) -> Data:
    """AES_DECRYPT of text, key, mode, padding and additional authenticated data."""
    return _run(_decrypt_bytes, args, context)


def _run(of: Callable[..., bytes], args: Sequence[Vector], context: CallContext) -> Data:
    if find_spec(_PACKAGE) is None:  # in a worker
        raise Unsupported(f"AES needs the package {_PACKAGE} in Spark's workers, too")
    data, key, mode, padding, *others = args
    if not (mode.data.is_valid and padding.data.is_valid):
        return pa.nulls(context.num_rows, t.BINARY)
    by_mode = functools.partial(of, mode.data.as_py().upper())
    return per_distinct(in_mode(by_mode, context), [data, key, *others], context)


def _encrypt_bytes(mode: str, data: bytes, key: bytes, iv: bytes, authenticated: bytes) -> bytes:
    _check_key(key)
    if authenticated and mode != "GCM":
        raise Unsupported(f"Spark refuses authenticated data with AES by {mode}")
    if len(iv) != _IV_BYTES[mode]:
        raise Unsupported(
            f"AES_ENCRYPT by {mode} with an initialization vector of {len(iv)} bytes is not supported"
        )
    if mode == "GCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return iv + AESGCM(key).encrypt(iv, data, authenticated)
    from cryptography.hazmat.primitives import padding

    padder = padding.PKCS7(_BLOCK_BITS).padder()
    encryptor = _cipher(mode, key, iv).encryptor()
    return iv + encryptor.update(padder.update(data) + padder.finalize()) + encryptor.finalize()


def _decrypt_bytes(mode: str, data: bytes, key: bytes, authenticated: bytes) -> bytes:
    _check_key(key)
    if authenticated and mode != "GCM":
        raise Unsupported(f"Spark refuses authenticated data with AES by {mode}")
    size = _IV_BYTES[mode]
    if len(data) < size:
        raise Unsupported("AES_DECRYPT of less than an initialization vector is not supported")
    iv, text = data[:size], data[size:]
    if mode == "GCM":
        return _decrypt_gcm(text, key, iv, authenticated)
    if not text:
        return b""
    if len(text) % _BLOCK_BYTES:
        raise _crypto_error("Input length must be multiple of 16 when decrypting with padded cipher")
    from cryptography.hazmat.primitives import padding

    decryptor = _cipher(mode, key, iv).decryptor()
    padded = decryptor.update(text) + decryptor.finalize()
    unpadder = padding.PKCS7(_BLOCK_BITS).unpadder()
    try:
        return unpadder.update(padded) + unpadder.finalize()
    except ValueError:
        raise _crypto_error("Given final block not properly padded.") from None


def _decrypt_gcm(text: bytes, key: bytes, iv: bytes, authenticated: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(text) < _TAG_BYTES:
        raise _crypto_error("Input data too short to contain an expected tag length of 16bytes")
    try:
        return AESGCM(key).decrypt(iv, text, authenticated)
    except InvalidTag:
        raise _crypto_error("Tag mismatch") from None


def _cipher(mode: str, key: bytes, iv: bytes) -> Cipher[CBC | ECB]:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CBC(iv) if mode == "CBC" else modes.ECB())


def _check_key(key: bytes) -> None:
    if len(key) not in _KEY_BYTES:
        raise ExecutionError(
            "INVALID_PARAMETER_VALUE.AES_KEY_LENGTH",
            f"The key of AES has {len(key)} bytes, but must have 16, 24 or 32.",
        )


def _crypto_error(detail: str) -> ExecutionError:
    return ExecutionError("INVALID_PARAMETER_VALUE.AES_CRYPTO_ERROR", f"AES failed: {detail}.")


def _check(values: Sequence[object]) -> None:
    if find_spec(_PACKAGE) is None:
        raise Unsupported(f"AES needs the package {_PACKAGE} (pip install 'kquery-spark[crypto]')")
    mode, padding = values[2:4]
    if mode is COLUMN or padding is COLUMN:
        raise Unsupported("the mode and the padding of AES must be literals")
    if mode is not None and padding is not None:
        name = str(mode).upper()
        if str(padding).upper() not in _PADDINGS.get(name, ()):
            raise Unsupported(f"Spark refuses AES by {mode} with the padding {padding}")


def _check_encryption(values: Sequence[object]) -> None:
    _check(values)
    if str(values[2]).upper() in ("CBC", "GCM") and values[4] == b"":
        raise Unsupported("AES_ENCRYPT without an initialization vector draws random ones, as Spark does")


def _entry(
    name: str, method: str, kernel: Kernel, check: Callable[[Sequence[object]], None], *others: pa.DataType
) -> Function:
    """A function of text, key, mode, padding and others, which Spark calls as a Java method."""
    types = (t.BINARY, t.BINARY, t.STRING, t.STRING, *others)
    return Function(
        name,
        kernel,
        accept(t.BINARY, *types),
        java=(JavaMethod("ExpressionImplUtils", method),),
        arity=(len(types), len(types)),
        nullable=Nullability.OTHER_REASONS,
        raises=frozenset({EvalMode.ANSI, EvalMode.LEGACY}),
        check_values=check,
        calls=CallForm(columns=tuple(range(len(types)))),
    )


register_internal(
    _entry("aes_encrypt", "aesEncrypt", _encrypt, _check_encryption, t.BINARY, t.BINARY),
    _entry("aes_decrypt", "aesDecrypt", _decrypt, _check, t.BINARY),
)

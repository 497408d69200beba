"""URL_ENCODE, URL_DECODE and PARSE_URL, as Java's ``URLEncoder``, ``URLDecoder`` and ``URI`` do it."""

from __future__ import annotations

import functools
import re
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import replace

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.core.attempts import null_on_error_if_try
from kquery_spark.functions.core.distinct import each_distinct, per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ANSI_RAISES,
    CallContext,
    EvalMode,
    Function,
    JavaMethod,
    Nullability,
    accept,
    cast_to,
    register,
)
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

# --- percent signs --------------------------------------------------------------------------------

_ESCAPED = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_HEX_PAIR = re.compile(r"%[0-9a-fA-F]{2}")


def _url_decode(args: Sequence[Vector], context: CallContext) -> Data:
    return per_distinct(null_on_error_if_try(_decode_url, context), args, context)


def _decode_url(text: str) -> str:
    plain = text.replace("+", " ")
    if "%" not in plain:
        return plain
    for match in re.finditer("%", text):
        if _HEX_PAIR.match(text, match.start()) is None:
            pair = text[match.start() + 1 : match.start() + 3]
            if not pair.isascii() or "+" in pair:
                raise Unsupported("URL_DECODE of a percent sign before other digits is not supported")
            raise ExecutionError("CANNOT_DECODE_URL", f"The provided URL cannot be decoded: {text}.")
    return _ESCAPED.sub(_unescape_bytes, plain)


def _unescape_bytes(match: re.Match[str]) -> str:
    try:
        return bytes.fromhex(match[0].replace("%", "")).decode()
    except UnicodeDecodeError:
        raise Unsupported("URL_DECODE of bytes that are not UTF-8 is not supported") from None


# --- parts ----------------------------------------------------------------------------------------

_LEGAL = r"(?:[A-Za-z0-9_\-.!~*'();:@&=+$,{0}]|%[0-9a-fA-F]{{2}})*"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
_HOST = rf"(?:{_LABEL}\.)*[A-Za-z](?:[A-Za-z0-9\-]*[A-Za-z0-9])?\.?"
_IPV4 = r"(?:(?:[1-9]?[0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\.){3}(?:[1-9]?[0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_USER = r"(?:[A-Za-z0-9_\-.!~*'();:&=+$,]|%[0-9a-fA-F]{2})*"
_URL = re.compile(
    r"(?P<protocol>[A-Za-z][A-Za-z0-9+\-.]*)://"
    rf"(?P<authority>(?:(?P<user>{_USER})@)?(?P<host>{_HOST}|{_IPV4})(?::[0-9]{{0,9}})?)"
    rf"(?P<path>(?:/{_LEGAL.format('/')})?)"
    rf"(?:\?(?P<query>{_LEGAL.format('/?')}))?"
    rf"(?:#(?P<ref>{_LEGAL.format('/?')}))?"
)
_ILLEGAL = re.compile(r'[\x00-\x20"<>\\^`{|}\x7f]|%(?![0-9a-fA-F]{2})')
_PARTS = {
    "HOST": "host",
    "PATH": "path",
    "QUERY": "query",
    "REF": "ref",
    "PROTOCOL": "protocol",
    "AUTHORITY": "authority",
    "USERINFO": "user",
}


def _parse_url(args: Sequence[Vector], context: CallContext) -> Data:
    """A part of a URL; a key picks a value from its query."""
    part = args[1].data.as_py()
    extract: Callable[[str], str | None] = functools.partial(_part, part=part)
    if len(args) == 3:
        extract = functools.partial(_query_value, part=part, key=args[2].data.as_py())
    mode = EvalMode.ANSI if context.mode is EvalMode.ANSI else EvalMode.TRY
    return per_distinct(null_on_error_if_try(extract, replace(context, mode=mode)), args[:1], context)


def _part(url: str, part: str) -> str | None:
    match = _URL.fullmatch(url)
    if match is None:
        # A percent sign before the zone of an IPv6 address is legal: Java accepts http://[fe80::1%eth0]/.
        if "[" not in url and _ILLEGAL.search(url):
            raise ExecutionError("INVALID_URL", f"The url is invalid: {url}.")
        raise Unsupported("PARSE_URL is supported for plain URLs with a host only")
    if part == "FILE":
        query = match["query"]
        return match["path"] if query is None else f"{match['path']}?{query}"
    group = _PARTS.get(part)
    return None if group is None else match[group]


def _query_value(url: str, part: str, key: str) -> str | None:
    if part != "QUERY":
        return None
    query = _part(url, part)
    if query is None:
        return None
    value = re.search(f"(?:&|^){re.escape(key)}=([^&]*)", query)
    return None if value is None else value[1]


_PLAIN_KEY = re.compile(r"[A-Za-z0-9_\-%@:/!~]*")


def _check_part(values: Sequence[object]) -> None:
    for value in values[1:]:
        if not isinstance(value, str):
            raise Unsupported("the part and the key of PARSE_URL must be literals")
    if len(values) == 3 and not _PLAIN_KEY.fullmatch(str(values[2])):
        raise Unsupported("a key of PARSE_URL with characters of regular expressions is not supported")


register(
    Function(
        "url_encode",
        each_distinct(lambda text: urllib.parse.quote_plus(text, safe="*").replace("~", "%7E")),
        accept(t.STRING, t.STRING),
        java=(JavaMethod("UrlCodec", "encode", ((1, "UTF-8"),)), JavaMethod("UrlCodec", "encode")),
        nullable=Nullability.OTHER_REASONS,
        coerce=cast_to(t.STRING),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    # the second argument says whether what cannot be decoded raises, and was the character set in 3.5
    Function(
        "url_decode",
        _url_decode,
        accept(t.STRING, t.STRING),
        java=(
            JavaMethod("UrlCodec", "decode", ((1, True),)),
            JavaMethod("UrlCodec", "decode", ((1, "UTF-8"),)),
            JavaMethod("UrlCodec", "decode", ((1, False),), EvalMode.TRY),
        ),
        nullable=Nullability.OTHER_REASONS,
        raises=frozenset({EvalMode.ANSI, EvalMode.LEGACY}),
        coerce=cast_to(t.STRING),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    Function(
        "parse_url",
        _parse_url,
        accept(t.STRING, t.STRING),
        arity=(2, 3),
        nullable=Nullability.OTHER_REASONS,
        raises=ANSI_RAISES,
        coerce=cast_to(t.STRING),
        check_values=_check_part,
        calls=CallForm(columns=(0, 1, 2)),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)

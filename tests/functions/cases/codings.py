"""Digits, masks, bitmaps, character sets and URLs."""

from __future__ import annotations

from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.cases.strings import c
from tests.functions.parity import Arg, Case, Lit, integer, text

S = v.STRINGS
DIGITS = Arg(
    t.STRING,
    (
        "", " ", "0", "-0", "100", "-10", " 15 ", "FF", "ff", "zZ", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615", "-1",
        "18446744073709551616", "-18446744073709551616", "99999999999999999999999", "12x4", "x", "--1", "+1", "1.5", "é1", "0001", "\t1", "1 2", "8000000000000000",
    ),
)  # fmt: skip
BASES = Arg(t.INT, (2, 8, 10, 16, 36, -10, -16, 0, 1, 37, -37))
CARDS = Arg(
    t.STRING,
    ("", "0", "18", "79927398713", "79927398714", "4111111111111111", "a", "1 8", "-18", "٠", "１８", "𝟎", "00", "²"),
)  # fmt: skip
PLACES = Arg(
    t.LONG, (0, 1, -1, 2, 32767, 32768, 32769, 65536, 65537, -32768, -32769, 2**63 - 1, -(2**63), 123456789)
)
MASKED = Arg(t.STRING, (*S.values[:36], "AbC-123 éÉ", "٣", "ǅ", "ⅷ", "你A1", "😀a", "AbCD123-@$#", "\u0345"))
ENCODED = Arg(
    t.STRING,
    (
        "", "abc", "a+b", "a%20b", "%E4%BD%A0", "%e4%bd%a0x", "%", "%4", "%zz", "a%2", "%-1", "é%41", "%25%2B", "https%3A%2F%2Fspark.apache.org", "%00", "%41%42%43",
    ),
)  # fmt: skip
URLS = Arg(
    t.STRING,
    (
        "http://spark.apache.org/path?query=1", "https://user:pw@Example.COM:8080/a/b;c=1/d.html?k=v&k2=v2&k=v3#frag", "http://host", "http://host/", "http://host?x=1", "http://host#r",
        "ftp://127.0.0.1/x", "http://a.b-c.d/%41?q=%20&r=", "http://h:/p", "http://h.com./", "not a url", "http://h/ space", "http://h/a|b", "http://h/%zz", "http://h/<x>", "a b",
        "http://h/?=1&a=&b", "http://h/?aa=1&a=2", "http://h//x//y", "http://h/?q=a?b/c", "http://h/(x)'y'*~!$,", "http://1.2.3.4:80?x#y/z?",
    ),
)  # fmt: skip
UTF8S = Arg(t.BINARY, (b"", b"abc", b"\xc3\xa9", b"\xe6\x97\xa5\xf0\x9f\x98\x80", bytes(range(128))))
BYTES = Arg(t.BINARY, (b"", b"abc", b"\xc3\xa9", b"\xff", b"\xe6\x97", b"\x80a", b"\xed\xa0\x80"))
NULL_TEXT = Lit(None, t.STRING, "cast(null as string)")
PARTS = ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO", "host", "")
CASES: list[Case] = [
    c("conv", DIGITS, BASES, BASES), c("conv", DIGITS, BASES, BASES, ansi=False), c("conv", DIGITS, integer(10), integer(-16), ansi=False), c("conv", DIGITS, integer(16), integer(10)),
    c("luhn_check", CARDS),
    c("mask", MASKED), c("mask", MASKED, text("Q")), c("mask", MASKED, text("Q"), text("q"), text("d"), text("o")), c("mask", MASKED, NULL_TEXT, NULL_TEXT, NULL_TEXT, text("*")),
    c("mask", MASKED, text("é"), NULL_TEXT, text("#"), NULL_TEXT),
    c("quote", S), c("quote", Arg(t.STRING, ("'", "\\'", "a'b''c", "$1"))),
    c("bitmap_bucket_number", PLACES), c("bitmap_bit_position", PLACES), c("bitmap_count", v.BINARIES),
    *[c("encode", S, text(name)) for name in ("UTF-8", "utf-8", "US-ASCII", "ISO-8859-1", "UTF-16", "UTF-16BE", "utf-16le")],
    *[c("decode", BYTES, text(name)) for name in ("UTF-8", "US-ASCII", "ISO-8859-1")], c("decode", UTF8S, text("utf-8")),
    c("url_encode", S), c("url_encode", Arg(t.STRING, ("~*-._ +%&=/?#", "\u0080", "AZaz09"))),
    c("url_decode", ENCODED),
    *[c("parse_url", URLS, text(part)) for part in PARTS], *[c("parse_url", URLS, text(part), ansi=False) for part in ("HOST", "QUERY")],
    *[c("parse_url", URLS, text("QUERY"), text(key)) for key in ("query", "k", "a", "q", "", "none")], c("parse_url", URLS, text("HOST"), text("k")),
]  # fmt: skip

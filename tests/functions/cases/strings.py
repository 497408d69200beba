"""String functions, case mapping and patterns."""

from __future__ import annotations

from typing import Any

from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.parity import Arg, Case, Lit, integer, text

S, W, N, K = v.STRINGS, v.WORDS, v.COUNTS, v.SMALL


def c(function: str, *args: Arg | Lit, sql: str = "", **options: Any) -> Case:
    places = ", ".join(f"{{{i}}}" for i in range(len(args)))
    return Case(function, sql or f"{function}({places})", args, **options)


ROUNDED = Arg(
    t.DOUBLE,
    (
        0.0, -0.0, 0.5, 1.5, -2.5, 0.125, 0.375, 2.675, 1.005, -0.001, 0.1, 1234567.891, -1234567.895, 999999.9999, 1e-7, 1e-20, 123456789012.5, 0.045, 8.345,
        1e14, 1e22, 1e300, float("nan"), float("inf"), float("-inf"), 3.0, 4.35, 0.95, 9.995, 2.0**-20,
    ),
)  # fmt: skip
SHORT_FLOATS = Arg(t.FLOAT, (0.0, -0.0, 1.5, 0.125, 1.25e6, -3.25, float("nan"), float("-inf")))
HEXADECIMAL = Arg(t.STRING, ("", "0", "F", "fF", "616263", "1g", "é", " 1", "0x1", "ABC"))
REPEATS = Arg(t.INT, (0, 1, -1, 2, 3, -(2**31)))
WIDTHS = Arg(t.INT, (0, 1, -1, 2, 5, 13, -(2**31)))
NUL = Lit("\0", t.STRING, r"'\0'")
CASES = [
    c("length", S), c("length", v.BINARIES), c("octet_length", S), c("bit_length", S), c("octet_length", v.BINARIES), c("bit_length", v.BINARIES),
    c("substring", S, N, N), c("substring", S, N), c("substring", v.BINARIES, N, K), c("substring", S, integer(2), integer(3)),
    c("substring", S, integer(-3), integer(2)), c("substring", S, integer(0), integer(2)), c("left", S, N), c("left", v.BINARIES, K), c("right", S, N),
    c("trim", S), c("ltrim", S), c("rtrim", S),
    c("trim", S, text("a "), sql="trim(both {1} from {0})"), c("trim", S, W, sql="trim(both {1} from {0})"), c("trim", S, text(""), sql="btrim({0}, {1})"),
    c("ltrim", S, W, sql="trim(leading {1} from {0})"), c("ltrim", S, text("xab"), sql="ltrim({1}, {0})"), c("rtrim", S, W, sql="trim(trailing {1} from {0})"),
    c("rtrim", S, text("éz."), sql="rtrim({1}, {0})"),
    c("concat", S, W), c("concat", S, text("-"), W), c("concat", v.BINARIES, v.BINARIES), c("concat", S), c("concat", sql="concat()"),
    c("concat_ws", W, S, W), c("concat_ws", text(","), S, W, S), c("concat_ws", text(","), text("a"), S), c("concat_ws", text(","), W, W), c("concat_ws", W, sql="concat_ws({0})"), c("concat_ws", text("é"), S),
    c("repeat", S, REPEATS), c("repeat", S, integer(3)), c("reverse", S), c("space", REPEATS),
    c("lpad", S, WIDTHS, W), c("rpad", S, WIDTHS, W), c("lpad", S, integer(7), text("x")), c("rpad", S, integer(7), text("é")), c("lpad", S, integer(7)),
    c("rpad", S, integer(4)), c("lpad", S, integer(-1)), c("rpad", S, integer(10), text("ab")), c("lpad", S, integer(10), text("")),
    c("instr", S, W), c("instr", S, text("b")), c("instr", S, text("")), c("instr", S, text("語")), c("locate", W, S), c("locate", W, S, K),
    c("locate", text("a"), S, integer(3)), c("locate", text("a"), S, integer(1)), c("locate", W, S, sql="position({0} in {1})"),
    c("replace", S, W, W), c("replace", S, text("a"), text("é")), c("replace", S, text(""), text("x")), c("replace", S, text("a")), c("replace", S, text("aa"), text("b")),
    c("translate", S, text("abé"), text("1")), c("translate", S, W, W), c("translate", S, text("aab"), text("xyz")),
    c("translate", S, text("ba"), Lit("x\0", t.STRING, r"'x\0'")), c("translate", S, text("a"), NUL), c("translate", S, W, Arg(t.STRING, ("\0", "\0y", "y\0"))),
    c("contains", S, W), c("startswith", S, W), c("endswith", S, W), c("contains", S, text("a")), c("startswith", S, text("a")), c("endswith", S, text("é")),
    c("contains", S, text("")), c("startswith", S, text("")),
    c("substring_index", S, W, K), c("substring_index", S, text("."), integer(2)), c("substring_index", S, text("."), integer(-2)), c("substring_index", S, text("ab"), integer(-3)),
    c("substring_index", Arg(t.STRING, ("aaaa", "aaaaa", "aa", "baab")), text("aa"), Arg(t.INT, (1, 2, 3, -1, -2, -3))),
    c("ascii", S), c("ascii", W), c("chr", Arg(t.LONG, (0, 1, 65, 127, 128, 233, 255, 256, 321, -1, -300, 2**40 + 65))),
    c("hex", v.LONGS), c("hex", S), c("hex", v.BINARIES), c("unhex", HEXADECIMAL),
    c("to_binary", HEXADECIMAL), c("to_binary", HEXADECIMAL, text("HEX")), c("to_binary", S, text("utf-8")), c("to_binary", S, text("UTF8")),
    c("to_binary", HEXADECIMAL, text("hex"), sql="try_to_binary({0}, {1})", mode=EvalMode.TRY),
    c("levenshtein", W, S), c("levenshtein", S, text("abac")), c("find_in_set", W, Arg(t.STRING, ("", "a,b", "ab,,a", ",", "a"))), c("find_in_set", S, text("abc,a,")),
    c("upper", S), c("lower", S), c("initcap", S),
]  # fmt: skip

PATTERNS = (
    "%", "", "a%", "%c", "%a%", "abc", "_", "__", "a_c", "%b_", "a%c", "_b%", "a\\%b%", "%\\_%", "\\\\", "%\\\\%", "%%", "%_%", "é%", "%ö%", "_é%", "%\n%", "h_llo%", "%X%X%",
    "𝄞%", "%.%", "a.c", "(a|b)%", "%+%", "[a]%",
)  # fmt: skip
CASES += [c("like", S, text(p), sql="{0} like {1}") for p in PATTERNS]
CASES += [c("like", S, Arg(t.STRING, PATTERNS), sql="{0} like {1}")]
CASES += [c("like", S, Arg(t.STRING, ("a\\", "\\a", "%")), sql="{0} like {1}")]
CASES += [
    c("like", S, text(p), text("#"), sql="{0} like {1} escape {2}") for p in ("a#%b%", "%#_%", "##", "%")
]
CASES += [c("ilike", S, text(p), sql="{0} ilike {1}") for p in ("ABC", "a%", "%É%", "straSSe", "%ΣΑΣ", "_B%")]
CASES += [c("ilike", S, W, sql="{0} ilike {1}")]
REGEXES = (
    "a", "a+", "^a", "c$", "^abc$", "a|b", "(foo|bar) ", "[a-c]+", "[^a-z]", "\\d", "\\d+", "\\s", "\\w+", "\\S+@\\S+", "\\.", "^\\s*$", "x=(\\d);", "(?:ab)+", "a{2}", "a{2,}b?",
    "b.n", ".", "^.*$", "[\\d,.-]+", "(a)(b)?", "(\\w+)\\s(\\w+)", "日本", "[é-ö]", "\\D", "o'neil", "l.*t", "e\\s*w", "[-a]b", "a.?b", "(a|b?)c$", "[^\\n]$", "(a\\s?|x)$",
)  # fmt: skip
CASES += [c("rlike", S, text(p), sql="{0} rlike {1}") for p in REGEXES]
CASES += [
    c("regexp_replace", S, text(p), text(r))
    for p, r in (
        ("a+", "x"),
        ("[aeiou]", ""),
        ("(\\w)(\\w)", "$2$1"),
        ("\\s+", "\\$"),
        ("\\d", "<$0>"),
        (",", "\\\\"),
        ("b.n", "é"),
        ("\\W", "_"),
        ("(a)b", "$1\\$-\\x"),
        ("a", "$0$0"),
    )
]
CASES += [
    c("regexp_extract", S, text(p), integer(i))
    for p, i in (
        ("(\\w+)@(\\w+)", 1),
        ("(\\w+)@(\\w+)", 2),
        ("(\\w+)@(\\w+)", 0),
        ("(a)|(b)", 2),
        ("([A-Z]) ?", 1),
        ("x=(\\d)", 1),
        ("^(\\w+)\\s?.*$", 1),
        (".+", 0),
        ("a(b)?", 1),
    )
]
CASES += [c("regexp_extract", S, text("(a)(b)"))]
MATCHES = (
    ("a+", 0), ("(\\w)(\\w)", 2), ("(a)|(b)", 2), ("(a)|(b)", 1), ("^a", 0), ("[aeiou]", 0), ("\\s+", 0), ("x=(\\d);", 1), ("(?:ab)+", 0), ("a(b)?", 1),
    ("[é-ö]", 0), (".", 0), ("(b)", 3), ("zz(y)", 3), ("a", -1),
)  # fmt: skip
CASES += [c("regexp_extract_all", S, text(p), integer(i)) for p, i in MATCHES]
CASES += [c("regexp_extract_all", S, text("(a)b")), c("regexp_extract_all", text("a1b2"), text("(\\d)"))]
CASES += [
    c("regexp_instr", S, text(p)) for p in ("a", "b.n", "\\d+", "ok", "c$", "^$", "語", "x*", "l(e)f", "zz")
]
CASES += [c("regexp_instr", S, text("b"), K)]
FORMATS = ("%s", "<%5s>", "<%-7s>", "%.2s|%%|%n", "%1$s and %1$s", "%b", "plain")
CASES += [
    *(c("format_string", text(f), x) for f in FORMATS for x in (v.BOOLS, v.BYTES, v.LONGS, v.PRINTED_DOUBLES, v.PRINTED_FLOATS, v.DEC, v.DEC38_38)),
    *(c("format_string", text(f), S) for f in FORMATS if "." not in f), c("format_string", text("%.2s"), Arg(t.STRING, ("", "a", "ab", "abc", "héé"))),
    *(c("format_string", text(f), x) for f in ("%d", "%8d", "%-8d|", "%08d", "%+d", "% d", "%,d", "%+,015d", "%x", "%X", "%020x", "%-12X|") for x in (v.BYTES, v.SHORTS, v.INTS, v.LONGS)),
    *(c("format_string", text(f), x) for f in ("%f", "%.2f", "%.0f", "%10.1f", "%-12.3f|", "%012.2f", "%+.1f", "% ,.2f", "%,.0f") for x in (ROUNDED, SHORT_FLOATS)),
    c("format_string", text("%s-%d %.1f"), S, v.INTS, v.SHORT_DOUBLES), c("format_string", text("%2$s %1$s"), S, v.BOOLS), c("format_string", text("a%nb%%"), S),
    c("format_string", Lit(None, t.STRING, "cast(null as string)"), S), c("format_string", text("%s"), text("x"), sql="printf({0}, {1})"),
]  # fmt: skip
CASES += [c("split", S, text(p)) for p in (",", " ", "a", "ab", "\\s+", "[.,]", "\\.", "é", "aa", "X|,")]
CASES += [
    c("split", S, text(p), integer(n))
    for p, n in ((",", 2), (" ", 1), ("a", 3), ("\\s+", 2), ("a", 0), ("a", -5), ("[ab]", 3))
]

FLAT = (
    v.BOOLS,
    v.BYTES,
    v.INTS,
    v.LONGS,
    v.FLOATS,
    v.DOUBLES,
    v.DEC,
    v.DEC38,
    v.STRINGS,
    v.BINARIES,
    v.DATES,
    v.TIMESTAMPS,
    v.NTZ,
    v.INTERVALS,
)

"""Translates Java regular expressions to RE2, and declines those that RE2 cannot run with the same meaning.

RE2 and ``java.util.regex`` differ in details. The reader accepts a conservative subset of the syntax and rewrites the parts
with another spelling or meaning: in Java ``.`` stops at more kinds of line ends, and white space includes the vertical tab.
It declines everything else.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES = {"d": "0-9", "w": "a-zA-Z_0-9", "s": r"\t\n\x0B\f\r "}
_ESCAPES = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_MAX_GROUP_DEPTH = 100
_PUNCTUATION = frozenset("\\.[]{}()*+?^$|/-_@#%&=~!<>:;,'\"` ")


@dataclass(frozen=True)
class Pattern:
    """A pattern that RE2 can run, and its properties.

    text: the pattern in RE2's syntax. groups: the number of capturing groups of the Java pattern.
    matches_empty: it matches the empty string. anchored_start, anchored_end: it contains ``^``, or ends with ``$``.
    splits_line_end: what precedes ``$`` can match ``\\r``, so RE2, unlike Java, could match ``$`` before ``\\n``.
    literal: the pattern itself if it has no special characters, otherwise None.
    repeated_group: a repetition other than ``?`` contains a capturing group.
    """

    text: str
    groups: int
    matches_empty: bool
    anchored_start: bool
    anchored_end: bool
    splits_line_end: bool
    literal: str | None
    repeated_group: bool


class _Reader:
    """Reads a Java pattern by recursive descent. Each method reads one construct and returns its RE2 spelling.

    ``alternatives`` consist of ``sequence``, which consists of ``quantified``, an ``atom`` with an optional repetition.
    These also set ``optional`` and ``returns`` for the part that they read: whether it can match the empty string, and
    whether its match can end with a carriage return. A sequence can end with one if its last part can, or if its last
    part can be empty and the sequence before that part can end with one.
    """

    def __init__(self, source: str, named_group: int | None = None) -> None:
        self.source, self.at = source, 0
        self.named_group = named_group
        self.groups = 0
        self.anchored_start = self.anchored_end = self.splits_line_end = False
        self.repeated_group = False
        self.optional = self.returns = False

    def fail(self, what: str) -> Unsupported:
        return Unsupported(
            f"the regular expression {self.source!r} uses {what}, which the engine does not run as Java does"
        )

    def compiled(self, text: str) -> re.Pattern[str]:
        try:
            return re.compile(text)
        except re.error as error:
            raise self.fail(f"an invalid pattern ({error})") from None

    def peek(self) -> str:
        return self.source[self.at] if self.at < len(self.source) else ""

    def take(self) -> str:
        character = self.peek()
        self.at += 1
        return character

    def alternatives(self, depth: int) -> str:
        branches = [self.sequence(depth)]
        optional, returns = self.optional, self.returns
        while self.peek() == "|":
            self.take()
            branches.append(self.sequence(depth))
            optional, returns = optional or self.optional, returns or self.returns
        self.optional, self.returns = optional, returns
        if self.anchored_end and len(branches) > 1 and depth == 0:
            raise self.fail("an end anchor in an alternative")
        return "|".join(branches)

    def sequence(self, depth: int) -> str:
        parts = []
        optional, returns = True, False
        while self.peek() not in ("", "|", ")"):
            parts.append(self.quantified(depth))
            returns = self.returns or (self.optional and returns)
            optional = optional and self.optional
        self.optional, self.returns = optional, returns
        if self.anchored_end:
            self.splits_line_end = returns
        return "".join(parts)

    def quantified(self, depth: int) -> str:
        if self.anchored_end:
            raise self.fail("an end anchor before the end")
        before = self.groups
        start = self.peek()
        atom = self.atom(depth)
        if start in "^$":
            self.optional, self.returns = True, False
        elif start != "(":
            self.optional, self.returns = False, self.compiled(_python(atom)).match("\r") is not None
        if self.peek() not in ("*", "+", "?", "{"):
            return atom
        if start in "^$":
            raise self.fail("a repeated anchor")
        mark = self.repetition()
        if mark[0] in "*?" or re.match(r"\{0+[,}]", mark):
            self.optional = True
        if self.groups > before and mark[0] != "?":
            self.repeated_group = True
        return atom + mark

    def repetition(self) -> str:
        mark = self.take()
        if mark == "{":
            match = re.match(r"(\d{1,3})(,\d{0,3})?\}", self.source[self.at :])
            if not match:
                raise self.fail("a malformed repetition")
            self.at += match.end()
            mark += match[0]
        if self.peek() == "?":
            mark += self.take()
        if self.peek() and self.peek() in "+*?{":
            raise self.fail("a possessive or doubled repetition")
        return mark

    def atom(self, depth: int) -> str:
        character = self.take()
        if character == "(":
            return self.group(depth)
        if character == "[":
            return self.bracket()
        if character == "\\":
            return self.escape()
        if character == ".":
            return f"[^{_LINE_ENDS}]"
        if character == "^":
            self.anchored_start = True
            return r"\A"
        if character == "$":
            if depth or self.at != len(self.source):
                raise self.fail("an end anchor before the end")
            self.anchored_end = True
            return rf"(?:\r\n|[{_LINE_ENDS}])?\z"
        if character in "*+?{}])":
            raise self.fail(f"a bare {character}")
        return _literal(character)

    def group(self, depth: int) -> str:
        if depth >= _MAX_GROUP_DEPTH:
            raise self.fail(f"groups nested more than {_MAX_GROUP_DEPTH} deep")
        if self.peek() == "?":
            if not self.source.startswith("?:", self.at):
                raise self.fail("a special group")
            self.at += 2
            opening = "(?:"
        else:
            self.groups += 1
            opening = (
                "(?P<g>"
                if self.groups == self.named_group
                else "(?:"
                if self.named_group is not None
                else "("
            )
        inner = self.alternatives(depth + 1)
        if self.take() != ")":
            raise self.fail("an unclosed group")
        return f"{opening}{inner})"

    def escape(self) -> str:
        character = self.take()
        if character in _CLASSES:
            return f"[{_CLASSES[character]}]"
        if character.lower() in _CLASSES and character:
            return f"[^{_CLASSES[character.lower()]}]"
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character and character in _PUNCTUATION:
            return _literal(character)
        raise self.fail(f"the escape \\{character}")

    def bracket(self) -> str:
        text = "["
        if self.peek() == "^":
            text += self.take()
        if self.peek() == "]":
            raise self.fail("an empty character class")
        first, last_was_class = len(text), False
        while self.peek() != "]":
            character = self.take()
            if character == "\\":
                last_was_class = self.peek() in _CLASSES
                text += self.escape_in_bracket()
                continue
            if character == "-":
                text += self.hyphen(len(text) == first, last_was_class)
            else:
                text += self.plain_in_bracket(character)
            last_was_class = False
        self.take()
        return text + "]"

    def escape_in_bracket(self) -> str:
        escaped = self.take()
        if escaped in _CLASSES:
            return _CLASSES[escaped]
        if escaped in _ESCAPES:
            return _ESCAPES[escaped]
        if escaped and escaped in _PUNCTUATION:
            return "\\" + escaped if escaped in r"\]^[-" else escaped
        raise self.fail(f"the escape \\{escaped} in a character class")

    def hyphen(self, is_first: bool, last_was_class: bool) -> str:
        """Read a hyphen in a character class: a literal at both ends of the class, a range between characters."""
        if is_first or self.peek() == "]":
            return r"\-"
        if last_was_class:
            raise self.fail("a range from a character class")
        if self.peek() == "\\":
            raise self.fail("a range to an escape")
        return "-"

    def plain_in_bracket(self, character: str) -> str:
        if character == "":
            raise self.fail("an unclosed character class")
        if character == "[" or (character == "&" and self.peek() == "&"):
            raise self.fail("a nested character class")
        if character == "^":
            raise self.fail("a caret inside a character class")
        return character


def _literal(character: str) -> str:
    return "\\" + character if character in r"\.[]{}()*+?^$|" else character


@functools.lru_cache(maxsize=512)
def translate(source: str, named_group: int | None = None) -> Pattern:
    """Translate a Java pattern to RE2; raises Unsupported if the meaning may differ.

    With ``named_group`` only that group captures (0: the whole match) and it is called ``g``.
    """
    reader = _Reader(source, named_group)
    text = reader.alternatives(0)
    if reader.at != len(source):
        raise reader.fail("an unopened group")
    if named_group == 0:
        text = f"(?P<g>{text})"
    empty = reader.compiled(_python(text)).search("") is not None
    try:
        pc.match_substring_regex(pa.array([""]), text)
    except pa.ArrowInvalid:
        raise reader.fail("too much for RE2") from None
    literal = None if re.search(r"[\\.\[\]{}()*+?^$|]", source) else source
    return Pattern(
        text,
        reader.groups,
        empty,
        reader.anchored_start,
        reader.anchored_end,
        reader.splits_line_end,
        literal,
        reader.repeated_group,
    )


def _python(text: str) -> str:
    """Translate a pattern from RE2's syntax to that of Python's ``re``."""
    return (
        text.replace(r"\z", r"\Z")
        .replace(r"\x{85}", "\x85")
        .replace(r"\x{2028}", "\u2028")
        .replace(r"\x{2029}", "\u2029")
    )

"""The tokenizer."""

from __future__ import annotations

import pytest

from kquery_spark.errors import SqlError
from kquery_spark.frontends.sql.parser.tokens import Kind, tokenize


def values(sql: str) -> list[str]:
    return [token.value for token in tokenize(sql)[:-1]]


def test_every_token_knows_its_offset() -> None:
    assert [(t.value, t.pos) for t in tokenize("a  <=> 'b'")] == [("a", 0), ("<=>", 3), ("b", 7), ("", 10)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (".5", [".5"]),
        ("1.", ["1."]),
        ("1.5e-3BD", ["1.5e-3BD"]),
        ("1e3", ["1e3"]),
        ("1e-3", ["1e-3"]),
        ("2.a", ["2", ".", "a"]),
        ("t.1a", ["t", ".", "1a"]),
        ("t.1", ["t", ".1"]),
        ("1a", ["1a"]),
        ("a-1", ["a", "-", "1"]),
        ("1.2.3", ["1.2", ".3"]),
    ],
)
def test_numbers_and_names_with_digits_split_as_in_spark(text: str, tokens: list[str]) -> None:
    assert values(text) == tokens


def test_a_number_glued_to_letters_is_a_name() -> None:
    assert [token.kind for token in tokenize("1a 1L 1x5")[:-1]] == [Kind.WORD, Kind.NUMBER, Kind.WORD]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a''b'", "a'b"),
        ('"a""b"', 'a"b'),
        (r"'a\tb'", "a\tb"),
        (r"'a\'b'", "a'b"),
        (r"'\u0041\101\q'", "AAq"),
        (r"'\7\0001'", "7\x001"),
        (r"'\U0001F600'", "\U0001f600"),
        (r"'\uD83D\uDE00'", "\U0001f600"),
        (r"'\%\_'", r"\%\_"),
        (r"'\\%'", r"\%"),
        (r"r'a\nb'", r"a\nb"),
        (r'R"a\n"', r"a\n"),
        ("'a\nb'", "a\nb"),
    ],
)
def test_strings_are_unescaped_as_in_spark(text: str, value: str) -> None:
    token, _ = tokenize(text)
    assert (token.kind, token.value) == (Kind.STRING, value)


def test_doubled_backticks_stand_for_one() -> None:
    token, _ = tokenize("`a``b c`")
    assert (token.kind, token.value, token.upper) == (Kind.QUOTED, "a`b c", "")


def test_comments_nest_and_line_comments_end_with_the_line() -> None:
    assert values("a /* b /* c */ d */ e -- f\ng") == ["a", "e", "g"]


def test_two_minus_signs_start_a_comment() -> None:
    assert values("1 --1") == ["1"]


def test_hints_are_tokens_and_comments_are_not() -> None:
    assert values("/*+ x */ /* y */") == ["/*+", "x", "*/"]


def test_operators_with_two_spellings_become_one() -> None:
    assert values("a == b != c !> d !< e") == ["a", "=", "b", "<>", "c", "<=", "d", ">=", "e"]


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("a 'b", "string is not closed", 3),
        ("a `b", "quoted name is not closed", 3),
        ("a /* b /* c */", "comment is not closed", 3),
        ("a @ b", "unexpected character '@'", 3),
        ("a é", "needs backticks", 3),
    ],
)
def test_what_cannot_be_a_token_is_an_error_at_its_place(text: str, message: str, column: int) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        tokenize(text)
    assert caught.value.column == column

"""The parser of JSON strings and lines: what the dialects accept, and its limits."""

from __future__ import annotations

import pytest

from kquery_spark.errors import Unsupported
from kquery_spark.kernels.json_parser import MalformedJson, parse_line, parse_string


@pytest.mark.parametrize(
    "text", ["01", "[1.]", "12.", "1.5.3", "-", "1x", "truex", "[NaN]", "{'a':1,}", "[1,]", '"\\q"']
)
def test_malformed_strings_have_no_value(text: str) -> None:
    assert parse_string(text) is None


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ('{"a":1', True),
        ('{"a":x}', True),
        ('{"a":{"b":x}}', False),
        ('{"a":{"b":1', True),
        ('{"a":"\t,"b":1}', False),
        ('{"a":"\tb"}', True),
        ("1x", True),
    ],
)
def test_malformed_lines_say_whether_jackson_may_continue(text: str, certain: bool) -> None:
    with pytest.raises(MalformedJson) as error:
        parse_line(text)
    assert error.value.certain is certain


def test_only_lines_have_words_for_numbers_and_no_control_characters() -> None:
    assert parse_string("[NaN]") is None
    node = parse_line("[NaN, +INF]")
    assert node is not None
    assert [item.kind for item in node.items] == ["nonfinite number", "nonfinite number"]
    string = parse_string("'a\tb'")
    assert string is not None
    assert string.value == "a\tb"
    with pytest.raises(MalformedJson):
        parse_line("'a\tb'")


def test_surrogates_without_a_pair_are_kept_in_strings_and_replaced_in_lines() -> None:
    text = '"\\ud83d\\ude00\\ud83d"'
    string, line = parse_string(text), parse_line(text)
    assert string is not None
    assert line is not None
    assert (string.value, line.value, line.raw) == ("😀\ud83d", "😀?", text)


@pytest.mark.parametrize("parse", [parse_string, parse_line])
@pytest.mark.parametrize("text", ["[" * 301 + "]" * 301, "1" * 1001, '{"' + "a" * 50_001 + '":1}', "trueé"])
def test_strings_beyond_the_limits_are_declined(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(Unsupported):
        parse(text)

"""Printing and parsing again gives the same tree; whatever text comes in, only SqlError comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquery_spark.errors import SqlError
from kquery_spark.frontends.sql import parse_expression, parse_query, parse_type, to_sql

# Every line parses here and in Spark.
EXPRESSIONS, QUERIES, TYPES = (
    Path(__file__).with_name(name).read_text("utf-8").splitlines()
    for name in ("expressions.txt", "queries.txt", "types.txt")
)
PIECES = sorted(
    {
        piece
        for text in EXPRESSIONS + QUERIES + TYPES
        for piece in re.findall(r"'[^']*'|`[^`]*`|\w+|<=>|->|::|\S", text)
    }
)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_printed_expression_reads_back_the_same(text: str) -> None:
    tree = parse_expression(text)
    assert parse_expression(to_sql(tree)) == tree


@pytest.mark.parametrize("text", QUERIES)
def test_a_printed_query_reads_back_the_same(text: str) -> None:
    tree = parse_query(text)
    assert parse_query(to_sql(tree)) == tree


@pytest.mark.parametrize("text", TYPES)
def test_a_printed_type_reads_back_the_same(text: str) -> None:
    tree = parse_type(text)
    assert parse_type(to_sql(tree)) == tree


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join))
def test_a_soup_of_tokens_parses_or_raises_sql_error(text: str) -> None:
    for parse in (parse_query, parse_expression, parse_type):
        try:
            tree = parse(text)
        except SqlError as error:
            assert error.position is not None and 0 <= error.position <= len(text)
        else:
            assert parse(to_sql(tree)) == tree


@settings(max_examples=400)
@given(st.sampled_from(EXPRESSIONS + QUERIES), st.data())
def test_a_query_with_a_few_tokens_changed_parses_or_raises_sql_error(text: str, data: st.DataObject) -> None:
    tokens = text.split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(tokens)))
        tokens[at : at + data.draw(st.integers(0, 1))] = data.draw(
            st.lists(st.sampled_from(PIECES), max_size=2)
        )
    changed = " ".join(tokens)
    for parse in (parse_query, parse_expression):
        try:
            tree = parse(changed)
        except SqlError:
            continue
        assert parse(to_sql(tree)) == tree


@settings(max_examples=300)
@given(st.text(max_size=40))
def test_any_text_at_all_parses_or_raises_sql_error(text: str) -> None:
    for parse in (parse_query, parse_expression, parse_type):
        try:
            parse(text)
        except SqlError:
            continue


@given(st.text(max_size=20))
def test_every_string_and_every_name_survives_printing(text: str) -> None:
    from kquery_spark.frontends.sql.ast.expressions import Name, StringLiteral

    for tree in (StringLiteral(text), Name((text, text))):
        assert parse_expression(to_sql(tree)) == tree

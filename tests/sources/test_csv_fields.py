"""Lines cut by compiled kernels: the same columns as Arrow's parser gives, or none at all."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SourceError
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.sources.csv import blocks, fields
from kquery_spark.sources.csv.blocks import text_columns
from kquery_spark.sources.csv.options import CsvOptions, csv_options
from kquery_spark.types import names as t

DDL = "i INT, d DOUBLE, s STRING, day DATE, m DECIMAL(10,2)"


def cut(
    block: bytes, options: CsvOptions, width: int, expected: list[int], pruned: bool, kernels: ModuleType
) -> list[pa.Array] | None:
    quoted = options.quote.encode() in block
    return fields.cut(block, options, width, expected, quoted, pruned, kernels)


def same(block: bytes, width: int, expected: list[int], kernels: ModuleType, **options: str) -> bool:
    """Whether the kernels cut the block; then as Arrow does."""
    given = csv_options(options)
    actual = cut(block, given, width, expected, True, kernels)
    whole = blocks._parse(block, given, width, dict.fromkeys(expected, t.STRING), quoted=False)
    if actual is None:
        return False
    assert whole is not None
    assert [a.to_pylist() for a in actual] == [a.to_pylist() for a in whole]
    for array in actual:
        array.validate(full=True)
    return True


_TEXT = st.text(st.sampled_from("a,b;1.-é漢\x00\x0b"), max_size=20)


@given(st.lists(st.lists(_TEXT, min_size=1, max_size=5), max_size=30), st.booleans(), st.integers(1, 5))
@settings(max_examples=300)
@example([["a", "b"], ["", ""]], False, 2)
def test_the_same_as_arrow_or_nothing(kernels, lines, ended, width):
    lines = [[value.replace(",", "") for value in (line * width)[:width]] for line in lines]
    block = "\n".join(",".join(line) for line in lines).encode() + (b"\n" if ended else b"")
    usual = bool(lines) and all(any(line) or width > 1 for line in lines)
    if block:
        expected = sorted({0, width - 1, width})
        assert same(block, width, expected, kernels) or not usual
        assert same(block, width, expected, kernels, nullValue="a") or not usual


_QUOTED = st.text(st.sampled_from('a,"\\1é '), max_size=9)


@given(
    st.lists(
        st.lists(st.tuples(_QUOTED, st.sampled_from(["", '"', '"', "x"])), min_size=2, max_size=3),
        max_size=12,
    ),
    st.sampled_from([{}, {"escape": '"'}, {"nullValue": "a"}, {"quote": "a"}, {"emptyValue": "e"}]),
    st.booleans(),
)
@settings(max_examples=600)
def test_quoted_values_as_line_by_line_or_nothing(kernels, lines, options, ended):
    """The path of Arrow and the tokenizer is compared with Spark in test_csv.py."""
    strings = [",".join(around + text + around for text, around in line) for line in lines]
    block = "\n".join(strings).encode() + (b"\n" if ended else b"")
    given = csv_options(options)
    for expected in ([0], [1], [0, 1]):
        actual = cut(block, given, 2, expected, len(expected) < 2, kernels)
        if actual is not None and block and not blocks._has_special_lines(block, given, 2):
            slowly = text_columns(block, given, 2, dict.fromkeys(expected, t.STRING), 2)
            assert [a.to_pylist() for a in actual] == [a.to_pylist() for a in slowly.columns]
            assert slowly.wrong_width is None


@pytest.mark.parametrize(
    ("block", "options"),
    [
        (b'"a",b\n"c, d","e"\n', {}),
        (b'1,"a"\n2,""\n3,b', {}),
        (b'"%b","%b"\n' % (b"x" * 30, b"y" * 40), {}),
        (b"".join(b'%b"%b",%b"%b"\n' % (b"", b"x" * i, b"", b"," * i) for i in range(30)), {}),
        (b"'a,b','c'\n", {"quote": "'"}),
        (b'"a",b\\\n' + b"1,2\n", {"escape": "!"}),
    ],
)
def test_quotes_around_values_are_cut(kernels, block, options):
    actual = cut(block, csv_options(options), 2, [0, 1], False, kernels)
    slowly = text_columns(block, csv_options(options), 2, {0: t.STRING, 1: t.STRING}, 2)
    assert actual is not None
    assert [a.to_pylist() for a in actual] == [a.to_pylist() for a in slowly.columns]


@pytest.mark.parametrize(
    ("block", "options"),
    [
        (b'a"b,c\n', {}),
        (b'"a"b,c\n', {}),
        (b'"a,b\n"c,d\n', {}),
        (b'"a\nb",c\n', {}),
        (b'"a""b",c\n', {}),
        (b'"a""b",c\n', {"escape": '"'}),
        (b'"a\\"b",c\n', {}),
        (b'"",c\n', {"emptyValue": "e"}),
        (b'1,2,"', {}),
        (b'1,2\n3,"4', {}),
    ],
)
def test_other_quotes_are_left(kernels, block, options):
    assert cut(block, csv_options(options), 2, [0, 1], False, kernels) is None


@pytest.mark.parametrize(
    "block",
    [
        b"1,2\n3\n",
        b"1,2\n3,4,5\n6\n",
        b"1,2\n\n3,4\n",
        b"\n1,2\n",
        b"1\n2,3\n4\n",
        b"1,2\n3",
        b"1,\n2,3,",
        b",,\n",
    ],
)
def test_lines_of_other_widths_are_left(kernels, block):
    assert not same(block, 2, [0], kernels)


def test_long_and_short_values(kernels):
    lines = [f"{'x' * n},{'y' * (40 - n)},{n}" for n in range(41)]
    for end in ("", "\n"):
        for count in range(1, len(lines) + 1):
            assert same(("\n".join(lines[:count]) + end).encode(), 3, [0, 1, 2], kernels)


def test_wrong_utf8_is_an_error_for_the_columns_asked_for(kernels):
    block = b"1,a\n2,\xff\xfe\n3,b\n"
    options = csv_options({})
    assert text_columns(block, options, 2, {0: t.STRING}, 2, kernels).columns[0].to_pylist() == [
        "1",
        "2",
        "3",
    ]
    with pytest.raises(SourceError, match="UTF-8"):
        text_columns(block, options, 2, {1: t.STRING}, 2, kernels)
    split = "é".encode()  # halves of a character in two values
    assert cut(b"a" + split[:1] + b"," + split[1:] + b"b\n", options, 2, [0, 1], True, kernels) is None


def test_larger_and_smaller_blocks_share_their_arrays(kernels):
    for rows in (10, 50_000, 3, 100_000):
        block = b"".join(b"%d,%d\n" % (i, -i) for i in range(rows))
        assert same(block, 2, [1, 0], kernels)


def test_spark_reads_the_same(spark, tmp_path, monkeypatch, kernels):
    rng = np.random.default_rng(5)
    lines = []
    for i in range(5000):
        values = [
            str(i),
            repr(float(rng.normal())),
            "é" * int(rng.integers(0, 12)),
            f"2020-01-{i % 28 + 1:02}",
            "1.25",
        ]
        for place in np.flatnonzero(rng.random(5) < 0.05):
            values[place] = str(rng.choice(["", " ", "NA", "x", "1e3", "-0", "NaN", "99999999999", " 7 "]))
        lines.append(",".join(values))
    (tmp_path / "usual.csv").write_text("\n".join(lines) + "\n")
    quoted = [",".join(f'"{v}"' if i % 3 else v for i, v in enumerate(line.split(","))) for line in lines]
    (tmp_path / "quoted.csv").write_text("\n".join(quoted) + "\n")
    (tmp_path / "odd.csv").write_text(
        "\n".join([*lines[:100], "1,2", '5,2.0,"q,r",2020-01-01,3.00', *lines[:50]])
    )
    asked: list[bool] = []
    real = fields.cut
    monkeypatch.setattr(blocks, "cut", lambda *given: asked.append(True) or real(*given))
    monkeypatch.setattr(FILE_LOOPS, "kernels", lambda *_: kernels)
    for name in ("usual", "quoted", "odd"):
        frame = spark.read.csv(str(tmp_path / f"{name}.csv"), schema=DDL, nullValue="NA")
        expected = frame.toArrow()
        context = kq.ExecutionContext()
        context.register_csv("t", str(tmp_path / f"{name}.csv"), schema=DDL, header=False, nullValue="NA")
        actual = context.sql("SELECT * FROM t").to_arrow()
        assert [repr(v) for v in actual.to_pylist()] == [repr(v) for v in expected.to_pylist()], name
    assert asked


def test_a_setting_leaves_lines_to_arrow(tmp_path, monkeypatch, kernels):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n")
    asked: list[bool] = []
    real = fields.cut
    monkeypatch.setattr(blocks, "cut", lambda *given: asked.append(True) or real(*given))
    monkeypatch.setattr(FILE_LOOPS, "kernels", lambda *_: kernels)
    for setting in (True, False):
        context = kq.ExecutionContext(config=EngineConfig(compiled=setting))
        context.register_csv("t", str(tmp_path / "t.csv"), schema="a INT, b INT", header=False)
        assert context.sql("SELECT sum(b) AS s FROM t").to_arrow()["s"].to_pylist() == [6]
        assert bool(asked) == setting
        asked.clear()


def test_a_text_of_nothing(kernels):
    assert cut(b"", csv_options({}), 3, [0], True, kernels) == [pa.array([], t.STRING)]

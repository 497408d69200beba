"""The table of SQL forms: the kind of value that each form returns, and the kinds of its arguments.

A form is SQL with the kinds of its arguments in braces, such as ``substring({string}, 2, 3)``. ``{any}`` stands for any kind
that can be compared, and ``{same}`` for the kind that was chosen for ``{any}``. ``{boolean with e:int}`` is the body of a
lambda with the variable ``e``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kquery_spark.fuzz.kinds import COMPARED, KINDS, NESTED


@dataclass(frozen=True)
class Argument:
    """A placeholder of a form: its kind, and, if it is the body of a lambda, the variables of the lambda."""

    kind: str
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Form:
    """SQL with the placeholders ``{0}``, ``{1}``, ..., its kind, and its arguments."""

    text: str
    kind: str
    arguments: tuple[Argument, ...]


_PRINTED = (
    *("int", "bigint", "float", "double", "decimal", "date", "boolean", "timestamp", "timestamp_ntz"),
    *("ints", "pair", "pairs", "map", "span", "months"),
)
# fmt: off
_MATH = (
    "ln", "log10", "log2", "exp", "expm1", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "acosh",
    "asinh", "atanh", "tanh", "cbrt", "degrees", "radians", "cot", "sec", "csc",
)
_SAFE: dict[str, list[str]] = {
    "boolean": [
        *(f"({{any}} {op} {{same}})" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")),
        "({boolean} AND {boolean})", "({boolean} OR {boolean})", "(NOT {boolean})", "({any} IS NULL)",
        "({any} IS NOT NULL)", "({map} IS NULL)",
        "({any} IN ({same}, {same}))", "({any} BETWEEN {same} AND {same})", "({int} IN (1, {int}, NULL))",
        "({double} BETWEEN -1 AND {double})",
        "({string} LIKE 'a%')", "({string} LIKE '_b%')", "({string} LIKE '%a_')", "({string} ILIKE '%B%')",
        "rlike({string}, '[a-c]+')",
        "startswith({string}, {string})", "contains({string}, {string})", "endswith({string}, {string})",
        "isnan({double})", "isnan({float})",
        "try_cast({string} AS BOOLEAN)", "(CAST({int} AS BOOLEAN) <=> {boolean})", "({date} > {timestamp})",
        "({date} <= {timestamp_ntz})",
        "({int} = {decimal})", "({bigint} < {double})", "({decimal} > {decimal})", "({decimal} >= {double})",
        "({bigint} <> {float})", "({tinyint} < {bigint})",
        "array_contains({ints}, {int})", "array_contains({strings}, {string})", "array_contains({pairs}, {pair})",
        "arrays_overlap({ints}, {ints})", "({pair}.x > 0)",
        "exists({ints}, e -> {boolean with e:int})", "forall({strings}, w -> {boolean with w:string})",
        "exists({doubles}, e -> e > {double})",
        "exists({pairs}, p -> {boolean with p:struct<x:int,s:string>})", "exists({ints}, e -> e > {int})",
        "({span} > INTERVAL '1' HOUR)", "({months} > INTERVAL '1' YEAR)", "isnull({any})", "isnotnull({any})",
        "luhn_check({string})", "luhn_check(CAST({bigint} AS STRING))",
    ],
    "tinyint": [
        "try_cast({int} AS TINYINT)", "try_cast({string} AS TINYINT)", "extract(HOUR FROM {span})",
        "extract(MONTH FROM {months})", "getbit({bigint}, 5)",
    ],
    "smallint": ["try_cast({decimal} AS SMALLINT)", "try_cast({bigint} AS SMALLINT)", "CAST({tinyint} AS SMALLINT)"],
    "int": [
        "try_add({int}, {int})", "try_subtract({int}, {int})", "try_multiply({int}, {int})", "({int} % 7)",
        "pmod({int}, 5)", "({int} & {int})", "({int} | {int})", "({int} ^ {int})", "(~{int})",
        "shiftleft({int}, {int})", "shiftright({int}, 3)", "shiftrightunsigned({int}, {int})", "bit_count({bigint})",
        "length({string})", "length({binary})", "octet_length({string})", "bit_length({string})", "ascii({string})",
        "instr({string}, {string})", "locate({string}, {string}, {int})", "levenshtein({string}, {string})",
        "find_in_set({string}, 'a,b,12')", "size({ints})", "size({strings})", "size({pairs})", "size({map})",
        "cardinality({ints})",
        "hash({ints}, {pair})", "hash({string}, {int}, {double})", "hash({date}, {timestamp}, {decimal}, {boolean})",
        "hash({pairs}, {deep}, {binary}, {float})", "array_max({ints})", "array_min({ints})",
        "try_element_at({ints}, -1)", "get({ints}, {int})", "try_element_at({map}, {string})", "{pair}.x",
        "get({deep}.a, 0)", "try_element_at({pairs}, 1).x", "{map}['a']",
        "year({date})", "month({date})", "quarter({timestamp})", "day({date})", "dayofweek({date})",
        "dayofyear({date})", "weekofyear({date})", "weekday({date})", "datediff({date}, {date})",
        "extract(YEAROFWEEK FROM {date})",
        "hour({timestamp})", "minute({timestamp_ntz})", "second({timestamp})", "unix_date({date})",
        "extract(DAY FROM {span})",
        "try_cast({string} AS INT)", "try_cast({double} AS INT)", "try_cast({bigint} AS INT)",
        "try_cast({decimal} AS INT)", "CAST({boolean} AS INT)", "CAST({smallint} AS INT)",
        "nvl2({boolean}, {int}, {int})", "sign({int})::int", "mod({int}, 5)", "positive({int})",
        "json_array_length({string})", "json_array_length(to_json({pairs}))", "size(json_object_keys(to_json({map})))",
        "extract(YEAR FROM {months})", "regexp_instr({string}, '[b-z]+')", "regexp_count({string}, 'a')",
        "aggregate({ints}, {int}, (a, e) -> {int with a:int,e:int})",
        "aggregate({strings}, 0, (a, e) -> {int with a:int,e:string}, a -> {int with a:int})",
        "size(str_to_map({string}, ',', ':'))", "get_json_object(to_json({pair}), '$.x')::int",
    ],
    "bigint": [
        "try_add({bigint}, {bigint})", "try_subtract({bigint}, {bigint})", "try_multiply({bigint}, {bigint})",
        "pmod({bigint}, 5L)", "({bigint} div 2L)", "(CAST({int} AS BIGINT) + {tinyint})",
        "try_cast({string} AS BIGINT)", "try_cast({double} AS BIGINT)", "unix_timestamp({timestamp})",
        "unix_micros({timestamp})", "unix_millis({timestamp})", "array_position({ints}, {int})",
        "array_position({strings}, {string})",
        "xxhash64({pair}, {ints})", "xxhash64({string}, {bigint})", "xxhash64({decimal}, {timestamp_ntz}, {float})",
        "CAST({timestamp} AS BIGINT)", "crc32({string})", "shiftrightunsigned({bigint}, {int})",
        "timestampdiff(HOUR, {timestamp}, {timestamp})", "unix_seconds({timestamp})", "bitmap_bit_position({int})",
        "bitmap_bucket_number({int})", "bitmap_count({binary})", "width_bucket({double}, -5D, 10.5D, 4L)",
        "width_bucket({double}, {double}, {double}, {bigint} % 9)",
    ],
    "float": ["CAST({double} AS FLOAT)", "CAST({int} AS FLOAT)", "try_cast({string} AS FLOAT)", "(- {float})"],
    "double": [
        *(f"({{double}} {op} {{double}})" for op in "+-*"), "try_add({double}, {double})",
        "({double} / ({int} + 0.125D))", "try_divide({double}, {double})", "try_divide({int}, {int})",
        "({float} * {double})",
        "sqrt({double})", "round({double}, 1)", "bround({double}, 1)", "round({double}, -2)", "rint({double})",
        "signum({double})", "nanvl({double}, {double})", "abs({double})", "(- {double})",
        "months_between({date}, {date})", "months_between({timestamp}, {date})",
        "try_cast({string} AS DOUBLE)", "CAST({decimal} AS DOUBLE)", "CAST({float} AS DOUBLE)",
        "CAST({bigint} AS DOUBLE)", "CAST({timestamp} AS DOUBLE)", "array_max({doubles})", "array_min({doubles})",
        "get({doubles}, 1)",
    ],
    "decimal": [
        *(f"try_{name}({{decimal}}, {{decimal}})" for name in ("add", "subtract", "multiply", "divide")),
        "({decimal} + {decimal})", "({decimal} - {decimal})", "({decimal} * {decimal})", "({decimal} + {int})",
        "round({decimal}, 1)", "bround({decimal}, 0)", "abs({decimal})", "(- {decimal})",
        "try_cast({string} AS DECIMAL(12,3))", "try_cast({double} AS DECIMAL(12,3))",
        "try_cast({double} AS DECIMAL(20,5))", "CAST({bigint} AS DECIMAL(24,2))", "CAST({int} AS DECIMAL(12,2))",
        "try_cast({decimal} AS DECIMAL(5,1))",
        "ceil({decimal}, 1)", "floor({decimal}, -1)", "extract(SECOND FROM {timestamp})",
    ],
    "string": [
        "upper({string})", "lower({string})", "initcap({string})", "trim({string})", "ltrim('a', {string})",
        "rtrim({string})", "concat({string}, {string})", "concat_ws('-', {string}, {strings})", "({string} || {int})",
        "substring({string}, 2, 3)", "substring({string}, {int}, {int})",
        "left({string}, {int} % 5)", "right({string}, 2)", "lpad({string}, 5, {string})",
        "rpad({string}, {int} % 20, 'xy')", "repeat({string}, {int} % 4)", "reverse({string})",
        "replace({string}, {string}, 'z')", "translate({string}, 'abc', 'x')",
        "substring_index({string}, ',', {int})", "split_part({string}, ',', 2)",
        "regexp_replace({string}, '[aeiou]', '*')", "regexp_extract({string}, '([a-z]+)', 1)",
        "overlay({string} PLACING '__' FROM 2 FOR 1)", "{string}::string",
        *(f"CAST({{{kind}}} AS STRING)" for kind in _PRINTED),
        "date_format({timestamp}, 'yyyy-MM-dd HH:mm:ss')", "date_format({date}, 'MMM d, yy')", "dayname({date})",
        "monthname({date})", "hex({int})", "hex({string})", "hex({binary})", "bin({bigint})", "md5({string})",
        "sha2({string}, 256)", "sha1({string})", "base64({binary})", "soundex({string})",
        "format_number({double}, 2)",
        "array_join({strings}, '|', 'N')", "get({strings}, 0)", "array_max({strings})", "{pair}.s",
        "try_element_at({strings}, 1)", "nvl({string}, {string})", "elt(2, {string}, {string})", "chr({int} % 300)",
        "space({int} % 3)", "from_unixtime({int})", "mask({string})", "mask({string}, 'Q', 'q', NULL, '#')",
        "conv({string}, 10, 16)", "conv({string}, {int} % 40, -2)", "url_encode({string})", "decode({binary}, 'UTF-8')",
        "decode({int}, 1, {string}, NULL, {string}, 'z')", "format_string('%s|%5d|%x', {string}, {int}, {bigint})",
        "to_char({decimal}, 'S999,990.9')", "to_char({date}, 'yyyy/MM')", "to_char({binary}, 'hex')",
        "to_json({pair})", "to_json({pairs})", "to_json({deep})", "to_json({map})", "to_json({ints})", "to_json({strings})",
        "to_json(named_struct('t', {timestamp}, 'n', {timestamp_ntz}, 'd', {date}, 'x', {decimal}, 'f', {double}))",
        "to_json(named_struct('b', {binary}, 'p', {pair}, 'k', {boolean}))", "to_csv({pair})",
        "to_csv(named_struct('s', {string}, 't', {timestamp}, 'd', {date}, 'x', {decimal}, 'f', {double}))",
        "get_json_object({string}, '$.a')", "get_json_object({string}, '$')", "get_json_object(to_json({pairs}), '$[0].s')",
        "get_json_object(to_json({pairs}), '$[*].x')", "get_json_object(to_json({deep}), '$.a[1]')",
        "get_json_object(to_json(named_struct('q', {string}, 'r', {strings})), '$.q')", "CAST({strings} AS STRING)",
        "aggregate({strings}, '', (a, e) -> {string with a:string,e:string})", "CAST(map_entries({map}) AS STRING)",
        "CAST(arrays_zip({ints}, {strings}) AS STRING)", "CAST(str_to_map({string}, 'a', ' ') AS STRING)",
    ],
    "date": [
        "date_add({date}, {int} % 1000)", "date_sub({date}, 31)", "add_months({date}, {int} % 100)",
        "last_day({date})", "next_day({date}, 'MO')", "trunc({date}, 'MONTH')", "trunc({date}, 'QUARTER')",
        "trunc({date}, 'WEEK')", "CAST({timestamp} AS DATE)", "CAST({timestamp_ntz} AS DATE)",
        "try_cast({string} AS DATE)", "({date} + {months})", "({date} - {months})", "({date} + INTERVAL '1' MONTH)",
        "({date} - INTERVAL '1-2' YEAR TO MONTH)",
        "date_from_unix_date({int} % 99999)", "{deep}.d",
    ],
    "timestamp": [
        *(f"date_trunc('{unit}', {{timestamp}})" for unit in ("HOUR", "DAY", "WEEK", "YEAR", "SECOND")),
        "CAST({date} AS TIMESTAMP)", "date_trunc('DAY', {timestamp_ntz})", "CAST({timestamp_ntz} AS TIMESTAMP)",
        "({timestamp} + INTERVAL '36:10' HOUR TO MINUTE)", "({timestamp} - INTERVAL '1' YEAR)",
        "try_cast({string} AS TIMESTAMP)", "timestamp_seconds({int})",
        "from_utc_timestamp({timestamp}, 'Asia/Tokyo')", "to_utc_timestamp({timestamp}, 'America/New_York')",
        "timestampadd(MONTH, {int} % 50, {timestamp})", "timestampadd(MINUTE, {int} % 5000, {timestamp})",
        "({timestamp} + {span})", "({timestamp} + {months})", "timestamp_micros({bigint} % 10000000000000)",
        "timestamp_millis({bigint} % 10000000000)",
    ],
    "timestamp_ntz": [
        "CAST({timestamp} AS TIMESTAMP_NTZ)", "CAST({date} AS TIMESTAMP_NTZ)", "({timestamp_ntz} - {months})",
        "convert_timezone('America/New_York', 'Asia/Tokyo', {timestamp_ntz})", "({timestamp_ntz} + INTERVAL '25' HOUR)",
        "try_cast({string} AS TIMESTAMP_NTZ)",
    ],
    "binary": [
        "CAST({string} AS BINARY)", "concat({binary}, {binary})", "encode({string}, 'UTF-8')", "unhex(hex({int}))",
        "substring({binary}, 2, 1)", "unbase64(base64({binary}))", "to_binary({string}, 'utf-8')",
        "to_binary(hex({int}), 'hex')",
    ],
    "ints": [
        "array({int}, {int})", "array_distinct({ints})", "array_union({ints}, {ints})",
        "array_except({ints}, {ints})", "array_intersect({ints}, {ints})", "sort_array({ints})",
        "sort_array({ints}, false)", "reverse({ints})", "slice({ints}, 1, 2)", "concat({ints}, {ints})",
        "array_remove({ints}, {int})",
        "array_repeat({int}, {int} % 3)", "sequence({int} % 5, 4)", "flatten(array({ints}, {ints}))",
        "array_compact({ints})", "{deep}.a", "{pairs}.x", "map_values({map})",
        "transform({ints}, e -> {int with e:int})", "transform({ints}, (e, i) -> {int with e:int,i:int})",
        "filter({ints}, e -> {boolean with e:int})", "filter({ints}, (x, i) -> x > i OR {boolean})",
        "transform({strings}, w -> {int with w:string})",
        "transform({pairs}, p -> {int with p:struct<x:int,s:string>})", "array_append({ints}, {int})",
        "array_prepend({ints}, {int})", "array_insert({ints}, 2, {int})", "array_insert({ints}, -2, {int})",
        "zip_with({ints}, {ints}, (a, b) -> {int with a:int,b:int})",
        "zip_with({ints}, {strings}, (a, b) -> {int with a:int,b:string})",
        "array_sort({ints}, (a, b) -> sign(coalesce(b, 0)::bigint - coalesce(a, 0))::int)",
        "from_json(to_json({ints}), 'array<int>')", "map_values(map_filter({map}, (k, v) -> {boolean with k:string,v:int}))",
    ],
    "strings": [
        "array({string}, {string})", "split({string}, ',')", "array_distinct({strings})", "sort_array({strings}, false)",
        "array_union({strings}, {strings})", "concat({strings}, {strings})", "array_remove({strings}, {string})",
        "CAST({ints} AS ARRAY<STRING>)", "transform({ints}, x -> {string with x:int})",
        "filter({strings}, w -> {boolean with w:string})",
        "transform({strings}, w -> {string with w:string})", "{pairs}.s", "map_keys({map})", "reverse({strings})",
        "array_compact({strings})", "regexp_extract_all({string}, '([a-z])(.)?', 1)", "json_object_keys({string})",
        "json_object_keys(to_json({map}))", "zip_with({strings}, {ints}, (a, b) -> {string with a:string,b:int})",
        "array_append({strings}, {string})", "array_insert({strings}, 1, {string})",
        "from_json(to_json({strings}), 'array<string>')",
        "map_keys(transform_values({map}, (k, v) -> {double with k:string,v:int}))",
    ],
    "doubles": [
        "array({double}, {double})", "CAST({ints} AS ARRAY<DOUBLE>)",
        # Adding 0 removes -0.0, for which the engine does not support array sets.
        "array_distinct(transform({doubles}, z -> z + 0D))", "sort_array(transform({doubles}, z -> z + 0D))",
        *(f"array_{name}(transform({{doubles}}, z -> z + 0D), transform({{doubles}}, z -> z + 0D))"
          for name in ("union", "except", "intersect")),
        "filter({doubles}, e -> {boolean with e:double})", "transform({ints}, e -> {double with e:int})",
        "array_append({doubles}, {double})", "array_prepend({doubles}, {double})", "array_insert({doubles}, 3, {double})",
        "from_json(to_json({doubles}), 'array<double>')",
    ],
    "pair": [
        "named_struct('x', {int}, 's', {string})", "try_element_at({pairs}, {int} % 3 + 5)", "get({pairs}, 0)",
        "from_json(to_json({pair}), 'x INT, s STRING')", "from_json({string}, 'x INT, s STRING')",
        "from_csv(to_csv({pair}), 'x INT, s STRING')", "from_csv({string}, 'x INT, s STRING')",
        "from_csv(concat({int}, ',', {string}), 'x INT, s STRING')",
    ],
    "pairs": [
        "array({pair}, {pair})", "sort_array({pairs})", "array_distinct({pairs})", "reverse({pairs})",
        "concat({pairs}, {pairs})", "filter({pairs}, p -> {boolean with p:struct<x:int,s:string>})",
        "transform({ints}, e -> {pair with e:int})", "slice({pairs}, -1, 1)",
        "from_json(to_json({pairs}), 'array<struct<x:int,s:string>>')",
        "transform(map_entries({map}), e -> named_struct('x', e.value, 's', e.key))",
        "zip_with({ints}, {strings}, (a, b) -> named_struct('x', a, 's', b))",
    ],
    "deep": ["named_struct('a', {ints}, 'd', {date})", "from_json(to_json({deep}), 'a ARRAY<INT>, d DATE')"],
    "map": [
        "map_filter({map}, (k, v) -> {boolean with k:string,v:int})",
        "transform_values({map}, (k, v) -> {int with k:string,v:int})",
        "map_zip_with({map}, {map}, (k, a, b) -> {int with k:string,a:int,b:int})",
        "map_from_arrays(array('q', 'r'), array({int}, {int}))", "map_from_entries(map_entries({map}))",
    ],
    "span": [
        "({timestamp} - {timestamp})", "({timestamp_ntz} - {timestamp_ntz})", "({span} * 2)", "(- {span})",
        "make_dt_interval({int} % 10, {int} % 50, 3, 1.5)",
    ],
    "months": ["make_ym_interval({int} % 100, {int} % 30)", "(- {months})"],
}
# Forms that raise errors for some values in ANSI mode.
_RAISING: dict[str, list[str]] = {
    "boolean": [
        "({string} < {int})", "({string} = {date})", "exists({doubles}, x -> 1 / x > {double})",
        "CAST({string} AS BOOLEAN)",
    ],
    "int": [
        "({int} + {int})", "({int} - {int})", "({int} * 3)", "(- {int})", "abs({int})", "({int} % {int})",
        "pmod({int}, {int})", "element_at({ints}, {int})", "element_at({map}, {string})", "{ints}[1]",
        "CAST({double} AS INT)",
        "CAST({string} AS INT)", "CAST({bigint} AS INT)", "try_element_at({ints}, {int})",
        "crc32({string})::int % 7", "negative({int})", "aggregate({ints}, {int}, (a, e) -> a + e)",
    ],
    "tinyint": ["getbit({int}, {int})", "CAST({int} AS TINYINT)", "({tinyint} + {tinyint})"],
    "smallint": ["({smallint} * {tinyint})", "CAST({double} AS SMALLINT)"],
    "bigint": [
        "({bigint} + {int})", "({bigint} * {int})", "({int} div {int})", "({bigint} % {bigint})", "floor({double})",
        "floor({float})", "ceil({double})", "CAST({double} AS BIGINT)", "factorial({int})", "round({bigint}, -1)",
        "CAST({decimal} AS BIGINT)",
    ],
    "double": [
        "({double} / {double})", "({int} / {int})", "({double} % {double})", "pmod({double}, {double})",
        "CAST({string} AS DOUBLE)", "element_at({doubles}, -1)",
    ],
    "decimal": [
        "({decimal} / {decimal})", "({decimal} % {decimal})", "pmod({decimal}, {decimal})",
        "CAST({decimal} AS DECIMAL(5,1))", "CAST({string} AS DECIMAL(9,2))", "to_number({string}, 'S9990.9')",
        "to_number(to_char({decimal}, 'S9999990.99'), 'S9999990.99')",
    ],
    "string": [
        "{strings}[0]", "element_at({strings}, 1)", "url_decode({string})",
        "parse_url(concat('http://a.b:80/c?', url_encode({string}), '=1#r'), 'QUERY')",
        "parse_url(concat('http://a.b/', url_encode({string}), '?k=', url_encode({string}), '&l=1#r'), 'QUERY', 'k')",
        "parse_url(concat('http://u:p@h:8/', url_encode({string})), 'PATH')", "to_json(map_concat({map}, {map}))",
    ],
    "binary": ["unbase64({string})", "to_binary({string}, 'hex')"],
    "map": [
        "map_concat({map}, {map})", "map_from_arrays({strings}, {ints})", "map({string}, {int}, {string}, {int})",
        "map_from_entries(transform({pairs}, p -> named_struct('k', p.s, 'v', p.x)))",
        "transform_keys({map}, (k, v) -> {string with k:string,v:int})",
    ],
    "date": [
        "make_date({int} % 3000, {int} % 14, 5)", "date_sub({date}, {int})", "CAST({string} AS DATE)",
        "to_date({string}, 'yyyy-MM-dd')",
    ],
    "timestamp": [
        "to_timestamp({string}, 'yyyy-MM-dd')", "CAST({string} AS TIMESTAMP)",
        "make_timestamp(2024, {int}, 1, 0, 0, 1.5)",
    ],
    "ints": [
        "CAST({strings} AS ARRAY<INT>)", "CAST({doubles} AS ARRAY<INT>)", "transform({ints}, e -> e + {int})",
        "transform({ints}, e -> 10 % e)",
    ],
    "pair": ["element_at({pairs}, 1)"],
    "span": ["({span} / {int})", "({span} + {span})", "make_dt_interval({int}, {int}, {int})"],
    "months": ["({months} + {months})", "({months} * {int})", "({months} / {int})", "make_ym_interval({int}, {int})"],
}
# The last digit can differ between Java and C. A cast to string or a comparison would turn that into a mismatch.
_INEXACT: dict[str, list[str]] = {
    "double": [
        *(f"{name}({{double}})" for name in _MATH),
        "log({double}, {double})", "atan2({double}, {double})", "hypot({double}, 3D)", "power({double}, {int} % 5)",
    ],
}
# fmt: on

_OF_EVERY_KIND = (
    "CASE WHEN {boolean} THEN {%s} ELSE {%s} END",
    "CASE WHEN {boolean} THEN {%s} END",
    "CASE WHEN {boolean} THEN {%s} WHEN {boolean} THEN {%s} ELSE {%s} END",
    "coalesce({%s}, {%s})",
    "if({boolean}, {%s}, NULL)",
)
_OF_COMPARED_KINDS = ("nullif({%s}, {%s})", "least({%s}, {%s})", "greatest({%s}, {%s}, {%s})")


def _argument(hole: str) -> Argument:
    name, _, variables = hole.partition(" with ")
    # Commas inside of a struct's type do not separate variables.
    declared = re.split(r",(?![^<]*>)", variables) if variables else []
    pairs = (variable.partition(":") for variable in declared)
    return Argument(NESTED.get(name, name), tuple((variable, its) for variable, _, its in pairs))


def parse_form(kind: str, text: str) -> Form:
    """Parse SQL with kinds in braces to a form."""
    arguments = tuple(_argument(hole) for hole in re.findall(r"\{([^}]*)\}", text))
    numbers = iter(range(len(arguments)))
    return Form(re.sub(r"\{[^}]*\}", lambda hole: f"{{{next(numbers)}}}", text), kind, arguments)


def _forms(table: dict[str, list[str]]) -> dict[str, tuple[Form, ...]]:
    forms: dict[str, tuple[Form, ...]] = dict.fromkeys(KINDS, ())
    for name, strings in table.items():
        kind = NESTED.get(name, name)
        forms[kind] = tuple(parse_form(kind, text) for text in strings)
    return forms


def _generic(kind: str) -> Iterable[Form]:
    strings = _OF_EVERY_KIND + (_OF_COMPARED_KINDS if kind in COMPARED else ())
    return (parse_form(kind, text.replace("%s", kind)) for text in strings)


SAFE = _forms(_SAFE)
"""Forms by kind that almost never raise an error."""
GENERIC = {kind: tuple(_generic(kind)) for kind in KINDS}
"""Forms that exist for every kind, or for every kind that can be compared."""
RAISING = _forms(_RAISING)
"""Forms by kind that raise errors in ANSI mode for some values."""
INEXACT = _forms(_INEXACT)
"""Forms by kind whose last digits can differ. They are only used as the outermost call."""

"""Random calls of many functions, valid and (by their values) invalid, at a bounded depth."""

from __future__ import annotations

from random import Random

LEAVES = {
    "boolean": ("b", "true", "CAST(NULL AS BOOLEAN)"),
    "int": ("i", "j", "0", "-1", "3", "2147483647", "CAST(NULL AS INT)"),
    "bigint": ("l", "5L", "9223372036854775807L"),
    "double": ("f", "0.5D", "-0.0D", "double('NaN')", "1e300D"),
    "decimal": ("m", "1.50BD", "-99.995BD"),
    "string": ("s", "u", "''", "'a,b'", "'12'", "' Xy '", "'2020-02-30'"),
    "date": ("d", "DATE'2024-02-29'", "DATE'0001-01-01'"),
    "timestamp": ("ts", "TIMESTAMP'2021-03-28 01:30:00'"),
    "ints": ("ai", "array(1, NULL, 1)", "array(3, 2)"),
    "texts": ("at", "array('b', 'a')", "split('x,y,,z', ',')"),
    "doubles": ("af", "array(0D, -0.0D, double('NaN'))"),
    "pair": ("st", "named_struct('x', 1, 's', 'p')"),
}
_FLAT = ("boolean", "int", "bigint", "double", "decimal", "string", "date", "timestamp")
_ARRAYS = {"ints": "int", "texts": "string", "doubles": "double"}
# result kind: calls, with the kinds of their arguments in braces
_CALLS: dict[str, list[str]] = {
    "boolean": [
        "({boolean} AND {boolean})", "({boolean} OR {boolean})", "(NOT {boolean})", "({int} IN (1, {int}, NULL))",
        "({string} LIKE '%a_')", "rlike({string}, '[a-c]+')", "contains({string}, {string})", "endswith({string}, {string})",
        "isnan({double})", "({double} BETWEEN -1 AND {double})", "try_cast({string} AS BOOLEAN)", "(CAST({int} AS BOOLEAN) <=> {boolean})",
        "({string} < {int})", "({date} > {timestamp})", "({int} = {decimal})", "({decimal} >= {double})", "({bigint} <> {double})", "({string} = {date})",
        "arrays_overlap({ints}, {ints})", "array_contains({ints}, {int})", "array_contains({texts}, {string})", "({pair}.x > 0)", "exists({ints}, x -> x > {int})", "forall({texts}, w -> w < {string})", "exists({doubles}, x -> 1 / x > {double})",
    ],
    "int": [
        "({int} + {int})", "({int} - {int})", "({int} * 3)", "(-{int})", "abs({int})", "({int} % {int})", "pmod({int}, {int})", "({int} & {int})",
        "({int} ^ {int})", "(~{int})", "shiftleft({int}, {int})", "shiftright({int}, 3)", "length({string})", "octet_length({string})", "ascii({string})",
        "instr({string}, {string})", "locate({string}, {string}, {int})", "levenshtein({string}, {string})", "find_in_set({string}, 'a,b,12')",
        "year({date})", "quarter({timestamp})", "dayofyear({date})", "weekofyear({date})", "weekday({date})", "datediff({date}, {date})", "hour({timestamp})",
        "second({timestamp})", "size({ints})", "size({texts})", "array_max({ints})", "array_min({ints})", "element_at({ints}, {int})", "{ints}[1]", "try_element_at({ints}, {int})",
        "get({ints}, {int})", "CAST({double} AS INT)", "CAST({string} AS INT)", "try_cast({decimal} AS INT)", "CAST({boolean} AS INT)", "unix_date({date})", "{pair}.x",
        "bit_count({bigint})", "greatest({int}, {int}, {int})", "least({int}, {int})", "sign({int})::int", "hash({string}, {int}, {double})", "crc32({string})::int % 7",
        "try_add({int}, {int})", "try_multiply({int}, {int})", "width({int})", "nvl2({boolean}, {int}, {int})", "nullif({int}, {int})", "cardinality({ints})",
    ],
    "bigint": [
        "({bigint} + {int})", "({bigint} * {int})", "({int} div {int})", "({bigint} div 2L)", "floor({double})", "ceil({double})", "try_subtract({bigint}, {bigint})",
        "CAST({double} AS BIGINT)", "try_cast({string} AS BIGINT)", "unix_timestamp({timestamp})", "unix_micros({timestamp})", "array_position({ints}, {int})", "factorial({int})",
        "xxhash64({string}, {bigint})", "CAST({timestamp} AS BIGINT)", "crc32({string})", "shiftrightunsigned({bigint}, {int})", "round({bigint}, -1)", "greatest({int}, {bigint})",
    ],
    "double": [
        "({double} + {double})", "({double} * {double})", "({double} / {double})", "({int} / {int})", "try_divide({double}, {double})", "({double} % {double})",
        "sqrt({double})", "ln({double})", "log10({double})", "round({double}, 2)", "bround({double}, 1)", "CAST({string} AS DOUBLE)", "CAST({decimal} AS DOUBLE)",
        "atan2({double}, {double})", "rint({double})", "signum({double})", "nanvl({double}, {double})", "greatest({double}, {double})", "months_between({date}, {date})",
        "array_max({doubles})", "element_at({doubles}, -1)", "pmod({double}, {double})", "CAST({timestamp} AS DOUBLE)", "abs({double})", "degrees({double})", "hypot({double}, 3D)",
    ],
    "decimal": [
        "({decimal} + {decimal})", "({decimal} - {decimal})", "({decimal} * {decimal})", "({decimal} / {decimal})", "({decimal} % {decimal})", "round({decimal}, 1)", "bround({decimal}, 0)",
        "abs({decimal})", "CAST({int} AS DECIMAL(12, 2))", "try_cast({string} AS DECIMAL(8, 3))", "try_cast({double} AS DECIMAL(20, 5))", "ceil({decimal}, 1)", "floor({decimal}, -1)",
        "CAST({decimal} AS DECIMAL(5, 1))", "pmod({decimal}, {decimal})", "try_divide({decimal}, {decimal})", "({decimal} + {int})", "greatest({decimal}, {decimal})", "(-{decimal})",
    ],
    "string": [
        "upper({string})", "lower({string})", "initcap({string})", "trim({string})", "ltrim('a', {string})", "concat({string}, {string})", "concat_ws('-', {string}, {texts})",
        "substring({string}, {int}, {int})", "left({string}, {int} % 5)", "right({string}, 2)", "lpad({string}, 5, {string})", "rpad({string}, {int} % 20, 'xy')", "repeat({string}, {int} % 4)",
        "reverse({string})", "replace({string}, {string}, 'z')", "translate({string}, 'abc', 'x')", "substring_index({string}, ',', {int})", "split_part({string}, ',', 2)",
        "regexp_replace({string}, '[aeiou]', '*')", "regexp_extract({string}, '([a-z]+)', 1)", "overlay({string} PLACING '__' FROM 2 FOR 1)", "CAST({int} AS STRING)", "CAST({decimal} AS STRING)",
        "CAST({double} AS STRING)", "CAST({date} AS STRING)", "CAST({timestamp} AS STRING)", "CAST({boolean} AS STRING)", "date_format({timestamp}, 'yyyy-MM-dd HH:mm:ss')", "dayname({date})",
        "hex({int})", "hex({string})", "bin({bigint})", "md5({string})", "soundex({string})", "format_number({double}, 2)", "array_join({texts}, '|', 'N')", "{texts}[0]", "{pair}.s",
        "element_at({texts}, 1)", "nvl({string}, {string})", "nullif({string}, {string})", "elt(2, {string}, {string})", "chr({int} % 300)", "sha2({string}, 256)", "space({int} % 3)", "CAST({string} AS STRING)",
    ],
    "date": [
        "date_add({date}, {int} % 1000)", "date_sub({date}, {int})", "add_months({date}, {int} % 100)", "last_day({date})", "next_day({date}, 'MO')", "trunc({date}, 'QUARTER')", "CAST({timestamp} AS DATE)",
        "try_cast({string} AS DATE)", "({date} + INTERVAL '1' MONTH)", "({date} - INTERVAL '1-2' YEAR TO MONTH)", "make_date({int} % 3000, {int} % 14, 5)", "greatest({date}, {date})", "date_from_unix_date({int} % 99999)",
    ],
    "timestamp": [
        "date_trunc('HOUR', {timestamp})", "date_trunc('WEEK', {timestamp})", "CAST({date} AS TIMESTAMP)", "({timestamp} + INTERVAL '36:10' HOUR TO MINUTE)", "({timestamp} - INTERVAL '1' YEAR)",
        "try_cast({string} AS TIMESTAMP)", "timestamp_seconds({int})", "least({timestamp}, {timestamp})", "from_utc_timestamp({timestamp}, 'Asia/Tokyo')", "timestampadd(MONTH, {int} % 50, {timestamp})",
        "to_timestamp({string}, 'yyyy-MM-dd')",
    ],
    "ints": [
        "array({int}, {int})", "array_distinct({ints})", "array_union({ints}, {ints})", "array_except({ints}, {ints})", "array_intersect({ints}, {ints})", "sort_array({ints})", "reverse({ints})",
        "slice({ints}, 1, 2)", "concat({ints}, {ints})", "array_remove({ints}, {int})", "array_repeat({int}, {int} % 3)", "sequence({int} % 5, 4)", "flatten(array({ints}, {ints}))", "array_compact({ints})", "transform({ints}, x -> try_add(x, {int}))", "filter({ints}, (x, i) -> x > i OR {boolean})",
        "transform({texts}, w -> length(w))", "CAST({texts} AS ARRAY<INT>)", "CAST({doubles} AS ARRAY<INT>)",
    ],
    "texts": ["array({string}, {string})", "split({string}, ',')", "array_distinct({texts})", "sort_array({texts}, false)", "array_union({texts}, {texts})", "concat({texts}, {texts})", "array_remove({texts}, {string})", "CAST({ints} AS ARRAY<STRING>)", "transform({ints}, x -> concat({string}, x))"],
    "doubles": ["array({double}, {double})", "array_distinct({doubles})", "sort_array({doubles})", "array_union({doubles}, {doubles})", "array_except({doubles}, {doubles})", "array_intersect({doubles}, {doubles})"],
    "pair": ["named_struct('x', {int}, 's', {string})"],
}  # fmt: skip
for _kind in LEAVES:
    _CALLS["boolean"] += [f"({{{_kind}}} {op} {{{_kind}}})" for op in ("=", "<", ">=", "<=>")]
    _CALLS["boolean"] += [f"({{{_kind}}} IS NULL)"]
    _CALLS[_kind] += [
        f"coalesce({{{_kind}}}, {{{_kind}}})",
        f"CASE WHEN {{boolean}} THEN {{{_kind}}} ELSE {{{_kind}}} END",
        f"if({{boolean}}, {{{_kind}}}, NULL)",
    ]
_CALLS["int"].remove("width({int})")


def expression(rng: Random, kind: str, depth: int) -> str:
    """An expression of a kind, at most ``depth`` calls deep."""
    if depth <= 0 or rng.random() < 0.15:
        leaves = LEAVES[kind]
        return leaves[0] if rng.random() < 0.6 else rng.choice(leaves)
    parts = rng.choice(_CALLS[kind]).split("{")
    text = parts[0]
    for part in parts[1:]:
        wanted, _, rest = part.partition("}")
        text += expression(rng, wanted, depth - 1) + rest
    return text

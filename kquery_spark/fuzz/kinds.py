"""The kinds of values in generated SQL, and literals of each kind.

A kind is a type's name in Spark, without the precision of decimals. Nested types and intervals also have short names, for
the forms of ``grammar.py``.
"""

from __future__ import annotations

NESTED = {
    "ints": "array<int>",
    "strings": "array<string>",
    "doubles": "array<double>",
    "pair": "struct<x:int,s:string>",
    "pairs": "array<struct<x:int,s:string>>",
    "deep": "struct<a:array<int>,d:date>",
    "map": "map<string,int>",
    "span": "interval day to second",
    "months": "interval year to month",
}
"""The kinds of nested types and intervals by their short names."""

LITERALS: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false", "CAST(NULL AS BOOLEAN)"),
    "tinyint": ("1Y", "-5Y", "CAST(NULL AS TINYINT)"),
    "smallint": ("1S", "-300S", "CAST(NULL AS SMALLINT)"),
    "int": ("1", "0", "-7", "3", "2147483647", "CAST(NULL AS INT)"),
    "bigint": ("1L", "0L", "-9L", "9223372036854775807L", "CAST(NULL AS BIGINT)"),
    "float": ("CAST(1.5 AS FLOAT)", "CAST('NaN' AS FLOAT)", "CAST(NULL AS FLOAT)"),
    "double": ("1.5D", "0.0D", "-0.0D", "-0.25D", "1e300D", "CAST('NaN' AS DOUBLE)", "CAST(NULL AS DOUBLE)"),
    "decimal": ("1.25", "0.0", "-99.995", "CAST(NULL AS DECIMAL(9,2))"),
    "string": ("'a'", "''", "'AB'", "'10'", "' Xy '", "'a,b'", "'2020-02-30'", "CAST(NULL AS STRING)"),
    "date": ("DATE'2000-02-29'", "DATE'1970-01-01'", "DATE'0001-01-01'", "CAST(NULL AS DATE)"),
    "timestamp": (
        "TIMESTAMP'2024-02-29 12:30:15.25'",
        "TIMESTAMP'2021-03-28 01:30:00'",
        "CAST(NULL AS TIMESTAMP)",
    ),
    "timestamp_ntz": ("TIMESTAMP_NTZ'2024-03-31 02:30:00.5'", "CAST(NULL AS TIMESTAMP_NTZ)"),
    "binary": ("X'00FF'", "X''", "CAST(NULL AS BINARY)"),
    NESTED["ints"]: ("array(1, NULL)", "array_remove(array(1), 1)", "CAST(NULL AS ARRAY<INT>)"),
    NESTED["strings"]: ("array('b', 'a', NULL)", "split('x,y,,z', ',')", "CAST(NULL AS ARRAY<STRING>)"),
    NESTED["doubles"]: ("array(0D, -0.0D, double('NaN'))", "CAST(NULL AS ARRAY<DOUBLE>)"),
    # The fields are nullable, because PySpark cannot convert a NULL struct with fields that are never NULL.
    NESTED["pair"]: (
        "named_struct('x', try_cast('1' AS INT), 's', nullif('a', ''))",
        "CAST(NULL AS STRUCT<x: INT, s: STRING>)",
    ),
    NESTED["pairs"]: (
        "array(named_struct('x', try_cast('1' AS INT), 's', nullif('a', '')), NULL)",
        "CAST(NULL AS ARRAY<STRUCT<x: INT, s: STRING>>)",
    ),
    NESTED["deep"]: (
        "named_struct('a', nullif(array(1, NULL), array(0)), 'd', nullif(DATE'2000-02-29', DATE'1970-01-01'))",
        "CAST(NULL AS STRUCT<a: ARRAY<INT>, d: DATE>)",
    ),
    NESTED["map"]: ("map('a', 1, 'b', NULL)", "CAST(NULL AS MAP<STRING, INT>)"),
    NESTED["span"]: (
        "INTERVAL '1 02:03:04.5' DAY TO SECOND",
        "INTERVAL '-2 01:00:00' DAY TO SECOND",
        "CAST(NULL AS INTERVAL DAY TO SECOND)",
    ),
    NESTED["months"]: (
        "INTERVAL '1-2' YEAR TO MONTH",
        "INTERVAL '-0-5' YEAR TO MONTH",
        "CAST(NULL AS INTERVAL YEAR TO MONTH)",
    ),
}
KINDS = tuple(LITERALS)
COMPARED = tuple(kind for kind in KINDS if kind != NESTED["map"])
"""The kinds whose values can be compared, sorted and grouped."""
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")

"""Boundary values of types, as literals for the placeholders of `boundary_expressions`."""

from __future__ import annotations

#: Literals for each placeholder. `j` and `m` are INT and BIGINT as second operands.
VALUES: dict[str, list[str]] = {
    "b": [f"CAST({v} AS TINYINT)" for v in ("-128", "-127", "-1", "0", "5", "99", "127", "NULL")],
    "h": [f"CAST({v} AS SMALLINT)" for v in ("-32768", "-32765", "-5", "0", "15", "32767", "NULL")],
    "i": [
        f"CAST({v} AS INT)"
        for v in (
            "-2147483648",
            "-2147483645",
            "-65",
            "-1",
            "0",
            "1",
            "45",
            "2147483645",
            "2147483647",
            "NULL",
        )
    ],
    "j": [f"CAST({v} AS INT)" for v in ("-2147483648", "-2", "-1", "0", "1", "31", "64", "2147483647")],
    "l": [
        f"CAST({v} AS BIGINT)"
        for v in (
            "-9223372036854775808",
            "-9223372036854775807",
            "-9223372036854775805",
            "-5000000000000000000",
            "-25",
            "-1",
            "0",
            "1",
            "55",
            "4611686018427387904",
            "9223372036854775805",
            "9223372036854775807",
            "NULL",
        )
    ],
    "m": [
        f"CAST({v} AS BIGINT)" for v in ("-9223372036854775808", "-1", "0", "1", "7", "9223372036854775807")
    ],
    "d": [
        f"CAST('{v}' AS DOUBLE)"
        for v in (
            "9.223372036854775807E18",
            "-9.223372036854775808E18",
            "9.2233720368547748E18",
            "1e300",
            "-1e300",
            "0.5",
            "-0.0",
            "2.5",
            "-2147483649.5",
            "1e19",
            "4.9e-324",
            "NaN",
            "Infinity",
            "-Infinity",
        )
    ],
    "f": [f"CAST('{v}' AS FLOAT)" for v in ("3.4e38", "-0.0", "2.5", "16777217", "1e-45", "NaN", "Infinity")],
    "p": [
        f"CAST('{v}' AS DECIMAL(38, 0))"
        for v in (
            "9" * 38,
            "-" + "9" * 38,
            "5" + "0" * 37,
            "-5" + "0" * 37,
            "9223372036854775807",
            "-9223372036854775808",
            "0",
            "-15",
        )
    ],
    "q": [
        f"CAST('{v}' AS DECIMAL(38, 38))"
        for v in ("0." + "9" * 38, "-0." + "9" * 38, "0.5", "-0.05", "0." + "0" * 37 + "1", "0")
    ],
    "r": [
        f"CAST('{v}' AS DECIMAL(38, 18))"
        for v in (
            "9" * 20 + "." + "9" * 18,
            "-" + "9" * 20 + "." + "9" * 18,
            "9223372036854775807.5",
            "-9223372036854775808.5",
            "0.5",
            "-1.5",
        )
    ],
    "s": [
        f"CAST('{v}' AS DECIMAL(18, 2))"
        for v in ("9" * 16 + ".99", "-" + "9" * 16 + ".99", "0.05", "-0.15", "-25.5", "5000000000000000")
    ],
    "u": [f"CAST('{v}' AS DECIMAL(18, 18))" for v in ("0." + "9" * 18, "-0." + "9" * 18, "0.5", "-0.05")],
    "v": [
        f"CAST('{v}' AS DECIMAL(20, 0))"
        for v in ("9" * 20, "-" + "9" * 20, "9223372036854775807", "-9223372036854775808", "5")
    ],
    "w": [
        f"CAST('{v}' AS DECIMAL(10, 3))" for v in ("9999999.999", "-9999999.999", "0.0005", "-0.5", "125.125")
    ],
    "date": [
        "DATE'1970-01-01'",
        "DATE'9999-12-31'",
        "DATE'0001-01-01'",
        "DATE'2024-02-29'",
        "date_from_unix_date(2147483647)",
        "date_from_unix_date(-2147483648)",
    ],
    "ts": [
        "TIMESTAMP'1970-01-01 00:00:00'",
        "TIMESTAMP'9999-12-31 23:59:59.999999'",
        "TIMESTAMP'0001-01-01 00:00:00'",
        "TIMESTAMP'2024-02-29 12:34:56.789'",
        "timestamp_micros(9223372036854775807)",
        "timestamp_micros(-9223372036854775808)",
        "timestamp_micros(-1)",
    ],
    "ym": [
        "CAST(v AS INTERVAL MONTH)".replace("v", v) for v in ("2147483647", "-2147483648", "0", "-1", "13")
    ],
    "dt": [
        "INTERVAL '106751991 04:00:54.775807' DAY TO SECOND",
        "INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND",
        "INTERVAL '0 00:00:00' DAY TO SECOND",
        "INTERVAL '-0 00:00:00.000001' DAY TO SECOND",
        "INTERVAL '1 01:01:01.5' DAY TO SECOND",
    ],
    "arr": ["array(1, 2, 3)", "CAST(array() AS ARRAY<INT>)", "array(7)"],
    "str": [
        "'abc'",
        "''",
        "'-9223372036854775808'",
        "'ZZZZZZZZZZZZZZZZ'",
        "'18446744073709551615'",
        "'-1'",
        "'7f'",
    ],
}

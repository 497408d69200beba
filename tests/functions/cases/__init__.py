"""All parity cases, one module per domain."""

from tests.functions.cases import (
    arrays,
    casts,
    codings,
    conditional,
    csv,
    dates,
    json,
    maps,
    moments,
    number_strings,
    numbers,
    others,
    strings,
    times,
    variants,
)

ALL = [
    *casts.CASES,
    *conditional.CASES,
    *strings.CASES,
    *number_strings.CASES,
    *numbers.CASES,
    *dates.CASES,
    *moments.CASES,
    *times.CASES,
    *arrays.CASES,
    *maps.CASES,
    *others.CASES,
    *json.CASES,
    *csv.CASES,
    *codings.CASES,
    *variants.CASES,
]

"""Microseconds and nanoseconds of the units that times and intervals count by, and the limits of whole numbers."""

SECOND_MICROS = 1_000_000
DAY_MICROS = 86_400 * SECOND_MICROS
MICRO_NANOS = 1000
SECOND_NANOS = MICRO_NANOS * SECOND_MICROS
DAY_NANOS = MICRO_NANOS * DAY_MICROS

INT32_MAX = 2**31 - 1
INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

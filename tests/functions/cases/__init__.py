"""All parity cases, one module per domain."""

from tests.functions.cases import casts, conditional, dates, numbers, others, strings

ALL = [*casts.CASES, *conditional.CASES, *strings.CASES, *numbers.CASES, *dates.CASES, *others.CASES]

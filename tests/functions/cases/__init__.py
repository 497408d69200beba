"""All parity cases, one module per domain."""

from tests.functions.cases import casts

ALL = [*casts.CASES]

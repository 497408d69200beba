"""Three-valued AND, OR and NOT. Row-wise short circuit is the expression compiler's task, not theirs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from kquery_spark.functions.registry import CallContext, Function, accept, cast_to, register
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector


def _and(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.and_kleene(args[0].data, args[1].data)


def _or(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.or_kleene(args[0].data, args[1].data)


def _not(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.invert(args[0].data)


_RULE = accept(t.BOOL, t.BOOL)

register(
    Function("and", _and, _RULE, catalyst=("And",), arity=(2, 2), coerce=cast_to(t.BOOL), symbol="AND"),
    Function("or", _or, _RULE, catalyst=("Or",), arity=(2, 2), coerce=cast_to(t.BOOL), symbol="OR"),
    Function("not", _not, _RULE, catalyst=("Not",), coerce=cast_to(t.BOOL), symbol="NOT"),
)

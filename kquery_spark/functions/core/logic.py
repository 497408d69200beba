"""Three-valued AND, OR and NOT. Row-wise short circuit is the expression compiler's task, not theirs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from kquery_spark.functions.registry import CallContext, Function, Kernel, Operator, accept, cast_to, register
from kquery_spark.functions.sql_form import Logic
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector


def _and(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.and_kleene(args[0].data, args[1].data)


def _or(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.or_kleene(args[0].data, args[1].data)


def _not(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.invert(args[0].data)


_RULE = accept(t.BOOL, t.BOOL)


def _connective(name: str, kernel: Kernel, catalyst: str, logic: Logic) -> Function:
    return Function(
        name,
        kernel,
        _RULE,
        catalyst=(catalyst,),
        arity=(2, 2),
        coerce=cast_to(t.BOOL),
        operator=Operator(name.upper(), logic=logic),
        lazy=True,
    )


register(
    _connective("and", _and, "And", Logic.AND),
    _connective("or", _or, "Or", Logic.OR),
    Function(
        "not",
        _not,
        _RULE,
        catalyst=("Not",),
        coerce=cast_to(t.BOOL),
        operator=Operator("NOT", logic=Logic.NOT),
    ),
)

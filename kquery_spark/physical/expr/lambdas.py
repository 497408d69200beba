"""Evaluates the lambda of a higher-order function over the elements of all rows at once.

For ``transform(xs, x -> x + y)`` over the rows (xs = [1, 2], y = 10) and (xs = [3], y = 20), the body ``x + y`` runs once
over a batch with one row per element: x = 1 2 3 and y = 10 10 20. The captured columns are repeated for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from kquery_spark.expr.lambdas import HigherOrder
from kquery_spark.functions.nested.higher_order import LambdaCall
from kquery_spark.run_control import check_run
from kquery_spark.types.batch import Batch
from kquery_spark.types.sizes import fixed_bytes, reserve_gather, reserve_rows
from kquery_spark.types.vector import Int64s, Vector, from_arrow

Body = Callable[[Batch], Vector]


def body_schema(expr: HigherOrder) -> pa.Schema:
    """Return the columns that the body reads: the lambda's parameters, then the captured columns of the row."""
    captured = [pa.field(name, c.dtype) for name, c in zip(expr.inputs, expr.captured, strict=True)]
    return pa.schema([*expr.parameter_fields, *captured])


def apply(
    expr: HigherOrder, body: Body, arguments: Sequence[Vector], captured: Sequence[Vector], num_rows: int
) -> Vector:
    """Return the value of the call in each row. body: evaluates the lambda's body over a batch of ``body_schema``."""
    schema = body_schema(expr)
    outer = [vector.physical(num_rows) for vector in captured]
    # At least this many bytes per element are in memory at once: its row number, the parameters, and the result. They are
    # reserved together, so that all arrays of a lambda are not much larger than the 128 MB that one array may have.
    types = [*(field.type for field in expr.parameter_fields), expr.body.dtype]
    element_bytes = 8 + sum(map(fixed_bytes, types))

    def function(columns: Sequence[pa.Array], rows: Int64s) -> Vector:
        check_run()  # a kernel may call the lambda many times
        reserve_rows(len(rows), element_bytes)
        own = [from_arrow(schema.field(i).type, column).data for i, column in enumerate(columns)]
        reserve_gather(outer, rows)
        places = pa.array(rows)
        return body(Batch(schema, (*own, *(column.take(places) for column in outer)), len(rows)))

    call = LambdaCall(function, len(expr.parameters), expr.dtype, expr.mode, num_rows)
    return Vector(expr.dtype, expr.entry.kernel([a.array(num_rows) for a in arguments], call))

"""Which columns a plan declares as not nullable. The engine itself reads all columns of files as nullable, as Spark does."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.expr import Column, Expr
from kquery_spark.logical import Aggregate, Filter, Join, Limit, LogicalPlan, Projection, Scan, Sort


class NullClaims:
    """The nullability of columns in the schemas that a plan has for its tables.

    The claims may be wrong, so they only decide whether a plan is declined. No result depends on them.
    """

    def __init__(self) -> None:
        #: for each table and column: whether all reads of it say that it is never NULL
        self._claims: dict[tuple[str, str], bool] = {}

    def add(self, scan: Scan, schema: pa.Schema) -> None:
        """Add the schema that a plan has for a table. A column is nullable if any read of it says so. Case is ignored."""
        for field in schema:
            key = (scan.table, field.name.lower())
            self._claims[key] = self._claims.get(key, True) and not field.nullable

    def is_never_null(self, plan: LogicalPlan, expr: Expr) -> bool:
        """Return whether an expression over the rows of a plan is never NULL if the claims are true."""
        if not expr.nullable:
            return True
        if not isinstance(expr, Column):
            return False
        name = expr.name
        match plan:
            case Scan():
                return self._claims.get((plan.table, name.lower()), False)
            case Projection():
                return self.is_never_null(plan.child, plan.definitions[name])
            case Filter() | Sort() | Limit():
                return self.is_never_null(plan.child, expr)
            case Aggregate():
                keys = {key.name: key.expr for key in plan.keys}
                return name in keys and self.is_never_null(plan.child, keys[name])
            case Join():
                if name in plan.left.column_names:
                    return not plan.kind.pads_left and self.is_never_null(plan.left, expr)
                return not plan.kind.pads_right and self.is_never_null(plan.right, expr)
        return False

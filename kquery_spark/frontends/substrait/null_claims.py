"""The columns that a plan says are never NULL, although the engine reads them as nullable from files, as Spark does."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.expr import Column, Expr
from kquery_spark.logical import Aggregate, Filter, Join, Limit, LogicalPlan, Projection, Scan, Sort


class NullClaims:
    """What the schemas of a plan's tables say about NULLs. It decides only whether plans are declined, never an answer."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], bool] = {}

    def add(self, scan: Scan, schema: pa.Schema) -> None:
        """Add the columns that a plan says a table has. A column is nullable if one of several reads of it says so."""
        for field in schema:
            key = (scan.table, field.name)
            self._claims[key] = self._claims.get(key, True) and not field.nullable

    def is_never_null(self, plan: LogicalPlan, expr: Expr) -> bool:
        """Return whether an expression over the rows of a plan is not NULL if the tables are as the plan says."""
        if not expr.nullable:
            return True
        if not isinstance(expr, Column):
            return False
        name = expr.name
        match plan:
            case Scan():
                return self._claims.get((plan.table, name), False)
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

"""Traces output columns and expressions down to the scan that their values come from."""

from __future__ import annotations

from kquery_spark.expr import Column, Expr, columns_of
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.scan import Scan


def origin(plan: LogicalPlan, expr: Expr) -> tuple[Scan, str] | None:
    """Return the scan and the source column that the output column ``expr`` is a copy of; None if it is computed.

    For ``SELECT a AS b FROM t WHERE c > 0``, the origin of ``b`` is the column ``a`` of the scan of ``t``.
    """
    at = plan, expr
    while isinstance(at[1], Column):
        if isinstance(at[0], Scan):
            return at[0], at[1].name
        below = at[0].trace_to_input(at[1])
        if below is None:
            return None
        at = below
    return None


def origin_expression(plan: LogicalPlan, expr: Expr) -> tuple[Scan, Expr] | None:
    """Return the only scan that ``expr`` reads, and ``expr`` in terms of the scan's columns; None without such a scan.

    For ``SELECT a + 1 AS b FROM t``, ``b * 2`` gives the scan of ``t`` and ``(a + 1) * 2``.
    """
    at = plan, expr
    while not isinstance(at[0], Scan):
        below = at[0].trace_to_input(at[1])
        if below is None:
            return None
        at = below
    return (at[0], at[1]) if columns_of(at[1]) else None

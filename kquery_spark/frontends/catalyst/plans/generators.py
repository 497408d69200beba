"""Imports Expand (ROLLUP, CUBE, several DISTINCT aggregates) and Generate (explode and other generators)."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Column, Expr, Literal, Named
from kquery_spark.expr.properties import is_null_literal
from kquery_spark.frontends.catalyst.expressions.translator import check_loops
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.functions.registry import function
from kquery_spark.logical import Expand, Generate, Projection
from kquery_spark.logical.generate import Generator
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

_GENERATORS = {
    "Explode": Generator.EXPLODE,
    "PosExplode": Generator.POSEXPLODE,
    "Inline": Generator.INLINE,
    "Stack": Generator.STACK,
    "ReplicateRows": Generator.REPLICATE,
}


@PLANS.handles("Expand", family="groups")
def expand(node: CatalystNode, context: Context) -> PlanScope:
    """Import Expand: each row is repeated, each time with other columns set to NULL."""
    child = context.subtree_or_handover(node.children[0])
    translate = context.translator(child.columns)
    json_rows = node.fields["projections"]
    rows = context.facts.projections(node) if json_rows is None else json_rows
    projections = _with_typed_nulls([[translate(expr) for expr in exprs] for exprs in rows])
    attributes = node.trees("output")
    names = tuple(context.names.fresh(attribute["name"]) for attribute in attributes)
    ids = (attribute["exprId"] for attribute in attributes)
    return PlanScope(Expand(child.plan, projections, names), tuple(zip(ids, names, strict=True)))


def _with_typed_nulls(rows: Sequence[Sequence[Expr]]) -> tuple[tuple[Expr, ...], ...]:
    """Give untyped NULLs the type of the other values in their column, with the nullability of nested fields."""
    types = [{e.dtype for e in column if not is_null_literal(e)} for column in zip(*rows, strict=True)]
    return tuple(
        tuple(
            Literal(None, next(iter(known))) if is_null_literal(expr) and len(known) == 1 else expr
            for expr, known in zip(row, types, strict=True)
        )
        for row in rows
    )


@PLANS.handles(
    "Generate", family="groups", partly="explode, posexplode, inline, stack, json_tuple, replicate_rows"
)
def generate(node: CatalystNode, context: Context) -> PlanScope:
    """Import Generate: rows from an array, a map or arguments, with those columns of the child that are still read."""
    child = context.subtree_or_handover(node.children[0])
    translate = context.translator(child.columns)
    generator = node.tree("generator")
    if generator.cls == "JsonTuple":
        return _json_fields(node, child, context)
    kind = _GENERATORS.get(generator.cls)
    if kind is None:
        raise Unsupported(f"the generator {generator.cls.rsplit('.', 1)[-1]} is not supported")
    args = [translate(argument) for argument in generator.children]
    attributes = node.trees("generatorOutput")
    child_output = _output_of_child(node, child, context)
    outer = bool(node["outer"])
    if kind is Generator.REPLICATE:
        return _replicated(child, args, attributes, child_output, outer)
    if kind is Generator.STACK:
        args = _stacked_values(args, len(attributes))
    names = [context.names.fresh(attribute["name"]) for attribute in attributes]
    required = tuple(dict.fromkeys(name for _, name in child_output))
    plan = Generate(child.plan, kind, tuple(args), tuple(names), outer, required)
    return PlanScope(plan, (*child_output, *_output(attributes, names)))


def _output_of_child(node: CatalystNode, child: PlanScope, context: Context) -> tuple[tuple[int, str], ...]:
    """The columns of the child that are still read above the generator."""
    dropped = set(context.facts.integers(node, "unrequiredChildIndex"))
    return tuple(item for i, item in enumerate(child.output) if i not in dropped)


def _json_fields(node: CatalystNode, child: PlanScope, context: Context) -> PlanScope:
    """Import ``json_tuple`` as a projection, because it returns one row per input row."""
    check_loops(function("json_field"))
    translate = context.translator(child.columns)
    text, *fields = [translate(argument) for argument in node.tree("generator").children]
    if not all(isinstance(field, Literal) and field.value is not None for field in fields):
        raise Unsupported("json_tuple of names that are not constants is not supported")
    attributes = node.trees("generatorOutput")
    child_output = _output_of_child(node, child, context)
    names = [context.names.fresh(attribute["name"]) for attribute in attributes]
    kept = dict.fromkeys(name for _, name in child_output)
    exprs = [Named(child.plan.column(name), name) for name in kept]
    exprs += [
        Named(Call.of("json_field", text, field), name) for field, name in zip(fields, names, strict=True)
    ]
    return PlanScope(Projection(child.plan, tuple(exprs)), (*child_output, *_output(attributes, names)))


def _replicated(
    child: PlanScope,
    args: list[Expr],
    attributes: Sequence[CatalystNode],
    child_output: tuple[tuple[int, str], ...],
    outer: bool,
) -> PlanScope:
    """``replicate_rows``: repeats each row by the first argument; the other arguments are columns of the output."""
    names = [arg.name for arg in args[1:] if isinstance(arg, Column)]
    if outer or len(names) != len(attributes):
        raise Unsupported("replicate_rows of anything but columns is not supported")
    required = tuple(dict.fromkeys([name for _, name in child_output] + names))
    plan = Generate(child.plan, Generator.REPLICATE, (args[0],), (), outer, required)
    return PlanScope(plan, (*child_output, *_output(attributes, names)))


def _stacked_values(args: list[Expr], width: int) -> list[Expr]:
    """The values of STACK; raises Unsupported if they do not fill its number of rows."""
    rows, *values = args
    count = rows.value if isinstance(rows, Literal) else None
    if count != -(-len(values) // width):
        raise Unsupported("stack with more rows than values is not supported")
    return values


def _output(attributes: Sequence[CatalystNode], names: Sequence[str]) -> tuple[tuple[int, str], ...]:
    return tuple((attribute["exprId"], name) for attribute, name in zip(attributes, names, strict=True))

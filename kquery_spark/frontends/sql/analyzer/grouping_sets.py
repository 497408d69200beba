"""ROLLUP, CUBE and GROUPING SETS: repeats each input row once per set, with NULL for keys that are not in the set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Column, Expr, Literal
from kquery_spark.frontends.sql.analyzer.grouping import Grouping
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.unique_names import UniqueNames
from kquery_spark.logical import Expand, LogicalPlan
from kquery_spark.types import names as t

Sets = list[list[Expr]]
KeysAndSets = tuple[list[Expr], Sets]
_MAX_SETS = 4096
"""The maximum number of grouping sets in a query; CUBE of 13 keys has more, and CUBE of 50 does not fit into memory."""
Resolve = Callable[[ast.Expression], Expr]


def grouping_sets(group_by: q.GroupBy, resolve: Resolve) -> KeysAndSets | None:
    """Return the distinct keys, in the order of the bits of Spark's grouping id, and the sets; None without grouping sets.

    In ``GROUP BY a, b GROUPING SETS ((b), (a))``, the keys before GROUPING SETS come first: a, b. In ``GROUP BY GROUPING
    SETS ((b), (a)), c``, the keys of the first element come first: b, a, c, although the sets are (b, c) and (a, c).
    """
    if group_by.sets_of is not None:
        written = []
        for element in group_by.elements:
            assert isinstance(element, ast.Expression)
            written.append(resolve(element))
        sets = [_resolve_nodes(group.expressions, resolve) for group in group_by.sets_of]
        return _distinct([*written, *_flatten_keys(sets)]), sets
    if all(isinstance(e, ast.Expression) for e in group_by.elements):
        return None
    keys: list[Expr] = []
    sets = [[]]
    for element in group_by.elements:
        factors = _sets(element, resolve)
        keys += _flatten_keys(factors)
        _check_count(len(sets) * len(factors))
        sets = [a + b for a in sets for b in factors]
    return _distinct(keys), sets


def _distinct(keys: Sequence[Expr]) -> list[Expr]:
    return list(dict.fromkeys(keys))


def _check_count(sets: int) -> None:
    if sets > _MAX_SETS:
        raise Unsupported(f"more than {_MAX_SETS} grouping sets are not supported")


def _resolve_nodes(nodes: Sequence[ast.Expression], resolve: Resolve) -> list[Expr]:
    return [resolve(node) for node in nodes]


def _sets(element: q.GroupingElement | q.GroupingSet, resolve: Resolve) -> Sets:
    match element:
        case q.Rollup():
            return _rollup([_resolve_nodes(keys, resolve) for keys in element.sets])
        case q.Cube():
            return _cube([_resolve_nodes(keys, resolve) for keys in element.sets])
        case q.GroupingSets():
            return [keys for inner in element.elements for keys in _sets(inner, resolve)]
        case q.GroupingSet():
            return [_resolve_nodes(element.expressions, resolve)]
    assert isinstance(element, ast.Expression)
    return [[resolve(element)]]


def _rollup(groups: Sequence[list[Expr]]) -> Sets:
    """The sets of ROLLUP: all groups of keys, all but the last one, and so on, down to none."""
    return [_flatten_keys(groups[:length]) for length in range(len(groups), -1, -1)]


def _cube(groups: Sequence[list[Expr]]) -> Sets:
    """The sets of CUBE: all combinations of the groups of keys, larger ones first."""
    _check_count(2 ** len(groups))
    return [
        _flatten_keys(chosen) for size in range(len(groups), -1, -1) for chosen in combinations(groups, size)
    ]


def _flatten_keys(groups: Sequence[Sequence[Expr]]) -> list[Expr]:
    return [e for group in groups for e in group]


def expanded(
    plan: LogicalPlan, keys: Sequence[Expr], sets: Sets, grouping: Grouping, names: UniqueNames
) -> LogicalPlan:
    """Repeat the input for each set, and pass the keys to ``grouping``.

    The grouping id has one bit per key; the first key has the highest bit. A bit is 1 if the key is not in the set. For
    ROLLUP (a, b), the sets (a, b), (a) and () have the ids 00, 01 and 11 in binary.
    """
    _check_keys(keys)
    ids = [_grouping_id(keys, chosen) for chosen in sets]
    key_names = [names.fresh(key.name if isinstance(key, Column) else "key") for key in keys]
    id_name = names.fresh("grouping_id")
    added = [*key_names, id_name]
    has_equal_sets = len(set(ids)) < len(ids)
    if has_equal_sets:
        added.append(names.fresh("grouping_position"))
    plan = Expand(plan, _projections(plan, sets, keys, ids, has_equal_sets), (*plan.schema.names, *added))
    for name in added:
        grouping.add_key(plan.column(name))
    for key, name in zip(keys, key_names, strict=True):
        grouping.replace_key(key, plan.column(name))
    grouping.set_ids(keys, plan.column(id_name))
    return plan


def _projections(
    plan: LogicalPlan, sets: Sets, keys: Sequence[Expr], ids: Sequence[int], has_equal_sets: bool
) -> tuple[tuple[Expr, ...], ...]:
    """The projection of each set: the input, the keys, the grouping id, and the set's position if there are equal sets."""
    inputs = [plan.column(n) for n in plan.schema.names]
    projections = []
    for position, (chosen, grouping_id) in enumerate(zip(sets, ids, strict=True)):
        key_values = [key if key in chosen else Literal(None, key.dtype) for key in keys]
        tags = [grouping_id, position] if has_equal_sets else [grouping_id]
        projections.append((*inputs, *key_values, *(Literal(tag, t.LONG) for tag in tags)))
    return tuple(projections)


def _check_keys(keys: Sequence[Expr]) -> None:
    if len(keys) > 64:
        raise PlanError("[GROUPING_SIZE_LIMIT_EXCEEDED] grouping sets of more than 64 keys")
    if any(isinstance(key, Literal) for key in keys):
        raise Unsupported("a constant in ROLLUP, CUBE or GROUPING SETS is not supported")


def _grouping_id(keys: Sequence[Expr], chosen: Sequence[Expr]) -> int:
    number = 0
    for key in keys:
        number = number * 2 + (key not in chosen)
    return number

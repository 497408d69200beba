"""The printer: converts a syntax tree to SQL that parses to the same tree."""

from __future__ import annotations

from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.ast.expressions import Expression
from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.frontends.sql.print_expressions import commas, name_to_sql, names_to_sql, operand, render


def to_sql(node: Node) -> str:
    """One line of SQL for any node of the tree; ``parse_query(to_sql(query)) == query``."""
    return render(node)


# --- queries ---------------------------------------------------------------------------------------


@render.register
def _(node: q.Query) -> str:
    text = f"WITH {'RECURSIVE ' if node.recursive else ''}{commas(node.ctes)} " if node.ctes else ""
    text += f"({render(node.body)})" if isinstance(node.body, q.Query) else render(node.body)
    if node.order_by:
        text += f" ORDER BY {commas(node.order_by)}"
    if node.windows:
        text += f" WINDOW {commas(node.windows)}"
    if node.limit is not None:
        text += f" LIMIT {render(node.limit)}"
    if node.offset is not None:
        text += f" OFFSET {render(node.offset)}"
    return text


@render.register
def _(node: q.CommonTable) -> str:
    columns = f" ({names_to_sql(node.columns)})" if node.columns else ""
    rounds = "" if node.max_rounds is None else f" MAX RECURSION LEVEL {node.max_rounds}"
    return f"{name_to_sql(node.name)}{columns}{rounds} AS ({render(node.query)})"


@render.register
def _(node: q.SetQuery) -> str:
    left = node.left
    # INTERSECT binds tighter than the others; chains of one rank stay flat.
    flat = isinstance(left, q.SetQuery) and (left.op == "INTERSECT" or node.op != "INTERSECT")
    left_text = render(left) if flat else _set_operand(left)
    return f"{left_text} {node.op}{' ALL' if node.all else ''} {_set_operand(node.right)}"


def _set_operand(node: q.QueryBody) -> str:
    return f"({render(node)})" if isinstance(node, q.Query | q.SetQuery) else render(node)


@render.register
def _(node: q.Select) -> str:
    text = "SELECT " + (f"/*+ {commas(node.hints)} */ " if node.hints else "")
    text += ("DISTINCT " if node.distinct else "") + commas(node.items)
    if node.relation is not None:
        text += f" FROM {render(node.relation)}"
    text += "".join(f" {render(view)}" for view in node.lateral_views)
    for word, clause in (
        ("WHERE", node.where),
        ("GROUP BY", node.group_by),
        ("HAVING", node.having),
        ("QUALIFY", node.qualify),
    ):
        if clause is not None:
            text += f" {word} {render(clause)}"
    return text + (f" WINDOW {commas(node.windows)}" if node.windows else "")


@render.register
def _(node: q.Hint) -> str:
    arguments = ", ".join(operand(argument) for argument in node.arguments)
    return name_to_sql(node.name) + (f"({arguments})" if arguments else "")


@render.register
def _(node: q.NamedWindow) -> str:
    return f"{name_to_sql(node.name)} AS {render(node.window)}"


@render.register
def _(node: q.GroupBy) -> str:
    if not node.elements:
        return "GROUPING SETS (())"
    return commas(node.elements) + (
        "" if node.sets_of is None else f" GROUPING SETS ({commas(node.sets_of)})"
    )


def _sets(sets: tuple[tuple[Expression, ...], ...]) -> str:
    return ", ".join(render(group[0]) if len(group) == 1 else f"({commas(group)})" for group in sets)


@render.register
def _(node: q.Rollup) -> str:
    return f"ROLLUP ({_sets(node.sets)})"


@render.register
def _(node: q.Cube) -> str:
    return f"CUBE ({_sets(node.sets)})"


@render.register
def _(node: q.GroupingSets) -> str:
    return f"GROUPING SETS ({commas(node.elements)})"


@render.register
def _(node: q.GroupingSet) -> str:
    return _sets((node.expressions,))


# --- relations -------------------------------------------------------------------------------------


def _alias(alias: r.TableAlias | None) -> str:
    return "" if alias is None else f" {render(alias)}"


@render.register
def _(node: r.TableAlias) -> str:
    return f"AS {name_to_sql(node.name)}" + (f" ({names_to_sql(node.columns)})" if node.columns else "")


@render.register
def _(node: r.Table) -> str:
    return names_to_sql(node.name, ".") + _alias(node.alias)


@render.register
def _(node: r.Derived) -> str:
    return f"({render(node.query)}){_alias(node.alias)}"


@render.register
def _(node: r.Values) -> str:
    rows = (
        render(row[0]) if len(row) == 1 else f"({commas(row)})" if row else "struct()" for row in node.rows
    )
    return f"VALUES {', '.join(rows)}{_alias(node.alias)}"


@render.register
def _(node: r.TableFunction) -> str:
    return f"{names_to_sql(node.name, '.')}({commas(node.arguments)}){_alias(node.alias)}"


@render.register
def _(node: r.Sampled) -> str:
    text = f"{_sampled(node.relation)} TABLESAMPLE ({render(node.size)} {node.unit})"
    return text + _alias(node.alias)


@render.register
def _(node: r.Pivot) -> str:
    columns = names_to_sql(node.columns)
    columns = f"({columns})" if len(node.columns) > 1 else columns
    alias = "" if node.alias is None else f" AS {name_to_sql(node.alias)}"
    pivot = f"{commas(node.aggregates)} FOR {columns} IN ({commas(node.values)})"
    return f"{render(node.relation)} PIVOT ({pivot}){alias}"


@render.register
def _(node: r.UnpivotColumns) -> str:
    columns = ", ".join(names_to_sql(column, ".") for column in node.columns)
    if len(node.columns) > 1:
        columns = f"({columns})"
    return columns + ("" if node.alias is None else f" AS {name_to_sql(node.alias)}")


@render.register
def _(node: r.Unpivot) -> str:
    values, sets = names_to_sql(node.values), commas(node.columns)
    if len(node.values) > 1:
        values = f"({values})"
    nulls = "INCLUDE NULLS " if node.keeps_nulls else ""
    alias = "" if node.alias is None else f" AS {name_to_sql(node.alias)}"
    return (
        f"{render(node.relation)} UNPIVOT {nulls}({values} FOR {name_to_sql(node.name)} IN ({sets})){alias}"
    )


@render.register
def _(node: r.Renamed) -> str:
    return f"({render(node.relation)}) {render(node.alias)}"


@render.register
def _(node: r.Lateral) -> str:
    return f"LATERAL {_right_side(node.relation)}"


@render.register
def _(node: r.Join) -> str:
    left = f"({render(node.left)})" if _takes_alias(node.left) else render(node.left)
    text = f"{left} {'NATURAL ' if node.natural else ''}{node.kind} JOIN {_right_side(node.right)}"
    if node.condition is not None:
        return f"{text} ON {render(node.condition)}"
    return f"{text} USING ({names_to_sql(node.using)})" if node.using else text


def _right_side(node: r.Relation) -> str:
    """Print the right side of a join; another join or a pivot needs parentheses there."""
    return f"({render(node)})" if isinstance(node, r.Join | r.Pivot | r.Unpivot) else render(node)


def _takes_alias(node: r.Relation) -> bool:
    """Return whether Spark would read the word before JOIN as the alias of the relation."""
    return isinstance(node, r.Pivot | r.Unpivot) and node.alias is None


def _sampled(node: r.Relation) -> str:
    """Print the relation that TABLESAMPLE applies to."""
    return render(node) if isinstance(node, r.Table | r.Derived) else f"({render(node)})"


@render.register
def _(node: r.LateralView) -> str:
    call = f"{names_to_sql(node.function, '.')}({commas(node.arguments)})"
    columns = f" AS {names_to_sql(node.columns)}" if node.columns else ""
    return f"LATERAL VIEW {'OUTER ' if node.outer else ''}{call} {name_to_sql(node.alias)}{columns}"

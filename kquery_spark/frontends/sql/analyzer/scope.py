"""Scopes: the columns to which names can refer in a clause of a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kquery_spark.errors import SqlError
from kquery_spark.expr import Column, Expr
from kquery_spark.frontends.sql.analyzer.catalog import SessionFacts
from kquery_spark.logical import LogicalPlan


@dataclass(frozen=True)
class ScopeColumn:
    """A column in a scope: its name, its qualifier, and its value over the plan.

    ``*`` includes neither hidden nor unlisted columns. hidden: the column is found by its qualified name only (the keys of
    USING that are not shown). unlisted: the column is found by its name (time windows, which the query computes).
    """

    name: str
    value: Expr
    qualifier: tuple[str, ...] = ()
    hidden: bool = False
    unlisted: bool = False


@dataclass(frozen=True)
class ResolvedName:
    """The value of a name, its column, and the remaining parts of the name, which are struct fields of the value."""

    value: Expr
    column: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scope:
    """Columns in the order of ``*``."""

    columns: tuple[ScopeColumn, ...]
    facts: SessionFacts = field(default_factory=SessionFacts)

    @property
    def visible(self) -> tuple[ScopeColumn, ...]:
        """The columns of ``*``."""
        return tuple(c for c in self.columns if not c.hidden and not c.unlisted)

    def find(self, parts: tuple[str, ...], sql: str, position: int | None) -> ResolvedName | None:
        """Resolve a name as Spark does: the longest qualifier that matches wins, and the remaining parts are struct fields.

        Raises SqlError when several columns match equally well.
        """
        fold = self.facts.fold
        folded = tuple(map(fold, parts))
        for length in range(min(len(parts) - 1, 2), -1, -1):
            qualifier, name = folded[:length], folded[length]
            columns = [c for c in self.columns if fold(c.name) == name and self._is_under(c, qualifier)]
            values = list(dict.fromkeys(c.value for c in columns))
            if len(values) > 1:
                options = ", ".join(sorted(".".join((*c.qualifier, c.name)) for c in dict.fromkeys(columns)))
                raise SqlError(
                    f"[AMBIGUOUS_REFERENCE] Reference {'.'.join(parts)} is ambiguous, could be: {options}",
                    sql,
                    position,
                )
            if values:
                return ResolvedName(values[0], parts[length], parts[length + 1 :])
        return None

    def _is_under(self, column: ScopeColumn, qualifier: tuple[str, ...]) -> bool:
        """True if the column's qualifier ends with this one; hidden columns match a non-empty qualifier only."""
        if not qualifier:
            return not column.hidden
        return tuple(map(self.facts.fold, column.qualifier[-len(qualifier) :])) == qualifier

    def star(self, qualifier: tuple[str, ...]) -> tuple[ScopeColumn, ...]:
        """The columns of ``*`` or ``t.*``; the latter begins with the hidden columns."""
        if not qualifier:
            return self.visible
        fold = self.facts.fold
        folded = tuple(map(fold, qualifier))
        columns = [c for c in self.columns if tuple(map(fold, c.qualifier[-len(folded) :])) == folded]
        return tuple(sorted(columns, key=lambda c: not c.hidden))

    def names(self) -> list[str]:
        """The qualified names of the columns of ``*``."""
        return [".".join((*c.qualifier, c.name)) for c in self.visible]

    def candidates(self) -> str:
        """A list of the existing columns, for error messages."""
        return ", ".join(self.names()) or "(none)"

    def concat(self, other: Scope) -> Scope:
        """Return a scope with the columns of this scope, then those of another one."""
        return Scope(self.columns + other.columns, self.facts)

    def renamed(self, qualifier: tuple[str, ...], names: Iterable[str] | None = None) -> Scope:
        """The visible columns with a new qualifier, and optionally with new names."""
        visible = self.visible
        new_names = [c.name for c in visible] if names is None else list(names)
        return Scope(
            tuple(replace(c, name=n, qualifier=qualifier) for c, n in zip(visible, new_names, strict=True)),
            self.facts,
        )


@dataclass(frozen=True)
class ResolvedRelation:
    """A plan and the scope of its columns."""

    plan: LogicalPlan
    scope: Scope


def current_column(plan: LogicalPlan, value: Expr) -> Expr:
    """Return a column with its nullability in this plan, which outer joins change."""
    return plan.column(value.name) if isinstance(value, Column) else value


def refresh_nullability(scope: Scope, plan: LogicalPlan) -> Scope:
    """Return the scope with the nullability that its columns have in this plan."""
    return Scope(
        tuple(replace(c, value=current_column(plan, c.value)) for c in scope.columns),
        scope.facts,
    )

"""Compiles expressions against a schema and runs them over batches.

Each expression becomes a function (a step) that calls the steps of its operands, and column names become column indices. A
subexpression that occurs more than once in a program is computed once per batch: its step stores the result in the ``memo``
of the batch.

The hard part is errors. In ``CASE WHEN b <> 0 THEN a / b END``, a vectorized division over all rows would raise an error
that Spark does not raise. So an operand that can raise is evaluated only on the rows that need it (``run_on_rows``), and an
operand that cannot raise is evaluated on all rows, which is faster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.expr import Call, Case, Cast, Column, Expr, HigherOrder, InList, Literal, UserCall, walk
from kquery_spark.expr.constants import literal_vector, storage
from kquery_spark.expr.properties import can_raise, is_deterministic
from kquery_spark.functions import casts, user
from kquery_spark.functions.calling import call
from kquery_spark.functions.core.conditional import to_one_type
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import Branching, CallContext, EvalMode
from kquery_spark.functions.sql_form import Logic
from kquery_spark.kernels.text import if_else
from kquery_spark.physical.expr import lambdas
from kquery_spark.run_control import check_run
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from kquery_spark.types.sizes import raise_if_too_large, reserve_repeats
from kquery_spark.types.vector import Vector, gather

Memo = dict[int, Vector]
Step = Callable[[Batch, Memo], Vector]


class Program:
    """Expressions compiled together over one input schema."""

    def __init__(self, exprs: Sequence[Expr], schema: pa.Schema) -> None:
        self._indexes = {name: i for i, name in enumerate(schema.names)}
        counts = Counter(e for expr in exprs for e in walk(expr) if e.children)
        self._shared = {e: slot for slot, (e, n) in enumerate(counts.items()) if n > 1}
        # By ``id()`` of the node, because hashing a node walks over the whole tree below it.
        self._compiled: dict[int, Step] = {}
        # Compile bottom-up, so that deep expressions do not need a deep Python stack.
        for node in reversed([node for expr in exprs for node in walk(expr) if node.children]):
            self._compiled[id(node)] = self._compile(node)
        self._steps = [self._compile(e) for e in exprs]
        self.is_deterministic = all(map(is_deterministic, exprs))
        """True if the program may run again over the same rows."""

    def run(self, batch: Batch) -> list[Vector]:
        """Return one vector per expression."""
        memo: Memo = {}
        return [step(batch, memo) for step in self._steps]

    def _compile(self, expr: Expr) -> Step:
        compiled = self._compiled.get(id(expr))
        if compiled is not None:
            return compiled
        # A shared expression stores its result in the memo of the batch, so only its first use computes it.
        step = self._compile_node(expr)
        slot = self._shared.get(expr) if expr.children else None
        if slot is None:
            return step

        def memoized(batch: Batch, memo: Memo) -> Vector:
            vector = memo.get(slot)
            if vector is None:
                vector = memo[slot] = step(batch, memo)
            return vector

        return memoized

    def _compile_node(self, expr: Expr) -> Step:
        check_run()
        match expr:
            case Column():
                return self._column(expr)
            case Literal():
                vector = literal_vector(expr)
                return lambda batch, memo: vector
            case Call():
                return self._call(expr)
            case Cast():
                return self._cast(expr)
            case Case():
                return self._case(expr)
            case InList():
                return self._in_list(expr)
            case HigherOrder():
                return self._higher_order(expr)
            case UserCall():
                return self._user_call(expr)
        raise Unsupported(f"the engine has no program for {type(expr).__name__} expressions")

    def _column(self, expr: Column) -> Step:
        index = self._indexes.get(expr.name)
        if index is None:
            raise PlanError(f"unknown column {expr.name}; the columns are {', '.join(self._indexes)}")
        dtype = expr.dtype
        return lambda batch, memo: Vector(dtype, batch.columns[index])

    def _call(self, expr: Call) -> Step:
        """Compile a function call. Later arguments of a lazy function that can raise only see the rows that need them."""
        if expr.entry.operator.connective:
            return self._connective(expr)
        if expr.entry.lazy and any(map(can_raise, expr.args[1:])):
            match expr.entry.branching:
                case Branching.FIRST_PRESENT:
                    return self._coalesce(expr)
                case Branching.IF_NAN:
                    return self._nanvl(expr)
                case Branching.NUMBERED:
                    return self._elt(expr)
        return self._eager_call(expr)

    def _eager_call(self, expr: Call) -> Step:
        entry, dtype, mode, tz = expr.entry, expr.dtype, expr.mode, expr.tz
        stops_at_zero = entry.stops_at_zero and mode is not EvalMode.ANSI
        arguments = self._arguments(expr.args, entry.evaluation_order(len(expr.args)), stops_at_zero)

        def run(batch: Batch, memo: Memo) -> Vector:
            check_run()
            return call(entry, arguments(batch, memo), CallContext(dtype, mode, tz, batch.num_rows))

        return run

    def _arguments(
        self, args: Sequence[Expr], order: Sequence[int], stops_at_zero: bool = False
    ) -> Callable[[Batch, Memo], list[Vector]]:
        """Compile the arguments of a call. In Spark, an argument is not evaluated, and does not raise, after a NULL one.

        order: the order in which Spark evaluates the arguments. stops_at_zero: an argument of zero also ends the evaluation.

        Errors are rare, so all arguments are evaluated over all rows first. Only if that raises, they are evaluated again in
        ``order``, each on the rows in which all arguments before it are present. If this raises again, Spark raises the
        error as well.
        """
        steps = [self._compile(a) for a in args]
        first_to_last = order or range(len(steps))
        guarded = any(
            stops_at_zero or any(args[i].nullable for i in order[:position])
            for position in range(1, len(order))
        )

        def run(batch: Batch, memo: Memo) -> list[Vector]:
            try:
                vectors = {i: steps[i](batch, memo) for i in first_to_last}
            except ExecutionError:
                if not guarded:
                    raise
                vectors = {}
                present = pa.array(np.ones(batch.num_rows, np.bool_))
                for i in order:
                    vector = run_on_rows(steps[i], batch, present, memo)
                    kind = args[i].dtype
                    vectors[i] = Vector(kind, pa.scalar(None, kind)) if vector.dtype == t.NULL else vector
                    values = vectors[i].physical(batch.num_rows)
                    present = pc.and_(present, pc.is_valid(values))
                    if stops_at_zero:
                        zero = pa.scalar(0, values.type)
                        present = pc.and_(present, pc.fill_null(pc.not_equal(values, zero), False))
            return [vectors[i] for i in range(len(steps))]

        return run

    def _cast(self, expr: Cast) -> Step:
        casts.check_cast(expr.child.dtype, expr.to)
        child = self._compile(expr.child)
        return lambda batch, memo: casts.cast(child(batch, memo), expr.to, expr.mode, expr.tz, batch.num_rows)

    def _connective(self, expr: Call) -> Step:
        """Compile AND or OR. A right side that can raise only sees the rows that the left side does not decide."""
        left, right = (self._compile(a) for a in expr.args)
        is_and = expr.logic is Logic.AND
        combine = pc.and_kleene if is_and else pc.or_kleene
        if not can_raise(expr.args[1]):
            return lambda batch, memo: Vector(
                t.BOOL, combine(left(batch, memo).data, right(batch, memo).data)
            )

        def run(batch: Batch, memo: Memo) -> Vector:
            first = left(batch, memo)
            if first.is_scalar:
                decided = first.data.is_valid and first.data.as_py() is not is_and
                return first if decided else Vector(t.BOOL, combine(first.data, right(batch, memo).data))
            still_open = pc.fill_null(first.data if is_and else pc.invert(first.data), True)
            second = run_on_rows(right, batch, still_open, memo)
            other = pa.scalar(None, t.BOOL) if second.dtype == t.NULL else second.data
            return Vector(t.BOOL, combine(first.data, other))

        return run

    def _coalesce(self, expr: Call) -> Step:
        """Compile a COALESCE whose later arguments can raise: each only sees the rows that are still NULL."""
        dtype = expr.dtype
        steps = [self._compile(a) for a in expr.args]

        def run(batch: Batch, memo: Memo) -> Vector:
            tests, values = [], []
            missing = pa.array(np.ones(batch.num_rows, np.bool_))
            for step in steps:
                value = run_on_rows(step, batch, missing, memo)
                present = pc.and_(missing, pc.is_valid(value.physical(batch.num_rows)))
                tests.append(present)
                values.append(value)
                missing = pc.and_not(missing, present)
            return _choose(tests, values, Vector(dtype, pa.scalar(None, dtype)), dtype, batch.num_rows)

        return run

    def _nanvl(self, expr: Call) -> Step:
        """Compile a NANVL whose second argument can raise: it only sees the rows in which the first is NaN."""
        first, second = (self._compile(a) for a in expr.args)
        dtype = expr.dtype

        def run(batch: Batch, memo: Memo) -> Vector:
            value = first(batch, memo)
            is_nan = pc.fill_null(pc.is_nan(value.physical(batch.num_rows)), False)
            return _choose([is_nan], [run_on_rows(second, batch, is_nan, memo)], value, dtype, batch.num_rows)

        return run

    def _elt(self, expr: Call) -> Step:
        """Compile an ELT whose choices can raise: each only sees the rows that select it."""
        entry, dtype, mode, tz = expr.entry, expr.dtype, expr.mode, expr.tz
        index, *choices = (self._compile(a) for a in expr.args)

        def run(batch: Batch, memo: Memo) -> Vector:
            number = index(batch, memo)
            numbers = number.physical(batch.num_rows)
            args = [number]
            for branch, choice in enumerate(choices, 1):
                chosen = pc.fill_null(pc.equal(numbers, branch), False)
                value = run_on_rows(choice, batch, chosen, memo)
                args.append(Vector(dtype, pa.scalar(None, dtype)) if value.dtype == t.NULL else value)
            return call(entry, args, CallContext(dtype, mode, tz, batch.num_rows))

        return run

    def _case(self, expr: Case) -> Step:
        """Compile a CASE. If a later operand can raise, each condition only sees the rows that no branch has taken."""
        dtype = expr.dtype
        conditions = [self._compile(c) for c, _ in expr.branches]
        values = [self._compile(v) for _, v in expr.branches]
        otherwise = None if expr.otherwise is None else self._compile(expr.otherwise)
        eager = not any(can_raise(e) for e in expr.children[1:])

        def run(batch: Batch, memo: Memo) -> Vector:
            if eager:
                tests = [c(batch, memo).data for c in conditions]
                vectors = [v(batch, memo) for v in values]
                last = Vector(dtype, pa.scalar(None, dtype)) if otherwise is None else otherwise(batch, memo)
                return _choose(tests, vectors, last, dtype, batch.num_rows)
            pieces: list[Vector] = []
            tests = []
            remaining = pa.array(np.ones(batch.num_rows, np.bool_))
            for test, value in zip(conditions, values, strict=True):
                if not remaining.true_count:
                    break
                hit = pc.fill_null(run_on_rows(test, batch, remaining, memo).physical(batch.num_rows), False)
                hit = pc.and_(hit, remaining)
                pieces.append(run_on_rows(value, batch, hit, memo))
                tests.append(hit)
                remaining = pc.and_not(remaining, hit)
            last = (
                Vector(dtype, pa.scalar(None, dtype))
                if otherwise is None
                else run_on_rows(otherwise, batch, remaining, memo)
            )
            return _choose(tests, pieces, last, dtype, batch.num_rows)

        return run

    def _higher_order(self, expr: HigherOrder) -> Step:
        arguments = self._arguments(expr.arguments, range(len(expr.arguments)))
        captured = [self._compile(c) for c in expr.captured]
        inner = Program([expr.body], lambdas.body_schema(expr))

        def run(batch: Batch, memo: Memo) -> Vector:
            vectors = arguments(batch, memo)
            outer = [step(batch, memo) for step in captured]
            return lambdas.apply(expr, lambda part: inner.run(part)[0], vectors, outer, batch.num_rows)

        return run

    def _user_call(self, expr: UserCall) -> Step:
        args = [self._compile(a) for a in expr.args]

        def run(batch: Batch, memo: Memo) -> Vector:
            rows = batch.num_rows
            arrays = [step(batch, memo).array(rows) for step in args]
            return Vector(expr.dtype, user.run(expr.name, expr.code, arrays, expr.dtype, rows))

        return run

    def _in_list(self, expr: InList) -> Step:
        child = self._compile(expr.child)
        dtype = expr.child.dtype
        present = [literal_vector(v) for v in expr.values if v.value is not None]
        has_null = len(present) < len(expr.values)
        narrow_set = t.is_decimal(dtype) and all(v.is_narrow for v in present)
        scalars = [v.data if narrow_set else v.plain() for v in present]
        values = _value_set(scalars, pa.int64() if narrow_set else dtype)
        has_nan = pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())

        def run(batch: Batch, memo: Memo) -> Vector:
            vector = child(batch, memo)
            data = vector.data
            if vector.is_dictionary and not data.dictionary.null_count:
                hits = gather(pc.is_in(data.dictionary, value_set=values), data.indices)
            elif narrow_set and not vector.is_narrow:
                data = vector.plain()
                hits = pc.is_in(data, value_set=dk.widen(values, dtype))
            else:
                data = data if narrow_set else vector.plain()
                hits = pc.is_in(data, value_set=values)
            if has_nan:  # Arrow distinguishes NaNs with different bits, Spark does not
                hits = pc.or_(hits, pc.fill_null(pc.is_nan(data), False))
            # Three-valued logic: NULL for a NULL operand, and NULL instead of FALSE if the list has a NULL.
            if not has_null and not vector.null_count:
                return Vector(t.BOOL, hits)
            unknown = pc.is_null(data)
            if has_null:
                unknown = pc.or_(unknown, pc.invert(pc.fill_null(hits, False)))
            return Vector(t.BOOL, pc.if_else(unknown, pa.scalar(None, t.BOOL), hits))

        return run


def _value_set(scalars: Sequence[pa.Scalar], kind: pa.DataType) -> pa.Array:
    """Return the values of an IN list as an array for Arrow's ``is_in``."""
    if pa.types.is_temporal(kind):
        return pa.array([s.value for s in scalars], storage(kind)).cast(kind)
    plain = [s.as_py() for s in scalars]
    if pa.types.is_floating(kind) and 0.0 in plain:
        plain += [0.0, -0.0]  # equal in SQL, but two values in Arrow's hash table
    return pa.array(plain, kind)


def run_on_rows(step: Step, batch: Batch, mask: pa.Array, memo: Memo) -> Vector:
    """Run a step on the rows in which ``mask`` is True. The other rows become NULL.

    The part of the batch gets a memo of its own, because the results in ``memo`` have a row for each row of the whole batch.
    If the mask selects no row, the result is a NULL scalar of the type NULL.
    """
    selected = mask.true_count
    if selected == batch.num_rows:
        return step(batch, memo)
    part = batch.filter(mask)
    vector = step(part, {}) if selected else None
    if vector is None:
        return Vector(t.NULL, pa.scalar(None, t.NULL))
    if vector.is_scalar:
        return vector
    flags = mask.to_numpy(zero_copy_only=False)
    # The position of each selected row in the partial result: the mask 1 0 1 gives 0, NULL, 1.
    places = np.cumsum(flags, dtype=np.int64) - 1
    return Vector(vector.dtype, vector.data.take(pa.array(places, mask=~flags)))


def _choose(
    tests: Sequence[pa.Array], values: Sequence[Vector], last: Vector, dtype: pa.DataType, num_rows: int
) -> Vector:
    """Return, in each row, the value of the first test that is TRUE, or ``last``.

    The values are applied from the last to the first, so that an earlier test overwrites a later one.
    """
    vectors = [*values, last]
    narrow = t.is_decimal(dtype) and all(v.is_narrow or (v.null_count and v.is_scalar) for v in vectors)
    *forms, result = to_one_type([_form(v, dtype, narrow) for v in vectors], dtype)
    reserve_repeats([*forms, result], num_rows)
    for test, form in zip(reversed(tests), reversed(forms), strict=True):
        check_run()
        try:
            result = if_else(pc.fill_null(test, False), form, result)
        except pa.ArrowException as error:
            raise_if_too_large(error, "CASE, IF, or COALESCE")
            raise
    return Vector(dtype, result)


def _form(vector: Vector, dtype: pa.DataType, narrow: bool) -> pa.Array | pa.Scalar:
    if narrow:
        return vector.data if vector.is_narrow else pa.scalar(None, pa.int64())
    if vector.dtype == t.NULL:
        return pa.scalar(None, dtype)
    return vector.plain()

"""Lies planted in the engine, one at a time, and the named check that catches each: how strong the suite is.

A lie is a monkeypatch of dpsql. Its check passes on the honest engine and fails under the lie.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpsql.answer.result import Result
from dpsql.answer.warnings import warnings_of
from dpsql.core import measurement
from dpsql.core.cost import Cost
from dpsql.core.ledger import book as ledger_book
from dpsql.core.ledger import filters, ledger
from dpsql.core.ledger import lines as ledger_lines
from dpsql.core.ledger import text as ledger_text
from dpsql.core.measurement import GroupsByThreshold
from dpsql.core.mechanisms import noise as mechanisms
from dpsql.core.mechanisms import samplers
from dpsql.core.selection import threshold as selection
from dpsql.core.selection.truncated_geometric import TruncatedGeometric
from dpsql.core.sensitivity import contribution_bounds as limits
from dpsql.core.sensitivity import norms as reach
from dpsql.core.sensitivity import nulls, stability
from dpsql.core.sensitivity import row_contributions as sensitivity
from dpsql.core.sensitivity.stability import Stability
from dpsql.core.unit import ContributionBound
from dpsql.errors import BudgetExceeded, InternalError
from dpsql.executors.keyed_hash import limbs_of
from dpsql.executors.pandas import blockwise, database, evaluation, groups, relations
from dpsql.executors.pandas import executor as pandas
from dpsql.executors.pandas.columns import blocks
from dpsql.executors.pandas.columns import declared_columns as columns
from dpsql.executors.pandas.hashing import hash_key, hash_vector
from dpsql.executors.pandas.joins import pairing
from dpsql.executors.pandas.joins.joining import KeyColumn, key_of
from dpsql.executors.pandas.sums import accumulators
from dpsql.executors.pandas.units import kept_rows, unit_groups, unit_sums
from dpsql.plan import expressions, facts, functions, nodes
from dpsql.plan.expressions import Fact, Vector
from dpsql.plan.functions import arithmetic, conditional
from dpsql.release import calibrate as release_calibrate
from dpsql.release import plan as release_planned
from dpsql.release.output import select as finish
from dpsql.release.output.select import finish as finished
from dpsql.release.selection import hidden_groups as hidden
from dpsql.schema import declaration
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INFINITY, Interval
from dpsql.session import prepare, session
from dpsql.session import run as answer
from dpsql.session.tables import public_data
from dpsql.sql.bind import row_wise_select as row_wise
from dpsql.sql.bind import select as selects
from dpsql.sql.bind import statement as bind
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax import options
from tests.core import checks, language, statistics_lies, unit_checks
from tests.core.checks import rules
from tests.core.unit_checks import G1, R1, R2, R3, UNIONS, Question, people_stay_apart
from tests.lies import Check, Lie, Patch, assert_caught

# Sensitivity


def halve_a_sensitivity(patch: Patch) -> None:
    honest = reach._adds

    def adds(part: Any) -> Any:
        (least, *more), read = honest(part)
        return (least // 2, *(each // 2 for each in more)), read

    patch.setattr(reach, "_adds", adds)


def forget_the_second_group_of_a_changed_row(patch: Patch) -> None:
    honest = reach._across

    def across(cells: Any, bound: Any, present: int, bounded: bool) -> Any:
        return reach._within(cells, bound, False) if bounded else honest(cells, bound, present, bounded)

    patch.setattr(reach, "_across", across)


def forget_the_second_group_in_l2(patch: Patch) -> None:
    patch.setattr(reach, "_across", reach._across.__wrapped__)
    patch.setattr(reach, "_changed", lambda cells, groups: max(cells.apart(kept, kept) for _, kept in groups))


def take_the_width_for_the_reach(patch: Patch) -> None:
    """U - L as the sensitivity of SUM when a row is added: too small where L > 0."""

    honest = reach._adds

    def adds(part: Any) -> Any:
        ends, read = honest(part)
        return (0, ends[-1] - ends[0]) if len(ends) > 1 else ends, read

    patch.setattr(reach, "_adds", adds)


def forget_nulls(patch: Patch) -> None:
    """A nullable argument's count is taken for public."""
    honest = nulls.fact

    def fact(expr: Any, known: Any = None) -> Fact:
        return Fact(honest(expr, known).range, nullable=False)

    patch.setattr(nulls, "fact", fact)


def let_a_filter_keep_every_row(patch: Patch) -> None:
    patch.setattr(sensitivity, "stability", lambda _source: Stability({"t": 1}, every_row=True))


def drop_the_clip(patch: Patch) -> None:
    def steps(part: Any, vector: Vector) -> Any:
        if part.whole:
            return vector.values.astype(np.int64) - int(part.origin)
        with np.errstate(all="ignore"):
            found = np.rint((vector.values.astype(float) - part.origin) * part.steps_per_unit)
        return np.where(np.isfinite(found), np.clip(found, -(2.0**60), 2.0**60), 0).astype(np.int64)

    patch.setattr(accumulators, "lattice_steps", steps)
    patch.setattr(columns, "_enforce", lambda vector, _column: vector)


def forget_that_larger_integers_are_null(patch: Patch) -> None:
    """A column of unsigned integers that are read as integers with a sign is as full as it is stored."""
    honest = declaration._resolve_column

    def resolved(stored: Any, declared: Any) -> Any:
        return replace(honest(stored, declared), nullable=stored.nullable)

    patch.setattr(declaration, "_resolve_column", resolved)


def forget_that_opposites_overflow(patch: Patch) -> None:
    """-x and ABS(x) are NULL for the least integer, and it is said that they never are."""
    patch.setattr(arithmetic, "_reaches_least", lambda _known: False)


def read_unsigned_numbers_modulo(patch: Patch) -> None:
    """A number above all of 64 bits with a sign is a negative one, which no bound holds."""
    honest = blocks.numbers

    def numbers(values: Any, valid: Any, kind: Type, fill: Any, *, clips: bool = False) -> Vector:
        return honest(values.view(np.int64) if values.dtype == np.uint64 else values, valid, kind, fill, clips=clips)

    patch.setattr(blocks, "numbers", numbers)
    patch.setattr(columns, "_enforce", lambda vector, _column: vector)
    patch.setattr(accumulators, "lattice_steps", lambda part, vector: vector.values.astype(np.int64) - int(part.origin))


def add_a_null_as_the_lower_end(patch: Patch) -> None:
    """A NULL in a sum that its count does not know of."""
    honest = accumulators.Sum.add

    def add(self: Any, block: Any, read: Any, seen: Any) -> None:
        value = self.part.value
        honest(self, block, {**read, value: Vector(read[value].values + 100)}, seen)

    patch.setattr(accumulators.Sum, "add", add)


def forget_that_a_changed_row_opens_a_second_group(patch: Patch) -> None:
    patch.setattr(release_calibrate, "groups_of_a_unit", lambda _: 1)


# Noise, thresholds, charges


def draw_five_percent_too_little(patch: Patch) -> None:
    for name in ("cube_laplace", "discrete_laplace"):
        honest = getattr(samplers, name)
        patch.setattr(samplers, name, lambda scale, *rest, honest=honest: honest(scale * Fraction(95, 100), *rest))
    gaussian = samplers.discrete_gaussian
    patch.setattr(samplers, "discrete_gaussian", lambda variance, size: gaussian(variance * Fraction(9, 10), size))
    rounded = mechanisms.rounded_gaussian
    patch.setattr(mechanisms, "rounded_gaussian", lambda variance, size: rounded(variance * Fraction(9, 10), size))


def give_every_sum_the_whole_epsilon(patch: Patch) -> None:
    """Split noise that is not split."""

    def calibrate(reach: Any, epsilon: Fraction) -> mechanisms.SplitLaplace:
        return mechanisms.SplitLaplace(Fraction(reach.cube_sensitivity) / epsilon, reach.dimension)

    patch.setattr(mechanisms.SplitLaplace, "calibrate", staticmethod(calibrate))


def calibrate_the_gaussian_classically(patch: Patch) -> None:
    """rho = epsilon^2 / 2, as if a Gaussian were a Laplace."""
    for name in ("rho_for", "gaussian_rho"):
        patch.setattr(mechanisms, name, lambda epsilon, _delta: epsilon * epsilon / 2)


def use_one_draw_for_all_coordinates(patch: Patch) -> None:
    honest = mechanisms.SplitLaplace.draw

    def draw(self: Any, cells: int) -> Any:
        return np.repeat(honest(self, cells)[:1], self.dimension, axis=0)

    patch.setattr(mechanisms.SplitLaplace, "draw", draw)


def use_the_continuous_threshold(patch: Patch) -> None:
    def threshold(noise: Any, most_of_a_unit: int, delta: Fraction) -> int:
        return math.ceil(most_of_a_unit + noise.scale * math.log(1 / (2 * delta)) - 1e-9)

    patch.setattr(hidden, "threshold", threshold)


def let_the_threshold_be_one_too_low(patch: Patch) -> None:
    patch.setattr(hidden, "threshold", lambda *args: selection.threshold(*args) - 1)


def toss_coins_twice_as_lucky(patch: Patch) -> None:
    patch.setattr(hidden, "chance_below", lambda *args: min(2 * selection.chance_below(*args), Fraction(99, 100)))


def toss_luckier_coins_than_are_checked(patch: Patch) -> None:
    """By a coin of equal sides, whatever is left of delta."""
    honest = GroupsByThreshold.run

    def run(self: Any, *args: Any) -> Any:
        object.__setattr__(self, "below", Fraction(1, 2))
        return honest(self, *args)

    patch.setattr(GroupsByThreshold, "run", run)


def toss_one_coin_for_all_groups(patch: Patch) -> None:
    honest = selection.bernoulli_dyadic
    patch.setattr(
        selection,
        "bernoulli_dyadic",
        lambda firsts, numerator, bits: np.repeat(honest(firsts[:1], numerator, bits), len(firsts)),
    )


def hide_groups_at_the_threshold(patch: Patch) -> None:
    """> where >= is meant."""
    honest = GroupsByThreshold.run
    patch.setattr(GroupsByThreshold, "run", lambda self, *args: honest(replace(self, height=self.height + 1), *args))


def charge_less_than_the_noise_costs(patch: Patch) -> None:
    honest = release_planned.calibrate

    def calibrate(*args: Any, **more: Any) -> Any:
        made = honest(*args, **more)
        return replace(made, cost=replace(made.cost, epsilon=made.cost.epsilon * 9 / 10))

    patch.setattr(release_planned, "calibrate", calibrate)


def charge_no_delta_for_the_threshold(patch: Patch) -> None:
    honest = release_planned.calibrate

    def calibrate(*args: Any, **more: Any) -> Any:
        made = honest(*args, **more)
        return replace(made, cost=Cost(made.cost.epsilon))

    patch.setattr(release_planned, "calibrate", calibrate)


def charge_after_the_run(patch: Patch) -> None:
    def query(self: Any, sql: str, *, epsilon: Any = None, delta: Any = None, **_options: Any) -> Result:
        made = self._prepare(sql, (epsilon, delta, None)).releases[0]
        released = made.privatise(pandas.PandasExecutor(self._stores).execute(made.exact))
        self._ledger.charge(made.cost, sql)
        return Result(finished(made, released), made, released, "", warnings_of(made, released))

    patch.setattr(session.Session, "query", query)


def admit_one_query_too_many(patch: Patch) -> None:
    def charge(self: Any, cost: Any, label: str, **_more: Any) -> Any:
        with self._writing():
            before = self._state.watches[0].spent()
            if before.epsilon >= self.budget.loss.epsilon or before.delta > self._state.watches[0].filter.steps_delta:
                raise BudgetExceeded("")
            self._append(ledger_lines.Entry(self._now(), None, label, cost))

    patch.setattr(ledger.Ledger, "charge", charge)


def add_losses_as_floats(patch: Patch) -> None:
    honest = Cost.__add__

    def add(self: Cost, other: Cost) -> Cost:
        made = honest(self, other)
        return replace(made, epsilon=Fraction(float(self.epsilon) + float(other.epsilon)))

    patch.setattr(Cost, "__add__", add)


def forget_the_lock(patch: Patch) -> None:
    honest = filters.Filter.admits
    slept: set[int] = set()

    def admits(self: Any, total: Any) -> bool:
        held = honest(self, total)
        if threading.get_ident() not in slept:  # once, and long: other threads get their turn, on a busy machine too
            slept.add(threading.get_ident())
            time.sleep(0.2)
        return held

    patch.setattr(filters.Filter, "admits", admits)
    patch.setattr(ledger_book, "threading", SimpleNamespace(RLock=nullcontext))
    patch.setattr(ledger.Ledger, "_append", _append_wherever)


def _append_wherever(self: Any, line: Any) -> int:
    """At the end of the list, whoever else is there."""
    before = self._store._lines[-1][2] if self._store._lines else ledger_text.first_hash(self.rules.text)
    number, text = len(self._store._lines) + 1, ledger_lines.write(line, 64 * "0")
    self._store.append(number, text, ledger_text.next_hash(before, number, text))
    return number


def let_a_ledger_be_copied(patch: Patch) -> None:
    patch.setattr(ledger.Ledger, "__deepcopy__", lambda self, _memo: self.__class__(self.rules))


def let_a_fork_spend_too(patch: Patch) -> None:
    patch.setattr(ledger_book.os, "getpid", lambda: 1)


def seed_the_sampler(patch: Patch) -> None:
    patch.setattr(samplers, "random_words", lambda n: np.random.default_rng(7).integers(0, 2**64, n, dtype=np.uint64))


def share_random_bits_across_forks(patch: Patch) -> None:
    """A buffer of random words, filled before the fork, that parent and child both go on with."""
    buffer = [os.urandom(8 * 10**6)]

    def words(n: int) -> Any:
        taken, buffer[0] = buffer[0][: 8 * n], buffer[0][8 * n :]
        return np.frombuffer(taken, dtype=np.uint64)

    patch.setattr(samplers, "random_words", words)


# Ranges, sums, groups, errors


def narrow_reals_as_if_they_were_whole(patch: Patch) -> None:
    """x < 2 taken for x <= 1, on reals."""

    def limit(name: str, _kind: Any, other: Interval, _other_kind: Any) -> Interval:
        upper = other.upper - (name == "lt") if name in ("lt", "le", "eq") else INFINITY
        lower = other.lower + (name == "gt") if name in ("gt", "ge", "eq") else -INFINITY
        return Interval(lower, upper) if lower <= upper else Interval(-INFINITY, INFINITY)

    patch.setattr(facts, "_limit", limit)


def believe_both_sides_of_an_or(patch: Patch) -> None:
    patch.setattr(facts, "_either", lambda left, right: {**left, **right})


def sum_in_floats(patch: Patch) -> None:
    """Values are added as they are, and rounded to the lattice at the end: the order of rows shows."""

    class FloatSum(accumulators.Sum):
        def __init__(self, part: Any, cells: int) -> None:
            super().__init__(part, cells)
            self.total = np.zeros(cells + 1)

        def add(self, block: Any, read: Any, _seen: Any) -> None:
            vector = read[self.part.value]
            held = np.clip(vector.values.astype(float), self.part.lower, self.part.upper) - self.part.origin
            held = np.where(vector.where_valid(), held, 0)
            if block.codes is None:
                self.total[0] += sum((held if block.kept is None else held * block.kept).tolist())
            else:
                np.add.at(self.total, block.codes, held)

        def values(self) -> Any:
            return np.array([round(each * self.part.steps_per_unit) for each in self.total[:-1].tolist()], dtype=object)

    patch.setattr(accumulators, "Sum", FloatSum)


def let_an_exception_depend_on_a_row(patch: Patch) -> None:
    """A division by zero is reported instead of being NULL."""
    honest = pandas.evaluator

    def evaluator(expr: Any, store: Any) -> Any:
        run = honest(expr, store)
        calls = [part for part in expressions.walk(expr) if isinstance(part, expressions.Call)]
        divisors = [honest(each.args[1], store) for each in calls if each.function.name == "divide"]

        def checked(start: int, stop: int) -> Vector:
            if any((each(start, stop).values == 0).any() for each in divisors):
                raise ZeroDivisionError
            return run(start, stop)

        return checked

    patch.setattr(pandas, "evaluator", evaluator)


def let_a_warning_depend_on_a_row(patch: Patch) -> None:
    patch.setattr(np, "errstate", lambda **_: _Nothing())


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def show_groups_as_they_appear(patch: Patch) -> None:
    for module in (measurement, finish):
        patch.setattr(module, "order_of", lambda _terms, _keys, size: np.arange(size))


def drop_the_group_of_null(patch: Patch) -> None:
    honest = groups._dictionary_codes

    def codes(key: Any, store: Any) -> Any:
        found, encoded = honest(key, store), store.encoded(key.expr)
        return replace(
            found,
            read=lambda start, stop: np.where(encoded.codes[start:stop] < 0, -1, found.read(start, stop)),
            complete=False,
        )

    patch.setattr(groups, "_dictionary_codes", codes)


def count_null_as_a_value(patch: Patch) -> None:
    patch.setattr(accumulators.RowCount, "add", lambda self, _block, _read, seen: self.total.__iadd__(seen))


def let_unknown_pass_a_filter(patch: Patch) -> None:
    """NULL AND TRUE lets a row through."""
    honest = evaluation.evaluate

    def evaluate(expr: Any, read: Any, size: int, shared: Any = None) -> Vector:
        found = honest(expr, read, size, shared)
        if isinstance(expr, expressions.Call) and expr.type is expressions.Type.BOOLEAN and found.valid is not None:
            return Vector(found.values | ~found.valid)
        return found

    patch.setattr(evaluation, "evaluate", evaluate)


def keep_plans_by_their_text(patch: Patch) -> None:
    patch.setattr(Catalog, "fingerprint", ("the same",))


# The whole language


def learn_whatever_the_other_side_may_be(patch: Patch) -> None:
    """A condition that is not TRUE is taken for FALSE, though the other side may be NULL."""

    def not_true(condition: Any, known: Any) -> Any:
        if isinstance(condition, expressions.Call) and condition.function.name in facts._OPPOSITE:
            name = facts._OPPOSITE[condition.function.name]
            return facts._narrow_comparison(name, *condition.args, known)
        return known

    patch.setattr(facts, "_not_true", not_true)


def learn_of_a_nullable_other_side(patch: Patch) -> None:
    """As it is, but for the question whether the other side can be NULL."""
    honest = facts.fact

    def not_true(condition: Any, known: Any) -> Any:
        def fact(expr: Any, known: Any = None) -> Fact:
            found = honest(expr, known)
            return replace(found, nullable=found.nullable and expr is not condition.args[1])

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(facts, "fact", fact)
            return honest_not_true(condition, known)

    honest_not_true = facts._not_true
    patch.setattr(facts, "_not_true", not_true)


def forget_that_the_value_itself_may_be_null(patch: Patch) -> None:
    """What a condition that is not TRUE says of a value is taken to say that it is not NULL."""
    honest = facts._learn
    patch.setattr(facts, "_learn", lambda known, expr, limit, **_nullable: honest(known, expr, limit))


def narrow_an_arm_by_the_next_condition(patch: Patch) -> None:
    """ELSE is narrowed as if the last condition were TRUE."""
    patch.setattr(facts, "_not_true", facts.narrow)


def take_an_unknown_condition_for_true(patch: Patch) -> None:
    """CASE looks at what stands in the cell of a NULL."""
    honest = conditional._first_true
    patch.setattr(
        conditional, "_first_true", lambda conditions: honest([Vector(condition.values) for condition in conditions])
    )


def let_a_filter_of_an_aggregate_pass_everyone(patch: Patch) -> None:
    honest = selects.SelectBinder.argument
    patch.setattr(selects.SelectBinder, "argument", lambda self, call, _condition: honest(self, call, None))


def drop_the_filter_of_a_subquery(patch: Patch) -> None:
    honest = row_wise.assembled
    patch.setattr(row_wise, "assembled", lambda people, _predicate: honest(people, None))


def show_derived_groups_that_occur(patch: Patch) -> None:
    """The domain of a key is read from the data."""
    honest = pandas.PandasExecutor.execute

    def execute(self: Any, exact: Any, *key: Any) -> Any:
        shown = exact.every_cell and all(each.listed for each in exact.keys)
        return honest(self, replace(exact, every_cell=shown), *key)

    patch.setattr(pandas.PandasExecutor, "execute", execute)


def put_outside_values_into_the_first_group(patch: Patch) -> None:
    patch.setattr(groups, "_outside", lambda _key: 0)


def put_unlisted_values_where_null_is(patch: Patch) -> None:
    """Where NULL is not listed too: the code -1 then is the last group."""
    honest = groups._dictionary_codes

    def codes(key: Any, store: Any) -> Any:
        found = honest(key, store)
        last = len(found.values) - 1
        return replace(found, read=lambda a, b: np.where(found.read(a, b) < 0, last, found.read(a, b)), complete=True)

    patch.setattr(groups, "_dictionary_codes", codes)


def look_up_null_one_place_off(patch: Patch) -> None:
    """NULL, code -1, gets the value of the dictionary's last text."""
    honest = evaluation.Evaluation.lookup

    def lookup(self: Any, column: Any, table: Vector, kind: Any, most: Any = None) -> Any:
        places = np.array([*range(len(table) - 1), len(table) - 2])
        return honest(self, column, table.at(places), kind, most)

    patch.setattr(evaluation.Evaluation, "lookup", lookup)


def let_a_row_see_the_others(patch: Patch) -> None:
    """A key's code is its place among the values that occur."""
    honest = groups._consecutive_codes

    def codes(read: Any, key: Any) -> Any:
        found = honest(read, key)
        return replace(found, read=lambda a, b: found.read(a, b) - found.read(a, b).clip(0).min(initial=9, where=True))

    patch.setattr(groups, "_consecutive_codes", codes)


def lose_all_blocks_but_the_first(patch: Patch) -> None:
    honest = pandas._Run.sums
    patch.setattr(pandas._Run, "sums", lambda run, first, last: honest(run, first, min(last, pandas.BLOCK)))


def narrow_the_range_of_a_kernel(patch: Patch) -> None:
    """COALESCE is said to lie where its first argument does."""
    lie = replace(functions.FUNCTIONS["coalesce"], fact_of=lambda found: found[0])
    patch.setitem(functions.FUNCTIONS, "coalesce", lie)


def say_that_a_cast_never_fails(patch: Patch) -> None:
    honest = functions.FUNCTIONS["text_to_integer"]
    lie = replace(honest, fact_of=lambda found: replace(honest.fact_of(found), nullable=False))
    patch.setitem(functions.FUNCTIONS, "text_to_integer", lie)


def do_not_charge_a_share(patch: Patch) -> None:
    """Aggregates with their own epsilon come free."""
    honest = release_planned.calibrate

    def calibrate(*args: Any, **more: Any) -> Any:
        made = honest(*args, **more)
        return replace(made, cost=Cost(made.shares[0].epsilon, made.cost.delta)) if made.shares else made

    patch.setattr(release_planned, "calibrate", calibrate)


def give_each_share_the_whole_epsilon(patch: Patch) -> None:
    honest = release_calibrate._shares

    def shares(whole: Any, dealt: Any, *rest: Any, **more: Any) -> Any:
        made = honest(whole, [(lattice, replace(part, epsilon=Fraction(1))) for lattice, part in dealt], *rest, **more)
        return tuple(replace(each, epsilon=part.epsilon) for each, (_, part) in zip(made, dealt, strict=True))

    patch.setattr(release_calibrate, "_shares", shares)


def add_no_noise_to_a_share(patch: Patch) -> None:
    """Only the share that comes first is noisy."""
    honest = release_calibrate._shares
    patch.setattr(release_calibrate, "_shares", lambda *args, **more: honest(*args, **more)[:1])


def draw_once_for_all_shares(patch: Patch) -> None:
    drawn: dict[int, Any] = {}

    def draw(self: Any, cells: int) -> Any:
        base = drawn.setdefault(cells, np.random.default_rng().laplace(size=cells))
        return np.rint(base * float(self.scale)).astype(np.int64)[None, :].repeat(self.dimension, axis=0)

    patch.setattr(mechanisms.CubeLaplace, "draw", draw)


def let_the_text_raise_epsilon(patch: Patch) -> None:
    honest = prepare.Terms.allowance

    def allowance(self: Any, said: Any) -> Any:
        spoken = said is not None and said.epsilon is not None
        return honest(replace(self, epsilon=None) if spoken else self, said)

    patch.setattr(prepare.Terms, "allowance", allowance)


def let_the_text_pass_the_owners_limit(patch: Patch) -> None:
    honest = prepare.Terms.allowance
    patch.setattr(prepare.Terms, "allowance", lambda self, options: honest(replace(self, max_epsilon=None), options))


def obey_options_that_nothing_reads(patch: Patch) -> None:
    honest = bind._Binder._bind_unread

    def unread(self: Any, names: Any, outer: Any) -> None:
        before = self.whole.options
        self.whole.options = None
        honest(self, names, outer)
        while names is not None and names is not outer:
            clause = names.node.this.args.get("privacy")
            before = before if clause is None else options.read_options(clause, self.sql)
            names = names.before
        self.whole.options = before

    patch.setattr(bind._Binder, "_bind_unread", unread)


def forget_the_parameters_of_a_plan(patch: Patch) -> None:
    patch.setattr(prepare, "_typed", lambda _params: ())


def forget_the_types_of_parameters(patch: Patch) -> None:
    patch.setattr(prepare, "_typed", lambda params: tuple((name, literal.value) for name, literal in params))


LIES: list[tuple[Lie, Callable[[], None]]] = [
    (halve_a_sensitivity, rules("sum, unbounded")),
    (halve_a_sensitivity, rules("averages by group, bounded")),
    (forget_the_second_group_of_a_changed_row, rules("counts by group, bounded")),
    (forget_the_second_group_of_a_changed_row, rules("sums by listed group, bounded")),
    (forget_the_second_group_in_l2, rules("counts by listed group, bounded")),
    (take_the_width_for_the_reach, rules("sum far from 0, unbounded")),
    (forget_nulls, rules("nullable count, bounded")),
    (let_a_filter_keep_every_row, rules("filtered count, bounded")),
    (drop_the_clip, rules("sum, unbounded")),
    (drop_the_clip, rules("average of integers, unbounded")),
    (forget_that_opposites_overflow, checks.check_extremes),
    (forget_that_larger_integers_are_null, checks.check_extremes),
    (read_unsigned_numbers_modulo, checks.check_extremes),
    (add_a_null_as_the_lower_end, rules("nullable average, unbounded")),
    (forget_that_a_changed_row_opens_a_second_group, rules("counts by group, bounded")),
    (forget_that_a_changed_row_opens_a_second_group, checks.check_thresholds),
    (draw_five_percent_too_little, checks.check_noise),
    (give_every_sum_the_whole_epsilon, checks.check_noise),
    (calibrate_the_gaussian_classically, checks.check_noise),
    (use_one_draw_for_all_coordinates, checks.check_noise),
    (use_the_continuous_threshold, checks.check_thresholds),
    (let_the_threshold_be_one_too_low, checks.check_thresholds),
    (toss_coins_twice_as_lucky, checks.check_thresholds),
    (toss_luckier_coins_than_are_checked, checks.check_thresholds),
    (toss_one_coin_for_all_groups, checks.check_thresholds),
    (hide_groups_at_the_threshold, checks.check_thresholds),
    (charge_less_than_the_noise_costs, checks.check_noise),
    (charge_no_delta_for_the_threshold, checks.check_thresholds),
    (charge_after_the_run, checks.check_charge_first),
    (admit_one_query_too_many, checks.check_budget),
    (add_losses_as_floats, checks.check_budget),
    (forget_the_lock, checks.check_budget),
    (let_a_ledger_be_copied, checks.check_no_copies),
    (let_a_fork_spend_too, checks.check_no_copies),
    (seed_the_sampler, checks.check_entropy),
    (share_random_bits_across_forks, checks.check_entropy),
    (narrow_reals_as_if_they_were_whole, checks.check_answers),
    (believe_both_sides_of_an_or, checks.check_answers),
    (sum_in_floats, checks.check_order_of_rows),
    (let_an_exception_depend_on_a_row, checks.check_no_row_raises),
    (let_a_warning_depend_on_a_row, checks.check_no_row_raises),
    (show_groups_as_they_appear, checks.check_order_of_groups),
    (drop_the_group_of_null, checks.check_answers),
    (count_null_as_a_value, checks.check_answers),
    (let_unknown_pass_a_filter, checks.check_answers),
    (keep_plans_by_their_text, checks.check_plans_are_not_confused),
    (learn_whatever_the_other_side_may_be, language.check_facts_of_cases),
    (learn_of_a_nullable_other_side, language.check_facts_of_cases),
    (forget_that_the_value_itself_may_be_null, language.check_facts_of_cases),
    (narrow_an_arm_by_the_next_condition, language.check_facts_of_cases),
    (narrow_the_range_of_a_kernel, language.check_facts_of_functions),
    (say_that_a_cast_never_fails, language.check_facts_of_functions),
    (take_an_unknown_condition_for_true, language.check_language_answers),
    (let_a_filter_of_an_aggregate_pass_everyone, language.check_language_answers),
    (drop_the_filter_of_a_subquery, language.check_language_answers),
    (put_outside_values_into_the_first_group, language.check_language_answers),
    (put_unlisted_values_where_null_is, language.check_language_answers),
    (look_up_null_one_place_off, language.check_language_answers),
    (show_derived_groups_that_occur, language.check_public_groups),
    (show_derived_groups_that_occur, language.check_neighbours),
    (let_a_row_see_the_others, language.check_rows_are_counted_alone),
    (lose_all_blocks_but_the_first, language.check_rows_are_counted_alone),
    (do_not_charge_a_share, language.check_shares),
    (give_each_share_the_whole_epsilon, language.check_shares),
    (draw_once_for_all_shares, language.check_shares),
    (add_no_noise_to_a_share, language.check_neighbours),
    (let_the_text_raise_epsilon, language.check_options),
    (let_the_text_pass_the_owners_limit, language.check_options),
    (obey_options_that_nothing_reads, language.check_options),
    (forget_the_parameters_of_a_plan, language.check_parameters_are_not_confused),
    (forget_the_types_of_parameters, language.check_parameters_are_not_confused),
]


@pytest.fixture(autouse=True)
def _fresh_plans() -> Iterator[None]:
    """No plan that a lie made is kept, and none that was made before it."""
    prepare._cache.clear()
    yield
    prepare._cache.clear()


CHECKS = [
    getattr(module, name)
    for module in (checks, language)
    for name in dir(module)
    if name.startswith("check_") and name not in ("check_rule", "check_across")
]


FOUND_BY_THE_TRIAL = (add_no_noise_to_a_share,)
"""Before its check comes to anything: it leaves coordinates without the noise that intervals are asked of."""
REFUSED = (
    give_every_sum_the_whole_epsilon,
    use_the_continuous_threshold,
    let_the_threshold_be_one_too_low,
    toss_coins_twice_as_lucky,
)
"""When the noise is made, or the threshold: they are worth more than they are granted."""


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_honest_engine_passes(check: Callable[[], None]):
    check()


@pytest.mark.parametrize(("lie", "check"), LIES, ids=lambda each: each.__name__)
def test_a_lie_is_caught(lie: Lie, check: Check):
    by = InternalError if lie in (*FOUND_BY_THE_TRIAL, *REFUSED) else AssertionError
    assert_caught(lie, check, honest=check.__name__ == "check", by=by)  # "check" is of a rule; others pass above


# People: units, limits, joins


def count_every_row(patch: Patch) -> None:
    """No unit is held to its limits."""

    def choose(_plan: Any, rows: Any, codes: Any, *_: Any) -> kept_rows.UnitRows:
        return kept_rows.UnitRows(rows.units.numbers(), codes, codes)

    patch.setattr(kept_rows, "choose_rows", choose)


def count_one_row_more(patch: Patch) -> None:
    """Limits are one larger than what noise is made for."""
    honest = kept_rows.choose_rows

    def choose(plan: Any, *rest: Any) -> Any:
        held = plan.limits
        more = None if held is None else ContributionBound(held.rows + 1, held.groups + 1, held.per_group + 1)
        return honest(replace(plan, limits=more), *rest)

    patch.setattr(kept_rows, "choose_rows", choose)


def allow_a_unit_one_group_more(patch: Patch) -> None:
    honest = kept_rows.choose_rows

    def choose(plan: Any, *rest: Any) -> Any:
        return honest(replace(plan, groups=None if plan.groups is None else plan.groups + 1), *rest)

    patch.setattr(kept_rows, "choose_rows", choose)


def keep_the_first_rows(patch: Patch) -> None:
    """Rows are left out by their positions."""
    honest = kept_rows.RowHashes.__call__

    def hashes(self: Any, asked: Any) -> Any:
        return asked.astype(np.uint64), honest(self, asked)[1]

    patch.setattr(kept_rows.RowHashes, "__call__", hashes)


def hash_the_codes_of_units(patch: Patch) -> None:
    """Codes depend on who else is there."""

    def hashes(self: Any, key: Any, places: Any) -> Any:
        return hash_vector(key, Vector(self.numbers()[places].astype(np.int64)), limbs_of(Type.INTEGER))

    patch.setattr(relations.Units, "hashes", hashes)


def hash_the_codes_of_groups(patch: Patch) -> None:
    def hashes(self: Any, _groups: Any, codes: Any) -> Any:
        return hash_vector(hash_key(self.key), Vector(codes), limbs_of(Type.INTEGER))

    patch.setattr(kept_rows.RowHashes, "_of_groups", hashes)


def make_nobody_somebody(patch: Patch) -> None:
    """Rows whose unit is NULL are one more unit's."""

    def units(codes: Any, values: Vector, kind: Any) -> Any:
        return relations.Units(np.where(codes < 0, 0, codes), len(values), Vector(values.values), kind)

    patch.setattr(database, "units_of_codes", units)


def join_whatever_has_the_key(patch: Patch) -> None:
    """Rows of different units come together, and are marked by one another."""
    honest = pairing._keys
    patch.setattr(pairing, "_keys", lambda pairs, left, right, **_: honest(pairs, left, right, units=False))


def mark_by_everybodys_rows(patch: Patch) -> None:
    honest = pairing.marked

    def marked(node: Any, rows: Any, inner: Any, *_limit: Any, **_allowed: Any) -> Any:
        if not node.keys:
            return honest(node, rows, inner)
        apart = relations.Relation(rows.rows, rows.parts, None, rows.kept)
        return honest(node, apart, relations.Relation(inner.rows, inner.parts, None, inner.kept))

    for module in (pairing, blockwise):
        patch.setattr(module, "marked", marked)


def ask_whether_anybody_is_listed(patch: Patch) -> None:
    """NULL NOT IN (nothing) is TRUE, so an empty list tells of everybody who might be in it."""
    honest = pairing.marked

    def marked(node: Any, rows: Any, inner: Any, *_limit: Any, **_allowed: Any) -> Vector:
        found = honest(node, rows, inner)
        return found if inner.rows else Vector(found.values)

    for module in (pairing, blockwise):
        patch.setattr(module, "marked", marked)


def compare_keys_in_two_ways(patch: Patch) -> None:
    """As they are stored where they are unique, as they are declared where somebody has one twice."""
    patch.setattr(database.Database, "_both_plain", lambda *_: True)


def group_several_units_as_one(patch: Patch) -> None:
    """Inside a sub-query groups are made by its keys alone."""
    honest = unit_groups.renumber
    patch.setattr(unit_groups, "renumber", lambda parts, sizes: honest(parts[1:], sizes[1:]))


def lead_to_the_first_row(patch: Patch) -> None:
    """A path goes to the row that comes first, not to that of the smallest unit."""
    honest = database._ranks
    patch.setattr(database, "_ranks", lambda values: np.minimum(honest(values), 0))


def follow_clipped_keys(patch: Patch) -> None:
    def key(store: Any, name: str) -> Any:
        kind = store.column(name).type
        return key_of(store.encoded(name)) if kind is Type.TEXT else KeyColumn(store.reader(name)(0, store.rows))

    patch.setattr(database, "_exact_key", key)


def clip_units_to_their_bounds(patch: Patch) -> None:
    honest = columns.ColumnStore._identify

    def identify(self: Any, name: str) -> Any:
        return honest(self, name) if self.column(name).type is Type.TEXT else self.numbered(name)

    patch.setattr(columns.ColumnStore, "_identify", identify)


def tell_one_person_in_two_tables_apart(patch: Patch) -> None:
    honest = database.merged_units

    def merged(parts: Any) -> Any:
        found = honest(parts)
        if found.values is None:
            return found
        size, start, codes = len(found.values), 0, []
        for place, part in enumerate(parts):
            own = found.codes[start : start + len(part.numbers())]
            codes.append(np.where(own < 0, -1, own + place * size))
            start += len(own)
        values = Vector(np.concatenate([found.values.values] * len(parts)))
        return relations.Units(np.concatenate(codes), size * len(parts), values, found.kind)

    patch.setattr(database, "merged_units", merged)


def tell_a_row_of_two_unions_apart(patch: Patch) -> None:
    """Each union's rows are new units: a row that is read by a union within a union is two."""
    honest, number = database.merged_units, itertools.count()

    def merged(parts: Any) -> Any:
        found = honest(parts)
        return found if found.values is not None else replace(found, tables=((f"union {next(number)}", found.count),))

    patch.setattr(database, "merged_units", merged)


def forget_to_clip_totals(patch: Patch) -> None:
    honest = unit_sums.unit_totals
    patch.setattr(unit_sums, "unit_totals", lambda *args, **_: honest(*args, least=-(2**50), most=2**50))


def count_rows_for_units(patch: Patch) -> None:
    def pairs(units: Any, by: Any, cells: int) -> Any:
        return np.bincount(np.zeros(len(units), dtype=np.int64) if by is None else by, minlength=cells)

    patch.setattr(unit_sums, "distinct_pairs", pairs)


def forget_groups_without_kept_rows(patch: Patch) -> None:
    """A unit is taken to have a kept row in each of its groups."""
    honest = reach._across
    patch.setattr(reach, "_across", lambda cells, bound, _present, bounded: honest(cells, bound, 0, bounded))


def _say_of_rows(patch: Patch, rule: Callable[[Any, Any], Any]) -> None:
    """Another rule of stability: of a node and what is honestly said of it."""
    honest = stability.stability

    def found(source: Any) -> Any:
        return rule(source, honest(source))

    for module in (stability, limits, sensitivity):
        patch.setattr(module, "stability", found)


def _at_most_one(said: Any) -> Any:
    return replace(said, by_unit=dict.fromkeys(said.by_unit, 1))


def take_every_group_of_a_unit_for_one(patch: Patch) -> None:
    _say_of_rows(patch, lambda node, said: _at_most_one(said) if isinstance(node, nodes.PerUnit) else said)


def forget_that_joins_multiply(patch: Patch) -> None:
    def rule(node: Any, said: Any) -> Any:
        joined = isinstance(node, nodes.Join) and stability.DECLARED not in said.by_unit
        return _at_most_one(said) if joined else said

    _say_of_rows(patch, rule)


def forget_that_a_union_adds_up(patch: Patch) -> None:
    def rule(node: Any, said: Any) -> Any:
        return _at_most_one(said) if isinstance(node, nodes.Union) and said.rows is not None else said

    _say_of_rows(patch, rule)


def believe_in_unique_units(patch: Patch) -> None:
    """One row for each unit is declared, so no row is left out."""
    honest = sensitivity.bounds_of

    def bounds_of(*args: Any) -> Any:
        found = honest(*args)
        return replace(found, enforced=False) if found.rows.rows == 1 else found

    patch.setattr(sensitivity, "bounds_of", bounds_of)


def count_one_unit_once_for_the_threshold(patch: Patch) -> None:
    """Groups are chosen by a count of rows, of which one unit may have several."""
    honest = hidden.change_of

    def change_of(parts: Any, terms: Any, analysis: Any) -> Any:
        return replace(honest(parts, terms, analysis), in_a_group=(terms[0][0][1],))

    patch.setattr(hidden, "change_of", change_of)


def open_one_group_a_unit(patch: Patch) -> None:
    forget_that_a_changed_row_opens_a_second_group(patch)


def choose_groups_as_if_each_unit_had_one(patch: Patch) -> None:
    def law(epsilon: Fraction, delta: Fraction, _groups: int, least: int) -> TruncatedGeometric:
        return TruncatedGeometric(epsilon, delta, 1, least)

    patch.setattr(hidden, "TruncatedGeometric", law)


def always_use_one_key(patch: Patch) -> None:
    patch.setattr(answer, "fresh_key", lambda: bytes(32))


def believe_what_is_said_of_public_keys(patch: Patch) -> None:
    patch.setattr(public_data, "_most_rows", lambda *_: 0)


def check_public_keys_by_their_codes(patch: Patch) -> None:
    def distinct(store: Any, column: Any) -> Any:
        if column.type is not Type.TEXT:
            return store.numbered(column.name)
        encoded = store.encoded(column.name)
        return np.where(encoded.codes < 0, len(encoded.dictionary) - 1, encoded.codes), encoded.dictionary

    patch.setattr(public_data, "_distinct", distinct)


def asks(sql: str, limits: dict[str, int] | None = None, **more: Any) -> Callable[[], None]:
    return people_stay_apart(Question(sql, limits or {}, **more))


BY_K = "SELECT k, COUNT(*), SUM(y), COUNT(DISTINCT pid) FROM e GROUP BY k"
OF_BOTH = "SELECT city, COUNT(*) FROM p JOIN e USING (pid) GROUP BY city"
KEYS_LEAD_AWAY = unit_checks.check_keys_that_lead_away
UNIT_LIES: list[tuple[Lie, Callable[[], None]]] = [
    (count_every_row, asks("SELECT COUNT(*), AVG(y) FROM e", R2)),
    (count_every_row, asks("SELECT k, COUNT(DISTINCT pid) FROM e GROUP BY k", G1)),
    (count_one_row_more, asks("SELECT COUNT(*), AVG(y) FROM e", R2)),
    (count_one_row_more, asks("SELECT k, COUNT(*) FROM e GROUP BY k", R2)),
    (allow_a_unit_one_group_more, asks("SELECT k, COUNT(DISTINCT pid) FROM e GROUP BY k", G1)),
    (keep_the_first_rows, asks("SELECT SUM(y), AVG(y) FROM e", R1)),
    (hash_the_codes_of_units, asks("SELECT SUM(y), AVG(y) FROM e", R1)),
    (hash_the_codes_of_groups, asks(OF_BOTH, R1)),
    (make_nobody_somebody, asks("SELECT COUNT(*) FROM e", R2)),
    (join_whatever_has_the_key, KEYS_LEAD_AWAY),
    (mark_by_everybodys_rows, KEYS_LEAD_AWAY),
    (ask_whether_anybody_is_listed, unit_checks.check_lists),
    (compare_keys_in_two_ways, unit_checks.check_doubled_keys),
    (group_several_units_as_one, KEYS_LEAD_AWAY),
    (lead_to_the_first_row, KEYS_LEAD_AWAY),
    (follow_clipped_keys, KEYS_LEAD_AWAY),
    (clip_units_to_their_bounds, asks("SELECT COUNT(*) FROM e", R1, enforced=True)),
    (tell_one_person_in_two_tables_apart, asks(UNIONS[0], R2)),
    (
        tell_a_row_of_two_unions_apart,
        asks(
            f"{unit_checks.CLAUSE} (max_groups_contributed = 1, group_selection_strategy = TRUNCATED_GEOMETRIC) "
            "v > 1, COUNT(v) FROM (SELECT k AS v FROM t UNION ALL "
            "SELECT v FROM (SELECT k AS v FROM t UNION ALL SELECT k AS v FROM t) "
            "AS a) AS b GROUP BY v > 1"
        ),
    ),
    (forget_to_clip_totals, asks("SELECT COUNT(*) FROM e", R2)),
    (count_rows_for_units, asks("SELECT COUNT(DISTINCT pid) FROM e")),
    (forget_groups_without_kept_rows, asks(BY_K, R3)),
    (take_every_group_of_a_unit_for_one, asks("SELECT COUNT(*) FROM (SELECT DISTINCT pid, k FROM e)", R3)),
    (forget_that_joins_multiply, asks("SELECT COUNT(*) FROM t CROSS JOIN pub")),
    (forget_that_joins_multiply, asks("SELECT tag, COUNT(*) FROM t JOIN tags ON t.k = tags.k GROUP BY tag")),
    (forget_that_a_union_adds_up, asks("SELECT SUM(x) FROM (SELECT x FROM t UNION ALL SELECT x FROM t)")),
    (believe_in_unique_units, asks("SELECT COUNT(*), SUM(x) FROM p")),
    (count_one_unit_once_for_the_threshold, asks(OF_BOTH, R3)),
    (open_one_group_a_unit, asks(OF_BOTH, R3)),
    (open_one_group_a_unit, unit_checks.check_chances),
    (choose_groups_as_if_each_unit_had_one, unit_checks.check_chances),
    (always_use_one_key, unit_checks.check_fresh_keys),
    (believe_what_is_said_of_public_keys, unit_checks.check_public_promises),
    (check_public_keys_by_their_codes, unit_checks.check_public_promises),
]


@pytest.mark.parametrize(("lie", "check"), UNIT_LIES, ids=lambda each: each.__name__)
def test_a_lie_about_people_is_caught(lie: Lie, check: Callable[[], None]):
    test_a_lie_is_caught(lie, check)


# Statistics, draws, searches for bounds


@pytest.mark.parametrize(("lie", "check"), statistics_lies.LIES, ids=lambda each: each.__name__)
def test_a_lie_about_statistics_is_caught(lie: Lie, check: Check):
    assert_caught(lie, check, by=InternalError if lie in statistics_lies.REFUSED else AssertionError)

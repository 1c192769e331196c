"""Filters against every adaptive adversary of a menu of steps, exactly; planted lies; the algebra of costs and sums."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

import pytest

from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger.account import Account, Part
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.filters import ACCOUNTANTS, Filter, Watch
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.text import Rules
from dpsql.core.loss import PrivacyLoss
from dpsql.core.unit import Neighbours
from dpsql.errors import BudgetExceeded, InvalidPrivacyParameter
from tests.core.ledger.filter_trees import (
    Admit,
    Step,
    TooManyError,
    catastrophe,
    either_way,
    gaussian,
    held,
    held_by_watch,
    leaking,
    response,
    spike,
    thresholded,
    worst,
    worst_either_way,
    worst_spike,
)

F = Fraction
BUDGETS = [  # epsilon, delta, conversion_delta
    (F(1), F(1, 10), None),
    (F(1), F(1, 10), F(1, 50)),
    (F(1), F(1, 10), F(1, 10)),
    (F(1, 2), F(1, 50), None),
    (F(2), F(1, 5), F(3, 20)),
    (F(1, 10), F(1, 1000), None),
]
ROUNDING = 1 + 1e-9


def filter_of(budget: tuple[F, F, F | None], accountant: str) -> Filter:
    epsilon, delta, conversion = budget
    return Filter(PrivacyLoss(epsilon, delta), accountant, None if accountant == "basic" else conversion)


def sharp_menu(by: Filter) -> list[Step]:
    """A step that takes the whole rho and makes the most of it, one that takes the whole delta, and pure ones."""
    epsilon = float(by.budget.epsilon)
    rho = float(by.rho) or 0.05
    found = [spike(*worst_spike(epsilon, rho)), response(by.budget.epsilon / 4)]
    if by.steps_delta:
        found += [catastrophe(by.steps_delta), catastrophe(by.steps_delta / 3)]
    return found


def mixed_menu(by: Filter) -> list[Step]:
    """Steps paid in all coins, several of each."""
    epsilon = float(by.budget.epsilon)
    delta = by.steps_delta or by.budget.delta
    noise = gaussian(5 / epsilon, 3)
    return [
        spike(*worst_spike(epsilon, (float(by.rho) or 0.05) / 2)),
        leaking(by.budget.epsilon / 3, delta / 3),
        thresholded(noise, delta / 4),
        gaussian(4 / epsilon, 3, epsilon=epsilon / 3),
    ]


def many_menu(by: Filter) -> list[Step]:
    """Many small pure steps, which only zCDP admits all of, and a large one."""
    return [response(by.budget.epsilon / 10), response(by.budget.epsilon * F(3, 4)), catastrophe(by.budget.delta / 4)]


def whole_delta_menu(by: Filter) -> list[Step]:
    """The whole rho of a conversion at the whole delta, and the whole delta of steps."""
    wide = Filter(by.budget, by.accountant, by.budget.delta)
    spikes = [spike(*worst_spike(float(by.budget.epsilon), float(each.rho))) for each in (by, wide)]
    return [*spikes, catastrophe(by.steps_delta)]


MENUS = [sharp_menu, mixed_menu, many_menu]


@pytest.mark.parametrize("menu", MENUS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_no_adversary_gets_more_than_the_budget(budget: Any, accountant: str, menu: Callable[[Filter], list[Step]]):
    by = filter_of(budget, accountant)
    found = worst_either_way(menu(by), held(by), float(by.budget.epsilon))
    assert found <= float(by.budget.delta) * ROUNDING


def random_menu(rng: random.Random, by: Filter) -> list[Step]:
    """Steps of random kinds and parameters, of which some fit the budget exactly."""
    epsilon, delta = by.budget.epsilon, by.steps_delta or by.budget.delta
    made: list[Step] = []
    while len(made) < 3:
        part, share = F(1, rng.choice([1, 2, 3, 4, 7])), F(1, rng.choice([1, 2, 3, 5]))
        rho = float(by.rho or F(1, 20)) * rng.choice([1, 0.5, 0.25, 0.1])
        aim = float(epsilon) * rng.choice([1, 1, 0.7, 0.4])
        kind = rng.randrange(6)
        if kind == 0:
            made.append(response(epsilon * part))
        elif kind == 1:
            made.append(leaking(epsilon * part, delta * share))
        elif kind == 2:
            made.append(catastrophe(delta * share))
        elif kind == 3:
            made.append(spike(*worst_spike(aim, rho), epsilon=rng.choice([None, aim * 0.9])))
        else:
            noise = gaussian((2 * rho) ** -0.5, rng.choice([2, 3]), rng.choice([None, aim / 2]))
            made.append(noise if kind == 4 else thresholded(noise, delta * share))
    return made


def check_random_menus(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        epsilon = F(rng.choice([1, 2, 5, 10, 20]), 10)
        delta = F(1, rng.choice([5, 10, 50, 1000]))
        conversion = rng.choice([None, delta, delta / 5, delta * F(9, 10)])
        by = filter_of((epsilon, delta, conversion), rng.choice(["auto", "auto", "zcdp", "basic"]))
        menu = random_menu(rng, by)
        try:
            found = worst_either_way(menu, held(by), float(epsilon), most=30_000)
        except TooManyError:
            continue
        assert found <= float(delta) * ROUNDING, (by, menu)


@pytest.mark.parametrize("seed", range(4))
def test_no_adversary_with_a_random_menu_gets_more(seed: int):
    check_random_menus(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 250))
def test_no_adversary_with_another_random_menu_gets_more(seed: int):
    check_random_menus(seed)


def test_the_adversaries_come_close():
    """One that gets nowhere near would tell nothing: these get to more than nine tenths of what is allowed."""
    for budget in BUDGETS[3:4]:
        for accountant in ACCOUNTANTS:
            by = filter_of(budget, accountant)
            assert worst(sharp_menu(by), held(by), float(budget[0])).delta > 0.9 * float(budget[1])


def test_auto_admits_what_either_would_and_no_more_is_gained():
    """Zero-concentrated steps on paths of great loss, and the whole of basic on the others."""
    by = filter_of((F(1), F(1, 10), None), "auto")
    pure = response(F(1))
    noise = spike(*worst_spike(1.0, float(by.rho)))
    after = held(by)
    assert after(None, pure) is not None
    assert after(None, noise) is not None
    assert after(after(None, pure), noise) is None
    assert after(after(None, noise), pure) is None
    assert worst_either_way([pure, noise], after, 1.0) <= 0.1


# Lies


def reset_at_each_step(by: Filter) -> Admit:
    """Each step is booked with the filter that has room: two budgets are spent."""
    basic, concentrated = Filter(by.budget, "basic", F(0)), Filter(by.budget, "zcdp", by.conversion)

    def after(state: Any, step: Step) -> Any:
        first, second = state or (FREE, FREE)
        if basic.admits(first + step.cost):
            return first + step.cost, second
        return (first, second + step.cost) if concentrated.admits(second + step.cost) else None

    return after


def convert_at_the_whole_delta(by: Filter) -> Admit:
    """Steps spend their half all the same."""
    wide = Filter(by.budget, by.accountant, by.budget.delta)

    def after(total: Any, step: Step) -> Any:
        new = (total or FREE) + step.cost
        return new if wide.admits(replace(new, delta=F(0), hidden=F(0))) and new.delta <= by.steps_delta else None

    return after


def leave_the_whole_delta_to_steps(by: Filter) -> Admit:
    """Conversion takes its half all the same."""

    def after(total: Any, step: Step) -> Any:
        new = (total or FREE) + step.cost
        return new if by.admits(replace(new, delta=F(0), hidden=F(0))) and new.delta <= by.budget.delta else None

    return after


def forget_deltas_under_zcdp(by: Filter) -> Admit:
    """Each step's own delta is looked at, the sum is not; of four steps, or it would never end."""

    def after(state: Any, step: Step) -> Any:
        steps, total = state or (0, FREE)
        new = total + step.cost
        alone = replace(new, epsilon=None, delta=step.cost.delta, hidden=step.cost.hidden)
        return (steps + 1, new) if steps < 4 and (by.admits(new) or by.admits(alone)) else None

    return after


def charge_a_quarter_of_the_square(by: Filter) -> Admit:
    """A pure step is taken for eps^2/4-zCDP."""

    def after(total: Any, step: Step) -> Any:
        cost = step.cost
        pure = cost.epsilon is not None and cost.delta == cost.hidden
        new = (total or FREE) + (replace(cost, rho=cost.rho / 2) if pure else cost)
        return new if by.admits(new) else None

    return after


def judge_before_the_step(by: Filter) -> Admit:
    def after(total: Any, step: Step) -> Any:
        return (total or FREE) + step.cost if by.admits(total or FREE) else None

    return after


def take_the_larger_of_both(by: Filter) -> Admit:
    """Each filter has the whole delta to itself, and the one that still has room decides."""
    basic, concentrated = Filter(by.budget, "basic", F(0)), Filter(by.budget, "zcdp", by.budget.delta)

    def after(total: Any, step: Step) -> Any:
        new = (total or FREE) + step.cost
        return new if basic.admits(new) or concentrated.admits(new) else None

    return after


def forget_the_delta_of_noise(by: Filter) -> Admit:
    """That of Gaussian noise, as zCDP alone may."""

    def after(total: Any, step: Step) -> Any:
        new = (total or FREE) + step.cost
        return new if by.admits(replace(new, delta=new.hidden)) else None

    return after


def noise_menu(by: Filter) -> list[Step]:
    """Gaussian-like steps of the whole epsilon, whose deltas basic has to add up."""
    epsilon = float(by.budget.epsilon)
    return [spike(0.5, 0.6 * epsilon, epsilon / 8), spike(*worst_spike(epsilon, float(by.rho) or 0.05))]


def add_rhos_as_epsilons_may(by: Filter) -> Admit:
    """Pure steps are watched by basic alone and the others by zCDP alone."""

    def after(state: Any, step: Step) -> Any:
        pure, noisy = state or (FREE, FREE)
        if step.cost.epsilon is not None:
            pure += step.cost
        else:
            noisy += step.cost
        fits = pure.epsilon <= by.budget.epsilon and noisy.rho <= by.rho and (pure + noisy).delta <= by.steps_delta
        return (pure, noisy) if fits else None

    return after


LIES = [
    (reset_at_each_step, sharp_menu, "auto"),
    (convert_at_the_whole_delta, whole_delta_menu, "auto"),
    (convert_at_the_whole_delta, whole_delta_menu, "zcdp"),
    (leave_the_whole_delta_to_steps, sharp_menu, "auto"),
    (forget_deltas_under_zcdp, sharp_menu, "zcdp"),
    (forget_deltas_under_zcdp, sharp_menu, "auto"),
    (charge_a_quarter_of_the_square, many_menu, "zcdp"),
    (judge_before_the_step, sharp_menu, "basic"),
    (judge_before_the_step, many_menu, "basic"),
    (judge_before_the_step, sharp_menu, "zcdp"),
    (judge_before_the_step, sharp_menu, "auto"),
    (take_the_larger_of_both, sharp_menu, "auto"),
    (add_rhos_as_epsilons_may, sharp_menu, "auto"),
    (forget_the_delta_of_noise, noise_menu, "basic"),
    (forget_the_delta_of_noise, noise_menu, "auto"),
]


@pytest.mark.parametrize(("lie", "menu", "accountant"), LIES, ids=lambda each: getattr(each, "__name__", each))
def test_a_lie_is_caught(lie: Callable[[Filter], Admit], menu: Callable[[Filter], list[Step]], accountant: str):
    by = filter_of((F(1), F(1, 10), None), accountant)
    assert worst_either_way(menu(by), held(by), 1.0) <= 0.1 * ROUNDING
    assert worst_either_way(menu(by), lie(by), 1.0) > 0.1 * 1.001


# Parts of a partition: a unit that changes reads two of them


PARTS = {name: (Part("t", "c", name),) for name in "ab"}


def parts_menu(by: Filter) -> list[Step]:
    """Steps of one part each, both of which a unit that moves from a to b reads; and one that reads everything."""
    half = response(by.budget.epsilon / 2)
    noise = spike(*worst_spike(float(by.budget.epsilon), float(by.rho) or 0.1))
    return [
        *(replace(step, parts=parts) for step in (half, noise) for parts in PARTS.values()),
        catastrophe(by.budget.delta / 4),
    ]


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_a_unit_that_changes_parts_is_covered(accountant: str):
    by = filter_of((F(1), F(1, 10), None), accountant)
    menu = parts_menu(by)
    assert worst_either_way(menu, held_by_watch(by, moves=True), 1.0) <= 0.1 * ROUNDING
    assert worst_either_way(menu, held_by_watch(by, moves=False), 1.0) > 0.1, "as if it could not change parts"


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_a_unit_of_one_part_is_covered(accountant: str):
    """Steps of another part say nothing about it."""
    by = filter_of((F(1), F(1, 10), None), accountant)
    blind = [replace(step, other=step.one) if step.parts == PARTS["b"] else step for step in parts_menu(by)]
    assert worst_either_way(blind, held_by_watch(by, moves=False), 1.0) <= 0.1 * ROUNDING


# A ledger decides as the filter does


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_a_ledger_admits_what_filter_and_account_do(accountant: str, neighbours: Neighbours):
    rng = random.Random(3)
    for _ in range(3):
        budget = Budget(1, F(1, 10**5) if accountant == "zcdp" else rng.choice([F(0), F(1, 10**5)]))
        ledger = Ledger(Rules(budget, accountant, neighbours))
        by, moves = budget.filter(accountant), neighbours is Neighbours.BOUNDED
        state = None
        for _ in range(40):
            cost = random_cost(rng) if rng.random() < 0.5 else Cost.of(F(rng.randint(1, 40), 400))
            parts = (Part("t", "c", rng.choice("abc")),) if rng.random() < 0.6 else ()
            new = held_by_watch(by, moves=moves)(state, Step((), (), cost, parts))
            assert (ledger.after(cost, parts) is not None) == (new is not None)
            if new is None:
                with pytest.raises(BudgetExceeded):
                    ledger.charge(cost, "", parts=parts)
            else:
                ledger.charge(cost, "", parts=parts)
                state = new


# Costs


def random_cost(rng: random.Random) -> Cost:
    """A cost of any kind, of the size of a small budget's part."""
    epsilon = rng.choice([None, F(0), F(rng.randint(1, 30), 300), F(1, 3), F(1, 10)])
    delta = rng.choice([F(0), F(rng.randint(1, 9), 10**7)])
    hidden = delta * rng.choice([0, 1, F(1, 2)])
    return Cost(epsilon, delta, F(rng.randint(0, 20), 1000), hidden)


def coordinates(cost: Cost) -> tuple[Any, ...]:
    """With no finite epsilon as infinity."""
    return (float("inf") if cost.epsilon is None else cost.epsilon, cost.delta, cost.rho, cost.hidden)


def test_costs_add_up_coordinate_by_coordinate():
    rng = random.Random(1)
    for _ in range(300):
        a, b, c = (random_cost(rng) for _ in range(3))
        pairs = list(zip(coordinates(a), coordinates(b), strict=True))
        assert coordinates(a + b) == tuple(x + y for x, y in pairs)
        assert coordinates(a.join(b)) == tuple(max(x, y) for x, y in pairs)
        assert a + b == b + a
        assert (a + b) + c == a + (b + c)
        assert a.join(b) == b.join(a)
        assert a.join(a) == a
        assert (a + FREE, a.join(FREE)) == (a, a)
        assert a.join(b) + c == (a + c).join(b + c)
        n = rng.randint(1, 9)
        assert a.times(n) == sum([a] * n, FREE)
        assert a.free == (a == FREE)


def test_an_approximate_step_costs_its_numbers_in_both_coins():
    cost = Cost.of(F(1, 3), F(1, 10**6))
    assert coordinates(cost) == (F(1, 3), F(1, 10**6), F(1, 18), F(1, 10**6))
    assert cost.within(PrivacyLoss(F(1, 3), F(1, 10**6)))
    assert not cost.within(PrivacyLoss(F(333, 1000), F(1)))
    assert not Cost(None, rho=F(1, 10**9)).within(PrivacyLoss(F(10**9), F(1)))


@pytest.mark.parametrize(
    "numbers",
    [(F(-1), F(0), F(0), F(0)), (F(1), F(-1), F(0), F(0)), (F(1), F(0), F(-1), F(0)), (F(1), F(0), F(1), F(1, 2))],
)
def test_what_is_no_cost_is_refused(numbers: tuple[F, F, F, F]):
    with pytest.raises(InvalidPrivacyParameter):
        Cost(*numbers)


@pytest.mark.parametrize("numbers", [(1, F(0)), (F(1), 0.0), (0.5, F(0)), (F(1), F(0), 1)])
def test_a_cost_holds_fractions(numbers: Any):
    with pytest.raises(TypeError):
        Cost(*numbers)


def test_a_long_rho_is_rounded_up():
    """By less than 2^-200 each time, so that many different ones neither grow nor fall short."""
    primes = [n for n in range(2, 1000) if all(n % k for k in range(2, n))]
    exact, total = F(0), FREE
    for prime in primes:
        exact += F(1, prime) ** 2 / 2
        total += Cost.of(F(1, prime))
    assert total.rho.denominator.bit_length() <= 512
    assert exact <= total.rho <= exact + len(primes) * F(1, 2**200)


# Sums over parts


def by_definition(steps: Sequence[tuple[Cost, tuple[Part, ...]]], units: Sequence[tuple[frozenset[Part], ...]]) -> Cost:
    """The largest of each coordinate over all units, each the sum of the steps that read it; `units`: for each the
    parts that it is in, before and after."""
    sums = []
    for sides in units:
        read = [cost for cost, parts in steps if not parts or any(set(parts) & side for side in sides)]
        sums.append(sum(read, FREE))
    return reduce(Cost.join, sums, FREE)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_parts_add_up_as_units_lie_in_them(seed: int, bounded: bool):
    """Every unit in every part of two partitions (or in one that no step names); bounded: before and after, any two."""
    rng = random.Random(seed)
    cells = {c: [Part("t", c, v) for v in "abcz"] for c in "xy"}
    places = [frozenset(pair) for pair in itertools.product(cells["x"], cells["y"])]
    units = list(itertools.product(places, repeat=2)) if bounded else [(each,) for each in places]
    account, steps = Account(moves=bounded), []
    alone = True
    for _ in range(rng.randint(1, 12)):
        cost, parts = random_cost(rng), ()
        if rng.random() < 0.75:
            column = rng.choice("xy")
            size = rng.choice([1, 1, 1, 2, 3])
            alone &= size == 1
            parts = tuple(rng.sample(cells[column][:3], size))
        foreseen = account.at_most(cost, parts)
        account.add(cost, parts)
        steps.append((cost, parts))
        touched = [sides for sides in units if not parts or any(set(parts) & side for side in sides)]
        for found, whom in ((account.at_most(), units), (foreseen, touched)):
            expected = by_definition(steps, whom)
            assert all(x >= y for x, y in zip(coordinates(found), coordinates(expected), strict=True))
            if alone or not bounded:
                assert found == expected


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_step_is_admitted_only_if_every_unit_can_bear_it(seed: int, bounded: bool, accountant: str):
    """Each unit (bounded: each before and after) within the filter by its own sum; and with one partition and no moves
    between parts, that is enough."""
    rng = random.Random(seed)
    by = Filter(PrivacyLoss(F(1), F(1, 10**5)), accountant)
    columns = rng.choice(["x", "x", "xy"])
    cells = {c: [Part("t", c, v) for v in "abcz"] for c in columns}
    places = [frozenset(each) for each in itertools.product(*cells.values())]
    units = list(itertools.product(places, repeat=2)) if bounded else [(each,) for each in places]
    watch, steps = Watch(by, moves=bounded), []
    for _ in range(40):
        size = rng.choice([0, 1, 1, 1, 2])
        parts = tuple(rng.sample(cells[rng.choice(columns)][:3], size))
        cost = random_cost(rng) if rng.random() < 0.3 else Cost.of(F(rng.randint(1, 90), rng.choice([100, 2000])))
        new = [*steps, (cost, parts)]
        sums = {by_definition(new, [unit]) for unit in units}
        admitted = watch.admits(cost, parts)
        if not all(by.admits(each) for each in sums):
            assert not admitted
        elif not bounded and len(columns) == 1:
            assert admitted
        if admitted:
            watch.add(cost, parts)
            steps = new
    assert steps


# What is left


BARELY = F(1, 10**40)
FINE = 1 + F(1, 2**50)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("seed", range(12))
def test_what_remains_is_admitted_and_more_is_not(seed: int, accountant: str):
    rng = random.Random(seed)
    delta = rng.choice([F(1, 10**5), F(1, 10), F(1, 10**12)])
    conversion = None if accountant == "basic" else rng.choice([None, delta, delta / 7])
    by = Filter(PrivacyLoss(F(rng.randint(1, 40), 10), delta), accountant, conversion)
    total = FREE
    for _ in range(30):
        left = by.remaining(total)
        assert by.admits(total)
        assert by.admits(total + Cost.of(left.epsilon))
        more = left.epsilon + BARELY if accountant == "basic" else left.epsilon * FINE + BARELY
        assert not by.admits(total + Cost.of(more))
        if by.admits(total + Cost.of(left.epsilon + BARELY)):
            assert accountant != "basic"
        assert by.admits(total + Cost.of(F(0), left.delta))
        assert not by.admits(total + Cost.of(F(0), left.delta + BARELY))
        noise = Cost(None, rho=left.rho or F(0))
        if left.rho is None:
            assert not by.admits(total + Cost(None))
        else:
            assert by.admits(total + noise)
            assert not by.admits(total + Cost(None, rho=left.rho + BARELY))
        step = rng.choice([
            Cost.of(by.budget.epsilon * F(rng.randint(1, 9), 100)),
            Cost.of(left.epsilon * F(rng.randint(1, 3), 4)),
            Cost.of(left.epsilon / 3, left.delta / 2),
            Cost(None, rho=(left.rho or F(0)) / 2),
            Cost(by.budget.epsilon / 10, delta / 20, (left.rho or F(1)) / 9),
        ])  # fmt: skip
        if by.admits(total + step):
            total += step


@pytest.mark.parametrize("accountant", ["basic", "auto"])
def test_epsilon_is_spent_to_the_last_digit(accountant: str):
    by = Filter(PrivacyLoss(F(3, 10), F(1, 10**6)), accountant)
    assert by.admits(Cost.of(F(1, 10)).times(3))
    assert by.remaining(Cost.of(F(1, 10)).times(2)).epsilon == F(1, 10)
    assert by.remaining(Cost.of(F(1, 10)).times(3)).epsilon == 0


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("seed", range(10))
def test_what_was_spent_is_a_guarantee_within_the_budget(seed: int, accountant: str):
    """Beside the exact divergence of the same steps, not adaptively chosen: never less than the truth."""
    rng = random.Random(seed)
    delta = F(1, 10)
    by = Filter(PrivacyLoss(F(1), delta), accountant)
    menu = [response(F(1, 5)), response(F(1, 20)), gaussian(9.0, 3, 0.15), leaking(F(1, 10), F(1, 50))]
    total, one, other, taken = FREE, [1.0], [1.0], 0
    while taken < 6:
        step = rng.choice(menu)
        if not by.admits(total + step.cost):
            break
        total, taken = total + step.cost, taken + 1
        one = [a * b for a in one for b in step.one]
        other = [a * b for a in other for b in step.other]
        spent = by.spent(total)
        assert spent.epsilon <= by.budget.epsilon
        assert spent.delta <= delta
        assert spent.rho == total.rho
        assert either_way(one, other, float(spent.epsilon)) <= float(spent.delta) * ROUNDING + 1e-12
        left = by.remaining(total)
        assert spent.epsilon + left.epsilon >= 1 or accountant == "zcdp" or by.remaining(total).rho is not None


def test_nothing_spent_is_nothing():
    for accountant in ACCOUNTANTS:
        spent = Filter(PrivacyLoss(F(1), F(1, 10**5)), accountant).spent(FREE)
        assert (spent.epsilon, spent.delta, spent.rho) == (0, 0, 0)


# How many


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("seed", range(8))
def test_most_is_what_can_be_charged_one_by_one(seed: int, accountant: str):
    rng = random.Random(seed)
    budget = Budget(
        1, F(1, 10**5), analysts={"ann": Budget(F(1, 2), F(1, 2 * 10**5)), "*": Budget(F(1, 3), F(1, 10**6))}
    )
    for _ in range(5):
        ledger = Ledger(Rules(budget, accountant), analyst=rng.choice(["ann", "bob"]))
        cost = rng.choice([
            Cost.of(F(1, rng.randint(3, 120))),
            Cost(None, rho=F(1, rng.randint(100, 9000))),
            Cost.of(F(1, 50), F(1, 10**8)),
            Cost(F(1, 20), F(1, 10**7), F(1, 5000)),
            Cost.of(F(0), F(1, 10**7)),
        ])  # fmt: skip
        parts = rng.choice([(), (Part("t", "c", "a"),)])
        most = ledger.most(cost, parts)
        assert most is not None
        for _ in range(most):
            ledger.charge(cost, "", parts=parts)
        assert ledger.most(cost, parts) == 0
        with pytest.raises(BudgetExceeded):
            ledger.charge(cost, "", parts=parts)


def test_what_is_free_is_free_for_ever():
    assert Ledger(Rules(Budget(1))).most(FREE) is None

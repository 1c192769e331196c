"""Steps of the proofs in docs/proofs that no other test takes by itself: beside everything that can be enumerated."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpsql.core.conversion import delta_of_rho, epsilon_of, rho_for
from dpsql.core.unit import ContributionBound
from tests.core import unit_checks
from tests.core.checks import each_group_by_itself
from tests.core.test_unit_neighbours import people

U, B = "unbounded", "bounded"


def numbers_of_rows(bound: ContributionBound, groups: int) -> Iterator[tuple[int, ...]]:
    """How many rows a unit can have in each of so many groups."""
    for each in itertools.product(range(bound.per_group + 1), repeat=groups):
        if sum(each) <= bound.rows and sum(map(bool, each)) <= bound.groups:
            yield each


def test_the_norms_of_a_units_rows_are_those_of_all_choices():
    for limits in itertools.product(range(1, 7), range(1, 5), range(1, 5)):
        bound = ContributionBound(*limits)
        rows = list(numbers_of_rows(bound, bound.groups))
        assert bound.l1 == max(map(sum, rows)), limits
        assert bound.linf == max(map(max, rows)), limits
        assert bound.l2_squared == max(sum(c * c for c in each) for each in rows), limits
        assert bound.most_groups == max(sum(map(bool, each)) for each in rows), limits


@pytest.mark.parametrize(("limits", "expected"), [((4, 2, 3), Fraction(5, 4)), ((3, 3, 3), Fraction(5, 3))])
def test_rows_and_units_together_reach_further_than_either(limits: tuple[int, int, int], expected: Fraction):
    """Rows and units, scaled so that each alone reaches as far: a unit's rows can be in few of its groups."""
    bound = ContributionBound(*limits)
    row, unit = Fraction(1, bound.l1), Fraction(1, bound.most_groups)
    rows = numbers_of_rows(bound, bound.groups)
    assert expected == max(sum(max(row * c, unit) for c in each) for each in rows)

    said = dict(zip(("max_rows", "max_groups", "max_rows_per_group"), limits, strict=True))
    sql = "SELECT k, COUNT(*), COUNT(DISTINCT pid) FROM e GROUP BY k"
    for relation, times in ((U, 1), (B, 2)):
        with each_group_by_itself():
            made = unit_checks.planned(people().limited(**said), sql, relation)
        factors = sorted(abs(factor) for each in made.coordinates for _, factor in each.terms)
        alone = max(factors[0] * bound.l1, factors[-1] * bound.most_groups)
        assert Fraction(made.reach.cube_sensitivity, times * alone) == expected, relation


def test_counts_of_some_rows_less_half_of_all_reach_as_far_as_the_count():
    """A unit of so many rows, each counted or not, with old or new values, beside any values of others."""
    for most in (1, 2, 3):
        moved = [
            (len(flags), 2 * sum(flags) - len(flags))
            for size in range(most + 1)
            for flags in itertools.product((0, 1), repeat=size)
        ]
        assert max(max(map(abs, each)) for each in moved) == most
        changed = [(n - m, c - d) for (n, c), (m, d) in itertools.product(moved, repeat=2)]
        assert max(max(map(abs, each)) for each in changed) == 2 * most
        assert max(abs(n) for n, _ in changed) == most
        values = range(most + 1)
        for others in itertools.chain.from_iterable(itertools.combinations(values, k) for k in range(most + 1)):
            for size in range(most + 1):
                for own in itertools.product(values, repeat=size):
                    assert 0 <= len({*others, *own}) - len({*others}) <= size

        sql = "SELECT k, COUNT(*), COUNT(y), COUNT(DISTINCT y) FROM e GROUP BY k"
        for relation, times in ((U, 1), (B, 2)):
            made = unit_checks.planned(people().limited(max_rows=most), sql, relation)
            (factor,) = {abs(each.terms[0][1]) for each in made.coordinates if len(each.terms) == 1}
            assert [len(each.terms) for each in made.coordinates] == [1, 2, 2]
            assert made.reach.cube_sensitivity == factor * most * times


def test_the_noise_of_a_count_around_the_count_of_all_has_half_the_variance():
    noise = np.random.default_rng(5).laplace(size=(2, 10**6))
    assert abs(((noise[0] + noise[1]) / 2).var() / noise.var() - 0.5) < 0.01


def test_shifted_gaussians_have_the_divergence_of_continuous_ones_at_most():
    """The sum of exp(-(x - h)^2 / 2v) over the integers is largest at h = 0."""
    for variance in (0.05, 0.2, 1.0, 7.0):
        there = range(-60, 61)
        at_zero = math.fsum(math.exp(-x * x / (2 * variance)) for x in there)
        for h in np.linspace(0, 1, 21):
            assert math.fsum(math.exp(-((x - h) ** 2) / (2 * variance)) for x in there) <= at_zero * (1 + 1e-12)
    for variance, shift, order in itertools.product((0.5, 3.0), (1, 2), (1.1, 2.0, 3.5)):
        there = np.arange(-25.0, 26.0)
        logs = -(there**2) / (2 * variance)
        other = -((there - shift) ** 2) / (2 * variance)
        found = float(np.exp(order * logs + (1 - order) * other).sum() / np.exp(logs).sum())
        assert found <= math.exp(order * (order - 1) * shift**2 / (2 * variance)) * (1 + 1e-9)


def test_approximate_steps_have_parts_of_one_mass():
    """Page 8.2: parts of two laws that are (epsilon, delta)-close, of one mass, within e^epsilon both ways."""
    rng = np.random.default_rng(11)
    for _ in range(2_000):
        size, e = int(rng.integers(2, 7)), math.exp(rng.uniform(0.01, 3))
        p, q = rng.dirichlet(np.full(size, 0.4), 2)
        a, b = np.minimum(p, e * q), np.minimum(q, e * p)
        delta = 1 - min(a.sum(), b.sum())
        if a.sum() > b.sum():
            (p, a), (q, b) = (q, b), (p, a)
        assert (a <= e * b * (1 + 1e-12)).all()
        assert (b <= e * a * (1 + 1e-12)).all()
        start, end = a.sum() / e, b.sum()
        t = (a.sum() - start) / (end - start) if end > start else 0.0
        held = t * b + (1 - t) * a / e
        assert 0 <= t <= 1 + 1e-9
        assert abs(held.sum() - a.sum()) < 1e-9
        assert held.sum() >= 1 - delta - 1e-9
        assert (held <= q + 1e-12).all()
        assert (held <= e * a + 1e-12).all()
        assert (a <= e * held + 1e-12).all()
        for order in (1.2, 2.0, 6.0):
            moments = float((a**order * np.where(q > 0, q, 1.0) ** (1 - order)).sum())
            assert moments <= math.exp(order * (order - 1) * math.log(e) ** 2 / 2) * (1 + 1e-9)


def exact_delta(rho: Decimal, epsilon: Decimal) -> Decimal:
    """The bound of page 8.4 in 60 digits, at about the best order: any order gives a bound."""
    low, high = Decimal("1e-12"), (epsilon + 1) / (2 * rho) + 2

    def log_delta(less: Decimal) -> Decimal:
        order = 1 + less
        return less * (order * rho - epsilon) + less * less.ln() - order * order.ln()

    for _ in range(250):
        left, right = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (low, right) if log_delta(left) <= log_delta(right) else (left, high)
    return log_delta((low + high) / 2).exp()


@pytest.mark.parametrize("delta", ["0.5", "1e-3", "1e-6", "1e-12", "1e-50", "1e-100"])
@pytest.mark.parametrize("epsilon", ["1e-9", "1e-4", "0.01", "1", "10", "1e4", "1e9"])
def test_conversions_hold_in_many_digits(epsilon: str, delta: str):
    with localcontext() as context:
        context.prec = 60
        rho = rho_for(Fraction(epsilon), Fraction(delta))
        assert rho > 0
        assert exact_delta(Decimal(rho.numerator) / Decimal(rho.denominator), Decimal(epsilon)) <= Decimal(delta)
        back = epsilon_of(rho, Fraction(delta))
        assert back <= Fraction(epsilon) * Fraction(101, 100)
        exact_back = Decimal(back.numerator) / Decimal(back.denominator)
        assert exact_delta(Decimal(rho.numerator) / Decimal(rho.denominator), exact_back) <= Decimal(delta)


def test_the_mass_above_is_bounded_at_every_order():
    """Page 8.4 for random parts of laws."""
    rng = random.Random(3)
    for _ in range(500):
        size = rng.randint(2, 6)
        q = np.array([rng.random() for _ in range(size)])
        part = np.array([rng.random() for _ in range(size)])
        q, part = q / q.sum(), part / part.sum() * rng.uniform(0.5, 1)
        epsilon, order = rng.uniform(0, 2), rng.uniform(1.01, 8)
        above = float(np.maximum(part - math.exp(epsilon) * q, 0).sum())
        moment = float((part**order * q ** (1 - order)).sum())
        bound = moment * math.exp(-(order - 1) * epsilon) * (1 - 1 / order) ** order / (order - 1)
        assert above <= bound * (1 + 1e-9)
    assert delta_of_rho(0.5, 1.0) <= 1

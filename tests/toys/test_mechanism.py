"""A new mechanism is a class in dpsql/core/mechanisms/noise.py (draw, tail, loss) with its half-widths registered in
dpsql/accuracy/widths.py and its form in dpsql/session/cache/canonical_forms.py. Here a toy one, in place of Laplace
noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.accuracy.widths import half_width, half_widths
from dpsql.core.mechanisms.noise import SplitLaplace
from dpsql.errors import InternalError
from dpsql.release import calibrate
from dpsql.session import prepare
from dpsql.session.cache import canonical_forms
from dpsql.session.cache.canonical_text import form
from dpsql.testing import insecure_draws, insecure_exact
from tests.core.test_audit import certified_epsilon


@dataclass(frozen=True, slots=True)
class TwiceLaplace:
    """Two independent draws of discrete Laplace noise, added.

    Privacy: that of the first draw; whatever is added to what it made private is post-processing (Dwork, Roth 2014,
    proposition 2.1).
    """

    once: SplitLaplace

    @classmethod
    def calibrate(cls, reach: Any, epsilon: Fraction) -> TwiceLaplace:
        return cls(SplitLaplace.calibrate(reach, epsilon))

    @property
    def dimension(self) -> int:
        return self.once.dimension

    @property
    def name(self) -> str:
        return "discrete_laplace_twice"

    @property
    def scale(self) -> float:
        return self.once.scale

    @property
    def spread(self) -> float:
        return 2 * self.once.spread

    def draw(self, cells: int) -> Any:
        return self.once.draw(cells) + self.once.draw(cells)

    def upper_tail(self, t: int) -> Decimal:
        """One of the two has to reach half of it."""
        return min(Decimal(1), 2 * self.once.upper_tail(max(1, math.ceil(t / 2))))

    def loss(self, reach: Any) -> Any:
        return self.once.loss(reach)


def width(noise: TwiceLaplace, level: float) -> float:
    return float(half_widths(_both(noise), np.ones((2, 1)), level)[0])


def widths(noise: TwiceLaplace, weights: Any, level: float) -> Any:
    return half_widths(_both(noise), np.concatenate([weights, weights]), level)


def _both(noise: TwiceLaplace) -> SplitLaplace:
    """The law of the two draws side by side: coordinates of Laplace noise are independent."""
    return SplitLaplace(noise.once.exact_scale, 2 * noise.dimension)


def choose(monkeypatch: pytest.MonkeyPatch, law: type) -> None:
    monkeypatch.setattr(calibrate, "_laplace", lambda _lattice, _reach, _strategy: law)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In place of Laplace noise, where dpsql/release/calibrate.py chooses its law."""
    choose(monkeypatch, TwiceLaplace)
    monkeypatch.setitem(canonical_forms.FORMS, TwiceLaplace, form("laplace twice", "once"))
    prepare._cache.clear()
    yield
    prepare._cache.clear()


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    """For the life of the process: nothing else asks for this class."""
    if TwiceLaplace not in half_width.registry:
        with pytest.raises(TypeError, match="no law of noise"):
            half_width(TwiceLaplace(SplitLaplace(Fraction(1), 1)), 0.95)
        half_width.register(TwiceLaplace, width)
        half_widths.register(TwiceLaplace, widths)


FRAME = pd.DataFrame({"g": ["a", "b"] * 500, "x": [1.0, 3.0, 2.0, 4.0] * 250})


def session(frame: pd.DataFrame = FRAME) -> dpsql.Session:
    table = dpsql.Table(frame, bounds={"x": (0, 4)}, keys={"g": ["a", "b"]})
    return dpsql.Session({"t": table}, budget=dpsql.Budget(10, 1e-6))


@pytest.mark.usefixtures("chosen")
def test_a_release_uses_it():
    held = session()
    sql = "SELECT COUNT(*) AS n FROM t"
    for each, words in ((sql, "+ discrete_laplace_twice"), ("SELECT AVG(x) FROM t", "2 sums with")):
        explained = held.explain(each, epsilon=0.5)
        assert {one["mechanism"] for one in explained.to_dict()["releases"]} == {"discrete_laplace_twice"}
        assert words in str(explained)
    drawn = insecure_draws(held, sql, 3_000, epsilon=0.5)["n"]
    a = math.exp(-0.5)
    variance = 2 * (2 * a / (1 - a) ** 2)
    assert abs(drawn.mean() - 1000) < 5 * math.sqrt(variance / 3_000)
    assert abs(drawn.var() - variance) < 0.25 * variance
    assert held.spent.epsilon == 0
    held.query(sql, epsilon=0.5)
    assert held.spent.epsilon == 0.5  # what one of the two draws costs


@pytest.mark.usefixtures("chosen")
def test_its_answers_have_intervals_that_hold():
    for sql, exact in (
        ("SELECT COUNT(*) AS v FROM t", [1000]),
        ("SELECT g, COUNT(*) AS v FROM t GROUP BY g", [500, 500]),
        ("SELECT g, AVG(x) AS v FROM t GROUP BY g", [1.5, 3.5]),
        ("SELECT SUM(x) AS v FROM t", [2500]),
    ):
        inside = []
        for _ in range(100):
            limits = session().query(sql, epsilon=0.02).to_pandas(intervals=True)
            inside += list((limits["v_low"] <= exact) & (exact <= limits["v_high"]))
        assert np.mean(inside) > 0.88, sql


@pytest.mark.usefixtures("chosen")
def test_an_answer_of_it_is_given_again_free():
    held = session()
    first, second = (held.query("SELECT AVG(x) AS m FROM t", epsilon=1) for _ in range(2))
    assert first.df.equals(second.df)
    assert held.spent.epsilon == 1


@pytest.mark.usefixtures("chosen")
def test_the_audit_holds_it_to_its_cost():
    sql = "SELECT COUNT(*) AS n FROM t"
    tables = (FRAME.iloc[:3], FRAME.iloc[:4])
    assert [insecure_exact(session(each), sql, bytes(32), epsilon=1).parts for each in tables] == [
        {(): (3,)},
        {(): (4,)},
    ]
    draws = [insecure_draws(session(each), sql, 4_000, epsilon=1)["n"].to_numpy(float) for each in tables]
    assert 0.2 < certified_epsilon(*(each[None, :] for each in draws), confidence=0.9999) <= 1


@pytest.mark.usefixtures("chosen")
def test_without_its_widths_a_query_is_refused_before_it_is_charged(monkeypatch: pytest.MonkeyPatch):
    @dataclass(frozen=True, slots=True)
    class Unregistered(TwiceLaplace):
        pass

    law = SplitLaplace(Fraction(1), 1)

    class Bare:
        """The same, but no kind of TwiceLaplace."""

        def __init__(self, once: SplitLaplace) -> None:
            self._law = TwiceLaplace(once)

        @classmethod
        def calibrate(cls, reach: Any, epsilon: Fraction) -> Bare:
            return cls(SplitLaplace.calibrate(reach, epsilon))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._law, name)

    assert half_width(Unregistered(law), 0.95) == half_width(TwiceLaplace(law), 0.95)
    choose(monkeypatch, Bare)
    held = session()
    with pytest.raises(InternalError, match="as a trial over made-up rows shows"):
        held.query("SELECT COUNT(*) AS n FROM t", epsilon=1)
    assert held.ledger() == ()

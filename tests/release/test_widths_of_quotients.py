"""Intervals of quotients whose noise comes in classes: near those of each angle, and not too long to find."""

from __future__ import annotations

import numpy as np
import pytest

from dpsql.accuracy import classes
from dpsql.release.intervals import widths
from dpsql.release.intervals.widths import Chords, half_widths
from tests.sql.statement_grammar import fuzz_session

SQL = "SELECT sex AS k, SKEWNESS(age) AS n, HISTOGRAM(FLOOR(age / 10)) AS a FROM people GROUP BY k"


def quoted(monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[float]]:
    """How many combinations were convolved for a plan, and how much wider than need be its chords were."""
    calls = 0
    found = classes._of_column
    wider: list[float] = []

    def counted(*arguments: object) -> float:
        nonlocal calls
        calls += 1
        return found(*arguments)  # type: ignore[arg-type]

    def of(release: object, places: object, above: object, below: object, level: float) -> Chords:
        chords = made(release, places, above, below, level)  # type: ignore[arg-type]
        if not wider:
            angles = np.random.default_rng(1).uniform(-np.pi / 2, np.pi / 2, 12)
            weights = above[:, None] * np.cos(angles) - below[:, None] * np.sin(angles)  # type: ignore[index]
            wider.extend(chords.at(angles) / half_widths(release, places, weights, level))  # type: ignore[arg-type]
        return chords

    made = Chords.of
    monkeypatch.setattr(classes, "_of_column", counted)
    monkeypatch.setattr(widths.Chords, "of", of)
    fuzz_session().quote(SQL, epsilon=1)
    return calls, wider


def test_chords_of_classes_are_few_and_near(monkeypatch: pytest.MonkeyPatch):
    calls, wider = quoted(monkeypatch)
    assert 0 < calls <= 200, "each takes milliseconds, and planning has five seconds"
    assert max(wider) <= 1.006
    assert min(wider) >= 0.995, "both are safe, and rounded to grids of 0.5 %"

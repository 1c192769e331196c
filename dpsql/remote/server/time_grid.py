"""Time grid: the points at which answers may be seen.

Each point is twice the one before. An answer is seen at the first point after its run and a random delay, so that one
person's rows hardly change the probability of any point (`core.response_time`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

from dpsql.core.response_time import LEAST_REACH
from dpsql.session.server_settings import ServerWords


def seen_at(
    grid: float, elapsed: float, reach: int | None, words: ServerWords | None, ahead: Sequence[int] = ()
) -> float:
    """Return the point, in seconds since the query arrived. Draws the delay: call it once for an answer.

    elapsed: seconds until the run ended; reach: microseconds by which one privacy unit may change the run, None for a
    share that cannot pay for a delay; words: None if no delay is drawn; ahead: the reaches of runs that this one may
    have waited for (`RunQueue`)."""
    return _first_point(grid, elapsed if words is None else _delayed(elapsed, reach, words, ahead))


def _delayed(elapsed: float, reach: int | None, words: ServerWords, ahead: Sequence[int]) -> float:
    time = words.response_time(Fraction(1))
    if time is None or reach is None:  # seen after the deadlines of all these runs: depends only on their number
        return max(elapsed, (1 + len(ahead)) * words.deadline)
    return elapsed + time.draw(reach + sum(max(LEAST_REACH, each) for each in ahead)) / 1_000_000


def _first_point(grid: float, elapsed: float) -> float:
    point = grid
    while point < elapsed:
        point *= 2
    return point


class RunQueue:
    """Runs from the moment at which they may begin until their answers are seen. Workers serve in order of arrival, so
    a longer run makes later ones end later: their delay hides it, too."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._reaches: list[int] = []

    @contextmanager
    def of(self, reach: int) -> Iterator[tuple[int, ...]]:
        """Add a run, and yield the reaches of the runs that it may have to wait for."""
        ahead = self.ahead()
        self._reaches.append(reach)
        try:
            yield ahead
        finally:
            self._reaches.remove(reach)

    def ahead(self) -> tuple[int, ...]:
        """Return the unseen runs ahead of a new run. Whether one has ended must remain secret until its answer is seen;
        if they take fewer than all places, one is free."""
        return () if len(self._reaches) < self._places else tuple(self._reaches)

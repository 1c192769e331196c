"""Total cost of releases: comparison of accountants, privacy losses as values, and group privacy.

    from dpsql.accounting import Gaussian, Laplace, compare
    compare([Gaussian(sigma=200, count=100), Laplace(scale=20, count=10)], delta=1e-5)

Every epsilon and delta is an upper bound. A value that an accountant cannot prove is NaN. The numbers hold for steps
fixed beforehand; sessions, which choose queries by earlier answers, use a privacy filter instead.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from contextlib import closing
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from dpsql.accounting import accountants, side_by_side
from dpsql.accounting import gaussian_curve as gaussian
from dpsql.accounting import groups as grouping
from dpsql.accounting.losses import RDP, ZCDP, ApproxDP, PureDP
from dpsql.core.events import (
    ApproximateStep,
    Concentrated,
    Event,
    Gaussian,
    Laplace,
    Number,
    Pure,
    Steps,
    positive,
    whole,
)
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.lines import Entry
from dpsql.core.loss import as_delta, exact
from dpsql.core.rounding import above, below, raised
from dpsql.core.unit import Neighbours
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, LedgerError
from dpsql.schema.argument_names import checked_names

__all__ = [
    "RDP",
    "ZCDP",
    "ApproxDP",
    "ApproximateStep",
    "Concentrated",
    "Event",
    "Gaussian",
    "Laplace",
    "Pure",
    "PureDP",
    "accept_clock",
    "advanced",
    "basic",
    "classic_gaussian_sigma",
    "compare",
    "delta_of",
    "export_ledger",
    "gaussian_delta",
    "gaussian_epsilon",
    "group_privacy",
    "kov",
    "pld",
    "rdp",
    "rdp_at",
    "read_ledger",
    "zcdp",
    "zcdp_classic",
]


@checked_names
def compare(events: Any, delta: Number) -> pd.DataFrame:
    """Return the total epsilon at delta by every accountant: index "accountant", column "epsilon".

    Parameters
    ----------
    events : events, ledger entries or session
        Events, or objects whose attribute `events` is a tuple of events, or an object with a ledger, or a single one of
        these. For a session with unbounded neighbours, steps that read parts of one declared partition count once, by
        the most expensive part; otherwise all steps count.
    delta : number

    Raises
    ------
    InvalidPrivacyParameter
        For a delta outside [0, 1).
    InvalidArgument
        For anything that is not an event.
    """
    slack = as_delta(delta)
    ways = [Steps.of(way) for way in _ways(events)]
    epsilons = {
        name: float(np.max([each(steps, slack) for steps in ways]))  # NaN if one of them is
        for name, each in side_by_side.ACCOUNTANTS.items()
    }
    return _frame(epsilons, "accountant")


@checked_names
def basic(events: Any, delta: Number) -> float:
    """Return the sum of the epsilons; see `dpsql.accounting.accountants.basic`."""
    return accountants.basic(*_read(events, delta))


@checked_names
def advanced(events: Any, delta: Number) -> float:
    """Return epsilon by advanced composition; see `dpsql.accounting.accountants.advanced`."""
    return accountants.advanced(*_read(events, delta))


@checked_names
def kov(events: Any, delta: Number) -> float:
    """Return epsilon by optimal composition of equal epsilons; see `dpsql.accounting.accountants.kov`."""
    return accountants.kov(*_read(events, delta))


@checked_names
def zcdp_classic(events: Any, delta: Number) -> float:
    """Return epsilon by zCDP with its first conversion; see `dpsql.accounting.accountants.zcdp_classic`."""
    return accountants.zcdp_classic(*_read(events, delta))


@checked_names
def zcdp(events: Any, delta: Number) -> float:
    """Return epsilon by zCDP with the tight conversion; see `dpsql.accounting.accountants.zcdp`."""
    return accountants.zcdp(*_read(events, delta))


@checked_names
def rdp(events: Any, delta: Number) -> float:
    """Return epsilon by Renyi DP at its best order; see `dpsql.accounting.accountants.rdp`."""
    return accountants.rdp(*_read(events, delta))


@checked_names
def rdp_at(events: Any, delta: Number, alpha: float, *, conversion: str = "tight") -> float:
    """Return epsilon by Renyi DP at the order alpha; see `dpsql.accounting.accountants.rdp_at`."""
    return accountants.rdp_at(*_read(events, delta), alpha, conversion=conversion)


@checked_names
def pld(events: Any, delta: Number) -> float:
    """Return epsilon by the privacy loss distribution; see `dpsql.accounting.side_by_side.pld`."""
    return side_by_side.pld(*_read(events, delta))


@checked_names
def delta_of(events: Any, epsilon: Number) -> float:
    """Return the least delta at epsilon >= 0 by the privacy loss distribution. Events as for `compare`.

    Raises
    ------
    InvalidPrivacyParameter, InvalidArgument
    """
    return side_by_side.delta_of(Steps.of(_events(events)), _epsilon(epsilon))


@checked_names
def gaussian_epsilon(sigma: Number, delta: Number, sensitivity: Number = 1) -> float:
    """Return the least epsilon at delta of one continuous Gaussian (Balle, Wang 2018, theorem 8), rounded up.

    Raises
    ------
    InvalidPrivacyParameter
        Also for a delta outside (0, 1).
    """
    return gaussian.epsilon_of(_mu(sigma, sensitivity), below(_positive_delta(delta)))


@checked_names
def gaussian_delta(sigma: Number, epsilon: Number, sensitivity: Number = 1) -> float:
    """Return the least delta at epsilon >= 0 of one continuous Gaussian (Balle, Wang 2018, theorem 8), rounded up.

    Raises
    ------
    InvalidPrivacyParameter
    """
    return gaussian.delta_of(_mu(sigma, sensitivity), below(_epsilon(epsilon)))


@checked_names
def classic_gaussian_sigma(epsilon: Number, delta: Number, sensitivity: Number = 1) -> float:
    """Return sensitivity sqrt(2 ln(1.25/delta))/epsilon (Dwork, Roth 2014, theorem A.1), rounded up: for teaching,
    since the exact curve needs less noise.

    Raises
    ------
    InvalidPrivacyParameter
        Also for epsilon > 1, for which the formula is not proved.
    """
    slack, cost = _positive_delta(delta), positive(epsilon, "epsilon")
    if cost > 1:
        raise InvalidPrivacyParameter(
            f"the classic calibration is proved up to epsilon 1, got {epsilon}.",
            hint="Search sigma with gaussian_epsilon, whose curve holds for every epsilon.",
        )
    return raised(above(positive(sensitivity, "sensitivity") / cost) * math.sqrt(2 * math.log(1.25 / below(slack))))


@checked_names
def group_privacy(event: Event, size: int, delta: Number) -> pd.DataFrame:
    """Return the epsilon of an event for `size` people together, at delta, by every rule: index "rule", column
    "epsilon".

    Raises
    ------
    InvalidPrivacyParameter, InvalidArgument
    """
    if not isinstance(event, Event):
        raise InvalidArgument(f"{event!r} is no event.", hint=_WHAT)
    return _frame(grouping.compared(event, whole(size, "size"), as_delta(delta)), "rule")


def _frame(values: dict[str, float], name: str) -> pd.DataFrame:
    return pd.DataFrame({"epsilon": list(values.values())}, index=pd.Index(list(values), name=name), dtype="float64")


_WHAT = "Give events such as Laplace(scale=20), Gaussian(sigma=200, count=100), Pure(0.1), or a session's ledger."


def _read(events: Any, delta: Number) -> tuple[Steps, Fraction]:
    return Steps.of(_events(events)), as_delta(delta)


def _events(source: Any) -> list[Event]:
    """Return the events of an object that holds some. Raises InvalidArgument."""
    if isinstance(source, Event):
        return [source]
    if hasattr(source, "ledger"):
        source = source.ledger() if callable(source.ledger) else source.ledger
    if hasattr(source, "events"):
        source = source.events
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise InvalidArgument(f"{source!r} holds no events.", hint=_WHAT)
    events: list[Event] = []
    for each in source:
        parts = [each] if isinstance(each, Event) else getattr(each, "events", None)
        if not isinstance(parts, list | tuple) or not all(isinstance(part, Event) for part in parts):
            raise InvalidArgument(f"{each!r} is no event.", hint=_WHAT)
        events += parts
    return events


MOST_PARTS = 50
"""Most parts of a partition for which totals are computed separately."""


def _ways(source: Any) -> list[list[Event]]:
    """Return, for each part of a partition, the events that one person's data can have been in; all events, if the
    source has no parts or too many."""
    if getattr(source, "neighbours", None) != Neighbours.UNBOUNDED or not callable(getattr(source, "ledger", None)):
        return [_events(source)]
    entries = source.ledger()
    parts = {part for entry in entries for part in entry.parts}
    if not 0 < len(parts) <= MOST_PARTS or len({(part.table, part.column) for part in parts}) > 1:
        return [_events(entries)]
    return [_events([entry for entry in entries if not entry.parts or part in entry.parts]) for part in parts]


@checked_names
def read_ledger(path: str | os.PathLike[str], *, anchor: str | None = None) -> tuple[Entry, ...]:
    """Return the charges in a ledger's file, after checking all its hashes. Raises LedgerError."""
    with closing(_existing(path, anchor)) as ledger:
        return ledger.entries


@checked_names
def export_ledger(path: str | os.PathLike[str], *, anchor: str | None = None) -> str:
    """Return a ledger's file as JSON: rules, lines with hashes, numbers as exact fractions. Raises LedgerError."""
    with closing(_existing(path, anchor)) as ledger:
        return ledger.to_json()


@checked_names
def accept_clock(path: str | os.PathLike[str]) -> None:
    """Record in a ledger's file that the current clock is right, although the last entry has a later time. For its
    owner, after the clock was wrong. Raises LedgerError."""
    with closing(_existing(path, None)) as ledger:
        ledger.accept_clock()


def _existing(path: str | os.PathLike[str], anchor: str | None) -> Ledger:
    from dpsql.core.ledger.file import open_ledger, rules_of

    rules = rules_of(path)
    if rules is None:
        raise LedgerError(f"there is no ledger {os.fspath(path)}.")
    return open_ledger(path, rules, anchor=anchor, owner=True)


def _epsilon(value: object) -> Fraction:
    number = exact(value, "epsilon")
    if number < 0:
        raise InvalidPrivacyParameter(f"epsilon must be at least 0, got {value}.")
    return number


def _positive_delta(value: object) -> Fraction:
    delta = as_delta(value)
    if not delta:
        raise InvalidPrivacyParameter("delta must be above 0: no Gaussian is purely private.")
    return delta


def _mu(sigma: Number, sensitivity: Number) -> float:
    return above(positive(sensitivity, "sensitivity") / positive(sigma, "sigma"))

"""The time of a ledger's lines: never before that of the last line, so that times have the order of lines."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from dpsql.errors import LedgerError

CLOCK_TOLERANCE = timedelta(seconds=1)
"""The clock may lie behind the last entry by this much: the clocks of two processors can differ a little."""
_MOMENT = "%Y-%m-%dT%H:%M:%S.%fZ"


def now() -> datetime:
    return datetime.now(UTC)


def text_of(moment: datetime) -> str:
    """Return ISO 8601 with microseconds, so that texts sort as moments do."""
    return moment.astimezone(UTC).strftime(_MOMENT)


def age(moment: str) -> float:
    """Return the seconds since a line was written; infinite for a text that is not a moment, which no version wrote."""
    try:
        return (now() - datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC)).total_seconds()
    except ValueError:
        return math.inf


def next_time(last: str) -> str:
    """Return the time of a new line. last: the latest time so far, "" if there is none. Raises LedgerError if the clock
    went backwards."""
    moment = now()
    if last and text_of(moment + CLOCK_TOLERANCE) < last:
        raise LedgerError(
            f"the clock went backwards: it says {text_of(moment)}, and the ledger's last entry is of {last}.",
            hint="Nothing was run, nothing was charged. Put the clock right. If it was the entry's that was\n"
            "wrong, say so once: dpsql.accounting.accept_clock(path).",
        )
    return max(text_of(moment), last)

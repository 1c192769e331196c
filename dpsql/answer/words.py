"""Words that explanations and answers share: the unit, what is hidden, numbers cut to size."""

from __future__ import annotations

import math
import textwrap
from bisect import bisect_left

from dpsql.core.loss import show
from dpsql.plan.expressions import Literal
from dpsql.plan.nodes import scans_of
from dpsql.release.release import Release
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval

WIDEST = 100
_MOST_LINES = 12


def unit_of(release: Release) -> str | None:
    """The declared unit, by the column that holds it; None where each row is one."""
    if not release.analysis.bounds.declared:
        return None
    tables = [scan.table for scan in scans_of(release.query.plan.input)]
    return next(table.unit.owner for table in tables if table.unit is not None)


def hidden_groups(release: Release) -> str:
    """A phrase on how likely small groups are shown: at the threshold, and at twice that size."""
    if release.selector is not None:
        sizes = range(1, release.selector.law.certain + 1)  # the chance never falls: halved, as there may be millions
        near = sizes[bisect_left(sizes, 0.5, key=lambda size: release.chance_shown(size) or 0)]
    else:
        near = math.ceil(threshold_of(release) or 1)
    first, second = (percent(release.chance_shown(size)) for size in (near, 2 * near))
    of = "people" if unit_of(release) else "rows"
    return f"small groups are hidden (one of {near} {of} is shown {first} of the time, one of {2 * near}: {second})"


def numbered(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def threshold_of(release: Release) -> float | None:
    """The threshold in rows, or in units where those are counted."""
    return None if release.threshold is None else release.threshold / release.lattice.one_row


def strategy_word(release: Release) -> str:
    if not release.hides:
        return "PUBLIC_GROUPS"
    if release.selector is not None:
        return "TRUNCATED_GEOMETRIC"
    gaussian = release.noise is not None and release.noise.name == "discrete_gaussian"
    return "GAUSSIAN_THRESHOLD" if gaussian else "LAPLACE_THRESHOLD"


def delta_of(release: Release) -> str:
    return f"delta {show(release.cost.delta)}"


def percent(share: float | None) -> str:
    percent = 100 * (share or 0.0)
    return f"{percent:.3g} %" if percent < 99.95 else "100 %" if percent > 99.9999 else f"{percent:.4f} %"


def shown(kind: Type, held: Interval) -> str:
    ends = [str(Literal(int(end), kind)) for end in (held.lower, held.upper)] if kind.temporal else []
    return f"[{', '.join(ends)}]" if ends else str(held)


def wrapped(text: str) -> list[str]:
    """A step on as many lines of a terminal as it needs; the end of one that needs very many is left to `plan`."""
    if len(text) <= WIDEST:
        return [text]
    return textwrap.wrap(
        text, WIDEST, subsequent_indent="  ", break_on_hyphens=False, max_lines=_MOST_LINES, placeholder=" ..."
    )


def short(name: str) -> str:
    return name if len(name) <= 24 else name[:21] + "..."

"""The key of a question: two texts that ask the same thing in the same way have one, and no two others.

Everything that decides what is released goes in: the plan with its tables' declared facts and versions, the integers
that are wanted of the rows, which combinations of them have which noise, how groups are shown, values drawn and bounds
chosen, what is charged, and what the released values mean for the answer. Places in the text do not, nor what is done
with released values afterwards.

Nothing here is named by how this version holds a release (`_measured` is the one place that knows, with what each
measurement says of itself, `Said.asked`): keys are in ledgers that people keep, and a version that holds it otherwise
makes the same ones.
"""

from __future__ import annotations

from typing import Any

from dpsql.plan.expressions import Column
from dpsql.plan.nodes import Scan
from dpsql.release.release import Release
from dpsql.schema.columns import TableSchema
from dpsql.session.cache.canonical_forms import FORMS, NAMES
from dpsql.session.cache.canonical_names import CanonicalNames
from dpsql.session.cache.canonical_text import NoCanonicalForm, Writer

KEY_VERSION = 2
"""The number of the way in which keys are made; those of version 1 had none."""

_KNOWN = "_canonical"


def canonical(release: Release, *more: str | TableSchema | None) -> str | None:
    """The key of what is released and of `more`, its version first; None where something in it has no canonical
    form."""
    return _key(digest_of(release), more)


def canonical_by_aliases(release: Release, *more: str | TableSchema | None) -> str | None:
    """The key that a release had while keys depended on the aliases of the text; None if that is `canonical`."""
    if CanonicalNames(release.query.plan.input).is_empty:
        return None
    try:
        digest = Writer(FORMS, NAMES).digest(_measured(release))
    except (NoCanonicalForm, RecursionError):
        return None
    return _key(digest, more)


def _key(digest: bytes, more: tuple[str | TableSchema | None, ...]) -> str | None:
    if not digest:
        return None
    try:
        key = Writer(FORMS, NAMES).digest((digest.hex(), more))
    except (NoCanonicalForm, RecursionError):
        return None
    return f"{KEY_VERSION}:{key.hex()}"


def digest_of(release: Release) -> bytes:
    """What is released, as 32 bytes; none where something in it has no canonical form."""
    known: bytes | None = release.__dict__.get(_KNOWN)
    if known is None:
        names = CanonicalNames(release.query.plan.input)
        try:
            known = Writer(FORMS, NAMES, {Scan: names.scan, Column: names.column}).digest(_measured(release))
        except (NoCanonicalForm, RecursionError):
            known = b""
        take_digest(release, known)
    return known


def take_digest(release: Release, digest: bytes) -> None:
    """A release is planned once and asked for often. digest: as of `digest_of`."""
    object.__setattr__(release, _KNOWN, digest)


def _measured(release: Release) -> tuple[object, ...]:
    """What decides the law of what is released, and what the values mean: words and facts, in turn."""
    lattice, told = release.lattice, [each.asked for each in release.measurements]
    noise, levels, heights, laws, draws, searches = (
        tuple[Any, ...](each for word, each in told if word == wanted)
        for wanted in ("noise", "levels", "threshold", "chance", "draws", "bounds")
    )
    return (
        "plan",
        release.query.plan,
        "neighbours",
        release.analysis.neighbours,
        "exact",
        release.exact,
        "coordinates",
        lattice.coordinates,
        "noise",
        noise,
        "levels",
        _first(levels),
        "groups",
        (_first(heights), _first(laws)),
        "draws",
        draws,
        "bounds",
        _first(tuple((*each, release.strategy) for each in searches)),
        "values",
        (lattice.features, lattice.estimates),
        "cost",
        (release.cost, release.allowed),
    )


def _first(told: tuple[Any, ...]) -> Any:
    return next(iter(told), None)


def explain(release: Release) -> str:
    """Why a release has no key; empty where it has one. For tests."""
    try:
        Writer(FORMS, NAMES).digest(_measured(release))
    except (NoCanonicalForm, RecursionError) as error:
        return str(error) or type(error).__name__
    return ""


__all__ = ["KEY_VERSION", "canonical", "canonical_by_aliases", "digest_of", "explain", "take_digest"]

"""The key of a question: equal exactly for texts that ask the same thing in the same way.

Included is everything that decides what is released: the plan with its tables' declared facts and versions, the exact
integers, noise and its combinations, partition selection, selected values and chosen bounds, the cost, and the meaning
of the released values for the answer. Excluded are places in the text and post-processing.

Keys do not depend on the classes of this version: they are in existing ledgers, and a later version with other classes
must make the same keys. Only `_measured` knows the classes, with each measurement's `asked`.
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
"""Version of the key format; keys of version 1 had no number."""

_KNOWN = "_canonical"


def canonical(release: Release, *more: str | TableSchema | None) -> str | None:
    """Return the key of the release and of `more`, its version first; None if a part has no canonical form."""
    return _key(digest_of(release), more)


def canonical_by_aliases(release: Release, *more: str | TableSchema | None) -> str | None:
    """Return the release's key from when keys depended on the aliases of the text; None if it equals `canonical`."""
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
    """Return the release as 32 bytes; empty if a part has no canonical form."""
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
    """Store the digest of a release, as by `digest_of`. A release is planned once and asked for often."""
    object.__setattr__(release, _KNOWN, digest)


def _measured(release: Release) -> tuple[object, ...]:
    """Return what determines the distribution and the meaning of the released values: alternating words and facts."""
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
    """Return why a release has no key; "" if it has one. For tests."""
    try:
        Writer(FORMS, NAMES).digest(_measured(release))
    except (NoCanonicalForm, RecursionError) as error:
        return str(error) or type(error).__name__
    return ""


__all__ = ["KEY_VERSION", "canonical", "canonical_by_aliases", "digest_of", "explain", "take_digest"]

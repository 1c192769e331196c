"""The keyed hash that selects the kept rows of a privacy unit, and its inputs; the same for every engine.

The hash is a polynomial over the field of p = 2^31 - 1 elements: for limbs v1, v2, ... below p, h = (h k + v) mod p,
followed by a keyed cubic. Two lanes with separate keys make one number below 2^62. Only sums, products and remainders
of non-negative integers below 2^63 occur, so NumPy and any SQL engine give the same result, and no row can overflow.

Privacy never depends on the quality of the hash. The hash of a row's contribution is a function of that row and the
key, so the selection within one unit reveals nothing about another. Only fairness, that every row of a unit is equally
likely to be kept, rests on the mixing. A monic cubic with three random coefficients takes any three different points to
independent values (Carter and Wegman, "Universal classes of hash functions", 1979). Different rows are different points
except for about n / p of the keys, with n the number of limbs.
"""

from __future__ import annotations

import hashlib
from enum import Enum
from math import ldexp

from dpsql.core.exact import (
    CountRows,
    Edges,
    ExactPlan,
    GridCounts,
    LatticeSum,
    LeadingDigits,
    of_units,
    readings_of,
)
from dpsql.plan.expressions import Expr
from dpsql.plan.query import GroupKey
from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import INT64

PRIME = 2**31 - 1
LIMB = 30
"""Bits per limb."""
NULL_LIMB = 1 << LIMB
"""The first limb of NULL, which no other value has."""
REAL_LIMIT = 2.0**58
"""Finite reals are below this limit after scaling; infinite ones are clipped to it."""
REAL_WINDOW = 66
"""Powers of two per window. From 2^-8 to 2^58 no bit of a double is below 2^-60. A power of two moves each double there
exactly, so different doubles have different limbs."""
REAL_WINDOWS = tuple(range(-17, 16))
"""0: |x| from 2^-8 to 2^58, and 0 itself; w: 2^(66 w) times as much."""
REAL_ENDS = tuple(ldexp(REAL_LIMIT, REAL_WINDOW * each) for each in REAL_WINDOWS[:-1])
"""The upper end of each window except the last."""
_LANES = 2
_WORDS = 5


@dataclass(frozen=True, repr=False)
class Lane:
    """The key of one polynomial: starting value `start`, multiplier `factor`, and the final cubic x^3 + linear x +
    constant of x = h + shift; all in 1..p-1."""

    start: int
    factor: int
    shift: int
    linear: int
    constant: int


@dataclass(frozen=True, repr=False)
class HashKey:
    """A hash key expanded from 32 random bytes: two lanes for rows, two for groups, and the prefix of hashed texts."""

    lanes: tuple[Lane, ...]
    of_groups: tuple[Lane, ...]
    text: str

    @classmethod
    def of(cls, key: bytes) -> HashKey:
        size = 4 * _LANES * _WORDS * 2
        digest_bytes = hashlib.shake_256(b"dpsql kept rows" + key).digest(size + 16)
        words = [int.from_bytes(digest_bytes[at : at + 4], "little") for at in range(0, size, 4)]
        lanes = [Lane(*(1 + word % (PRIME - 1) for word in words[at : at + _WORDS])) for at in range(0, 20, _WORDS)]
        rows = tuple(lanes[:_LANES])
        groups = tuple(
            Lane(row.start, row.factor, each.shift, each.linear, each.constant)
            for row, each in zip(rows, lanes[_LANES:], strict=True)
        )
        return cls(rows, groups, digest_bytes[size:].hex())


class Form(Enum):
    """The encoding of a value as limbs."""

    WHOLE = "whole"
    REAL = "real"
    TEXT = "text"
    PRESENCE = "presence"


@dataclass(frozen=True)
class Limbs:
    """The limbs of a value: its form and, for whole numbers, their range.

    NULL has the first limb NULL_LIMB and 0 in all others. WHOLE: v - least in limbs of 30 bits, lowest first, one or
    two if the range fits; wider ones as 64 bits of two's complement. REAL: the index of the window w, with negative
    reals after positive ones; then, for y = |x| 2^(-66 w) clipped to 2^58, floor(y) in two limbs, a = floor(f 2^30) and
    floor((f 2^30 - a) 2^30) with f = y - floor(y). TEXT: the lower 60 bits of the last eight bytes, little-endian, of
    the MD5 of the key's text followed by the value, in two limbs. PRESENCE: 0.
    """

    form: Form
    least: int = 0
    most: int = 0

    @property
    def count(self) -> int:
        if self.form is not Form.WHOLE:
            return {Form.REAL: 5, Form.TEXT: 2}.get(self.form, 1)
        size = self.most - self.least
        return 1 if size < 1 << LIMB else 2 if size < 1 << 2 * LIMB else 3

    @property
    def offset(self) -> int:
        """The number subtracted from a whole number first."""
        return self.least if self.count < 3 else 0


UNIT_LIMBS = Limbs(Form.WHOLE, -(2**63), 2**63 - 1)
"""The limbs of a unit that is a whole number of 64 bits; for any other value those of NULL. The two limbs of a TEXT
follow: those of NULL for a whole number, otherwise those of the value's exact text (`exact_values.canonical`)."""


def limbs_of(kind: Type) -> Limbs:
    """Return the limbs of a type's values, as expressions read them."""
    if kind is Type.TEXT:
        return Limbs(Form.TEXT)
    if kind is Type.REAL:
        return Limbs(Form.REAL)
    if kind.opaque:
        return Limbs(Form.PRESENCE)
    if kind is Type.BOOLEAN:
        return Limbs(Form.WHOLE, 0, 1)
    if kind is Type.INTEGER:
        return Limbs(Form.WHOLE, int(INT64.lower), int(INT64.upper))
    range_of = DAYS if kind is Type.DATE else MICROSECONDS
    return Limbs(Form.WHOLE, int(range_of.lower), int(range_of.upper))


@dataclass(frozen=True)
class HashInput:
    """One contribution of a row: the steps of a lattice, the index between edges or in a public list, the value of an
    expression, or (`presence`) only whether there is a value."""

    of: LatticeSum | Edges | GroupKey | LeadingDigits | Expr
    presence: bool = False

    @property
    def limbs(self) -> Limbs:
        of = self.of
        if self.presence:
            return Limbs(Form.PRESENCE)
        if isinstance(of, LatticeSum):
            return Limbs(Form.WHOLE, of.least, of.most)
        if isinstance(of, Edges):
            return Limbs(Form.WHOLE, 0, len(of.edges))
        if isinstance(of, LeadingDigits):
            return Limbs(Form.WHOLE, 0, 2 * of.middle - 1)
        if isinstance(of, GroupKey):
            return limbs_of_key(of)
        return limbs_of(of.type)


def limbs_of_key(key: GroupKey) -> Limbs:
    """Return the limbs of a key: of the index in its public list, or else of the value."""
    return limbs_of(key.expr.type) if key.values is None else Limbs(Form.WHOLE, 0, max(1, len(key.values)))


def contributed(plan: ExactPlan) -> tuple[HashInput, ...]:
    """Return a row's contributions to parts and grids of a plan, without its group, in the same order on all
    engines."""
    readings: dict[HashInput, None] = {}
    for part in (*plan.parts, *plan.grids):
        if isinstance(part, GridCounts):
            readings[HashInput(part.of)] = None
        elif not of_units(part):
            presence = isinstance(part, CountRows)
            for each in readings_of(part):
                readings[HashInput(each, presence and not isinstance(each, LatticeSum))] = None
    return tuple(readings)

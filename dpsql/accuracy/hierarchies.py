"""Marginals of one table that add up: least-squares estimates, their variances, and shares of the budget.

GROUP BY ROLLUP, CUBE and GROUPING SETS ask for marginals of one table x over keys with public value lists, key i with
s_i values. A set S of keys denotes its marginal, the sums of x over all other keys, with s_S cells, the product of the
s_i. Each *measured* set M has independent noise of variance v_M in every cell.

Components. Split each axis into its constant part and the part that sums to 0. The products of these split a table
orthogonally into components, one for each set T of its keys: constant along keys outside T, of sum 0 along each key of
T, with d_T degrees of freedom, the product of (s_i - 1) over T (the analysis of variance). Let z_T be the component T
of the marginal T. For any marginal S with S >= T the component T is z_T / s_(S - T) in each cell, because its sum over
S - T must be z_T. So a marginal S consists of the z_T of all T <= S.

Least squares. A measured M >= T shows z_T as the component T of its sums over M - T, with a noise of variance v_M s_(M
- T) = v_M s_M / s_T in each direction of the component. The noise of M is isotropic, so its projections are too, and
those on different components are uncorrelated. In orthonormal bases of the components, the regression of all measured
cells on x therefore separates into regressions of one unknown each, observed once in every M >= T; the unknowns are
free, since x is any table. By the Gauss-Markov theorem the best linear unbiased estimate of each is the mean weighted
by inverse variances. The weights are proportional to a_M = 1 / (v_M s_M), and its variance is 1 / (s_T A_T), A_T the
sum of the a_M with M >= T. Linear functions of the unknowns inherit this, so estimates of all marginals are best and
add up. With d_T / s_T, the diagonal of the projection on a component, a cell of the marginal S has the variance

    sum over T <= S of  (d_T / s_T) / s_(S - T)^2 / (s_T A_T)  =  (1 / s_S^2)  sum over T <= S of  d_T / A_T.

Privacy: estimates and shares are functions of noisy tables and public facts (sizes, variances, the requested sets), so
they cost nothing beyond the noise (post-processing: Dwork, Roth 2014, proposition 2.1). Sources: consistency by least
squares, Hay, Rastogi, Miklau, Suciu (VLDB 2010) and Li, Miklau, Hay, McGregor, Rastogi (VLDB Journal 2015); orthogonal
components of marginals, Xiao, He, Zhang, Kifer (ResidualPlanner, NeurIPS 2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsql.schema.frozen import dataclass

GroupingSet: TypeAlias = tuple[int, ...]
"""Positions of keys in ascending order; () is the grand total. Its table has one axis for each key, in this order."""

Floats: TypeAlias = NDArray[np.float64]
Sizes: TypeAlias = Mapping[int, int]

_QUIETEST = 2.0**-60  # fraction of the largest variance; floats cannot distinguish smaller variances


# Estimates


def consistent(
    noisy: Mapping[GroupingSet, NDArray[Any]],
    variances: Mapping[GroupingSet, float],
    wanted: Iterable[GroupingSet],
    *,
    exactly: bool = False,
) -> dict[GroupingSet, NDArray[Any]]:
    """Return the weighted least-squares estimates of the wanted marginals. They add up exactly except for float
    rounding; with `exactly`, for tables of integers, they are Fractions and add up to the last digit.

    `noisy` holds the measured tables, each with one axis for each of its keys, behind axes that are the same in all
    tables (several coordinates of one query). All coordinates are estimated alike, which is right if the covariance of
    the coordinates of a cell is the same in all sets up to the factor `variances`. Only ratios of variances matter; 0
    means exact. Raises ValueError if sets, shapes or variances do not fit, or the measured sets do not determine a
    wanted one."""
    sizes, front = _shapes(noisy)
    keys = sorted(sizes)
    dtype: Any = object if exactly else np.float64
    weights: dict[GroupingSet, Any] = dict(weights_of({each: variances.get(each, math.nan) for each in noisy}, sizes))
    if exactly:
        weights = {each: Fraction(weight) for each, weight in weights.items()}
    evidence = evidence_of(weights, keys, dtype)
    seen = {
        measured: _analysed(_exact(table) if exactly else table, len(measured), dtype)
        for measured, table in noisy.items()
    }
    estimates = {}
    for each in wanted:
        components_of(each, sizes, evidence, keys)
        coordinates = np.zeros(front + tuple(sizes[key] for key in each), dtype)
        for measured, coefficients in seen.items():
            common = tuple(key for key in each if key in measured)
            known = evidence[places_of(keys, common)]
            shares = np.divide(weights[measured], known, out=np.zeros(known.shape, dtype), where=known > 0)
            cells = np.ix_(*(np.minimum(np.arange(sizes[key]), 1) for key in common))
            coordinates[places_of(each, common)] += coefficients[places_of(measured, common)] * shares[cells]
        estimates[each] = _synthesised(coordinates, len(each))
    return estimates


def variances_of(
    variances: Mapping[GroupingSet, float], sizes: Sequence[int], wanted: Iterable[GroupingSet]
) -> dict[GroupingSet, float]:
    """Return the variance of a cell of each wanted marginal by least squares from measured sets with these variances;
    key i has sizes[i] values. Raises ValueError as `consistent` does."""
    known = dict(enumerate(sizes))
    keys = sorted(union_of(variances))
    evidence = evidence_of(weights_of(variances, known), keys)
    loudest = max(variances.values(), default=0.0)
    estimated = {}
    for each in wanted:
        freedom, parts = components_of(each, known, evidence, keys)
        terms = np.divide(freedom, parts, out=np.zeros(parts.shape), where=freedom > 0)
        estimated[each] = float(terms.sum()) / _cells(each, known) ** 2 * loudest
    return estimated


def weights_of(variances: Mapping[GroupingSet, float], sizes: Sizes) -> dict[GroupingSet, float]:
    """Return a_M = 1 / (v_M s_M) for each measured set, times the largest of the variances."""
    if not all(0 <= each < math.inf for each in variances.values()):
        raise ValueError("every measured set needs a finite variance of at least 0")
    loudest = max(variances.values(), default=0.0) or 1.0
    return {each: 1 / (max(v / loudest, _QUIETEST) * _cells(each, sizes)) for each, v in variances.items()}


def evidence_of(weights: Mapping[GroupingSet, Any], keys: Sequence[int], dtype: Any = np.float64) -> NDArray[Any]:
    """Return A_T for every set T of the keys: an array with an axis of length 2 for each key, place 1 if T has it."""
    evidence = np.zeros((2,) * len(keys), dtype)
    for measured, weight in weights.items():
        evidence[places_of(keys, measured)] += weight
    return evidence


def components_of(each: GroupingSet, sizes: Sizes, evidence: Floats, keys: Sequence[int]) -> tuple[Floats, Floats]:
    """Return d_T and A_T for all T within the set, each of shape (2, ..., 2). Raises ValueError if a d_T > 0 has no
    A_T."""
    freedom, parts = _freedom(each, sizes), evidence[places_of(keys, each)]
    if not set(each) <= set(keys) or np.any((freedom > 0) & (parts == 0)):
        raise ValueError(f"no measured set has all keys of {each}")
    return freedom, parts


def _freedom(each: GroupingSet, sizes: Sizes) -> Floats:
    """Return d_T for all T within the set, shape (2, ..., 2)."""
    _cells(each, sizes)
    freedom = np.ones(())
    for key in each:
        freedom = np.multiply.outer(freedom, np.array([1.0, sizes[key] - 1.0]))
    return freedom


def _cells(each: GroupingSet, sizes: Sizes) -> int:
    """Return s_S. Raises ValueError for an invalid set."""
    if list(each) != sorted(set(each)) or not all(sizes.get(key, 0) > 0 for key in each):
        raise ValueError(f"{each} must be ascending positions of keys that have values and are measured")
    return math.prod(sizes[key] for key in each)


def union_of(sets: Iterable[GroupingSet]) -> GroupingSet:
    return tuple(sorted({key for each in sets for key in each}))


def places_of(axes: Iterable[int], kept: Iterable[int]) -> tuple[Any, ...]:
    """Return the index that keeps the axes of some keys and takes place 0 of the others; leading axes stay."""
    return (..., *(slice(None) if key in set(kept) else 0 for key in axes))


def _shapes(noisy: Mapping[GroupingSet, NDArray[Any]]) -> tuple[dict[int, int], tuple[int, ...]]:
    """Return the sizes of the keys, and the leading axes that all tables share."""
    sizes: dict[int, int] = {}
    front = min((table.shape[: table.ndim - len(each)] for each, table in noisy.items()), key=len, default=())
    for each, table in noisy.items():
        sizes.update(zip(each, table.shape[len(front) :], strict=False))
    for each, table in noisy.items():
        if table.shape != front + tuple(sizes.get(key) for key in each):
            raise ValueError(f"the table of {each} has the shape {table.shape}, which does not fit the others")
    return sizes, front


def _exact(table: NDArray[Any]) -> NDArray[Any]:
    """Return the integers of a table as Fractions, which division keeps exact."""
    made = np.empty(table.shape, dtype=object)
    made.ravel()[:] = [Fraction(int(each)) for each in table.ravel()]
    return made


def _analysed(table: NDArray[Any], keys: int, dtype: Any) -> NDArray[Any]:
    """Transform the last `keys` axes: along each, place 0 holds the sum, and the others the distances of all values but
    the first from the mean (the first's distance is minus the sum of those). A cell with place 0 along all axes except
    those of T holds a number of z_T, for any marginal S >= T. All of z_T has the same weights, so its coordinates need
    not be orthonormal."""
    coordinates = np.array(table, dtype=dtype)
    for axis in range(coordinates.ndim - keys, coordinates.ndim):
        line = np.moveaxis(coordinates, axis, 0)
        total = line.sum(axis=0)
        line[1:] -= total / len(line)
        line[0] = total
    return coordinates


def _synthesised(coefficients: NDArray[Any], keys: int) -> NDArray[Any]:
    """Apply the inverse of `_analysed`, in place."""
    for axis in range(coefficients.ndim - keys, coefficients.ndim):
        line = np.moveaxis(coefficients, axis, 0)
        mean = line[0] / len(line)
        line[0] = mean - line[1:].sum(axis=0)
        line[1:] += mean
    return coefficients


# Shares of the budget

_MOST_WITH_UNIONS, _MOST_EXCHANGED = 32, 64  # sets to choose from
_GRAIN = 1000  # shares are multiples of 1/1000
_UNSEEN = 1e-6  # smaller shares count as 0, smaller decreases of f as no gain
_SHORT, _LONG = 30, 200  # steps


def allocation(
    sizes: Sequence[int],
    wanted: Iterable[GroupingSet],
    law: Literal["laplace", "gaussian"],
    *,
    measurable: Iterable[GroupingSet] | None = None,
    guard: float = 0.0,
    whole: Callable[[GroupingSet], float] = lambda _: 1.0,
) -> dict[GroupingSet, Fraction]:
    """Return shares of the budget for the sets to measure, positive and with sum 1, from public facts only.

    They minimise f, the mean over wanted sets of log V + guard V / V0: V is the least-squares variance of a cell, V0
    that of a measured cell at an equal share. With guard 0 this is the geometric mean of variances, and a set may be
    estimated from sums of many noisy cells, far worse than V0; a guard of 1/2 prevents most of that at little cost to
    others.

    By composition the epsilons of Laplace noise add up (its variance is proportional to 1 / share^2) and so do the rhos
    of Gaussian noise (1 / share): shares with sum 1 cost the whole budget, and do not depend on its size. `whole` gives
    the variance of a set's noise at the whole budget, up to one factor. It is the same for all sets if a unit moves one
    cell of each by the same amount, and always for Laplace noise, since L1 distances do not grow by summing cells; L2
    distances do, if a unit may have rows in several cells.

    If measuring only the finest set, or equal shares, is as good, these are returned; otherwise multiples of 1/1000,
    which hides how machines round. `measurable` are the sets to choose from; None for the wanted ones and, if those are
    few, their unions. Raises ValueError if they do not determine the wanted ones."""
    known = dict(enumerate(sizes))
    asked = list(dict.fromkeys(wanted))
    sets = list(dict.fromkeys(_with_unions(asked, known) if measurable is None else measurable))
    if not asked or not guard >= 0:
        raise ValueError("shares are for at least one wanted set, with a guard of at least 0")
    variances_of(dict.fromkeys(sets, 1.0), sizes, asked)
    plain = [some for some in ([union_of(asked)], asked, sets) if set(some) <= set(sets)]
    counts = np.array([[each in some for each in sets] for some in plain], dtype=np.int64)
    power = {"laplace": 2, "gaussian": 1}[law]
    over = guard / np.array([len(asked) ** power * whole(each) for each in asked])
    descent = _Descent(*_model(sets, asked, known, whole), power, over)
    counts = np.vstack([counts, _rounded(descent.least(counts.astype(np.float64)))])
    best = counts[_first_least(descent.value(counts / counts.sum(axis=1, keepdims=True)))]
    return {each: Fraction(int(count), int(best.sum())) for each, count in zip(sets, best, strict=True) if count}


def _with_unions(asked: Sequence[GroupingSet], sizes: Sizes) -> list[GroupingSet]:
    """Return the wanted sets and unions of two of them and of all, those with the fewest cells first. If keys have few
    values, a union serves sets better than their shares. At the full budget it gives a set the variance of as many
    cells as are summed; a share of 1/n gives that of n^2 cells for Laplace noise."""
    unions = {union_of(pair) for pair in combinations(asked, 2)} | {union_of(asked)}
    more = sorted(unions.difference(asked), key=lambda each: (_cells(each, sizes), each))
    return [*asked, *more[: max(0, _MOST_WITH_UNIONS - len(asked))]]


def _model(
    sets: Sequence[GroupingSet], asked: Sequence[GroupingSet], sizes: Sizes, whole: Callable[[GroupingSet], float]
) -> tuple[Floats, Floats]:
    """Return `seen` and `freedom` of a `_Descent`."""
    keys = union_of(sets)
    inside = np.stack([evidence_of({each: 1.0}, keys).ravel() for each in sets], axis=1) > 0
    _, first, which = np.unique(np.packbits(inside, axis=1), axis=0, return_index=True, return_inverse=True)
    freedom = np.zeros((len(asked), len(first)))
    for row, each in zip(freedom, asked, strict=True):
        within = which.reshape((2,) * len(keys))[places_of(keys, each)]
        np.add.at(row, within, _freedom(each, sizes) / float(_cells(each, sizes)) ** 2)
    return inside[first] / np.array([_cells(each, sizes) * whole(each) for each in sets]), freedom


@dataclass(frozen=True)
class _Descent:
    """Minimises f over shares q of the sets to choose from.

    power: d, 2 for Laplace and 1 for Gaussian noise. seen: 1 / (s_M w_M) for each set M >= T, w_M its variance at the
    whole budget, shape (components, sets), so that A_T is the sum over M >= T of q_M^d / (s_M w_M). freedom: d_T /
    s_S^2 for the T <= S, shape (wanted sets S, components). Components in the same sets are one row of `seen`. guard:
    that over V0, shape (wanted sets,).

    A step: log V lies below its tangents, and V is a sum of multiples of 1 / A_T. By Jensen's inequality for the convex
    1 / x, with the parts of the sets in A_T as weights, 1 / A_T lies below a sum of multiples of 1 / q_M^d that touches
    it. So f lies below constant + sum of c_M / q_M^d, touching at the present q; hence c_M = g_M q_M^(d + 1) / d with g
    minus the gradient of f. Over shares this is least at multiples of q_M g_M^(1 / (d + 1)), where f is then no larger
    than before (majorise and minimise: Hunter, Lange, The American Statistician 2004). For Gaussian noise f is convex,
    since 1 over a linear function is log-convex and so are sums. For Laplace noise it is not, and leaving sets out
    often pays: `_exchanged` tries that."""

    seen: Floats
    freedom: Floats
    power: int
    guard: Floats

    def _inverse(self, shares: Floats) -> Floats:
        """Return 1 / A_T, shape (runs, components), for shares of shape (runs, sets); huge if no set has a share."""
        return np.reciprocal(np.maximum(shares**self.power @ self.seen.T, 1e-100))

    def value(self, shares: Floats) -> Floats:
        """Return f, shape (runs,)."""
        variances = self._inverse(shares) @ self.freedom.T
        return np.asarray(np.mean(np.log(variances) + self.guard * variances, axis=1))

    def least(self, starts: Floats) -> Floats:
        """Return the best shares found, shape (sets,), from starting points of shape (starts, sets)."""
        ends = [self._exchanged(row[None]) for row in self._settled(starts, _SHORT)]
        found = self._settled(np.concatenate(ends), _LONG)
        return np.asarray(found[_first_least(self.value(found))])

    def _settled(self, shares: Floats, steps: int) -> Floats:
        """Return the shares of every run after so many steps."""
        for _ in range(steps):
            inverse = self._inverse(shares)
            slopes = 1 / (inverse @ self.freedom.T) + self.guard
            pull = (slopes @ self.freedom * inverse**2) @ self.seen  # minus the gradient by q_M^d, up to a factor
            shares = shares * (pull * shares ** (self.power - 1)) ** (1 / (self.power + 1))
            shares = shares / shares.sum(axis=1, keepdims=True)
        return shares

    def _exchanged(self, shares: Floats) -> Floats:
        """Return shares of shape (1, sets) after adding or removing single sets, the best each time, while f improves.
        Not needed for a convex f, whose least value the start with all sets finds."""
        count = shares.shape[1]
        while self.power > 1 and 1 < count <= _MOST_EXCHANGED:
            on = shares[0] > _UNSEEN
            tried = np.repeat(np.where(on, shares, 0), count, axis=0)
            np.fill_diagonal(tried, np.where(on, 0, 1 / on.sum()))
            tried = self._settled(tried[tried.sum(axis=1) > 0], _SHORT)
            best = _first_least(self.value(tried))
            if not self.value(tried)[best] < self.value(shares)[0] - _UNSEEN:
                break
            shares = tried[best : best + 1]
        return shares


def _first_least(values: Floats) -> int:
    """Return the first of the least values, equal to nine digits, so that rounding errors do not choose among
    equals."""
    return int(np.argmax(values <= values.min() + 1e-9))


def _rounded(shares: Floats) -> NDArray[np.int64]:
    """Return integer thousandths with sum 1000, by largest remainders, the first of equal ones."""
    exact = np.round(shares * _GRAIN, 6)
    whole = np.floor(exact).astype(np.int64)
    whole[np.argsort(whole - exact, kind="stable")[: _GRAIN - whole.sum()]] += 1
    return whole

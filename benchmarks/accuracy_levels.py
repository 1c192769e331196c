"""Errors of the levels of ROLLUP and CUBE beside theory and levels that are measured one by one.

`naive` is an equal share of epsilon for each level, each as it was measured: geometric noise of its own. `even` is the
same noise with estimates by least squares (strategy="split"), `auto` has shares by the levels' sizes too. Theory is
ordinary weighted least squares of all measured cells, by the normal equations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from errors import EPSILON, Floats, errors, rmse
from measure import Row, stages
from people import KEYS, people, table

ROWS = 100_000
QUERIES = (("ROLLUP", ("state", "education")), ("CUBE", ("education", "sex")))
Level = tuple[int, ...]


def variance(share: float) -> float:
    """Of geometric noise on whole numbers."""
    a = math.exp(-EPSILON * share)
    return 2 * a / (1 - a) ** 2


def least_squares(shares: Mapping[Level, float], sizes: tuple[int, ...], wanted: list[Level]) -> list[float]:
    """The standard error of a cell of each wanted level."""

    def sums(level: Level) -> Floats:
        """Each cell of a level as a sum of cells of the finest one, shape (cells, finest)."""
        found: Floats = np.ones((1, 1))
        for key, size in enumerate(sizes):
            found = np.asarray(np.kron(found, np.eye(size) if key in level else np.ones((1, size))))
        return found

    evidence: Floats = np.zeros((math.prod(sizes), math.prod(sizes)))
    for level, share in shares.items():
        evidence = evidence + sums(level).T @ sums(level) / variance(share)
    spread = np.linalg.inv(evidence)
    return [math.sqrt(float((sums(level)[0] @ spread) @ sums(level)[0])) for level in wanted]


def levels(runs: int) -> list[Row]:
    """COUNT(*) of every level, over its cells."""
    frame = people(ROWS)
    rows: list[Row] = []
    for word, keys in QUERIES:
        sql = f"SELECT {', '.join(keys)}, COUNT(*) FROM t GROUP BY {word}({', '.join(keys)})"
        sizes = tuple(len(KEYS[key]) for key in keys)
        release = {way: stages("t", table(frame), sql, epsilon=EPSILON, strategy=way)[0] for way in ("auto", "split")}
        parts = {way: made.levels for way, made in release.items()}
        chosen = parts["auto"]
        assert chosen is not None  # these are queries with levels
        assert parts["split"] is not None
        numbers = [frame[key].map({value: n for n, value in enumerate(KEYS[key])}).to_numpy() for key in keys]
        finest = np.zeros(sizes)
        np.add.at(finest, tuple(numbers), 1)
        wanted = list(chosen.wanted)
        others = [tuple(key for key in range(len(keys)) if key not in level) for level in wanted]
        truth = np.concatenate([finest.sum(axis=other).reshape(-1) for other in others])[None]
        off = {way: errors(table(frame), sql, truth, runs, strategy=way) for way in ("auto", "split")}
        shares = {level.keys: float(level.share) for level in chosen.measured}
        even = {level.keys: float(level.share) for level in parts["split"].measured}
        theory = [least_squares(shares, sizes, wanted), least_squares(even, sizes, wanted)]
        for place, (level, cells) in enumerate(chosen.rows()):
            row: dict[str, object] = {"level": f"{word}: {', '.join(keys[key] for key in level) or '()'}"}
            row |= {"cells": cells.stop - cells.start, "share": f"{shares.get(level, 0):.3g}"}
            row |= {"auto": rmse(off["auto"][:, 0, cells]), "theory auto": theory[0][place]}
            row |= {"even": rmse(off["split"][:, 0, cells]), "theory even": theory[1][place]}
            rows.append(row | {"naive": math.sqrt(variance(1 / len(wanted)))})
    return rows

"""An explanation as a dictionary, for machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dpsql.answer.parts import LEVEL, concentrated, coordinates_of, estimate_of, names_of
from dpsql.answer.words import strategy_word, threshold_of, unit_of
from dpsql.core.cost import Cost
from dpsql.core.mechanisms import Noise
from dpsql.core.unit import ContributionBound
from dpsql.plan.expressions import Column, Slot, walk
from dpsql.plan.query import Output
from dpsql.release.auto_bounds import SURE
from dpsql.release.choices import Draw
from dpsql.release.intervals.intervals import constant_half_width
from dpsql.release.levels import Level
from dpsql.release.parts import Coordinate
from dpsql.release.release import Release

_SHOWN_SIZES = (10, 20, 50, 100)


def as_dict(release: Release) -> dict[str, Any]:
    """See `Explanation.to_dict`."""
    keys = release.query.plan.keys
    return {
        "unit": unit_of(release) or "row",
        "limits": _limits(release),
        "neighbours": str(release.analysis.neighbours),
        "epsilon": None if release.cost.epsilon is None else float(release.cost.epsilon),
        "delta": float(release.cost.delta),
        "rho": float(release.cost.rho) if concentrated(release) else None,
        "goal": None
        if release.goal is None
        else {"error": float(release.goal.error), "confidence": float(release.goal.sure)},
        "strategy": release.strategy,
        "choice": None if release.choice is None else asdict(release.choice),
        "groups": {
            "keys": [key.name for key in keys],
            "strategy": strategy_word(release) if keys else None,
            "threshold": threshold_of(release),
            "shown": {size: release.chance_shown(size) for size in _SHOWN_SIZES} if release.hides else None,
        },
        "bounds": _bounds(release),
        "releases": _releases(release),
        "draws": [_draw(release, each) for each in release.draws],
        "columns": [_column(release, each) for each in release.query.finish.outputs],
    }


def _limits(release: Release) -> dict[str, int] | None:
    """How much of one unit counts, where a unit may have several rows."""
    bounds = release.analysis.bounds
    if not bounds.declared:
        return None
    return {"rows": bounds.rows.rows, "groups": bounds.rows.groups, "rows_per_group": bounds.rows.per_group}


def _bounds(release: Release) -> list[dict[str, Any]]:
    """Bounds that the query chooses itself, or has chosen."""
    if release.searches is not None:
        return [_bounds_of(each.column, each.cost) for each in release.searches.searches]
    return [
        _bounds_of(each.column, each.cost)
        | {"chosen": [each.held.lower, each.held.upper]}
        | {"clipped_at_most": {"below": each.clipped[0], "above": each.clipped[1], "confidence": SURE}}
        for each in release.bounds
    ]


def _bounds_of(column: Column, cost: Cost) -> dict[str, Any]:
    return {
        "column": str(column),
        "epsilon": None if cost.epsilon is None else float(cost.epsilon),
        "rho": float(cost.rho),
        "chosen": None,
        "clipped_at_most": None,
    }


def _releases(release: Release) -> list[dict[str, Any]]:
    """A coordinate of a query with grouping sets has noise of its own at each level that is measured."""
    found = []
    for each in release.coordinates:
        if release.levels is None or not each.noisy:
            share = release.share_of(release.coordinates.index(each))
            noise, dimension = (None, 0) if share is None else (share.noise, share.reach.dimension)
            found.append(_release(release, each, noise, dimension, each.bound))
            continue
        for level in release.levels.measured:
            bound = release.levels.bound_at(each.bound, level.keys)
            told = _release(release, each, level.noise, len(release.levels.noisy), bound)
            found.append({**told, **_of_level(release, level)})
    return found


def _of_level(release: Release, level: Level) -> dict[str, Any]:
    """The keys of a level and what its draw costs, of all its coordinates together; its epsilon is None where only all
    levels together have one."""
    alone = level.noise.name != "discrete_gaussian" and level.cost.epsilon is not None
    return {
        "level": [release.query.plan.keys[place].name for place in level.keys],
        "epsilon": float(level.cost.epsilon or 0) if alone else None,
        "rho": float(level.cost.rho),
    }


def _release(
    release: Release, each: Coordinate, noise: Noise | None, dimension: int, bound: ContributionBound
) -> dict[str, Any]:
    norms = release.analysis.of(each.row, bound)
    known = release.searches is None
    return {
        "name": name_of(release, each),
        "parts": each.name,
        "mechanism": "exact" if noise is None else noise.name,
        "scale": None if not known else 0.0 if noise is None else noise.scale * each.unit,
        "granularity": each.unit if known else None,
        "dimension": dimension,
        "sensitivity": {
            "l1": float(norms.l1) * each.unit,
            "l2": float(norms.l2) * each.unit,
            "linf": float(norms.linf) * each.unit,
        }
        if known
        else None,
    }


def _draw(release: Release, draw: Draw) -> dict[str, Any]:
    return {
        "of": names_of(release, draw),
        "mechanism": draw.mechanism,
        "epsilon": float(draw.epsilon),
        "points": draw.points,
        "rows_off_95": draw.rows_off(0.95),
    }


def name_of(release: Release, coordinate: Coordinate) -> str:
    """The output that shows this coordinate itself, if one does, else what is summed."""
    for output in release.query.finish.outputs:
        estimate = estimate_of(release, output)
        if estimate and [each.name for each in coordinates_of(release, estimate)] == [coordinate.name]:
            return output.name
    return coordinate.name


def _column(release: Release, output: Output) -> dict[str, Any]:
    first = len(release.query.plan.keys)
    used = [p.index - first for p in walk(output.expr) if isinstance(p, Slot) and p.index >= first]
    parts = [part for index in used for part in coordinates_of(release, release.estimates[index])]
    return {
        "name": output.name,
        "from": list(dict.fromkeys(name_of(release, part) for part in parts)),
        "interval_95": None if release.searches is not None else constant_half_width(release, output.expr, LEVEL),
    }

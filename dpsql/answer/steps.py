"""What a query does, step by step, and what each step costs."""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.answer.parts import estimate_of, how_far_off, names_of
from dpsql.answer.plain import Pairs, plainer, value_where
from dpsql.answer.words import delta_of, numbered, short, shown, threshold_of, unit_of, wrapped
from dpsql.core.cost import Cost
from dpsql.core.exact import of_units
from dpsql.core.loss import show
from dpsql.plan.aggregates import AggregateKind
from dpsql.plan.expressions import columns
from dpsql.plan.nodes import filters_of, scans_of
from dpsql.plan.query import Output
from dpsql.release.choices import Draw
from dpsql.release.design.subcounts import name_of
from dpsql.release.levels import Levels
from dpsql.release.parts import Coordinate
from dpsql.release.release import Release
from dpsql.release.split import Share

Step = tuple[str, str, str]
"""Name, text, and what it costs."""


def counted(release: Release) -> str:
    bound = release.analysis.bounds.rows
    groups = f" in {numbered(bound.groups, 'group')}" if release.query.plan.keys else ""
    each = f", {bound.per_group} in each" if groups and bound.per_group < bound.rows else ""
    return f"; at most {numbered(bound.rows, 'row')}{groups}{each} count"


def steps_of(release: Release) -> list[Step]:
    """All steps, in order, and below a long one the rest of its text."""
    plain = plainer(release)
    return [line for step in _steps(release) for line in _lines(step, plain)]


def _lines(step: Step, plain: Pairs) -> list[Step]:
    name, text, cost = step
    for long, fewer in plain:
        text = text.replace(long, fewer)
    first, *rest = wrapped(text)
    return [(name, first, cost), *(("", line, "") for line in rest)]


def _steps(release: Release) -> list[Step]:
    plan = release.query.plan
    steps = [("where", str(predicate), "free") for predicate in filters_of(plan.input)]
    if release.exact.limits is not None or release.exact.groups is not None:
        steps.append(("keep", _kept(release), "free"))
    steps += _search_steps(release)
    steps += [("clip", text, "free") for text in _clips(release)]
    if plan.keys:
        every = release.exact.every_cell
        hidden = "groups that occur" + (", small ones hidden" if release.hides else "")
        kind = f"{plan.public_cells} public groups, all shown" if every else hidden
        steps.append(("groups", f"{', '.join(key.name for key in plan.keys)}: {kind}", "free"))
    steps += _noise_steps(release)
    steps += [_draw_step(release, draw) for draw in release.draws]
    if release.selector is not None:
        law = release.selector.law
        by_rho = release.allowed.rho is not None
        coin = f"rho {show(law.epsilon**2 / 2)}" if by_rho else f"epsilon {show(law.epsilon)}"
        cost = f"{coin}, {delta_of(release)}"
        least = f", never with fewer than {law.least}" if law.least > 1 else ""
        steps.append(("shown", f"groups at random, the likelier the more people they have{least}", cost))
    elif release.threshold is not None:
        steps.append(("shown", f"groups whose noisy count reaches {threshold_of(release):.1f}", delta_of(release)))
    steps += [(short(output.name), _formula(release, output), "free") for output in release.query.finish.outputs]
    steps += [("select", str(stage).removeprefix("select "), "free") for stage in release.query.stages]
    return steps


def _search_steps(release: Release) -> list[Step]:
    """Bounds that the query chooses itself, or has chosen."""
    if release.searches is None:
        return [("bounds", f"{each}, chosen privately", _coin(release, each.cost)) for each in release.bounds]
    how = "chosen privately, so that few rows lie outside; noise follows them"
    searches = release.searches.searches
    return [("bounds", f"of {each.column}: {how}", _coin(release, each.cost)) for each in searches]


def _coin(release: Release, cost: Cost) -> str:
    """A part of the cost, in the coin that the query is paid in."""
    by_rho = release.allowed.rho is not None or cost.epsilon is None
    return f"rho {show(cost.rho)}" if by_rho else f"epsilon {show(cost.epsilon or Fraction(0))}"


def _draw_step(release: Release, draw: Draw) -> Step:
    """A value that is chosen, and how far off it may be whatever the data are."""
    names, off = ", ".join(names_of(release, draw)), how_far_off(release, draw)
    if off is None:
        return ("exact", f"{names} of nobody's rows", "free")
    how = draw.mechanism.replace("_", "-" if draw.mechanism == "permute_and_flip" else " ")
    return ("choose", f"{names}: one of {draw.points:,} values by {how}; {off}", _coin(release, draw.cost))


def _kept(release: Release) -> str:
    """What is left out of units with more than their limits."""
    plan = release.exact
    by_row = [part for part in plan.parts if not of_units(part)]
    groups = f"{numbered(plan.groups, 'group')}" if plan.groups is not None else ""
    unit = unit_of(release)
    if not by_row and not plan.grids:
        return (
            f"{groups} per {unit} (random choice)" if groups else f"all rows of each {unit}, of which one number counts"
        )
    rows = "" if plan.limits is None else numbered(plan.limits.rows, "row")
    among = f" in {groups}" if groups and plan.limits is not None and plan.limits.groups < plan.limits.rows else ""
    return f"{rows}{among} per {unit} (random choice)"


def _clips(release: Release) -> list[str]:
    ranges = {}
    for m in release.analysis.measured:
        facts = zip(m.aggregation.arguments, (m.argument, m.other or m.argument), strict=False)
        if m.sum is not None and m.of in ("rows", "choice") and release.searches is None:
            ranges.update({str((value_where(expr) or (expr,))[0]): str(held.range) for expr, held in facts})
    for m in release.analysis.measured:
        if m.of in ("total", "mean") and (m.aggregation.per_unit is not None or m.of == "total"):
            held = m.count if m.sum is None else m.sum
            what = "average" if m.of == "mean" else "total"
            ranges[f"{what} of each {unit_of(release)} in {m.aggregation}"] = str(held.range)
    tables = {scan.name: scan.table for scan in scans_of(release.query.plan.input)}
    arguments = (argument for m in release.analysis.measured for argument in m.aggregation.arguments)
    read = [column for argument in arguments for column in columns(argument)]
    for predicate in filters_of(release.query.plan.input):
        read += columns(predicate)
    for column in read:
        table = tables.get(column.table)
        bounds = table.by_name[column.name.casefold()].bounds if table is not None and not table.public else None
        if bounds is not None:
            ranges.setdefault(str(column), shown(column.type, bounds))
    return [f"{name} to {held}" for name, held in ranges.items()]


def _noise_steps(release: Release) -> list[Step]:
    exact = [
        ("exact", f"{each.name} (neighbours agree on it)", "free") for each in release.coordinates if not each.noisy
    ]
    noise = [line for share in release.shares for line in _share_steps(release, share)]
    if release.levels is not None:
        noise += _level_steps(release, release.levels)
    return [*exact, *noise, *_choice_step(release)]


def _choice_step(release: Release) -> list[Step]:
    """How the two laws of noise compare."""
    choice = release.choice
    if choice is None:
        return []
    laws = {"laplace": "Laplace", "gaussian": "Gaussian"}
    words = f"{laws[choice.chosen]}; {laws[choice.other]} noise would be {choice.wider:.3g} times as wide"
    cells = math.ceil(choice.crossover)
    return [
        (
            "law",
            f"{words} (for one count Gaussian is the narrower from {cells} cells a unit on)" if cells > 1 else words,
            "",
        )
    ]


_ONE_SUM = {"discrete_gaussian": "Gaussian", "discrete_laplace": "Laplace", "discrete_laplace_of_shares": "Laplace"}
"""Words for the laws of one noisy sum; one without is called by its name."""


def _share_steps(release: Release, share: Share) -> list[Step]:
    if release.allowed.rho is not None:
        cost = f"rho {show(release.allowed.rho if len(release.shares) + len(release.draws) == 1 else share.cost.rho)}"
    else:
        cost = f"epsilon {show(share.epsilon)}"
    many = len(share.places)
    noisy = [release.coordinates[place] for place in share.places]
    if len(noisy) == 1:
        law = _ONE_SUM.get(share.noise.name, share.noise.name)
        return [("noise", f"{noisy[0].name} + {law}{_spread(release, share, noisy[0])}", cost)]
    how = {
        "discrete_k_norm": f"{many} sums share one K-norm draw, each at the full epsilon (encoding)",
        "discrete_laplace": f"{many} sums with Laplace noise each, epsilon split evenly (split)",
        "discrete_laplace_of_shares": f"{many} shares of each row, Laplace noise for each at full epsilon (encoding)",
        "discrete_gaussian": f"{many} sums with Gaussian noise each, for their joint L2 norm",
    }.get(share.noise.name, f"{many} sums with {share.noise.name} noise")
    return [("noise", how, cost), *(("", f"{each.name}{_spread(release, share, each)}", "") for each in noisy)]


def _level_steps(release: Release, levels: Levels) -> list[Step]:
    """The levels that have noise of their own, and what follows from them; nothing where none has any."""
    if not levels.measured:
        return []
    keys = release.query.plan.keys
    names = ", ".join(each.name for each in release.coordinates)
    by_rho = release.allowed.rho is not None
    gaussian = any(level.noise.name == "discrete_gaussian" for level in levels.measured)
    whole = gaussian and not by_rho  # an epsilon for all levels together, each of which has its part of a rho
    how = "every one estimated from all that have noise (least squares), so that they add up"
    price = f"{_coin(release, levels.cost)}, {delta_of(release)}" if whole else ""
    steps = [("levels", f"{how}: {names}", price)]
    for level in levels.measured:
        of = ", ".join(keys[place].name for place in level.keys)
        coin = f"rho {show(level.cost.rho)}" if whole else _coin(release, level.cost)
        steps.append(("noise", f"{'Gaussian' if gaussian else 'Laplace'} for ({of})", coin))
    return steps


def _formula(release: Release, output: Output) -> str:
    estimate = estimate_of(release, output)
    if estimate is None:
        return str(output.expr)
    if estimate.chosen is not None:
        return "as chosen"
    if estimate.moments is not None:
        return f"{estimate.kind} from these"
    total, count = (_feature(release, place) for place in (estimate.sum, estimate.count))
    if estimate.kind is AggregateKind.COUNT:
        return count
    if not total:
        return f"{estimate.centre:g}" + (f" * {count}" if estimate.kind is AggregateKind.SUM else "")
    if estimate.kind is AggregateKind.AVG:
        return f"{estimate.centre:g} + {total} / {count}" if estimate.centre else f"{total} / {count}"
    return f"{total} + {estimate.centre:g} * {count}" if count and estimate.centre else total


def _feature(release: Release, place: int | None) -> str:
    """What stands for a feature: the coordinate that it is, or that it is made of shares."""
    weights = release.lattice.weights(place)
    if release.lattice.l1 is None and len(weights) == 2:
        return name_of(release.coordinates[weights[0][0]])
    if len(weights) > 1:
        return "(sum of shares)"
    return release.coordinates[weights[0][0]].name if weights else ""


def _spread(release: Release, share: Share, each: Coordinate) -> str:
    if release.searches is not None:
        return ""
    return f"  scale {share.noise.scale * each.unit:.6g}, sensitivity {each.sensitivity * each.unit:.6g}"

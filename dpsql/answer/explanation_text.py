"""Explanations and notes as text: all their wording is here."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

from dpsql.answer.explanation_tree import (
    BY_WEIGHTS,
    FREE,
    Bounds,
    Clip,
    ContributionLimit,
    ExpectedNoise,
    Formula,
    Gaps,
    Groups,
    Noise,
    Price,
    PrivateSelection,
    ProtectedUnit,
    ReleaseExplanation,
    SelectionError,
    Sum,
)
from dpsql.answer.query_wording import plus_minus, share_in_words
from dpsql.core.cost import Cost
from dpsql.core.loss import show
from dpsql.core.unit import Neighbours
from dpsql.plan.expressions import Expr, Literal
from dpsql.release.laws import Choice
from dpsql.release.output.labels import Label
from dpsql.schema.columns import Type

_WIDEST = 100
_MOST_LINES = 12
_LAWS = {"laplace": "Laplace", "gaussian": "Gaussian"}
_OF_ONE = {
    "discrete_gaussian": "Gaussian",
    "rounded_gaussian": "Gaussian",
    "discrete_laplace": "Laplace",
    "discrete_laplace_of_shares": "Laplace",
    "staircase": "staircase",
    "discrete_laplace_of_two_groups": "Laplace in one group, less it in the other",
    "discrete_k_norm_of_groups": "one K-norm draw for all groups",
}
"""Names of the noise distributions of a single sum; others are printed by their own name."""
_JOINT = {
    "discrete_k_norm": "sums share one K-norm draw, each at the full epsilon (encoding)",
    "discrete_laplace": "sums with Laplace noise each, epsilon split evenly (split)",
    "discrete_laplace_of_shares": "shares of each row, Laplace noise for each at full epsilon (encoding)",
    "discrete_k_norm_of_classes": "sums of rows that exclude each other, each alternative at the full epsilon (cells)",
    "discrete_k_norm_of_groups": "sums share one K-norm draw for all groups, each at the full epsilon (encoding)",
    "discrete_gaussian": "sums with Gaussian noise each, for their joint L2 norm",
    "rounded_gaussian": "sums with Gaussian noise each, for their joint L2 norm",
}
_UNITS = ((86_400e6, "days"), (3_600e6, "h"), (60e6, "min"), (1e6, "s"), (1e3, "ms"), (1.0, "µs"))

Step = tuple[str, str, str]
"""Name, text, and cost."""


def explanation(tree: ReleaseExplanation, expected: ExpectedNoise | None, left: str) -> str:
    """Format an explanation: who is protected, the steps of the query with their costs, and the expected noise. left:
    the budget that remains after the query."""
    steps = [line for step in _steps(tree) for line in _wrapped(*step)]
    first, second = (max(len(step[at]) for step in steps) for at in (0, 1))
    count = 0
    numbered = []
    for name, text, cost in steps:
        count += bool(name)
        numbered.append(f"{count if name else '':>2} {name:<{first}}  {text:<{second}}  {cost}".rstrip())
    reach = "whoever sees the answer can improve a 50:50 guess about one person"
    words = f"In words: {reach} to at most {percent(tree.guess)}."
    noise = [] if expected is None else _expected(tree, expected)
    return "\n".join([*_head(tree, f" Left after it: {left}." if left else ""), *numbered, *noise, words])


def _head(tree: ReleaseExplanation, left: str) -> list[str]:
    who = tree.protected
    if not who.private:
        return ["Protects   nobody: the tables are public", f"Guarantee  none is needed; exact and free.{left}"]
    if who.unit is None:
        several = f", which counts up to {who.limits.l1} times" if who.limits.l1 > 1 else ""
        whose, what = f"one row of {who.table} (each row is one person's{several})", "one row"
    else:
        whose, what = f"one person (unit {who.unit}), with all rows in all tables{_counted(tree)}", "one person"
    changed = "added or removed" if who.neighbours is Neighbours.UNBOUNDED else "changed"
    goal = "" if tree.goal is None else f" The least epsilon for answers {tree.goal}."
    return [f"Protects   {whose}", f"Guarantee  {tree.price}, {what} {changed}.{goal}{left}"]


def _counted(tree: ReleaseExplanation) -> str:
    bound = tree.protected.limits
    groups = f" in {numbered(bound.groups, 'group')}" if tree.groups.keys else ""
    each = f", {bound.per_group} in each" if groups and bound.per_group < bound.rows else ""
    return f"; at most {numbered(bound.rows, 'row')}{groups}{each} count"


def _steps(tree: ReleaseExplanation) -> Iterator[Step]:
    """Yield all steps, in order."""
    yield from _of_rows(tree)
    yield from _of_noise(tree)
    if tree.law is not None:
        yield "law", _law(tree.law, stairs=any(each.law == "staircase" for each in tree.noise)), ""
    yield from (_draw(each) for each in tree.draws)
    if tree.groups.price is not None:
        yield "shown", tree.groups.how, _price(tree.groups.price)
    yield from ((_short(each.name), _formula(each.formula), "free") for each in tree.shown)
    yield from (("select", each.body, "free") for each in tree.stages)


def _of_rows(tree: ReleaseExplanation) -> Iterator[Step]:
    """Yield the steps on filters, contribution bounds, clip bounds and groups."""
    yield from (("where", str(predicate), "free") for predicate in tree.filters)
    for side in tree.join_inputs:
        rows = f"{numbered(side.rows, 'row')} per {tree.protected.unit} of {', '.join(side.tables)}"
        yield "keep", f"{rows}, before they are joined (random choice)", "free"
    if tree.kept is not None:
        yield "keep", _kept(tree.kept, tree.protected), "free"
    yield from (("bounds", _bounds(each, tree.cost), _price(each.price)) for each in tree.bounds)
    yield from (("clip", _clip(each, tree.protected), "free") for each in tree.clips)
    if tree.groups.keys:
        yield "groups", _groups(tree.groups), "free"


def _of_noise(tree: ReleaseExplanation) -> Iterator[Step]:
    """Yield the steps that add noise to sums."""
    exact = (each.said for each in tree.sums if not each.noisy)
    yield from (("exact", f"{each} (neighbours agree on it)", "free") for each in exact)
    for noise in tree.noise:
        yield from _noise(noise)
    for levels in tree.levels:
        how = "every one estimated from all that have noise (least squares), so that they add up"
        yield "levels", f"{how}: {', '.join(str(each) for each in levels.sums)}", _price(levels.price)
        law = "Gaussian" if any(_OF_ONE.get(each.law) == "Gaussian" for each in levels.measured) else "Laplace"
        for level in levels.measured:
            yield "noise", f"{law} for ({', '.join(level.keys)})", _price(level.price)


def _wrapped(name: str, text: str, cost: str) -> list[Step]:
    """Wrap a step to the width of a terminal, and truncate a very long one; `plan` shows it in full."""
    if len(text) <= _WIDEST:
        return [(name, text, cost)]
    first, *rest = textwrap.wrap(
        text, _WIDEST, subsequent_indent="  ", break_on_hyphens=False, max_lines=_MOST_LINES, placeholder=" ..."
    )
    return [(name, first, cost), *(("", line, "") for line in rest)]


def _price(price: Price | None) -> str:
    if price is None or price == FREE:
        return "" if price is None else "free"
    named = (("epsilon", price.epsilon), ("rho", price.rho), ("delta", price.delta))
    return ", ".join(f"{name} {show(value)}" for name, value in named if value is not None)


def _kept(kept: ContributionLimit, who: ProtectedUnit) -> str:
    """Describe the contribution bounds."""
    groups = "" if kept.groups is None else numbered(kept.groups, "group")
    if kept.by_unit and not groups:
        return f"all rows of each {who.unit}, of which one number counts"
    rows = "" if kept.rows is None else numbered(kept.rows, "row")
    return f"{rows}{' in ' if rows and groups else ''}{groups} per {who.unit} (random choice)"


def _bounds(each: Bounds, whole: Cost) -> str:
    if each.chosen is not None:
        return f"{each.chosen}, chosen privately; {each.chosen.clipped_in_words}"
    within = f" between {each.within.lower} and {each.within.upper}" if each.within is not None else ""
    share = share_in_words((each.cost,), whole)
    why = "" if within else ", as none are declared"
    return f"of {each.column}: chosen privately{within} for {share}{why}; noise follows them"


def _clip(clip: Clip, who: ProtectedUnit) -> str:
    what, held = f"{clip.adds} of each {who.unit} in {clip.of}" if clip.adds else str(clip.of), str(clip.held)
    if clip.type is not None and clip.type.temporal:
        held = f"[{', '.join(str(Literal(int(end), clip.type)) for end in (clip.held.lower, clip.held.upper))}]"
    return f"{what} to {held}"


def _groups(groups: Groups) -> str:
    small = ", small ones hidden" if groups.chances is not None else ""
    most = "at most " if groups.to_come else ""
    kind = f"groups that occur{small}" if groups.public is None else f"{most}{groups.public} public groups, all shown"
    return f"{', '.join(groups.keys)}: {kind}{'; ' * bool(groups.uncounted)}{groups.uncounted}"


def _noise(noise: Noise) -> Iterator[Step]:
    if len(noise.sums) == 1:
        law = _OF_ONE.get(noise.law, noise.law)
        yield "noise", f"{noise.sums[0].said} + {law}{_spread(noise.sums[0])}", _price(noise.price)
        return
    how = _JOINT.get(noise.law, f"sums with {noise.law} noise")
    yield "noise", f"{len(noise.sums)} {how}", _price(noise.price)
    yield from (("", f"{each.said}{_spread(each)}", "") for each in noise.sums)


def _spread(each: Sum) -> str:
    if each.sensitivity is None:
        return ""
    by_group = each.law in ("discrete_laplace_of_two_groups", "discrete_k_norm_of_groups")  # sensitivity of one group
    far = f"{each.sensitivity.linf:.6g} in each group" if by_group else f"{each.sensitivity.l1:.6g}"
    return f"  scale {each.scale:.6g}, sensitivity {far}"


def _law(choice: Choice, *, stairs: bool) -> str:
    """Compare the two noise distributions; `stairs`: staircase noise replaces Laplace noise."""
    chosen = "staircase" if stairs else _LAWS[choice.chosen]
    words = f"{chosen}; {_LAWS[choice.other]} noise would be {choice.wider:.3g} times as wide"
    if choice.hides is not None:
        words += f" and hide groups {choice.hides:.3g} times as large"
    cells = math.ceil(choice.crossover)
    return f"{words} (for one count Gaussian is the narrower from {cells} cells a unit on)" if cells > 1 else words


def _draw(draw: PrivateSelection) -> Step:
    """Describe a selected value and its error bound, which holds for any data."""
    names = ", ".join(str(each) for each in draw.asked)
    if draw.off is None:
        return "exact", f"{names} of nobody's rows", _price(draw.price)
    how = draw.mechanism.replace("_", "-" if draw.mechanism == "permute_and_flip" else " ")
    return (
        "choose",
        f"{names}: one of {draw.points:,} values by {how}; {far_off_in_words(draw.off)}",
        _price(draw.price),
    )


def _formula(formula: Formula | Expr) -> str:
    if not isinstance(formula, Formula):
        return str(formula)
    if formula.by == "draw":
        return "as chosen"
    words = formula.kind.formula
    if words is None:
        return f"{formula.kind} from these"
    return words(_feature(formula.total), _feature(formula.count), formula.centre)


def _feature(labels: tuple[Label, ...]) -> str:
    return "(sum of shares)" if len(labels) > 1 else "".join(str(each) for each in labels)


def _expected(tree: ReleaseExplanation, expected: ExpectedNoise) -> list[str]:
    """Format the table of half-widths: a line for each output, and a second one for averages."""
    rows = []
    for each in expected.widths:
        rows.append((_short(each.name), each.halves))
        if each.worst:
            rows.append((f"{_short(each.name)}, at worst", each.worst))
    width = max(len("shown"), *(len(name) for name, _ in rows))
    first = " of the first level" if expected.of_levels else ""
    of = "units" if tree.protected.unit else "rows"
    lines = [f"Expected noise (95 %) for {'groups' + first if tree.groups.keys else 'tables'} of"]
    lines.append(" " * (width + 2) + "".join(f"{size:>11,} {of:>5}" for size in expected.sizes))
    lines += [f"  {name:<{width}}" + "".join(f"{plus_minus(half):>17}" for half in halves) for name, halves in rows]
    if tree.groups.chances is not None:
        chances = ", ".join(f"{size}: {percent(chance)}" for size, chance in tree.groups.chances.items())
        lines.append(f"  {'shown':<{width}}  chance by size {chances}")
    return lines


# Wording shared by notes of answers.


def numbered(count: int, what: str) -> str:
    """Format a count with its noun."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def percent(share: float | None) -> str:
    """Format a probability in percent."""
    percent = 100 * (share or 0.0)
    return f"{percent:.3g} %" if percent < 99.95 else "100 %" if percent > 99.9999 else f"{percent:.4f} %"


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:21] + "..."


def far_off_in_words(off: SelectionError) -> str:
    """Describe the error of a selected value: in ranks or counts, with the distance of candidates if it matters."""
    rows = f"{'about ' if off.several else ''}{numbered(off.rows, 'row')}"
    error = f"rank error at most {rows} (95 %)"
    if off.rank is not None:
        told = f"aims at rank {off.rank} from the {off.kind.end} value, {error}; arbitrary with fewer rows"
    elif not off.kind.quantile:
        told = f"its count is at most {rows} below the largest (95 %)"
    else:
        told = f"rank within {rows} of the best candidate's (95 %)" if off.partial else error
    return told if off.gaps is None else f"{told}; {_gaps(off.gaps)}"


def _gaps(gaps: Gaps) -> str:
    if gaps.least < gaps.most:
        return f"candidates {_distance(gaps.least, gaps.type)} to {_distance(gaps.most, gaps.type)} apart"
    return f"candidates {'up to ' * gaps.near}{_distance(gaps.most, gaps.type)} apart{' here' * gaps.near}"


def _distance(distance: float, kind: Type) -> str:
    """Format a distance with three digits, and with a unit for times."""
    if kind is Type.DATE:
        return f"{distance:.3g} day{'s' if distance != 1 else ''}"
    if kind is Type.TIMESTAMP:
        size, unit = next(each for each in _UNITS if distance >= each[0] or each[0] == 1)
        return f"{distance / size:.3g} {unit}"
    return f"{distance:,.0f}" if distance >= 1000 else f"{distance:.3g}"


def hidden_groups(size: int, chances: Sequence[float | None], unit: str | None, strategy: str) -> str:
    """Say how likely groups of this size and twice this size are shown; by weights, for people of the least weight."""
    first, second = (percent(each) for each in chances)
    of, more = "rows" if unit is None else "people", ""
    if strategy == BY_WEIGHTS:
        of, more = "people in as many groups as may count", "; of people in fewer groups more often"
    return (
        f"small groups are hidden (one of {size} {of} is shown {first} of the time, one of {2 * size}: {second}{more})"
    )

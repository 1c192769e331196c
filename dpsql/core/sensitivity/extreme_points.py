"""The largest norms of a sum of vertices, one of each block.

The largest size of a coordinate is the end of its range, the sum of the ranges of its blocks: exact. L1 and L2 are sums
over coordinates. Coordinates that share no block vary independently, and so do those that share no part, once it is
known which blocks are NULL. So each set of linked coordinates is enumerated separately, vertex by vertex. If it has
more than `MOST_VERTICES`, the sum of each coordinate's largest change is used, which is not less. For ordinary
aggregates this takes a few steps for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

from dpsql.schema.frozen import dataclass

MOST_VERTICES = 4_096

Steps = tuple[tuple[int, int], ...]
"""The amounts added to the coordinates: (place, steps) pairs."""
Element = tuple[Steps, ...]
"""Independent of all others: one of these is added, or a convex combination of them."""
Pattern = tuple[Element, ...]
"""Elements that are added together: one choice of each element."""
Block = tuple[Pattern, ...]
"""Alternative patterns, of which one is added; that of NULL is empty."""
ABSENT = (0, 0)


@dataclass(frozen=True, slots=True)
class Norms:
    """The largest size of each coordinate, cube norm (summed over classes), L1 norm and squared L2 norm."""

    each: tuple[int, ...]
    cube: int
    l1: int
    l2_squared: int


def joined(found: Iterable[Norms]) -> Norms:
    """Return the maximum of each norm."""
    norms = list(found)
    each = tuple(map(max, zip(*(one.each for one in norms), strict=True)))
    cube, l1 = max(one.cube for one in norms), max(one.l1 for one in norms)
    return Norms(each, cube, l1, max(one.l2_squared for one in norms))


@dataclass(frozen=True, slots=True)
class Cells:
    """The contribution of a unit in state (1, c), present with c rows, to a group: u + c v. ABSENT adds nothing.
    `classes`: the class of each coordinate, by default one class for all."""

    rows: tuple[Block, ...]
    units: tuple[Block, ...]
    dimension: int
    classes: tuple[int, ...] = ()

    def states(self, kept: int) -> list[tuple[int, int]]:
        """Return the states with `kept` rows, or with none if parts of units count the unit nevertheless."""
        return [(1, kept), (1, 0)] if self.units and kept else [(1, kept)]

    def norms(self, one: tuple[int, int], other: tuple[int, int] = ABSENT) -> Norms:
        """Return the norms of w - w', for w of one state and w' of the other."""
        blocks = [
            _minus(_scaled(block, state), _scaled(block, left))
            for kind, state, left in zip((self.units, self.rows), one, other, strict=True)
            for block in kind
        ]
        return _norms(blocks, self.dimension, self.classes)

    def apart(self, kept: int, left: int) -> int:
        """Return the largest squared L2 norm of w - w'."""
        states = product(self.states(kept), self.states(left))
        return max(self.norms(one, other).l2_squared for one, other in states)


def tied_blocks(tied: Mapping[tuple[bool, frozenset[Any]], list[Element]]) -> Iterator[tuple[bool, Block]]:
    """Yield blocks, of units or of rows, of elements that are NULL together; others separately if never NULL."""
    for (by_unit, absent), elements in tied.items():
        if absent:
            yield by_unit, (tuple(elements), ())
        else:
            yield from ((by_unit, ((element,),)) for element in elements)


def multiple(steps: Iterable[tuple[int, int]], factor: int) -> Steps:
    return tuple((place, step * factor) for place, step in steps)


def _scaled(block: Block, factor: int) -> Block:
    """Return the block multiplied by `factor`."""
    if factor == 1:
        return block
    if factor == 0:
        return ((),)
    return tuple(tuple(tuple(multiple(steps, factor) for steps in one) for one in pattern) for pattern in block)


def _minus(block: Block, other: Block) -> Block:
    """Return a block of one unit minus the same block of another: each pattern with each."""
    if other == ((),):
        return block
    opposite = _scaled(other, -1)
    return tuple(pattern + against for pattern in block for against in opposite)


def _sum(vectors: Iterable[Iterable[tuple[int, int]]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for steps in vectors:
        for place, step in steps:
            total[place] = total.get(place, 0) + step
    return total


def _places(element: Element) -> set[int]:
    return {place for steps in element for place, _ in steps}


def _norms(blocks: Sequence[Block], dimension: int, classes: Sequence[int]) -> Norms:
    """Return the largest norms of a sum of one pattern of each block."""
    each = _largest_of_each(blocks, dimension)
    constant = [block for block in blocks if _is_constant(block)]
    loose = [block for block in blocks if not _is_constant(block)]
    always = _sum(one[0] for block in constant for one in block[0])
    left, sizes = set(always), []
    for linked, members in _linked([set().union(*(_places(one) for one in chain(*block))) for block in loose]):
        left -= linked
        sizes.append(_of_patterns(linked, always, [loose[number] for number in members], each))
    l1, l2_squared = _added([*sizes, _of_sizes(always[place] for place in left)])
    return Norms(each, _cube(blocks, classes, each), l1, l2_squared)


def _cube(blocks: Sequence[Block], classes: Sequence[int], each: Sequence[int]) -> int:
    """Return the largest sum over classes of the largest coordinate of each class. For patterns that reach several
    classes, or too many patterns, sum the maxima of all classes, which is not less."""
    if not classes:
        return max(each)
    if math.prod(map(len, blocks)) > MOST_VERTICES:
        return _over_classes(enumerate(each), classes)
    spans = (spans_of(tuple(chain(*chosen))) for chosen in product(*blocks))
    return max(
        _over_classes(((place, max(-low, high)) for place, (low, high) in span.items()), classes) for span in spans
    )


def _over_classes(sizes: Iterable[tuple[int, int]], classes: Sequence[int]) -> int:
    largest: dict[int, int] = {}
    for place, size in sizes:
        largest[classes[place]] = max(largest.get(classes[place], 0), size)
    return sum(largest.values())


def _largest_of_each(blocks: Sequence[Block], dimension: int) -> tuple[int, ...]:
    return tuple(max(-least, most) for least, most in spans_in(blocks, dimension))


def spans_in(blocks: Sequence[Block], dimension: int) -> list[tuple[int, int]]:
    """Return the minimum and the maximum that one pattern of each block adds to each coordinate."""
    low, high = [0] * dimension, [0] * dimension
    for block in blocks:
        spans = [spans_of(pattern) for pattern in block]
        for place in set().union(*spans):
            low[place] += min(span.get(place, ABSENT)[0] for span in spans)
            high[place] += max(span.get(place, ABSENT)[1] for span in spans)
    return list(zip(low, high, strict=True))


def _is_constant(block: Block) -> bool:
    return len(block) == 1 and all(len(one) == 1 for one in block[0])


def _of_patterns(
    linked: set[int], always: Mapping[int, int], blocks: Sequence[Block], each: Sequence[int]
) -> tuple[int, int]:
    """Return the largest L1 norm and squared L2 norm at these places of `always` plus one pattern of each block."""
    many = math.prod(map(len, blocks))
    if many > MOST_VERTICES:
        return _of_sizes(each[place] for place in linked)
    found = [_largest(linked, always, list(chain(*chosen)), MOST_VERTICES // many) for chosen in product(*blocks)]
    return max(one for one, _ in found), max(two for _, two in found)


def _of_sizes(steps: Iterable[int]) -> tuple[int, int]:
    sizes = [abs(step) for step in steps]
    return sum(sizes), sum(size * size for size in sizes)


def _added(found: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(one for one, _ in found), sum(two for _, two in found)


def spans_of(pattern: Pattern) -> dict[int, tuple[int, int]]:
    """Return the minimum and the maximum that a pattern adds to each coordinate."""
    spans: dict[int, tuple[int, int]] = {}
    for element in pattern:
        held = [dict(steps) for steps in element]
        for place in _places(element):
            steps = [each.get(place, 0) for each in held]
            low, high = spans.get(place, ABSENT)
            spans[place] = (low + min(steps), high + max(steps))
    return spans


def _linked(sets: Sequence[set[int]]) -> Iterator[tuple[set[int], list[int]]]:
    """Yield unions of overlapping sets, and the numbers of their members."""
    if len(sets) == 1:
        yield sets[0], [0]
        return
    first_with: dict[int, int] = {}
    leads = list(range(len(sets)))
    for number, places in enumerate(sets):
        for place in places:
            other = first_with.setdefault(place, number)
            if other != number:
                one, two = sorted((_lead(leads, other), _lead(leads, number)))
                leads[two] = one
    joined: dict[int, tuple[set[int], list[int]]] = {}
    for number, places in enumerate(sets):
        own, members = joined.setdefault(_lead(leads, number), (set(), []))
        own |= places
        members.append(number)
    yield from joined.values()


def _lead(leads: list[int], number: int) -> int:
    """Return the first set among those that a set is joined with."""
    while leads[number] != number:
        leads[number] = number = leads[leads[number]]
    return number


def _largest(places: set[int], always: Mapping[int, int], elements: Sequence[Element], most: int) -> tuple[int, int]:
    """Return the largest L1 norm and squared L2 norm at these places of `always` plus one choice of each element,
    independently; enumerate at most `most` vertices."""
    fixed = (one[0] for one in elements if len(one) == 1)
    base = _sum(chain([[(place, always.get(place, 0)) for place in places]], fixed))
    free = [one for one in elements if len(one) > 1]
    left, sizes = set(places), []
    for linked, members in _linked([_places(one) for one in free]):
        left -= linked
        sizes.append(_of_elements(linked, base, [free[number] for number in members], most))
    return _added([*sizes, _of_sizes(base[place] for place in left)])


def _of_elements(linked: set[int], base: Mapping[int, int], elements: Sequence[Element], most: int) -> tuple[int, int]:
    """Return the same norms at places that share these elements: vertex by vertex, or each place separately."""
    if len(linked) == 1 or math.prod(map(len, elements)) > most:
        spans = spans_of(tuple(elements))
        return _of_sizes(max(abs(base[place] + end) for end in spans[place]) for place in linked)
    start = [(place, base[place]) for place in linked]
    found = [_of_sizes(_sum((start, *vertex)).values()) for vertex in product(*elements)]
    return max(one for one, _ in found), max(two for _, two in found)

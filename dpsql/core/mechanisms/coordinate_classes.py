"""Noise for coordinates in classes: an independent cube distribution for each class, all of one scale.

Classes group coordinates of mutually exclusive rows (`exact.CellPart`): one row changes those of one class only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.cost import Cost
from dpsql.core.mechanisms.noise import CubeLaplace, Noise, Reach
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True, slots=True)
class ClassLaplace:
    """P(x) proportional to exp(-N(x) / scale), where N(x) is the sum over classes of the largest |x_i| of each;
    `classes` has the class of each coordinate.

    Privacy: N is a norm, as a sum of max norms, so the ratio of the probabilities of any outcome is at most exp(N(v -
    v') / scale) by the triangle inequality. Over several groups the exponents add up to `Reach.cube_sensitivity` for
    a reach of these classes. This is the K-norm mechanism for a sum of cubes (Hardt, Talwar, STOC 2010, theorem 4.2).
    The cubes are independent because exp of a sum is a product.
    """

    exact_scale: Fraction
    classes: tuple[int, ...]
    epsilon: Fraction = field(default=Fraction(0), compare=False)

    @classmethod
    def calibrate(cls, reach: Reach, epsilon: Fraction) -> ClassLaplace:
        if len(reach.classes) != reach.dimension:
            raise ValueError("each coordinate has a class")
        return cls(CubeLaplace.calibrate(reach, epsilon).exact_scale, reach.classes, epsilon)

    @property
    def dimension(self) -> int:
        return len(self.classes)

    @property
    def name(self) -> str:
        return "discrete_k_norm_of_classes"

    @property
    def scale(self) -> float:
        return float(self.exact_scale)

    @property
    def spread(self) -> float:
        return max(each.spread for each in self._laws.values())

    def of(self, row: int) -> CubeLaplace:
        """Return the distribution of a coordinate's class."""
        return self._laws[self.classes[row]]

    @property
    def _laws(self) -> dict[int, CubeLaplace]:
        return {each: CubeLaplace(self.exact_scale, size) for each, size in Counter(self.classes).items()}

    def draw(self, cells: int) -> NDArray[Any]:
        drawn = {each: iter(law.draw(cells)) for each, law in self._laws.items()}
        return np.stack([next(drawn[each]) for each in self.classes])

    def upper_tail(self, t: int) -> Decimal:
        return max(law.upper_tail(t) for law in set(self._laws.values()))

    def loss(self, reach: Reach) -> Cost:
        if reach.classes != self.classes:
            raise ValueError("the reach is of other classes than the noise")
        return Cost.of(max(self.epsilon, Fraction(reach.cube_sensitivity) / self.exact_scale))


def law_of(noise: Noise, places: tuple[int, ...], place: int) -> Noise:
    """Return the noise distribution of one of a vector's places, alone or together with the others of its class."""
    return noise.of(places.index(place)) if isinstance(noise, ClassLaplace) else noise

"""The random delay of an answer, which makes its response time differentially private.

**Setting.** A run takes T microseconds, and an answer is seen at the first point of a public grid after T + X.
Neighbours change T by at most `reach` microseconds, rounded up (`row_work`). X = max(0, C + Y), with Y discrete
Laplace noise of scale s = reach / epsilon, and C = `shift`.

**Theorem.** The point at which an answer is seen is (epsilon, delta)-differentially private.

Proof. Let M be the first point after T + C + Y. For each point g, M <= g if and only if Y <= floor(g - T) - C, and
floor(g - T) changes by at most `reach`: so M is a function of an integer of sensitivity `reach` with discrete Laplace
noise, and epsilon-DP. The delay differs from C + Y only if Y < -C, which has probability t = e^(-(C + 1) / s) / (1 +
e^(-1 / s)) <= e^(-C / s). For each set S of points, P[seen in S] <= P[M in S] + t <= e^epsilon P[M' in S] + t <=
e^epsilon (P[seen' in S] + t) + t. So delta = (1 + e^epsilon) t is enough, which C = ceil(s ln((1 + e^epsilon) /
delta)), rounded up, gives. Without the shift, answers would be seen at or before T.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.core.cost import Cost
from dpsql.core.events import ApproximateStep
from dpsql.core.mechanisms.samplers import discrete_laplace
from dpsql.schema.frozen import dataclass

LEAST_REACH = 50
"""Microseconds by which a row of cheap expressions changes a run, as far as that can be measured."""


@dataclass(frozen=True, slots=True)
class ResponseTime:
    """Privacy loss of the response time of each answer: epsilon > 0, 0 < delta < 1."""

    epsilon: Fraction
    delta: Fraction

    @property
    def cost(self) -> Cost:
        """The charge for each query."""
        return Cost.of(self.epsilon, self.delta)

    @property
    def event(self) -> ApproximateStep:
        return ApproximateStep(self.epsilon, self.delta)

    def scale(self, reach: int) -> Fraction:
        """The scale of the noise, in microseconds."""
        return Fraction(max(LEAST_REACH, reach) + 1) / self.epsilon

    def shift(self, reach: int) -> int:
        """The middle of the delay, in microseconds."""
        spread = math.log1p(math.exp(float(self.epsilon))) - math.log(self.delta)
        return math.ceil(float(self.scale(reach)) * spread * (1 + 1e-9)) + 1

    def draw(self, reach: int) -> int:
        """Return a delay in microseconds, for a run that one privacy unit changes by at most `reach` microseconds."""
        return max(0, self.shift(reach) + int(discrete_laplace(self.scale(reach), 1)[0]))

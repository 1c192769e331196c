"""The owner's budget, and shares of it for analysts."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from dpsql.core.ledger.filters import Filter
from dpsql.core.loss import PrivacyLoss, as_delta, as_epsilon, show
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter
from dpsql.schema.argument_names import checked_methods
from dpsql.schema.frozen import dataclass


@checked_methods
@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """The maximum cost of all answers together.

    Parameters
    ----------
    epsilon, delta : number
        The guarantee.
    conversion_delta : number, optional
        The part of delta at which rho is converted to epsilon (accountants "auto" and "zcdp"); by default a half. Steps
        have the rest.
    analysts : mapping of str to Budget, or Budget, optional
        A Budget for each analyst by name, "*" for all others; or one Budget for each. Without it only the total counts.

    Raises
    ------
    InvalidPrivacyParameter
        If a number is out of range, or a share exceeds the total.
    InvalidArgument
        If `analysts` has another form.
    """

    loss: PrivacyLoss
    conversion_delta: Fraction | None
    analysts: tuple[tuple[str, Budget], ...]

    def __init__(
        self, epsilon: object, delta: object = 0, *, conversion_delta: object = None, analysts: object = None
    ) -> None:
        object.__setattr__(self, "loss", PrivacyLoss(as_epsilon(epsilon), as_delta(delta)))
        said = None if conversion_delta is None else as_delta(conversion_delta, "conversion_delta")
        object.__setattr__(self, "conversion_delta", said)
        object.__setattr__(self, "analysts", _analysts(analysts))
        for name, share in self.analysts:
            self._check(name, share)

    def _check(self, name: str, share: Budget) -> None:
        """Reject a share above the whole: it could never be spent, and is likely a mistake."""
        for word in ("epsilon", "delta"):
            part, whole = (getattr(each.loss, word) for each in (share, self))
            if part > whole:
                raise InvalidPrivacyParameter(
                    f'the share of analyst "{name}" has {word} {show(part)}, above the whole {show(whole)}.',
                    hint="Give the analyst less, or the budget more.",
                )

    @classmethod
    def recorded(cls, whole: Budget, analysts: Mapping[str, Budget]) -> Budget:
        """Return a budget as a ledger's file has it: in files of earlier versions shares may exceed the whole."""
        object.__setattr__(whole, "analysts", _analysts(analysts or None))
        return whole

    @property
    def epsilon(self) -> float:
        return float(self.loss.epsilon)

    @property
    def delta(self) -> float:
        return float(self.loss.delta)

    def with_analysts(self, shares: tuple[tuple[str, Budget], ...]) -> Budget:
        """Return the same budget with these shares."""
        return Budget(self.loss.epsilon, self.loss.delta, conversion_delta=self.conversion_delta, analysts=dict(shares))

    def renewed(self, epsilon: object, delta: object) -> Budget:
        """Return another total, with the same part for conversion and the same shares."""
        return Budget(epsilon, delta, conversion_delta=self.conversion_delta, analysts=dict(self.analysts))

    def filter(self, accountant: str) -> Filter:
        """Return the filter of the whole."""
        return Filter(self.loss, accountant, self.conversion_delta)

    def filter_of(self, analyst: str | None, accountant: str) -> Filter | None:
        """Return the filter of one analyst; None without limits. Raises InvalidArgument for an analyst not listed."""
        if not self.analysts:
            return None
        limits = dict(self.analysts)
        if analyst is None:
            raise InvalidArgument(
                "this budget has limits for each analyst, and the session does not say whose it is.",
                hint='Open it with analyst="name".',
            )
        share = limits.get(analyst, limits.get("*"))
        if share is None:
            raise InvalidArgument(f'analyst "{analyst}" has no share of this budget.', hint="The owner lists who has.")
        return share.filter(accountant)

    def __repr__(self) -> str:
        more = "" if self.conversion_delta is None else f", conversion_delta={show(self.conversion_delta)}"
        if self.analysts:
            more += f", analysts={dict(self.analysts)!r}"
        return f"Budget(epsilon={show(self.loss.epsilon)}, delta={show(self.loss.delta)}{more})"


def _analysts(shares: object) -> tuple[tuple[str, Budget], ...]:
    if shares is None or shares == {}:
        return ()
    if isinstance(shares, Budget):
        shares = {"*": shares}
    if not isinstance(shares, Mapping) or not all(
        isinstance(name, str) and name and isinstance(share, Budget) and not share.analysts
        for name, share in shares.items()
    ):
        raise InvalidArgument(
            "analysts must be a Budget for each, or name -> Budget.", hint='Write analysts={"ann": dpsql.Budget(1)}.'
        )
    return tuple(sorted(shares.items()))

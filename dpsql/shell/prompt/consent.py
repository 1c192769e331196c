"""Confirmation of large spends before they are charged."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpsql.core.loss import as_epsilon
from dpsql.errors import ConfirmationRequired, InvalidPrivacyParameter
from dpsql.schema.frozen import dataclass
from dpsql.session.costs import Quote, check_confirmed


@dataclass(frozen=True)
class Consent:
    """Confirmations given in advance: of everything, or of queries up to an epsilon; otherwise a person is asked, if
    there is one.

    at_most: an epsilon above which queries are refused despite any confirmation. ask: shows a text to a person and
    returns whether the answer was yes. hint: how to confirm a spend in the interface that shows the refusal; `{}` in it
    becomes the epsilon of the query.
    """

    everything: bool = False
    up_to: float | None = None
    at_most: float | None = None
    ask: Callable[[str], bool] | None = None
    hint: str = ""

    def __post_init__(self) -> None:
        """Raise InvalidPrivacyParameter for a number that is not a valid epsilon."""
        if self.up_to is not None:
            as_epsilon(self.up_to, "--yes-up-to")
        if self.at_most is not None:
            as_epsilon(self.at_most, "--max-epsilon")

    def check(self, quote: Quote) -> None:
        """Raise ConfirmationRequired, or InvalidPrivacyParameter above `at_most`; nothing is charged then."""
        if self.at_most is not None and quote.epsilon > as_epsilon(self.at_most, "--max-epsilon"):
            raise InvalidPrivacyParameter(
                f"this query would spend {quote.cost}, which is above --max-epsilon {self.at_most:g}. "
                "Nothing was run, nothing was charged."
            )
        if self.everything:
            return
        try:
            up_to = Fraction(0) if self.up_to is None else as_epsilon(self.up_to, "--yes-up-to")
            check_confirmed(quote, up_to)
        except ConfirmationRequired as refusal:
            question = f"This query would spend {quote.cost}, {quote.reason}. Spend it? [y/N] "
            if self.ask is None or not self.ask(question):
                refusal.hint = self.hint.format(refusal.about["epsilon"])
                raise


BATCH_HINT = "--yes-up-to {} lets it through, --yes whatever it costs."
MAGIC_HINT = "Run the cell with --yes, or with --yes-up-to {}."
PROMPT_HINT = "Ask again, and say y."


def asked_on_a_line(read: Callable[[str], str]) -> Callable[[str], bool]:
    """Return a function that asks with a one-line prompt; the end of input, or a word other than y or yes, is a no."""

    def ask(question: str) -> bool:
        try:
            return read(question).strip().casefold() in ("y", "yes")
        except EOFError:
            return False

    return ask

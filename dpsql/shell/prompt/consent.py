"""A large spend is asked about before it is charged."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpsql.core.loss import as_epsilon
from dpsql.errors import ConfirmationRequired, InvalidPrivacyParameter
from dpsql.schema.frozen import dataclass
from dpsql.session.costs import Quote, check_confirmed


@dataclass(frozen=True)
class Consent:
    """What was confirmed beforehand: everything, or queries up to an epsilon; else a person is asked, if there is one.

    at_most: an epsilon above which a query is refused, whatever was confirmed.
    ask: shows a text to a person, and says whether the answer was yes. hint: how a spend is confirmed in the place
    where the refusal is read; `{}` in it becomes the epsilon of the query.
    """

    everything: bool = False
    up_to: float | None = None
    at_most: float | None = None
    ask: Callable[[str], bool] | None = None
    hint: str = ""

    def __post_init__(self) -> None:
        """Raises InvalidPrivacyParameter for a number that is no epsilon."""
        if self.up_to is not None:
            as_epsilon(self.up_to, "--yes-up-to")
        if self.at_most is not None:
            as_epsilon(self.at_most, "--max-epsilon")

    def check(self, quote: Quote) -> None:
        """Raises ConfirmationRequired, and InvalidPrivacyParameter for more than may be, with nothing charged."""
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
    """Asks by a prompt that gives one line; the end of input, or another word than y or yes, is a no."""

    def ask(question: str) -> bool:
        try:
            return read(question).strip().casefold() in ("y", "yes")
        except EOFError:
            return False

    return ask

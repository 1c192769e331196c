"""The query form: its fields, read as a query with its terms, and its cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from dpsql.core.cost import Cost
from dpsql.core.ledger.filters import RemainingBudget
from dpsql.core.loss import show
from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.errors import InvalidArgument
from dpsql.remote.server import requests
from dpsql.remote.server.problems import Problem
from dpsql.schema.frozen import dataclass
from dpsql.session.parameter_values import parameter

if TYPE_CHECKING:
    from dpsql.session.costs import Quote

FIELDS = ("sql", "epsilon", "delta", "rho", "error", "confidence", "mechanism", "params", "fresh")
_NUMBERS = ("epsilon", "delta", "rho", "error", "confidence")
USUAL = {"epsilon": "0.1", "mechanism": "auto"}
_MORE = ("delta", "rho", "error", "confidence", "params", "fresh")


def fields_of(body: bytes) -> dict[str, str]:
    """Return the fields of a form. Raises Problem."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:  # undecodable bytes, or too many fields
        raise Problem(400) from None
    fields = {name: value.replace("\r\n", "\n") for name, value in pairs}
    if len(fields) < len(pairs):
        raise Problem(400)
    return fields


@dataclass(frozen=True)
class AskForm:
    """The content of the form. nonce: random, unique to the page: a query with it is paid once; quoted: the query and
    the cost that the page showed."""

    fields: Mapping[str, str]
    nonce: str
    quoted: str = ""

    @classmethod
    def new(cls, fields: Mapping[str, str] | None = None) -> AskForm:
        """Return a form with a new nonce."""
        return cls(dict(USUAL if fields is None else fields), fresh_key().hex()[:32])

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> AskForm:
        """Return a submitted form."""
        filled = {name: fields.get(name, "") for name in FIELDS}
        nonce = fields.get("nonce", "")
        if not (nonce.isascii() and nonce.isalnum() and len(nonce) == 32):
            return cls(filled, fresh_key().hex()[:32])
        return cls(filled, nonce, fields.get("quoted", "")[:400])

    @property
    def more(self) -> bool:
        """True if any field other than the text and epsilon is filled in."""
        return any(self.fields.get(name) for name in _MORE) or self.fields.get("mechanism", "auto") != "auto"

    def terms(self) -> dict[str, Any]:
        """Return the query as a program would send it. Raises InvalidArgument."""
        terms: dict[str, Any] = {"sql": self.fields.get("sql", "").strip().removesuffix(";").rstrip()}
        if not terms["sql"]:
            raise InvalidArgument("there is no query.", hint="Write one: SELECT COUNT(*) AS n FROM a table.")
        for name in _NUMBERS:
            text = self.fields.get(name, "").strip()
            if text:
                terms[name] = _number(name, text)
        if self.fields.get("mechanism", "auto") not in ("", "auto"):
            terms["mechanism"] = self.fields["mechanism"]
        if self.fields.get("fresh"):
            terms["fresh"] = True
        lines = [line for line in self.fields.get("params", "").splitlines() if line.strip()]
        if lines:
            terms["params"] = dict(map(parameter, lines))
        return terms

    def key(self, terms: Mapping[str, Any]) -> str:
        """Return the idempotency key: the same for the same query of the same page."""
        return hashlib.sha256(f"{self.nonce}\n{_written(terms)}".encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def promised(self, terms: Mapping[str, Any], cost: Cost) -> bool:
        """Return whether the page showed this query, at this cost or a higher one."""
        question, _, price = self.quoted.partition(":")
        try:
            shown = [Fraction(each) for each in price.split(",")]
        except (ValueError, ZeroDivisionError):
            return False
        now = _parts(cost)
        return (
            question == _hashed(terms)
            and len(shown) == len(now)
            and all(a <= b for a, b in zip(now, shown, strict=True))
        )


def quoted(terms: Mapping[str, Any], cost: Cost) -> str:
    """Return the form's hidden record of the query and the cost that it shows."""
    return f"{_hashed(terms)}:{','.join(map(str, _parts(cost)))}"


def _parts(cost: Cost) -> list[Fraction]:
    """Return the parts of a cost. Without an epsilon it is paid in rho only."""
    return [Fraction(0) if cost.epsilon is None else cost.epsilon, cost.delta, cost.rho, cost.hidden]


def _hashed(terms: Mapping[str, Any]) -> str:
    return hashlib.sha256(_written(terms).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _written(terms: Mapping[str, Any]) -> str:
    return json.dumps(terms, sort_keys=True, default=requests.written)


def _number(name: str, text: str) -> float | int:
    try:
        value = float(text)
    except ValueError:
        raise InvalidArgument(f"{name} must be a number, got {text[:40]!r}.") from None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


@dataclass(frozen=True)
class Price:
    """A cost in words: the line above the button, the button's label (empty if the query cannot be run), and the hidden
    record of the cost."""

    line: str
    button: str
    quoted: str
    warning: str = ""

    @classmethod
    def of(cls, terms: Mapping[str, Any], quote: Quote, whole: str) -> Price:
        """Describe a quoted cost. whole: the budget's epsilon, in words."""
        left = left_in_words(quote.left, whole)
        carried = quoted(terms, quote.cost)
        if quote.replayed:
            return cls(f"Answered before: spends nothing · {left}", "Ask, spends nothing", carried)
        if quote.cost.free:
            return cls(f"Spends nothing · {left}", "Ask, spends nothing", carried)
        if not quote.admitted:
            return cls(f"Would spend {quote.cost}, which is more than is left · {left}", "", carried)
        most = quote.most or 0
        more = f" · enough for {most:,} like this" if quote.most is not None else ""
        warning = f"This spends {quote.cost}, {quote.reason}." if quote.reason else ""
        return cls(f"Spends {quote.cost} · {left}{more}", f"Ask, spends {_short(quote.cost)}", carried, warning)


def left_in_words(left: RemainingBudget, whole: str) -> str:
    """Describe the remaining budget. whole: the budget's epsilon, in words."""
    delta = f", delta {show(left.delta)}" if left.delta else ""
    return f"left epsilon {show(left.epsilon)} of {whole}{delta}"


def _short(cost: Cost) -> str:
    """ "0.5", or with its privacy measure if that is not only epsilon."""
    if cost.epsilon is None:
        return f"rho {show(cost.rho)}" + (f" and delta {show(cost.delta)}" if cost.delta else "")
    return show(cost.epsilon, up=True) + (f" and delta {show(cost.delta, up=True)}" if cost.delta else "")

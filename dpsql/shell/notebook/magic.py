"""The Jupyter magics: %dpsql and %%dpsql run queries; %dpsql also shows tables, budget and cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dpsql.answer.base import BaseExplanation, BaseResult
from dpsql.answer.number_format import printable
from dpsql.core.ledger.budget import Budget
from dpsql.errors import DPSQLError, InvalidArgument, did_you_mean
from dpsql.session.advice import Place, error_text
from dpsql.shell.notebook.magic_options import (
    MORE,
    USAGE,
    Options,
    ResultVariable,
    is_query,
    kept_in,
    number_of,
    read_options,
)
from dpsql.shell.notebook.sessions import Notebook
from dpsql.shell.output.describe import list_budget, list_ledger
from dpsql.shell.output.listing import Listing, listing_of
from dpsql.shell.prompt.asker import Asker
from dpsql.shell.prompt.consent import MAGIC_HINT, Consent
from dpsql.shell.statements import names_asked_for, statements

_Answer = TypeVar("_Answer")
Shown = BaseResult | BaseExplanation | Listing


class Magic:
    """Implementation of %dpsql and %%dpsql in one IPython shell, whose variables it reads."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self._variables = variables
        self._notebook = Notebook(variables)

    def line(self, line: str) -> Shown | None:
        """%dpsql [OPTIONS] [NAME <<] SELECT ... | tables | add NAME | budget [EPSILON [DELTA]] | ledger |
        explain SELECT ... | connect NAME or URL"""
        return _cleanly(lambda: self._run_line(line))

    def cell(self, line: str, cell: str) -> Shown | None:
        """%%dpsql [OPTIONS] [NAME <<] and a query below: its answer, shown or kept as NAME."""
        return _cleanly(lambda: self._run_cell(line, cell))

    def _run_cell(self, line: str, cell: str) -> Shown | None:
        options = read_options(line)
        kept = kept_in(options.rest)
        if kept.rest:
            raise InvalidArgument(f"%%dpsql cannot read {kept.rest!r}; the query stands below that line.", hint=MORE)
        return self._ask(options, kept, cell)

    def _run_line(self, line: str) -> Shown | None:
        if is_query(line):
            options = read_options(line)
            kept = kept_in(options.rest)
            return self._ask(options, kept, kept.rest)
        word, *more = line.split(maxsplit=1) or ["help"]
        argument = more[0].strip() if more else ""
        if word == "explain":
            options = read_options(argument)
            return self._asker(options, options.rest).explain(_one(options.rest))
        told: dict[str, Callable[[str], str]] = {
            "tables": lambda _: self._tables(),
            "add": self._add,
            "budget": self._budget,
            "ledger": lambda _: list_ledger(self._notebook.session()),
            "connect": lambda name: list_budget(self._notebook.connect(name)),
            "help": lambda _: USAGE,
        }
        if word not in told:
            near = did_you_mean(word, [*told, "explain"])
            raise InvalidArgument(f'%dpsql does not know "{word}".{near}', hint=MORE)
        print(told[word](argument))
        return None

    def _ask(self, options: Options, kept: ResultVariable, text: str) -> Shown | None:
        if options.plot:
            _check_plots()
        answer = self._answer(options, _one(text))
        if kept.name is not None:
            self._variables[kept.name] = answer
            if not kept.shown:
                return None
        if options.plot and isinstance(answer, BaseResult):
            _draw(answer)
        return answer

    def _answer(self, options: Options, sql: str) -> Shown:
        asker = self._asker(options, sql)
        listing = listing_of(sql, asker.session)
        if listing is not None:
            return listing
        return asker.explain(sql) if options.dry_run else asker.ask(sql, fresh=options.fresh)

    def _asker(self, options: Options, sql: str) -> Asker:
        named = {name: self._variables[name] for name in names_asked_for(sql) if name in self._variables}
        how = (options.delta, options.rho, options.mechanism, options.error)
        consent = Consent(options.yes, options.yes_up_to, options.max_epsilon, hint=MAGIC_HINT)
        return Asker(self._notebook.session(sql), options.epsilon, *how, named, consent, options.dialect)

    def _tables(self) -> str:
        return "\n".join(map(printable, self._notebook.tables())) or "no tables: declare one with dpsql.declare."

    def _add(self, name: str) -> str:
        self._notebook.add(name)
        return self._tables()

    def _budget(self, argument: str) -> str:
        numbers = [number_of(word, "a budget") for word in argument.split()]
        if len(numbers) > 2:
            raise InvalidArgument("a budget is an epsilon and, if need be, a delta.", hint="%dpsql budget 3 1e-6")
        session = self._notebook.state_budget(Budget(*numbers)) if numbers else self._notebook.session()
        return list_budget(session)


def _one(text: str) -> str:
    """Return the only statement of the text, without its semicolon; several are left for the session to refuse."""
    found = statements(text)
    return found[0] if len(found) == 1 else text


def _check_plots() -> None:
    """Check that plots can be drawn, before the answer is paid for. Raises InvalidArgument."""
    from dpsql.answer.export_formats import library

    library("matplotlib.pyplot", "a plot")


def _draw(answer: BaseResult) -> None:
    """Display the plot above the table, or a message for an answer without numbers."""
    from IPython.display import display

    try:
        display(answer.plot())
    except InvalidArgument as refusal:
        print(refusal)


def _cleanly(ask: Callable[[], _Answer]) -> _Answer:
    """Return the answer, or raise the error in a form that a notebook shows as one block of text."""
    try:
        return ask()
    except DPSQLError as error:
        lines = error_text(error, Place.NOTEBOOK).split("\n")
        setattr(error, "_render_traceback_", lambda: lines)  # noqa: B010 - IPython's name for it
        raise

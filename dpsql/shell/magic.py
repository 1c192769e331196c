"""The Jupyter magics: %%dpsql asks, %dpsql tells of tables, budget and cost."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from typing import Any, TypeVar

from IPython.core.magic import no_var_expand

from dpsql.answer.explain import Explanation
from dpsql.answer.result import Result
from dpsql.core.ledger.budget import Budget
from dpsql.errors import DPSQLError, InvalidArgument, did_you_mean
from dpsql.schema.frozen import dataclass
from dpsql.shell.asker import Asker
from dpsql.shell.describe import list_budget, list_ledger
from dpsql.shell.notebook import Notebook
from dpsql.shell.show import error_text, printable
from dpsql.shell.statements import statements

_NAME = "dpsql"
_EPSILON_HINT = "Here: %%dpsql --epsilon 1."
_OPTION = re.compile(r"(--[^\s=]*)(?:=|\s+|$)(\S*)\s*")
_Answer = TypeVar("_Answer")
_USAGE = """\
%%dpsql [--epsilon X] [--delta X] [NAME <<]    ask the query in the cell; NAME << keeps the answer silently;
                                               --rho X in place of epsilon; --fresh draws anew, and pays
%dpsql tables                                  what can be asked about
%dpsql budget [EPSILON [DELTA]]                what is left; or state what may be spent on declared tables
%dpsql ledger                                  every charge so far
%dpsql explain [--epsilon X] [--delta X] SQL   what a query would do and cost; free
%dpsql connect NAME                            ask the dpsql.Session in the variable NAME"""
_NUMBERS = ("--epsilon", "--delta", "--rho")
_FRESH = "--fresh"


@dataclass(frozen=True)
class Options:
    """What stands before a query: its epsilon or rho, its delta, whether it is drawn anew, and the text after them."""

    epsilon: float | None
    delta: float | None
    rest: str
    rho: float | None = None
    fresh: bool = False


class Magic:
    """What stands behind %dpsql and %%dpsql in one shell, whose variables it reads."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self._variables = variables
        self._notebook = Notebook(variables)

    @no_var_expand
    def line(self, line: str) -> Explanation | None:
        """%dpsql tables | budget [EPSILON [DELTA]] | explain [--epsilon X] [--delta X] SQL | connect NAME"""
        return _cleanly(lambda: self._run_line(line))

    @no_var_expand
    def cell(self, line: str, cell: str) -> Result | Explanation | None:
        """%%dpsql [--epsilon X] [--delta X] [NAME <<] and a query below: its answer, shown or kept as NAME."""
        return _cleanly(lambda: self._run_cell(line, cell))

    def _run_cell(self, line: str, cell: str) -> Result | Explanation | None:
        options = read_options(line)
        name = _name_in(options.rest)
        answer = self._asker(options, cell).ask(_one(cell), fresh=options.fresh)
        if name is None:
            return answer
        self._variables[name] = answer
        return None

    def _run_line(self, line: str) -> Explanation | None:
        word, *more = line.split(maxsplit=1) or ["help"]
        argument = more[0].strip() if more else ""
        if word == "explain":
            options = read_options(argument)
            return self._asker(options, options.rest).explain(_one(options.rest))
        told: dict[str, Callable[[str], str]] = {
            "tables": lambda _: self._tables(),
            "budget": self._budget,
            "ledger": lambda _: list_ledger(self._notebook.session()),
            "connect": lambda name: list_budget(self._notebook.connect(name)),
            "help": lambda _: _USAGE,
        }
        if word not in told:
            near = did_you_mean(word, [*told, "explain"])
            raise InvalidArgument(f'%dpsql does not know "{word}".{near}', hint=_USAGE)
        print(told[word](argument))
        return None

    def _asker(self, options: Options, sql: str) -> Asker:
        return Asker(self._notebook.session(sql), options.epsilon, options.delta, options.rho)

    def _tables(self) -> str:
        return "\n".join(map(printable, self._notebook.tables())) or "no tables: declare one with dpsql.declare."

    def _budget(self, argument: str) -> str:
        numbers = [_number(word) for word in argument.split()]
        if len(numbers) > 2:
            raise InvalidArgument("a budget is an epsilon and, if need be, a delta.", hint="%dpsql budget 3 1e-6")
        session = self._notebook.state_budget(Budget(*numbers)) if numbers else self._notebook.session()
        return list_budget(session)


def register(shell: Any) -> None:
    """Give the magics to an IPython shell; a second time changes nothing, so that no budget is forgotten."""
    before = shell.magics_manager.magics["cell"].get(_NAME)
    if not isinstance(getattr(before, "__self__", None), Magic):
        magic = Magic(shell.user_ns)
        shell.register_magic_function(magic.line, "line", _NAME)
        shell.register_magic_function(magic.cell, "cell", _NAME)


def read_options(line: str) -> Options:
    """The options at the start of a line, as --epsilon 1 or --epsilon=1. Raises InvalidArgument."""
    values: dict[str, float] = {}
    fresh = False
    rest = line.strip()
    while match := _OPTION.match(rest):
        option, value = match.groups()
        if option == _FRESH:
            fresh, rest = True, rest[len(_FRESH) :].strip()
            continue
        if option not in _NUMBERS:
            near = did_you_mean(option, [*_NUMBERS, _FRESH])
            raise InvalidArgument(f'%dpsql has no option "{option}".{near}', hint=_USAGE)
        values[option] = _number(value, option)
        rest = rest[match.end() :]
    return Options(values.get("--epsilon"), values.get("--delta"), rest, values.get("--rho"), fresh)


def _name_in(text: str) -> str | None:
    """The variable in `NAME <<`; None where nothing stands there."""
    if not text:
        return None
    name, arrow, rest = (part.strip() for part in text.partition("<<"))
    if not arrow or rest:
        raise InvalidArgument(f"%%dpsql cannot read {text!r}; the query stands below that line.", hint=_USAGE)
    if not name.isidentifier() or keyword.iskeyword(name):
        raise InvalidArgument(f"{name!r} is no name for a variable.")
    return name


def _one(text: str) -> str:
    """The one statement of the text, without its semicolon; several are the library's to refuse."""
    found = statements(text)
    return found[0] if len(found) == 1 else text


def _number(text: str, name: str = "a budget") -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidArgument(f"{name} must be a number, got {text!r}.") from None


def _cleanly(ask: Callable[[], _Answer]) -> _Answer:
    """The answer; or the error, which a notebook shows as one block of text and stops at."""
    try:
        return ask()
    except DPSQLError as error:
        lines = error_text(error, _EPSILON_HINT).split("\n")
        setattr(error, "_render_traceback_", lambda: lines)  # noqa: B010 - IPython's name for it
        raise

"""Options before a query in a notebook, and the variable for its answer."""

from __future__ import annotations

import keyword
import re

from dpsql.errors import InvalidArgument, did_you_mean
from dpsql.schema.frozen import dataclass

NUMBERS = ("--epsilon", "--delta", "--rho", "--error", "--yes-up-to", "--max-epsilon")
WORDS = ("--mechanism", "--dialect")
FLAGS = ("--fresh", "--plot", "--dry-run", "--yes")
_OPTION = re.compile(r"(--[^\s=]*)(?:=|\s+|$)(\S*)\s*")
_BEGINS_SQL = re.compile(r"\s*(?:\(|(?:select|with|explain\s+privacy|show|describe|desc)\s)", re.IGNORECASE)
_KEPT = re.compile(r"([^<'\"]*?)\s*(=?)\s*<<(.*)", re.DOTALL)
USAGE = """\
%dpsql SELECT ...          ask; or %%dpsql with the query in the cell below it. In front of the query may stand
    --epsilon X --delta X --rho X --error X --mechanism WORD     what it may spend, and how
    --dialect NAME                                               whose SQL it is: bigquery, postgres ...
    --fresh --plot --dry-run                                     drawn anew, and paid; drawn; explained, and free
    --yes --yes-up-to X --max-epsilon X                          a large spend is meant; refused above that
    NAME <<  or  NAME= <<                                        keep the answer, silently or shown
    :name in the query is the number, text, date or truth value in the variable of that name
%dpsql tables                                  what can be asked about
%dpsql add NAME                                ask about the declared table in the variable NAME too
%dpsql budget [EPSILON [DELTA]]                what is left; or state what may be spent on declared tables
%dpsql ledger                                  every charge so far
%dpsql explain [--epsilon X] [--delta X] SQL   what a query would do and cost; free
%dpsql connect NAME                            ask the dpsql.Session in the variable NAME
%dpsql connect URL                             ask a server; the token is in DPSQL_TOKEN, or asked for"""

MORE = "%dpsql help lists what it knows."


@dataclass(frozen=True)
class Options:
    """The cost and mechanism of a query, whether it is redrawn, plotted or only explained, and the text after the
    options."""

    epsilon: float | None
    delta: float | None
    rest: str
    rho: float | None = None
    fresh: bool = False
    error: float | None = None
    mechanism: str = "auto"
    plot: bool = False
    dry_run: bool = False
    yes: bool = False
    yes_up_to: float | None = None
    max_epsilon: float | None = None
    dialect: str | None = None


@dataclass(frozen=True)
class ResultVariable:
    """The variable for an answer, whether the answer is also shown, and the remaining text."""

    name: str | None
    shown: bool
    rest: str


def read_options(line: str) -> Options:
    """Parse the options at the start of a line, as --epsilon 1 or --epsilon=1. Raises InvalidArgument."""
    numbers: dict[str, float] = {}
    words: dict[str, str] = {}
    flags: set[str] = set()
    rest = line.strip()
    while match := _OPTION.match(rest):
        option, value = match.groups()
        if option in FLAGS:
            flags.add(option)
            rest = rest[len(option) :].strip()
            continue
        if option in NUMBERS:
            numbers[option] = number_of(value, option)
        elif option in WORDS:
            words[option] = value
        else:
            near = did_you_mean(option, [*NUMBERS, *WORDS, *FLAGS])
            raise InvalidArgument(
                f'%dpsql has no option "{option}".{near}',
                hint=f"Options are {', '.join([*NUMBERS, *WORDS, *FLAGS])}. {MORE}",
            )
        rest = rest[match.end() :]
    epsilon, delta, rho, error, yes_up_to, max_epsilon = map(numbers.get, NUMBERS)
    fresh, plot, dry_run, yes = (flag in flags for flag in FLAGS)
    mechanism = words.get("--mechanism", "auto")
    options = (fresh, error, mechanism, plot, dry_run, yes, yes_up_to, max_epsilon, words.get("--dialect"))
    return Options(epsilon, delta, rest, rho, *options)


def is_query(line: str) -> bool:
    """Return whether a line is a query rather than a command such as budget."""
    return line.startswith("--") or "<<" in line or _BEGINS_SQL.match(line) is not None


def kept_in(text: str) -> ResultVariable:
    """Parse the text before `<<`, if any: `out << SELECT ...`, `out= << SELECT ...`. Raises InvalidArgument."""
    match = _KEPT.fullmatch(text)
    if match is None or _BEGINS_SQL.match(text):
        return ResultVariable(None, shown=True, rest=text)
    name, shown, rest = match[1].strip(), bool(match[2]), match[3].strip()
    if not name.isidentifier() or keyword.iskeyword(name):
        raise InvalidArgument(f"{name!r} is no name for a variable.")
    return ResultVariable(name, shown, rest)


def number_of(text: str, name: str) -> float:
    """Return the number of an option. Raises InvalidArgument."""
    try:
        return float(text)
    except ValueError:
        raise InvalidArgument(f"{name} must be a number, got {text!r}.") from None

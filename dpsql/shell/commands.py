"""The prompt's commands: a word after a dot, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpsql.core.loss import as_delta, as_epsilon, as_rho
from dpsql.errors import InvalidArgument, did_you_mean
from dpsql.schema.columns import TableSchema
from dpsql.schema.frozen import dataclass
from dpsql.shell.asker import Asker
from dpsql.shell.describe import list_budget, list_columns, list_ledger, list_tables, tables_of
from dpsql.shell.statements import statements


class Quit(Exception):
    """The user has had enough."""


@dataclass(frozen=True)
class Command:
    """A command: how it is written, what it is for, and what it does: `run` gives the text to show."""

    name: str
    argument: str
    purpose: str
    run: Callable[[Asker, str], str]


def command_of(line: str) -> tuple[str, str] | None:
    """The word and the argument of a line that is a command, else None. `quit`, `exit` and `help` need no dot."""
    word, *rest = line.strip().rstrip(";").split(maxsplit=1)[:2] or [""]
    argument = rest[0].strip() if rest else ""
    word = _OTHER_NAMES.get(word, word) if not argument else word
    return (word, argument) if word.startswith(".") else None


_OTHER_NAMES = {"help": ".help", "quit": ".quit", "exit": ".quit", ".exit": ".quit"}


def run_command(asker: Asker, word: str, argument: str) -> str:
    """What the command says. Raises Quit, InvalidArgument for an unknown command, or what the session raises."""
    for command in COMMANDS:
        if command.name == word:
            if argument and not command.argument:
                raise InvalidArgument(f"{word} takes nothing after it, got {argument!r}.")
            return command.run(asker, argument)
    near = did_you_mean(word, [each.name for each in COMMANDS])
    raise InvalidArgument(f'no command "{word}".{near}', hint=".help lists the commands.")


def _help(_asker: Asker, _argument: str) -> str:
    width = max(len(f"{each.name} {each.argument}") for each in COMMANDS)
    lines = [f"{f'{each.name} {each.argument}':<{width}}  {each.purpose}" for each in COMMANDS]
    return "\n".join(["End a query with a semicolon; it may span lines. Ctrl-C drops it, Ctrl-D leaves.", *lines])


def _tables(asker: Asker, _argument: str) -> str:
    return list_tables(tables_of(asker.session))


def _schema(asker: Asker, argument: str) -> str:
    tables = tables_of(asker.session)
    return list_columns([_named(argument, tables)] if argument else tables)


def _named(name: str, tables: list[TableSchema]) -> TableSchema:
    for table in tables:
        if table.name.casefold() == name.casefold():
            return table
    near = did_you_mean(name, [table.name for table in tables])
    raise InvalidArgument(f'no table "{name}".{near}', hint=".tables lists them.")


def _budget(asker: Asker, _argument: str) -> str:
    return list_budget(asker.session)


def _ledger(asker: Asker, _argument: str) -> str:
    return list_ledger(asker.session)


def _fresh(asker: Asker, argument: str) -> str:
    return str(asker.ask(_query(argument, "ask what afresh?", ".fresh"), fresh=True))


def _explain(asker: Asker, argument: str) -> str:
    return str(asker.explain(_query(argument, "explain what?", ".explain")))


def _query(argument: str, missing: str, word: str) -> str:
    """The one query after a command's word, without its semicolon; several are the library's to refuse."""
    asked = statements(argument)
    if not asked:
        raise InvalidArgument(missing, hint=f"Write {word} SELECT COUNT(*) FROM table, on one line.")
    return asked[0] if len(asked) == 1 else argument


def _epsilon(asker: Asker, argument: str) -> str:
    if argument:
        asker.epsilon, asker.rho = _number(argument, "epsilon", as_epsilon), None
    if asker.epsilon is None:
        return "no epsilon is set: .epsilon 1 sets what each query spends"
    return f"each query spends epsilon {asker.epsilon:.12g}"


def _rho(asker: Asker, argument: str) -> str:
    if argument:
        asker.rho, asker.epsilon = _number(argument, "rho", as_rho), None
    if asker.rho is None:
        return "no rho is set: .rho 0.1 sets what each query spends, in place of epsilon"
    return f"each query spends rho {asker.rho:.12g}"


def _delta(asker: Asker, argument: str) -> str:
    if argument:
        asker.delta = _number(argument, "delta", as_delta)
    return f"each query may spend delta {asker.delta or 0:.12g}"


def _number(text: str, name: str, check: Callable[[object], Fraction]) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidArgument(f"{name} must be a number, got {text!r}.") from None
    check(number)
    return number


def _quit(_asker: Asker, _argument: str) -> str:
    raise Quit


COMMANDS = (
    Command(".help", "", "this list", _help),
    Command(".tables", "", "the tables", _tables),
    Command(".schema", "[TABLE]", "the columns: their types, bounds and keys", _schema),
    Command(".budget", "", "what may be spent, what has been and what is left", _budget),
    Command(".ledger", "", "every charge so far", _ledger),
    Command(".explain", "SQL", "what a query would do and cost; free", _explain),
    Command(".fresh", "SQL", "ask again what was answered before: drawn anew, and paid", _fresh),
    Command(".epsilon", "[X]", "what each query spends", _epsilon),
    Command(".rho", "[X]", "the same in zero-concentrated privacy", _rho),
    Command(".delta", "[X]", "what each query may spend of delta", _delta),
    Command(".quit", "", "leave; so do Ctrl-D, quit and exit", _quit),
)

"""The prompt's commands, and their recognition."""

from __future__ import annotations

from dpsql.answer.declared_facts import list_bounds, list_columns, list_keys, list_tables
from dpsql.core.loss import as_delta, as_epsilon, as_rho
from dpsql.errors import InvalidArgument, did_you_mean
from dpsql.schema.columns import TableSchema
from dpsql.session.dialects import checked_dialect
from dpsql.session.parameter_values import parameter
from dpsql.shell.output.describe import list_budget, list_ledger, tables_of
from dpsql.shell.output.listing import table_called
from dpsql.shell.prompt.command import Command, Quit, number
from dpsql.shell.prompt.output_commands import OUTPUT_COMMANDS
from dpsql.shell.shell import Shell
from dpsql.shell.statements import statements


def command_of(line: str) -> tuple[str, str] | None:
    """Return the name and the argument of a command line, or None for other text. `quit`, `exit` and `help` need no
    dot; psql's `\\d`, `\\q` and `\\?` are understood."""
    word, *rest = line.strip().rstrip(";").split(maxsplit=1)[:2] or [""]
    argument = rest[0].strip() if rest else ""
    if word.startswith("\\"):
        word = ".schema" if word in _DESCRIBES and argument else _BACKSLASH.get(word, word)
        return word, argument
    word = _OTHER_NAMES.get(word, word) if not argument else word
    return (word, argument) if word.startswith(".") else None


_OTHER_NAMES = {"help": ".help", "quit": ".quit", "exit": ".quit", ".exit": ".quit"}
_DESCRIBES = ("\\d", "\\d+")
_BACKSLASH = {"\\d": ".tables", "\\d+": ".tables", "\\dt": ".tables", "\\q": ".quit", "\\?": ".help", "\\i": ".read"}


def run_command(shell: Shell, word: str, argument: str) -> str:
    """Run a command and return its text. Raises Quit, ReadFile, InvalidArgument for an unknown command, or an error of
    the session."""
    for command in COMMANDS:
        if command.name == word:
            if argument and not command.argument:
                raise InvalidArgument(f"{word} takes nothing after it, got {argument!r}.")
            return command.run(shell, argument)
    near = did_you_mean(word, [each.name for each in COMMANDS])
    raise InvalidArgument(f'no command "{word}".{near}', hint=".help lists the commands.")


def not_here(text: str) -> InvalidArgument | None:
    """Return the refusal of a prompt command among statements, with its equivalent there; None for other text."""
    asked = command_of(text.strip().split("\n", 1)[0])
    if asked is None:
        return None
    known = next((each for each in COMMANDS if each.name == asked[0]), None)
    elsewhere = (
        f"Here: {known.elsewhere}." if known is not None and known.elsewhere else "Start dpsql without -c and -f."
    )
    written = text.split(maxsplit=1)[0].rstrip(";")
    return InvalidArgument(f'"{written}" is a command of the prompt, and no SQL.', hint=elsewhere)


def _help(_shell: Shell, _argument: str) -> str:
    width = max(len(f"{each.name} {each.argument}") for each in COMMANDS)
    lines = [f"{f'{each.name} {each.argument}':<{width}}  {each.purpose}" for each in COMMANDS]
    return "\n".join(["End a query with a semicolon; it may span lines. Ctrl-C drops it, Ctrl-D leaves.", *lines])


def _tables(shell: Shell, _argument: str) -> str:
    return list_tables(tables_of(shell.asker.session))


def _schema(shell: Shell, argument: str) -> str:
    return list_columns(_chosen(shell, argument))


def _keys(shell: Shell, argument: str) -> str:
    return list_keys(_chosen(shell, argument))


def _bounds(shell: Shell, argument: str) -> str:
    return list_bounds(_chosen(shell, argument))


def _chosen(shell: Shell, name: str) -> list[TableSchema]:
    """Return the named table, whose name may be quoted; all tables without a name."""
    session = shell.asker.session
    return [table_called(name.strip('"'), session, InvalidArgument)] if name else tables_of(session)


def _budget(shell: Shell, _argument: str) -> str:
    return shell.unpaid or list_budget(shell.asker.session)


def _ledger(shell: Shell, _argument: str) -> str:
    return shell.unpaid or list_ledger(shell.asker.session)


def _fresh(shell: Shell, argument: str) -> str:
    shell.answer(_query(argument, "ask what afresh?", ".fresh"), fresh=True)
    return ""


def _explain(shell: Shell, argument: str) -> str:
    shell.explain(_query(argument, "explain what?", ".explain"))
    return ""


def _query(argument: str, missing: str, word: str) -> str:
    """Return the only query after a command, without its semicolon; several are left for the session to refuse."""
    asked = statements(argument)
    if not asked:
        raise InvalidArgument(missing, hint=f"Write {word} SELECT COUNT(*) FROM table, on one line.")
    return asked[0] if len(asked) == 1 else argument


def _epsilon(shell: Shell, argument: str) -> str:
    asker = shell.asker
    if argument:
        asker.epsilon, asker.rho, asker.error = number(argument, "epsilon", as_epsilon), None, None
    if asker.epsilon is None:
        return "no epsilon is set: .epsilon 1 sets what each query spends"
    return f"each query spends epsilon {asker.epsilon:.12g}"


def _rho(shell: Shell, argument: str) -> str:
    asker = shell.asker
    if argument:
        asker.rho, asker.epsilon, asker.error = number(argument, "rho", as_rho), None, None
    if asker.rho is None:
        return "no rho is set: .rho 0.1 sets what each query spends, in place of epsilon"
    return f"each query spends rho {asker.rho:.12g}"


def _delta(shell: Shell, argument: str) -> str:
    if argument:
        shell.asker.delta = number(argument, "delta", as_delta)
    return f"each query may spend delta {shell.asker.delta or 0:.12g}"


def _error(shell: Shell, argument: str) -> str:
    asker = shell.asker
    if argument == "off":
        asker.error = None
    elif argument:
        asker.error, asker.epsilon, asker.rho = number(argument, "error", as_epsilon), None, None
    if asker.error is None:
        return "no error is set: .error 50 has each query spend the least epsilon that keeps answers so near"
    return f"each query spends the least epsilon that keeps answers within {asker.error:.12g}"


_MECHANISMS = ("auto", "laplace", "gaussian")


def _dialect(shell: Shell, argument: str) -> str:
    if argument:
        shell.asker.dialect = checked_dialect(argument)
    return f"dialect {shell.asker.dialect or 'duckdb'}"


def _mechanism(shell: Shell, argument: str) -> str:
    if argument and argument not in _MECHANISMS:
        raise InvalidArgument(f'no mechanism "{argument}".{did_you_mean(argument, _MECHANISMS)}')
    shell.asker.mechanism = argument or shell.asker.mechanism
    return f"mechanism {shell.asker.mechanism}"


def _param(shell: Shell, argument: str) -> str:
    asker = shell.asker
    if argument:
        asker.params = dict(asker.params) | dict([parameter(argument)])
    lines = [f":{name} = {value!r}" for name, value in asker.params.items()]
    return "\n".join(lines) or "no parameters: .param low=20 gives :low a value"


def _quit(_shell: Shell, _argument: str) -> str:
    raise Quit


COMMANDS = (
    Command(".help", "", "this list", _help, "dpsql --help"),
    Command(".tables", "", "the tables; so does SHOW TABLES", _tables, "SHOW TABLES"),
    Command(".schema", "[TABLE]", "the columns; so does DESCRIBE TABLE", _schema, "DESCRIBE TABLE"),
    Command(".bounds", "[TABLE]", "declared bounds, and the columns without", _bounds, "DESCRIBE TABLE"),
    Command(".keys", "[TABLE]", "declared keys, all of them", _keys, "DESCRIBE TABLE"),
    Command(".budget", "", "what may be spent, what has been and what is left", _budget, "dpsql ledger show"),
    Command(".ledger", "", "every charge so far", _ledger, "dpsql ledger show"),
    Command(".explain", "SQL", "what a query would do and cost; free", _explain, "EXPLAIN PRIVACY SELECT ..."),
    Command(".fresh", "SQL", "ask again what was answered before: drawn anew, and paid", _fresh, "--fresh"),
    Command(".epsilon", "[X]", "what each query spends", _epsilon, "--epsilon X"),
    Command(".delta", "[X]", "what each query may spend of delta", _delta, "--delta X"),
    Command(".rho", "[X]", "what each query spends in zero-concentrated privacy", _rho, "--rho X"),
    Command(".error", "[X|off]", "how far off answers may be, in place of epsilon", _error, "--error X"),
    Command(
        ".dialect", "[NAME]", "whose SQL statements are in; duckdb for the language's own", _dialect, "--dialect NAME"
    ),
    Command(".mechanism", "[WORD]", "auto, laplace or gaussian", _mechanism, "--mechanism WORD", _MECHANISMS),
    Command(".param", "[NAME=VALUE]", "a value for :name in queries", _param, "--param NAME=VALUE"),
    *OUTPUT_COMMANDS,
    Command(".quit", "", "leave; so do Ctrl-D, quit and exit", _quit),
)

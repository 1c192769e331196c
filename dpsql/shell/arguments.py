"""Arguments of the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpsql.errors import InvalidArgument
from dpsql.schema.text_format import TEXT_WORDS
from dpsql.shell.parser import Parser, number
from dpsql.shell.session_setup import SessionSetup
from dpsql.shell.text_options import add_text_words, text_words

_DESCRIPTION = """\
Ask private questions about tables: answers carry noise, and what they tell about one
person is counted against a budget. Without -c, -f or SQL on standard input, a prompt."""

_EPILOG = """\
examples:
  dpsql adult.csv --schema adult.toml --epsilon 1 -c "SELECT COUNT(*) AS n FROM adult"
  dpsql people.csv --budget 3 --epsilon 0.5 < questions.sql

Answers go to standard output: to a terminal as tables, else as CSV, unless --mode says
otherwise. Their cost, notes and errors go to standard error. The first error stops the run.

exit codes:
  0 all answered     1 a query was refused     2 command line, schema or files
  3 the budget does not suffice     4 a spend above epsilon 2, or of more than half of what
  is left, that --yes or --yes-up-to did not confirm
  130 Ctrl-C     141 the reader of the output went away

dpsql demo, init, check, ledger, access, serve, explain, cost, rehearse are commands, each with a
--help of its own; a file of such a name is written ./init"""


class Arguments(argparse.Namespace):
    """Parsed arguments. `inputs` are files of SQL, then -c texts and -f files, in their order."""

    files: list[Path]
    schema: Path | None
    inputs: list[str | Path]
    epsilon: float | None
    max_epsilon: float | None
    delta: float | None
    budget: float | None
    budget_delta: float | None
    rho: float | None
    ledger: Path | None
    accountant: str | None
    analyst: str | None
    anchor: str | None
    engine: str
    memory: str | None
    threads: int | None
    spill: Path | None
    fresh: bool
    mode: str | None
    output: str | None
    mechanism: str
    error: float | None
    params: list[str]
    dialect: str | None
    dry_run: bool
    no_ledger: bool
    connect: str | None
    token_file: Path | None
    yes: bool
    yes_up_to: float | None
    delimiter: str | None
    quote: str | None
    header: list[str] | None
    skip: int | None
    encoding: str | None
    multiline: bool | None

    @property
    def opening(self) -> SessionSetup:
        return SessionSetup(
            self.files,
            self.schema,
            self.budget,
            self.budget_delta,
            self.epsilon,
            self.delta,
            False if self.no_ledger else self.ledger,
            self.accountant,
            self.analyst,
            self.anchor,
            self.engine,
            self.memory,
            self.threads,
            self.spill,
            max_epsilon=self.max_epsilon,
            text=text_words(self),
        )


def parse(
    argv: Sequence[str] | None,
    version: str,
    prog: str = "dpsql",
    description: str = _DESCRIPTION,
    epilog: str = _EPILOG,
) -> Arguments:
    """Read the command line. Raises InvalidArgument; prints and raises SystemExit for --help and --version."""
    parser = Parser.of(prog, description, epilog)
    for group in (
        _add_inputs,
        add_text_words,
        _add_spending,
        _add_output,
        _add_ledger_options,
        _add_engine,
        _add_connection,
    ):
        group(parser.add_argument)
    parser.add_argument("--version", action="version", version=f"dpsql {version}")
    arguments, unknown = parser.parse_known_intermixed_args(argv, Arguments())
    if unknown:
        parser.refuse(unknown[0])
    for file in arguments.files:
        if _STATEMENT.match(str(file)):
            raise InvalidArgument(
                "a statement stands behind -c; what stands by itself is a file.", hint="Write -c SQL."
            )
    batches = [file for file in arguments.files if file.suffix.lower() == ".sql"]
    arguments.files = [file for file in arguments.files if file not in batches]
    arguments.inputs = [*batches, *arguments.inputs]
    owners = next((file for file in arguments.files if file.suffix.lower() == ".toml"), None)
    if owners is not None and prog == "dpsql":  # other commands accept it as a file
        raise InvalidArgument(f"{owners} holds no rows: it is an owner's file.", hint=f"Write --schema {owners}.")
    if arguments.no_ledger and arguments.ledger is not None:
        raise InvalidArgument("--ledger and --no-ledger contradict each other.")
    _check_connection(arguments)
    return arguments


_STATEMENT = re.compile(r"\s*(select|with|explain)\b.*\bfrom\b|show\s+tables", re.IGNORECASE | re.DOTALL)
_OWNERS = (
    "schema",
    "budget",
    "budget_delta",
    "ledger",
    "accountant",
    "analyst",
    "anchor",
    "memory",
    "threads",
    "spill",
    *TEXT_WORDS,
)
"""Options that only a server's owner can set."""


def _check_connection(arguments: Arguments) -> None:
    """Raise InvalidArgument for an owner's option next to --connect."""
    if arguments.connect is None:
        if arguments.token_file is not None:
            raise InvalidArgument("--token-file goes with --connect.")
        return
    if arguments.files:
        raise InvalidArgument(f"{arguments.files[0]}: with --connect the tables are the server's.")
    owners = [name for name in _OWNERS if getattr(arguments, name) is not None]
    owners += ["no_ledger"] if arguments.no_ledger else []
    owners += ["engine"] if arguments.engine != "auto" else []
    if owners:
        raise InvalidArgument(
            f"--{owners[0].replace('_', '-')} is for the server's owner to say, not beside --connect."
        )


_Add = Callable[..., object]


def _add_inputs(add: _Add) -> None:
    """Add the options for tables and statements."""
    add(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="a CSV file with a header: adult.csv is the table adult; report.sql is run",
    )
    add("--schema", type=Path, metavar="TOML", help="the owner's file: budget, types, bounds and keys")
    inputs: dict[str, Any] = {"action": "append", "dest": "inputs", "default": []}
    add("-c", metavar="SQL", help="run this; may be repeated, and hold several statements", **inputs)
    add("-f", metavar="FILE", type=Path, help="run what this file holds; - is standard input", **inputs)
    values: dict[str, Any] = {"action": "append", "dest": "params", "default": []}
    add("--param", metavar="NAME=VALUE", help="a value for :name; repeatable", **values)


def _add_spending(add: _Add) -> None:
    """Add the options for costs, budget and mechanisms."""
    add("--epsilon", type=number, metavar="X", help="what each query spends")
    add("--max-epsilon", type=number, metavar="X", help="refuse a query that would spend more")
    add("--delta", type=number, metavar="X", help="what each query may spend of delta (default: 0)")
    add("--budget", type=number, metavar="EPSILON", help="what all answers may spend (default: the schema's)")
    add("--budget-delta", type=number, metavar="DELTA", help="the same for delta")
    add("--rho", type=number, metavar="X", help="what each query spends, in place of --epsilon")
    add("--error", type=number, metavar="X", help="how far off each answer may be, in place of --epsilon")
    add("--mechanism", metavar="WORD", default="auto", help="auto (default), laplace or gaussian")
    add("--dialect", metavar="NAME", help="whose SQL the queries are in: bigquery, postgres ... (default: DuckDB's)")
    add("--dry-run", action="store_true", help="explain each query; nothing is asked, nothing is spent")
    add("--fresh", action="store_true", help="draw anew, and pay, what was answered before")


def _add_output(add: _Add) -> None:
    """Add the options for the format and destination of answers."""
    add("--mode", metavar="WORD", help="box, csv, json, jsonl, line, markdown, tsv, html or parquet")
    add("--output", metavar="FILE", help="where answers go, in place of standard output")


def _add_connection(add: _Add) -> None:
    """Add the options for a connection to a server."""
    add("--connect", metavar="URL", help="ask a server: https://data.example:8443 (token: DPSQL_TOKEN, or a prompt)")
    add("--token-file", type=Path, metavar="FILE", help="where the token is, in a file that others cannot read")


def _add_engine(add: _Add) -> None:
    """Add the options for the engine that adds up exact integers, and its resources."""
    add("--engine", metavar="NAME", default="auto", help="what adds up: auto, pandas, duckdb or spark")
    add("--memory", metavar="SIZE", help="what DuckDB may use, such as 4GB")
    add("--threads", metavar="N", type=int, help="how many threads DuckDB may use")
    add("--spill", metavar="FOLDER", type=Path, help="where DuckDB may put what does not fit (default: nowhere)")


def _add_ledger_options(add: _Add) -> None:
    """Add the options for the ledger, its rules, and confirmation of spends."""
    add("--ledger", type=Path, metavar="FILE", help="where what is spent is kept (default: the schema's)")
    add("--no-ledger", action="store_true", help="count what is spent in this process only")
    add("--yes", action="store_true", help="ask nothing before a large spend")
    add("--yes-up-to", type=number, metavar="X", help="the same for queries up to this epsilon")
    add("--accountant", metavar="WORD", help="how costs add up: auto (default), basic or zcdp")
    add("--analyst", metavar="NAME", help="whose queries these are, for budgets with shares")
    add("--anchor", metavar="TEXT", help="an earlier state of the ledger, which must be in it")

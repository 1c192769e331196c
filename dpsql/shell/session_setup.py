"""Session from the files, schema and budget of a command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

from dpsql.core.ledger.budget import Budget
from dpsql.core.loss import as_delta, as_epsilon
from dpsql.errors import InvalidArgument, did_you_mean
from dpsql.schema.columns import TableSchema, Type
from dpsql.schema.declaration import Declaration
from dpsql.schema.frozen import dataclass
from dpsql.schema.text_format import TEXT_ENDINGS, TextFormat
from dpsql.session.owner_file import Schema, TableEntry
from dpsql.session.session import Session
from dpsql.session.tables.paths import table_at
from dpsql.session.tables.table import Table
from dpsql.sources.files import kind_of, stem_of


@dataclass(frozen=True)
class SessionSetup:
    """Arguments of a session: data files, the schema file, a budget, and the default terms of queries.

    Raises InvalidArgument without file and schema, InvalidPrivacyParameter for an invalid number.
    """

    files: Sequence[Path]
    schema: Path | None = None
    budget: float | None = None
    budget_delta: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    ledger: Path | Literal[False] | None = None
    accountant: str | None = None
    analyst: str | None = None
    anchor: str | None = None
    engine: str = "auto"
    memory: str | None = None
    threads: int | None = None
    spill: Path | None = None
    max_epsilon: float | None = None
    text: Mapping[str, Any] = field(default_factory=dict)
    """Format of the text files: arguments of `TextFormat.of`, which override the schema's."""
    look: bool = False
    """No query will run: if there is no ledger yet, none is created."""

    def __post_init__(self) -> None:
        if self.text and not self.files:
            raise InvalidArgument(
                f"--{next(iter(self.text))} is of files of the command line, and none is named.",
                hint="Write it into the owner's file, under its table.",
            )
        if not self.files and self.schema is None:
            raise InvalidArgument(
                "no table to ask about.",
                hint="Name a CSV file, or a schema: --schema dpsql.toml. dpsql --help says more.",
            )
        for option, number, check in (
            ("--epsilon", self.epsilon, as_epsilon),
            ("--max-epsilon", self.max_epsilon, as_epsilon),
            ("--delta", self.delta, as_delta),
            ("--budget", self.budget, as_epsilon),
            ("--budget-delta", self.budget_delta, as_delta),
        ):
            if number is not None:
                check(number, option)


def open_session(opening: SessionSetup) -> tuple[Session, list[str]]:
    """Return the session, and notes on missing declarations.

    A file becomes a table named after the file without its ending, and replaces the schema's table of that name
    (ignoring case); the schema's other tables are read from their own paths. Raises InvalidArgument, InvalidSchema or
    InvalidPrivacyParameter.
    """
    schema = None if opening.schema is None else Schema.from_toml(opening.schema)
    if schema is not None and opening.look:
        kept = schema.ledger or schema.default_ledger
        schema = schema if kept is not None and kept.exists() else replace(schema, ledger=None, file=None)
    budget = _budget(opening, schema)
    tables, undeclared = {}, []
    for name, file, entry in _named(opening, schema):
        if name in tables:
            raise InvalidArgument(f'two files give a table "{name}".', hint="Rename one of them.")
        known = entry or TableEntry(Declaration())
        tables[name] = Table.of(*table_at(file, known.declaration, _format(opening, file, known), known.table))
        if entry is None:
            undeclared.append(name)
    session = Session(
        tables,
        schema=schema,
        budget=budget,
        accountant=opening.accountant,
        max_epsilon=opening.max_epsilon,
        epsilon=opening.epsilon,
        delta=opening.delta,
        ledger=opening.ledger,
        analyst=opening.analyst,
        anchor=opening.anchor,
        engine=opening.engine,
        memory=opening.memory,
        threads=opening.threads,
        spill=opening.spill,
    )
    if not session.tables:
        raise InvalidArgument(
            f"{opening.schema} has no table with a path.",
            hint='Name a CSV file, or add path = "people.csv" to a table.',
        )
    return session, [
        *(_undeclared(session.catalog.tables[name.casefold()], opening, schema) for name in undeclared),
        *session.notes,
    ]


def _named(opening: SessionSetup, schema: Schema | None) -> Iterator[tuple[str, Path, TableEntry | None]]:
    """Yield each file with its table's name, as spelled in the schema, and its entry in the schema."""
    entries = {name.casefold(): name for name in (schema.tables if schema else ())}
    for file in opening.files:
        stem = stem_of(file)
        name = entries.get(stem.casefold())
        if schema is None or name is None:
            yield stem, file, None
        else:
            yield name, file, schema.tables[name]


def _format(opening: SessionSetup, file: Path, known: TableEntry) -> TextFormat:
    """Return the format of a file, by the command line, else by the schema. Format options apply to the text files, if
    there are some. Raises InvalidSchema."""
    some_text = any(kind_of(each) in TEXT_ENDINGS for each in opening.files)
    if not opening.text or (some_text and kind_of(file) not in TEXT_ENDINGS):
        return known.text
    return TextFormat.of(f"{file.name}:", {**known.text.words, **opening.text})


def _undeclared(table: TableSchema, opening: SessionSetup, schema: Schema | None) -> str:
    name, all_text = table.name, all(column.type is Type.TEXT for column in table.columns)
    lacks = f"every column of {name} is {'text, ' if all_text else ''}without bounds or keys"
    if schema is None or opening.schema is None:
        return f"no schema: {lacks}. --schema FILE.toml declares them."
    return f"{opening.schema.name} has no [tables.{name}]: {lacks}.{did_you_mean(name, schema.tables)}"


def _budget(opening: SessionSetup, schema: Schema | None) -> Budget | None:
    """Return the budget of the command line, completed from the schema."""
    declared = schema.budget if schema else None
    silent = opening.budget is None and opening.budget_delta is None
    if silent and opening.ledger and opening.ledger.exists():
        return None  # use the ledger's budget
    if opening.budget is None and declared is None:
        where = "there is no schema" if opening.schema is None else f"{opening.schema} has no [budget]"
        raise InvalidArgument(
            f"no budget: how much may all answers together tell about one person? ({where})",
            hint="Add --budget 3 (an epsilon), and --budget-delta 1e-6 if groups or noise may need a delta.",
        )
    if silent:
        return None
    if declared is None:
        return Budget(opening.budget, opening.budget_delta or 0)
    kept = declared.conversion_delta if opening.budget_delta is None else None
    return Budget(
        declared.loss.epsilon if opening.budget is None else opening.budget,
        declared.loss.delta if opening.budget_delta is None else opening.budget_delta,
        conversion_delta=kept,
    )

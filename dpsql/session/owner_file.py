"""The owner's file: budget, neighbour relation and declared tables, in TOML."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.filters import ACCOUNTANTS
from dpsql.core.unit import Neighbours
from dpsql.errors import DPSQLError, InvalidSchema, as_written, did_you_mean
from dpsql.executors.resources import AUTO, ITSELF, Resources
from dpsql.schema.argument_names import checked_methods
from dpsql.schema.column_declarations import about
from dpsql.schema.columns import CELL_WORDS, UTC
from dpsql.schema.declaration import Declaration
from dpsql.schema.frozen import dataclass
from dpsql.schema.table_declarations import TABLE_WORDS
from dpsql.schema.text_format import TEXT_WORDS, TextFormat
from dpsql.session.server_settings import ServerWords

_RESOURCES = ("memory", "threads", "spill")
_TOP = ("budget", "neighbours", "auto_bounds", "engine", *_RESOURCES, "timezone", "server", "tables")
_BUDGET = ("epsilon", "delta", "accountant", "conversion_delta", "ledger", "analysts")
_SHARE = ("epsilon", "delta", "conversion_delta")
_TABLE = ("path", "table", "neighbours", "columns", *TEXT_WORDS, *TABLE_WORDS)
_COLUMN = ("type", "bounds", "keys", "nullable", *CELL_WORDS)


@dataclass(frozen=True)
class TableEntry:
    """One table of the file: location of its data, text format and database table, if given, and declarations."""

    declaration: Declaration
    path: Path | None = None
    text: TextFormat = field(default_factory=TextFormat)
    table: str | None = None
    """Name of the table in a database."""


@checked_methods
@dataclass(frozen=True)
class Schema:
    """The owner's declarations for a Session. Unknown settings are refused."""

    tables: Mapping[str, TableEntry] = field(default_factory=dict)
    budget: Budget | None = None
    neighbours: Neighbours | None = None
    accountant: str | None = None
    ledger: Path | None = None
    engine: str = AUTO
    resources: Resources = ITSELF
    server: ServerWords = field(default_factory=ServerWords)
    timezone: str = UTC
    """Time zone in which columns of instants are shown."""
    auto_bounds: bool = True
    """True if queries privately choose bounds that they need and nobody declared; otherwise they are refused."""
    file: Path | None = None
    """Path of the file, with links resolved."""

    @property
    def default_ledger(self) -> Path | None:
        """The ledger next to the file, named after it, if the file has a [budget] and names no ledger."""
        if self.file is None or self.budget is None or self.ledger is not None:
            return None
        beside = self.file.with_suffix(".ledger")
        return beside if beside != self.file else self.file.with_name(f"{self.file.name}.ledger")

    @property
    def undecided_units(self) -> tuple[str, ...]:
        """Private tables without a decision about the privacy unit: each row is then a unit by default."""
        words = {name: entry.declaration.table for name, entry in self.tables.items()}
        return tuple(name for name, each in words.items() if not each.public and not each.is_unit_decided)

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Read an owner's file in TOML.

        Parameters
        ----------
        path : str or Path
            Paths in the file are relative to it. A file with a [budget] has the ledger that it names, or one next to it
            (`adult.toml`: `adult.ledger`).

        Raises
        ------
        InvalidSchema, InvalidPrivacyParameter
        """
        file = Path(path)
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError:
            raise InvalidSchema(f"no schema file {file} that can be read.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidSchema(f"{file.name} is not TOML: {error}.") from None
        except RecursionError:
            raise InvalidSchema(f"{file.name} is nested too deeply.") from None
        try:
            schema = cls.from_dict(content, file.parent)
        except DPSQLError as error:
            from dpsql.session.advice import in_toml  # most files have no errors

            hint = in_toml(error.hint, in_file=True)
            raise type(error)(in_toml(error.message, in_file=True), hint=hint, about=error.about) from None
        return replace(schema, file=Path(os.path.realpath(file)))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], folder: Path = Path()) -> Schema:
        """Return the schema of parsed TOML. It has a ledger only if it names one."""
        _known("the file", content, _TOP)
        tables = {name: _table(name, entry, folder) for name, entry in _section("tables", content).items()}
        section = _section("budget", content)
        _known("[budget]", section, _BUDGET)
        accountant, ledger = section.get("accountant"), section.get("ledger")
        if accountant not in (None, *ACCOUNTANTS):
            words = ", ".join(f'"{each}"' for each in ACCOUNTANTS)
            raise InvalidSchema(f"[budget] accountant must be one of {words}, got {as_written(accountant)}.")
        if ledger is not None and (not isinstance(ledger, str) or not ledger):
            raise InvalidSchema("[budget] ledger must be the path of a file.")
        relation = _relation(content, _section("tables", content))
        engine = content.get("engine", AUTO)
        if engine != AUTO:
            from dpsql.executors.base import checked_word  # imports pandas: a server reads this file, and no table

            engine = checked_word(engine)
        file = None if ledger is None else folder / ledger
        said = {word: content.get(word) for word in _RESOURCES}
        if isinstance(said["spill"], str) and said["spill"]:
            said["spill"] = folder / said["spill"]
        resources = Resources.of(**said)
        server = ServerWords.of(_section("server", content))
        zone = _zone(content.get("timezone", UTC))
        chosen = content.get("auto_bounds", True)
        if not isinstance(chosen, bool):
            raise InvalidSchema(f"auto_bounds must be true or false, got {as_written(chosen)}.")
        return cls(tables, _budget(section), relation, accountant, file, engine, resources, server, zone, chosen)


def _zone(word: object) -> str:
    if word == UTC:
        return UTC
    from dpsql.schema.zones import checked_zone

    return checked_zone(word)


def _budget(section: Mapping[str, Any]) -> Budget | None:
    if not set(section) - {"accountant", "ledger"}:
        return None
    shares = _section("analysts", section)
    for name, share in shares.items():
        if not isinstance(share, Mapping):
            raise InvalidSchema(f"[budget.analysts] {name} must be a section, such as {{ epsilon = 1 }}.")
        _known(f"[budget.analysts.{name}]", share, _SHARE)
    return Budget(**_words(section), analysts={name: Budget(**_words(share)) for name, share in shares.items()})


def _words(section: Mapping[str, Any]) -> dict[str, Any]:
    return {"epsilon": section.get("epsilon"), **{word: section[word] for word in _SHARE[1:] if word in section}}


def _relation(content: Mapping[str, Any], tables: Mapping[str, Any]) -> Neighbours | None:
    """Return the file's only neighbour relation, from its top or its tables, which must agree."""
    words = [content.get("neighbours"), *(entry.get("neighbours") for entry in tables.values())]
    relations = {Neighbours.of(word) for word in words if word is not None}
    if len(relations) > 1:
        raise InvalidSchema("one file has one neighbour relation: its tables disagree.")
    return relations.pop() if relations else None


def _table(name: str, entry: Any, folder: Path) -> TableEntry:
    where = f"[tables.{name}]"
    if not isinstance(entry, Mapping):
        raise InvalidSchema(f"{where} must be a table of settings.")
    _known(where, entry, _TABLE)
    path = entry.get("path")
    if path is not None and not isinstance(path, str):
        raise InvalidSchema(f"{where} path must be text.")
    table = entry.get("table")
    if table is not None and (not isinstance(table, str) or path is None):
        raise InvalidSchema(f"{where} table must be the name of a table of the database at path.")
    columns = _section("columns", entry)
    for column, facts in columns.items():
        if not isinstance(facts, Mapping):
            raise InvalidSchema(f"{where} column {column} must be a table such as {{ bounds = [0, 100] }}.")
        _known(f"{where} column {column}", facts, _COLUMN)
    with about(where):
        declaration = Declaration.of(
            _facts(columns, "bounds"),
            _facts(columns, "keys"),
            _facts(columns, "type"),
            _facts(columns, "nullable"),
            {word: _facts(columns, word) for word in CELL_WORDS},
            **{word: entry[word] for word in TABLE_WORDS if word in entry},
        )
        declaration.table.check(where)
        return TableEntry(declaration, None if path is None else folder / path, TextFormat.of(where, entry), table)


def _facts(columns: Mapping[str, Any], word: str) -> dict[str, Any]:
    return {column: facts[word] for column, facts in columns.items() if word in facts}


def _section(name: str, content: Mapping[str, Any]) -> Mapping[str, Any]:
    section = content.get(name, {})
    if not isinstance(section, Mapping):
        raise InvalidSchema(f"[{name}] must be a section.")
    return section


def _known(where: str, content: Mapping[str, Any], words: tuple[str, ...]) -> None:
    for word in content:
        if word not in words:
            raise InvalidSchema(
                f'{where} has an unknown setting "{word}".{did_you_mean(word, words)}',
                hint=f"Known: {', '.join(words)}.",
            )

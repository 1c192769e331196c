"""Recognition of the types and formats of columns from their cells, for a new schema file.

A proposal depends on all cells: it reveals whether they all have one format, and no cell. Texts are read by the same
readers as in queries (`dpsql.schema.text_values`, `dpsql.schema.formatted_values`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pandas as pd

from dpsql.executors.pandas.columns.object_cells import Moment, plain_cell
from dpsql.schema.cell_format import format_of
from dpsql.schema.columns import Type
from dpsql.schema.declaration import StoredColumn
from dpsql.schema.formatted_values import text_reader
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import INT64
from dpsql.schema.text_values import BLANKS, read_boolean, read_day, read_moment, read_real

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,15}\s*")
_CODE = re.compile(r"\s*[+-]?(?:0[0-9]|[0-9]{16,}\s*$|[a-zA-Z])")
_YEAR_FIRST = re.compile(r"\s*[0-9]{4}[-/]")
_RULES: Mapping[Type, Callable[[str], bool]] = {
    Type.INTEGER: lambda text: _WHOLE.fullmatch(text) is not None and not _CODE.match(text),
    Type.REAL: lambda text: read_real(text) is not None and not _CODE.match(text),
    Type.BOOLEAN: lambda text: text.strip().isalpha() and read_boolean(text) is not None,
    Type.DATE: lambda text: _YEAR_FIRST.match(text) is not None and ":" not in text and read_day(text) is not None,
    Type.TIMESTAMP: lambda text: _YEAR_FIRST.match(text) is not None and read_moment(text) is not None,
}
"""The candidate types of texts, in the order of trial. Each is narrower than the reader of its type: codes with leading
zeros or more than 15 digits stay text, and a year has four digits."""
_NULLS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "NaN", "nan", "-", "--", ".", "?")
_NUMBERS = (
    {"decimal": ","},
    {"decimal": ",", "thousands": "."},
    {"decimal": ",", "thousands": " "},
    {"thousands": ","},
)
_DAYS = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y.%m.%d", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),
    *("%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y"),
)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_TRUTHS = (
    *(("Ja", "Nein"), ("J", "N"), ("Wahr", "Falsch"), ("Oui", "Non"), ("Vrai", "Faux"), ("Sí", "No"), ("Si", "No")),
    *(("Sim", "Não"), ("Tak", "Nie"), ("Ano", "Ne"), ("On", "Off")),
)


@dataclass(frozen=True)
class Proposal:
    """The type of a column, the settings of its text format, and what its owner has to decide."""

    type: Type
    words: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    doubt: str = ""


def type_of_cells(cells: pd.Series) -> Type:
    """Return the first type that every cell of a text column fits; text if there are no cells."""
    return _type_of(_texts(cells))


def proposal_of_cells(cells: pd.Series) -> Proposal:
    """Return the type and format of a text column: the first of fixed lists that every cell fits, else text."""
    texts = _texts(cells)
    bare = {text.strip(BLANKS) for text in texts}
    nulls = [word for word in _NULLS if word in bare]
    written = [text for text in texts if text.strip(BLANKS) not in nulls]
    of_null: dict[str, str | Sequence[str]] = {"null": nulls} if nulls else {}
    for found in _proposals(written) if written else ():
        return Proposal(found.type, {**found.words, **of_null}, found.doubt)
    return Proposal(Type.TEXT)


def proposal_of_objects(cells: pd.Series) -> Proposal:
    """Return the proposal for a column of Python objects, or of categories of them."""
    values = cells.cat.categories if isinstance(cells.dtype, pd.CategoricalDtype) else cells
    present = [value for value in (plain_cell(cell) for cell in values) if value is not None]
    if all(isinstance(value, str) for value in present):
        return proposal_of_cells(pd.Series(present, dtype="str"))
    if all(isinstance(value, bool) for value in present):
        return Proposal(Type.BOOLEAN)
    if all(isinstance(value, int | float | Decimal | Fraction) for value in present):
        return Proposal(_type_of_numbers([each for each in present if isinstance(each, int)], len(present)))
    if all(isinstance(value, date | Moment) for value in present):
        return Proposal(Type.DATE if all(isinstance(value, date) for value in present) else Type.TIMESTAMP)
    return Proposal(Type.TEXT)


def _type_of_numbers(integers: Sequence[int], numbers: int) -> Type:
    """Return the type of numbers, some of them integers: text if an integer has more than 64 bits."""
    if len(integers) < numbers:
        return Type.REAL
    return Type.INTEGER if all(each in INT64 for each in integers) else Type.TEXT


def proposal_of_stored(column: StoredColumn) -> Proposal:
    """Return the proposal for a typed column: whole decimals become integers if doubles cannot represent them all."""
    if not column.wide:
        return Proposal(column.type)
    return Proposal(Type.INTEGER, doubt="numbers of more than 64 bits are NULL; without a type they are read exactly")


def _texts(cells: pd.Series) -> list[str]:
    return [text for text in pd.unique(cells.dropna()) if isinstance(text, str)]


def _type_of(texts: Sequence[str]) -> Type:
    if not texts:
        return Type.TEXT
    fitting = (kind for kind, fits in _RULES.items() if all(map(fits, texts)))
    return next(fitting, Type.TEXT)


def _proposals(texts: Sequence[str]) -> Iterator[Proposal]:
    kind = _type_of(texts)
    if kind is not Type.TEXT:
        yield Proposal(kind)
    yield from _truths(texts)
    yield from _numbers(texts)
    yield from _dates(texts)


def _reads(texts: Sequence[str], kind: Type, words: Mapping[str, str | Sequence[str]]) -> bool:
    read = text_reader(kind, format_of("", words))
    return all(read(text) is not None for text in texts)


def _truths(texts: Sequence[str]) -> Iterator[Proposal]:
    bare = sorted({text.strip(BLANKS) for text in texts})
    for true, false in _TRUTHS:
        words = {
            word: [text for text in bare if text.casefold() == meant.casefold()] or [meant]
            for word, meant in (("true", true), ("false", false))
        }
        if set(bare) <= {*words["true"], *words["false"]}:
            yield Proposal(Type.BOOLEAN, words)


def _numbers(texts: Sequence[str]) -> Iterator[Proposal]:
    if any(_CODE.match(text) for text in texts):
        return
    fitting = [words for words in _NUMBERS if _reads(texts, Type.REAL, words)]
    if {"decimal": ","} in fitting and {"thousands": ","} in fitting:
        doubt = 'TODO in 1,234 the comma parts a fraction (decimal = ",") or thousands (thousands = ",")'
        yield Proposal(Type.TEXT, doubt=doubt)
    yield from (Proposal(Type.REAL, words) for words in fitting)


def _dates(texts: Sequence[str]) -> Iterator[Proposal]:
    for clock, day in product(_CLOCKS, _DAYS):
        kind = Type.TIMESTAMP if clock else Type.DATE
        if _reads(texts, kind, {"format": day + clock}):
            turned = day.translate(str.maketrans("dm", "md")) + clock
            known = turned != day + clock and turned in (each + clock for each in _DAYS)
            alike = known and _reads(texts, kind, {"format": turned})
            doubt = f"TODO no day is above 12: is it {day + clock} or {turned}?" if alike else ""
            yield Proposal(kind, {"format": day + clock}, doubt)

"""What differs between engines that speak SQL: types, constants, functions, and the few operations that have no text in
common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from dpsql.plan.expressions import Call
from dpsql.schema.columns import ColumnSchema, Key, Type


class MissingFeature(Exception):
    """A plan asks for what the compiler, or an engine, has not: a noun. By the plan alone."""


class Dialect(Protocol):
    """One engine's SQL. Whatever it writes is total: no value of a row can make a statement fail."""

    @property
    def name(self) -> str:
        """The engine's."""

    def type_name(self, kind: Type) -> str:
        """The type that values of a type of the language have."""

    def literal(self, value: Key, kind: Type) -> str:
        """A constant of exactly that type."""

    def call(self, call: Call, args: list[str]) -> str:
        """A function of arguments that are written out; REAL without NaN, INTEGER in 64 bits."""

    def mentions(self, call: Call) -> list[int]:
        """How often each argument stands in the text of a call."""

    def whole(self, text: str, kind: Type) -> str:
        """A value of a discrete type as the BIGINT that it is held as."""

    def moment(self, text: str, kind: Type) -> str:
        """The inverse for dates and timestamps."""

    def rounded(self, text: str) -> str:
        """A DOUBLE below 2^51 in size to the nearest whole number, halves to even."""

    def text_limbs(self, key: str, text: str) -> tuple[str, str]:
        """The two limbs of a text (see `keyed_hash`)."""

    @property
    def wide(self) -> str:
        """The type of whole numbers that 64 bits may be too few for."""

    def total(self, text: str, most: int, where: str = "") -> str:
        """The exact sum of whole numbers of 64 bits, none larger than `most`, as `wide`; where: what stands behind an
        aggregate for the rows that it is of."""

    def quotient(self, text: str, by: str) -> str:
        """The quotient of whole numbers, towards 0."""

    def halves(self, total: str) -> tuple[str, str]:
        """A sum as two doubles: the multiple of 2^32 below it, and the rest."""

    def ordered_sum(self, text: str) -> str:
        """The sum of doubles, added one by one from 0.0 on in ascending order."""

    def windowed(self, function: str, args: Sequence[str], nulls: str) -> str:
        """A window function before OVER; nulls: " IGNORE NULLS" or nothing."""

    def pair(self, number: str, value: str) -> str:
        """A number and a value, which are compared by the number first."""

    def second_of(self, pair: str) -> str:
        """The value of a pair."""

    def all_but(self, names: Sequence[str]) -> str:
        """All columns but these, in a SELECT."""

    def head(self, named: Mapping[str, str]) -> str:
        """What stands before a statement that reads SELECTs by name, each over those before it, more than once."""

    def edges_below(self, edges: Sequence[float], number: str) -> str | None:
        """How many of some ascending edges are less than a number that is not NULL; None where they are a list that is
        joined (`greatest_below`)."""

    def of_pass(self, unit: str) -> str | None:
        """The condition that a unit is one of those that this statement is of; None where it is of all."""

    @property
    def counts_first(self) -> bool:
        """Whether rows of units are counted before they are hashed and sorted, which reads them twice."""

    @property
    def sound_text(self) -> str | None:
        """A template: a stored text, NULL where its bytes are none; None where an engine's texts all are."""

    def place_in(self, values: Sequence[Key], kind: Type, value: str) -> str | None:
        """The place of a value, which is a column, in a list that is looked through, from 0 on, NULL for none; None
        where lists are joined."""

    def greatest_below(self, rows: str, edges: str, value: str, edge: str) -> str:
        """Rows, each beside the row of `edges` whose edge is the greatest that is less than its value; beside none
        where there is none, or the value is NULL."""


class StoredTable(Protocol):
    """The cells of one table, as an engine reads them."""

    enforced: bool
    """Whether cells have bounds and defaults enforced on them already."""

    def rows(self) -> str:
        """What stands after FROM."""

    def cell(self, column: ColumnSchema) -> str:
        """A cell as a value of the column's declared type, NULL where it does not fit it; of OTHER a BOOLEAN."""

    def identity(self, name: str) -> str:
        """What tells privacy units, and keys that lead to them, apart: a value for each stored one."""

    def kind(self, name: str) -> Type:
        """The declared type of a column."""

    def row(self) -> str:
        """A number for each row, as a privacy unit of its own."""

"""Differences between SQL engines: types, constants, functions, and the few operations without common syntax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from dpsql.plan.expressions import Call
from dpsql.schema.columns import ColumnSchema, Key, Type


class MissingFeature(Exception):
    """A plan needs a feature, named by a noun, that the compiler or an engine lacks. Depends only on the plan."""


class Dialect(Protocol):
    """One engine's SQL. All of its text is total: no value of a row can make a statement fail."""

    @property
    def name(self) -> str:
        """The engine's name."""

    def type_name(self, kind: Type) -> str:
        """Return the SQL type for values of a type."""

    def literal(self, value: Key, kind: Type) -> str:
        """Return a constant of exactly that type."""

    def call(self, call: Call, args: list[str]) -> str:
        """Return a function call with written arguments; REAL without NaN, INTEGER in 64 bits."""

    def mentions(self, call: Call) -> list[int]:
        """Return how often each argument occurs in the text of a call."""

    def whole(self, text: str, kind: Type) -> str:
        """Return a value of a discrete type as the BIGINT that represents it."""

    def moment(self, text: str, kind: Type) -> str:
        """Return the inverse of `whole` for dates and timestamps."""

    def rounded(self, text: str) -> str:
        """Round a DOUBLE below 2^51 in size to the nearest whole number, half to even."""

    def text_limbs(self, key: str, text: str) -> tuple[str, str]:
        """Return the two limbs of a text (see `keyed_hash`)."""

    @property
    def wide(self) -> str:
        """The type of whole numbers that may exceed 64 bits."""

    def total(self, text: str, most: int, where: str = "") -> str:
        """Return the exact sum of 64-bit whole numbers up to `most`, as `wide`; where: the aggregate's FILTER
        clause."""

    def quotient(self, text: str, by: str) -> str:
        """Return the quotient of whole numbers, rounded towards 0."""

    def halves(self, total: str) -> tuple[str, str]:
        """Return a sum as two doubles: the multiple of 2^32 below it, and the remainder."""

    def ordered_sum(self, text: str) -> str:
        """Return the sum of doubles, added one by one from 0.0 in ascending order."""

    def windowed(self, function: str, args: Sequence[str], nulls: str) -> str:
        """Return a window function before OVER; nulls: " IGNORE NULLS" or nothing."""

    def pair(self, number: str, value: str) -> str:
        """Return a pair of a number and a value, compared by the number first."""

    def second_of(self, pair: str) -> str:
        """Return the value of a pair."""

    def all_but(self, names: Sequence[str]) -> str:
        """Return all columns except these, for a SELECT."""

    def head(self, named: Mapping[str, str]) -> str:
        """Return the head of a statement that reads named SELECTs, each over those before it, more than once."""

    def edges_below(self, edges: Sequence[float], number: str) -> str | None:
        """Return how many ascending edges are less than a number that is not NULL; None if edges are joined as a list
        instead (`greatest_below`)."""

    def of_pass(self, unit: str) -> str | None:
        """Return the condition that this statement covers a unit; None if it covers all."""

    @property
    def counts_first(self) -> bool:
        """True if rows of units are counted before they are hashed and sorted, which reads them twice."""

    @property
    def sound_text(self) -> str | None:
        """A template: a stored text, or NULL if its bytes are invalid; None if an engine's texts are always valid."""

    def place_in(self, values: Sequence[Key], kind: Type, value: str) -> str | None:
        """Return the place of a value, a column, in a searched list, from 0, or NULL; None if lists are joined."""

    def greatest_below(self, rows: str, edges: str, value: str, edge: str) -> str:
        """Return rows joined with the row of `edges` that has the greatest edge less than the value; without a match if
        there is none, or the value is NULL."""


class StoredTable(Protocol):
    """The cells of one table, as an engine reads them."""

    enforced: bool
    """True if bounds and defaults are already enforced on cells."""

    def rows(self) -> str:
        """Return the text after FROM."""

    def cell(self, column: ColumnSchema) -> str:
        """Return a cell as a value of the column's declared type, NULL if it does not fit; for OTHER a BOOLEAN."""

    def identity(self, name: str) -> str:
        """Return the identity of privacy units, or of keys that lead to them: a distinct value for each stored one."""

    def kind(self, name: str) -> Type:
        """Return the declared type of a column."""

    def row(self) -> str:
        """Return a number for each row, as a privacy unit of its own."""

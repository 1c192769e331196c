"""Declared types as which a stored column can be read."""

from __future__ import annotations

import re

from dpsql.errors import InvalidSchema
from dpsql.schema.columns import Type

UUID_WORD = "uuid"
"""Declared type of 16 bytes that are a UUID. As a value, a UUID is its text."""
SIXTEEN_BYTES = "fixed_size_binary[16]"
"""Arrow's name for 16 bytes."""


def holds_uuids(storage: str) -> bool:
    """Return whether stored bytes can be declared as UUIDs: 16 bytes in Arrow, and any bytes in DuckDB and Parquet,
    where other lengths than 16 are NULL."""
    return storage == "BLOB" or storage.startswith(SIXTEEN_BYTES)


_WIDTHS = {"uint64": 20, "ubigint": 20, "uhugeint": 39, "uint128": 39, "hugeint": -39, "int128": -39}
_WIDE = re.compile("|".join(_WIDTHS), re.IGNORECASE)
_DECIMAL = re.compile(r"decimal(?:\d+)?\((\d+), ?(-?\d+)\)", re.IGNORECASE)
_DIGITS_OF_DOUBLES = 15
"""Doubles are exact for whole numbers with this many digits."""


def _digits_of_decimal(storage: str) -> tuple[int, int] | None:
    """Return a decimal's number of digits, and of those after the point; None for any other stored type."""
    found = _DECIMAL.search(storage)
    return None if found is None else (int(found[1]), int(found[2]))


def width_of(storage: str) -> int:
    """Return the maximum number of digits, for stored types with whole numbers beyond signed 64 bits, or decimals
    without a fraction that a double cannot all represent; negative if signed. 0 for any other type. storage: its name
    in pandas, Arrow, DuckDB or Spark."""
    decimal = _digits_of_decimal(storage)
    if decimal is not None:
        digits, places = decimal
        return places - digits if places <= 0 and digits - places > _DIGITS_OF_DOUBLES else 0
    found = _WIDE.search(storage)
    return 0 if found is None else _WIDTHS[found[0].lower()]


def is_whole(storage: str, stored: Type) -> bool:
    """Return whether a column's stored type has only whole numbers."""
    if stored is Type.REAL:
        digits = _digits_of_decimal(storage)
        return digits is not None and digits[1] <= 0
    return stored is Type.INTEGER


def check_readable(name: str, storage: str, stored: Type, kind: Type, *, uuid: bool) -> None:
    """Text can be read as anything, numbers and booleans as each other, whole numbers as text (digits), timestamps as
    dates, and bytes as UUIDs. Raises InvalidSchema otherwise. stored: the type of the column; kind: the declared one;
    uuid: whether "uuid" was declared."""
    if kind is stored or stored is Type.OBJECT or (uuid and holds_uuids(storage)):
        return
    if stored is Type.TEXT:
        if not storage.startswith("category of"):
            return
        raise InvalidSchema(
            f"{name}: a {storage} is read as text, and cannot be read as {kind}.",
            hint="Leave the type out, or make a column of that type of it in pandas.",
        )
    if kind is Type.TEXT and not uuid and is_whole(storage, stored):
        return
    if kind is Type.TEXT and stored is not Type.OTHER:
        raise InvalidSchema(f"{name}: a column stored as {storage} is not text.", hint=f"It is {stored}.")
    if stored is Type.OTHER or kind.temporal != stored.temporal:
        raise InvalidSchema(f"{name}: a column stored as {storage} cannot be read as {kind}.")

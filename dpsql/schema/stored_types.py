"""Which declared types a stored column can be read as."""

from __future__ import annotations

from dpsql.errors import InvalidSchema
from dpsql.schema.columns import Type
from dpsql.schema.wide_columns import digits_of_decimal

UUID_WORD = "uuid"
"""The declared type of 16 bytes that are a UUID. As a value a UUID is its text."""
SIXTEEN_BYTES = "fixed_size_binary[16]"
"""Arrow's name for 16 bytes."""


def holds_uuids(storage: str) -> bool:
    """Whether bytes are stored that can be declared to be UUIDs: 16 bytes in Arrow, and bytes of any number in DuckDB
    and Parquet, of which other numbers than 16 are NULL."""
    return storage == "BLOB" or storage.startswith(SIXTEEN_BYTES)


def is_whole(storage: str, stored: Type) -> bool:
    """Whether a column holds whole numbers by the type that it is stored as."""
    if stored is Type.REAL:
        digits = digits_of_decimal(storage)
        return digits is not None and digits[1] <= 0
    return stored is Type.INTEGER


def check_readable(name: str, storage: str, stored: Type, kind: Type, *, uuid: bool) -> None:
    """Text can be read as anything, numbers and booleans as each other, whole numbers as text (digits), timestamps
    as dates, and bytes as UUIDs. Raises InvalidSchema. stored: the type of the column; kind: the declared one; uuid:
    whether "uuid" was declared."""
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

"""Questions in the words of another dialect: planned as what they are in the language, refused in the user's text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dpsql.errors import DPSQLError
from dpsql.sql.catalog import Catalog

OWN = "duckdb"


def checked_dialect(dialect: object) -> str:
    """The name of a dialect as sqlglot has it. Raises InvalidArgument."""
    from dpsql.sql.foreign.names import habits_of  # sqlglot is loaded with the first query

    return habits_of(dialect).name


@contextmanager
def in_own_words(sql: object, dialect: object, catalog: Catalog) -> Iterator[str]:
    """The text in the language. What is refused of it inside points to the user's text. Raises as `translate`."""
    if checked_dialect(dialect) == OWN and isinstance(sql, str):
        yield sql
        return
    from dpsql.sql.foreign.translate import translate

    translation = translate(sql, dialect, catalog)
    try:
        yield translation.written
    except DPSQLError as refusal:
        refusal.span = translation.place(refusal.span)
        raise

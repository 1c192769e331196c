"""Queries in other SQL dialects: planned after translation, with errors that point into the user's text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dpsql.errors import DPSQLError, InternalError, SQLSyntaxError
from dpsql.sql.names.catalog import Catalog

if TYPE_CHECKING:
    from dpsql.sql.dialects.translate import Translation

OWN = "duckdb"


def checked_dialect(dialect: object) -> str:
    """Return the dialect's name as in sqlglot. Raises InvalidArgument."""
    from dpsql.sql.dialects.names import habits_of  # sqlglot is loaded with the first query

    return habits_of(dialect).name


@contextmanager
def in_own_words(sql: object, dialect: object, catalog: Catalog) -> Iterator[str]:
    """Yield the text in dpsql's own dialect. Errors raised inside get spans of the user's text. Raises as
    `translate`."""
    if checked_dialect(dialect) == OWN and isinstance(sql, str):
        yield sql
        return
    from dpsql.sql.dialects.translate import translate

    translation = _translated(translate, sql, dialect, catalog)
    try:
        yield translation.written
    except DPSQLError as refusal:
        refusal.span = translation.place(refusal.span)
        raise


def _translated(translate: Callable[..., Translation], *asked: object) -> Translation:
    """Return the translation. Any error but a refusal is a fault of dpsql; its message is not passed on."""
    try:
        return translate(*asked)
    except DPSQLError:
        raise
    except RecursionError:
        raise SQLSyntaxError("the query is nested too deeply.") from None
    except Exception as error:  # noqa: BLE001 - the parser's trees of odd texts
        failed = type(error).__name__
    raise InternalError(
        f"the text could not be read ({failed}). Nothing was read of people's rows and nothing was charged.",
        hint="This is a fault of dpsql, not of the query. Please report it.",
    )

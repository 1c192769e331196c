"""Questions in the words of another dialect: planned as what they are in the language, refused in the user's text."""

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
    """The name of a dialect as sqlglot has it. Raises InvalidArgument."""
    from dpsql.sql.dialects.names import habits_of  # sqlglot is loaded with the first query

    return habits_of(dialect).name


@contextmanager
def in_own_words(sql: object, dialect: object, catalog: Catalog) -> Iterator[str]:
    """The text in the language. What is refused of it inside points to the user's text. Raises as `translate`."""
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
    """The translation. Anything but a refusal is a fault of this code, and no words of it are passed on."""
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

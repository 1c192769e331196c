"""SHOW TABLES and DESCRIBE: declared facts as rows, in every output mode."""

from __future__ import annotations

import re
from collections.abc import Callable

from dpsql.answer.declared_facts import facts_of, whose
from dpsql.answer.html import html_table
from dpsql.answer.number_format import printable
from dpsql.answer.render import Cells, text_table
from dpsql.errors import UnknownTable, did_you_mean
from dpsql.remote.client import RemoteSession
from dpsql.schema.columns import TableSchema
from dpsql.schema.frozen import dataclass
from dpsql.session.session import Session
from dpsql.shell.output.describe import tables_of

_SHOW = re.compile(r"show\s+(?:all\s+)?tables", re.IGNORECASE)
_DESCRIBE = re.compile(r"(?:describe|desc)\s+(?:table\s+)?(?:\"((?:[^\"]|\"\")+)\"|([^\W\d][\w$-]*))", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Listing:
    """Rows of text under heads; free, since no row of a table is read. Prints as a table."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def cells(self) -> Cells:
        """The listing as a table of text."""
        return Cells(list(self.heads), [list(row) for row in self.rows], [False] * len(self.heads), 0)

    def __repr__(self) -> str:
        return text_table(self.cells)

    def _repr_html_(self) -> str:
        return html_table(self.cells, ())


def listing_of(sql: str, session: Session | RemoteSession) -> Listing | None:
    """Return the listing for SHOW TABLES or DESCRIBE; None for other statements. Raises UnknownTable."""
    text = sql.strip().rstrip(";").strip()
    if _SHOW.fullmatch(text):
        return _of_tables(tables_of(session))
    match = _DESCRIBE.fullmatch(text)
    if match is None:
        return None
    quoted, bare = match.groups()
    return _of_columns(table_called(quoted.replace('""', '"') if quoted else bare, session, UnknownTable))


def table_called(name: str, session: Session | RemoteSession, refusal: Callable[..., Exception]) -> TableSchema:
    """Return the table of that name, ignoring case; otherwise raise the exception that `refusal` makes."""
    tables = tables_of(session)
    for table in tables:
        if table.name.casefold() == name.casefold():
            return table
    names = [table.name for table in tables]
    near = did_you_mean(name, names) or f" There are: {', '.join(names[:10])}."
    raise refusal(f'no table "{name}".{near}')


def _of_tables(tables: list[TableSchema]) -> Listing:
    rows = tuple((printable(each.name), str(len(each.columns)), whose(each)) for each in tables)
    return Listing(("name", "columns", "rows"), rows)


def _of_columns(table: TableSchema) -> Listing:
    return Listing(("column", "type", "declared"), tuple(facts_of(each) for each in table.columns))

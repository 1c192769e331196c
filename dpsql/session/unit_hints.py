"""Notes on tables whose rows count as people, although a column name suggests that people may have several rows."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dpsql.schema.columns import TableSchema

_NAMES_SOMEBODY = re.compile(r"(?:[^\W\d].*)?[a-z0-9](?:_id|-id| id|Id|ID)|[A-Z0-9_]+_ID")
_MOST = 3


def units_that_may_be_missing(tables: Iterable[TableSchema]) -> tuple[str, ...]:
    """Return a sentence for each private table with an undecided unit and with columns called `..._id` that are not
    unique. Its rows may be several of one person, who is protected less. Uses declared facts and names only."""
    sentences = []
    for table in tables:
        if table.public or table.unit is not None or table.rows_are_units:
            continue
        unique = {key[0].casefold() for key in table.unique if len(key) == 1}
        names = [each.name for each in table.columns if _NAMES_SOMEBODY.fullmatch(each.name)]
        names = [name for name in names if name.casefold() not in unique][:_MOST]
        if names:
            listed = ", ".join(names)
            sentences.append(
                f"each row of {table.name} counts as one person's, though it has {listed}: who has several rows is "
                f"protected less. If a column says whose row it is, its owner declares it as the unit."
            )
    return tuple(sentences)

"""Rows of tables of constants, for plans that read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dpsql.plan.nodes import Source, scans_of

if TYPE_CHECKING:
    from dpsql.executors.pandas.columns.declared_columns import ColumnStore


def constant_tables(sources: Iterable[Source], beside: Iterable[str] = ()) -> Mapping[str, ColumnStore]:
    """Return the stores of the tables of constants that these sources read, by folded name. beside: names of other
    stores."""
    read = list(sources)
    if not any(scan.table.is_constant for source in read for scan in scans_of(source)):
        return {}
    from dpsql.executors.pandas.columns.constants import constant_stores  # most queries have none

    return constant_stores(read, beside)

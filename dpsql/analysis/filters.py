"""What the filters of a plan imply for the rows above them."""

from __future__ import annotations

from dpsql.sql.facts import Known, narrow
from dpsql.sql.plan import Source, filters_of


def known_of(source: Source) -> Known:
    """All that the filters of a source imply of expressions."""
    known: Known = {}
    for predicate in filters_of(source):
        known = narrow(predicate, known)
    return known

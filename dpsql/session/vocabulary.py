"""Words of queries, for completion."""

from __future__ import annotations

import re

from dpsql.plan.aggregates import AGGREGATES

KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "AS", "AND", "OR", "NOT", "IN", "IS"),
    *("NULL", "LIKE", "BETWEEN", "EXISTS", "CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT", "JOIN", "LEFT JOIN"),
    *("ON", "USING", "UNION ALL", "WITH", "WITH DIFFERENTIAL_PRIVACY OPTIONS", "FILTER", "ASC", "DESC", "ROLLUP"),
    *("CUBE", "GROUPING SETS", "CROSS JOIN", "WITHIN", "CONFIDENCE", "EXPLAIN PRIVACY", "SHOW TABLES", "DESCRIBE"),
    *("DATE", "TIMESTAMP", "INTERVAL", "TRUE", "FALSE", "CAST", "EXTRACT", "COUNT(*)"),
)
_MORE_AGGREGATES = ("MEDIAN", "VARIANCE", "STDDEV", "COUNT_IF", "PERCENTILE_CONT")
_BARE = re.compile(r"[^\W\d]\w*")
_RESERVED = {word for phrase in KEYWORDS for word in phrase.split()} - {"DATE", "TIMESTAMP", "CONFIDENCE", "WITHIN"}


def words() -> list[str]:
    """Return keywords, then functions with an opening bracket."""
    from dpsql.sql.syntax.spellings import written_names  # loads the parser, which a prompt does not need at first

    functions = {*written_names(), *AGGREGATES, *_MORE_AGGREGATES}
    called = (f"{name}(" for name in functions - {"CASE", "CAST", "EXTRACT"} if _BARE.fullmatch(name))
    return [*KEYWORDS, *sorted(called)]


def as_identifier(name: str) -> str:
    """Return the name as a SQL identifier: quoted unless it is a plain word that is not reserved."""
    if _BARE.fullmatch(name) and name.upper() not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'

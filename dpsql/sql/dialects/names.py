"""Available dialects, and how their words differ from DuckDB's.

They follow each engine's documentation for default settings. Nothing is assumed about unlisted dialects: words whose
meaning differs between engines are refused there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from sqlglot.dialects.dialect import Dialects

from dpsql.errors import InvalidArgument, as_written, did_you_mean
from dpsql.schema.frozen import dataclass

_SYNONYMS = {"mariadb": "mysql", "mssql": "tsql", "postgresql": "postgres", "sqlserver": "tsql"}


@dataclass(frozen=True, slots=True)
class Habits:
    """The meanings of a dialect's words. The defaults stand for unknown."""

    name: str = ""
    sunday: int | None = None
    """The number of Sunday in DAYOFWEEK (DOW): 0, 1, or 7 if Monday is 1."""
    iso_weeks: bool = False
    """WEEK in EXTRACT, and WEEK(x), are weeks of ISO 8601."""
    monday_weeks: bool = False
    """DATE_TRUNC to a week goes back to Monday."""
    monday_borders: bool = False
    """Differences in weeks count Mondays."""
    whole_units: bool = False
    """A difference in months counts complete months, not month boundaries."""
    casts_cut: bool | None = None
    """A cast from a number to an integer drops decimals; False: it rounds."""
    ignores_case: bool = False
    """LIKE and regular expressions ignore case."""
    counts_bytes: bool = False
    """LENGTH counts bytes."""
    days_are_numbers: bool = False
    """The difference of two dates is a number of days, and date + 1 is the next day."""
    whole_seconds: bool = False
    """SECOND in EXTRACT has no fraction."""
    skips_nulls: bool | None = None
    """GREATEST and LEAST ignore NULLs; False: any NULL makes them NULL."""
    samples: bool | None = None
    """STDDEV and VARIANCE divide by n - 1; False: by n."""
    real_decimals: bool = False
    """DECIMAL and NUMERIC without a size keep decimals."""


_POSTGRES = Habits(
    sunday=0,
    iso_weeks=True,
    monday_weeks=True,
    casts_cut=False,
    days_are_numbers=True,
    skips_nulls=True,
    samples=True,
    real_decimals=True,
)
_MYSQL = Habits(
    sunday=1,
    whole_units=True,
    casts_cut=False,
    ignores_case=True,
    counts_bytes=True,
    whole_seconds=True,
    skips_nulls=False,
    samples=False,
)
_PRESTO = Habits(
    sunday=7,
    iso_weeks=True,
    monday_weeks=True,
    whole_units=True,
    casts_cut=False,
    whole_seconds=True,
    skips_nulls=False,
    samples=True,
)
_SPARK = Habits(
    sunday=1, iso_weeks=True, monday_weeks=True, whole_units=True, casts_cut=True, skips_nulls=True, samples=True
)
_TSQL = Habits(sunday=1, casts_cut=True, ignores_case=True, whole_seconds=True, skips_nulls=True, samples=True)
HABITS: Mapping[str, Habits] = MappingProxyType(
    {
        "athena": _PRESTO,
        "bigquery": Habits(
            sunday=1, casts_cut=False, whole_seconds=True, skips_nulls=False, samples=True, real_decimals=True
        ),
        "clickhouse": Habits(casts_cut=True, counts_bytes=True, samples=False),
        "databricks": _SPARK,
        "dune": _PRESTO,
        "fabric": _TSQL,
        "hive": replace(_SPARK, whole_units=False, skips_nulls=False, samples=False),
        "materialize": _POSTGRES,
        "mysql": _MYSQL,
        "oracle": Habits(casts_cut=False, days_are_numbers=True, skips_nulls=False, samples=True, real_decimals=True),
        "postgres": _POSTGRES,
        "presto": _PRESTO,
        "redshift": replace(_POSTGRES, real_decimals=False),
        "risingwave": _POSTGRES,
        "snowflake": Habits(
            sunday=0,
            iso_weeks=True,
            monday_weeks=True,
            monday_borders=True,
            casts_cut=False,
            days_are_numbers=True,
            whole_seconds=True,
            skips_nulls=False,
            samples=True,
        ),
        "spark": _SPARK,
        "spark2": _SPARK,
        "sqlite": Habits(casts_cut=True, ignores_case=True, skips_nulls=False, real_decimals=True),
        "trino": _PRESTO,
        "tsql": _TSQL,
    }
)


def habits_of(dialect: object) -> Habits:
    """Return the habits of a dialect, with sqlglot's name for it. Raises InvalidArgument."""
    known = sorted({each.value for each in Dialects if each.value} | set(_SYNONYMS))
    if not isinstance(dialect, str):
        raise InvalidArgument(f"dialect must be the name of an SQL dialect, got {as_written(dialect)}.")
    folded = str.__str__(dialect).casefold()
    if folded not in known:
        shown = as_written(folded[:40])
        raise InvalidArgument(
            f"no dialect {shown}.{did_you_mean(folded[:40], known)}", hint=f"The dialects are {', '.join(known)}."
        )
    name = _SYNONYMS.get(folded, folded)
    return replace(HABITS.get(name, Habits()), name=name)

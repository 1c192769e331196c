"""The releases of DuckDB supported as an engine: those with which the engine's tests have passed.

Another release might throw, round or order differently, and an error that depends on rows reveals information about
them. Post-processing reads only released values, so it runs on any release.
"""

from __future__ import annotations

from dpsql.errors import InvalidSchema

TESTED = ((2, 0),)
"""Major and minor versions. `make test-versions` runs the tests with the oldest and the newest release of these."""


def check_release() -> None:
    """Raise InvalidSchema if the installed DuckDB is not of a tested release."""
    import duckdb  # loaded when a source needs it

    if tuple(duckdb.__version__.split(".")[:2]) not in {(str(major), str(minor)) for major, minor in TESTED}:
        (major, minor), names = TESTED[-1], ", ".join(f"{major}.{minor}" for major, minor in TESTED)
        raise InvalidSchema(
            f"DuckDB {duckdb.__version__} has not been tested as an engine, so it reads no tables (tested: {names}).",
            hint=f'Run pip install "duckdb=={major}.{minor}.*", or pass DataFrames without engine="duckdb".',
        )

"""The run of a release that is paid for: execute and privatise. Nothing of the data leaves but through noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dpsql.errors import InternalError
from dpsql.executors.columns import ColumnStore
from dpsql.executors.pandas import PandasExecutor
from dpsql.finish import finish
from dpsql.intervals import Interval
from dpsql.notes import warnings_of
from dpsql.privacy.sampling import fresh_key
from dpsql.release import Release, Released
from dpsql.result import Result
from dpsql.stages import run_stages


def run(release: Release, stores: Mapping[str, ColumnStore]) -> Released:
    """The released values of a release over the tables' stores.

    Executors are total; should anything fail all the same while exact values are held, its own words could quote
    one, so they are not passed on.
    Raises InternalError.
    """
    released: Released | None = None
    failed = ""
    try:
        executor = PandasExecutor(stores)
        bounds: tuple[Interval, ...] = ()
        if release.searches is not None:
            bounds = release.searches.choose(executor.execute(release.searches.exact, fresh_key()))
        settled = release.settled(bounds)
        released = settled.privatise(executor.execute(settled.exact, fresh_key()))
        released = replace(released, bounds=bounds)
    except Exception as error:  # noqa: BLE001 - whatever it is, it may have seen a row
        failed = type(error).__name__
    if released is None:  # raised out here, so that nothing of the failure hangs on the error as its context
        raise InternalError(
            f"the run failed ({failed}). What it cost stays spent, since rows had been read.",
            hint="This is a fault of dpsql or of the machine (memory?), not of the query. Please report it.",
        )
    return released


def finished(
    release: Release, released: Released, footer: str, *, notes: tuple[str, ...] = (), replayed: bool = False
) -> Result:
    """The Result of released values: what the query does with them, and the words below the table."""
    release = release.settled(released.bounds)
    rows = run_stages(finish(release, released), release.query.stages)
    return Result(rows, release, released, footer, (*warnings_of(release, released), *notes), replayed)

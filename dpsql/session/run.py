"""The run of a release that is paid for: execute and privatise. Nothing of the data leaves but through noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dpsql.answer.result import Result, result_of
from dpsql.core.exact import ExactPlan
from dpsql.core.samplers import fresh_key
from dpsql.errors import InternalError, InvalidSchema, UnsupportedSQL
from dpsql.executors.base import Engine, Store, executor_of
from dpsql.executors.pandas.engine import PANDAS
from dpsql.executors.resources import NotEnoughMemory, remedy
from dpsql.plan.earlier import tried_with
from dpsql.release.release import Release, Released
from dpsql.session.constant_tables import constant_tables
from dpsql.session.public_tables import public_stores
from dpsql.session.trial import tried

if TYPE_CHECKING:
    from dpsql.session.earlier import Seen
    from dpsql.session.prepare import Prepared
    from dpsql.sql.catalog import PublicValues


def check_engine(release: Release, engine: Engine) -> None:
    """Raises UnsupportedSQL where the engine lacks what the release asks for, by its plans alone."""
    for plan in release.once(_tried_with):
        lack = engine.lacks(plan)
        if lack is not None:
            raise UnsupportedSQL(f"the engine {engine.name}, which reads these tables, has no {lack}.")


def check_there(releases: Iterable[Release], stores: Mapping[str, Store], engine: Engine) -> None:
    """Raises InvalidSchema where files that releases read are gone, or hold other columns than when they were opened:
    before they are paid for, so that nothing is lost by it."""
    if engine is PANDAS:  # whose rows are here
        return
    from dpsql.session.contents import tables_read  # frames need no reader of files

    read = {name for release in releases for plan in release.plans for name in tables_read(plan.source)}
    try:
        for name, store in stores.items():
            if name.casefold() in read:
                store.check()
    except InvalidSchema as error:
        refusal = InvalidSchema(f"{error.message} Nothing was charged.", hint=error.hint)
    else:
        return
    raise refusal


def _tried_with(release: Release) -> tuple[ExactPlan, ...]:
    return tuple(map(tried_with, release.plans))


def run(
    release: Release, stores: Mapping[str, Store], engine: Engine, seen: Seen | None = None, *, paid: bool = True
) -> Released:
    """The released values of a release over the tables' stores, which are the engine's or public. paid: whether it was
    charged, for messages; seen: what earlier releases of the statement showed, put into what the engine is asked for,
    and into nothing that losses are made of.

    Executors are total; should anything fail all the same while exact values are held, its own words could quote
    one, so they are not passed on. Where the query has chosen bounds, its plan with them is tried as all plans are
    before they are paid for (`trial`); what fails there stays charged.
    Raises InternalError.
    """
    released: Released | None = None
    failed, changed, of_memory = "", "", False
    refusal: InvalidSchema | None = None
    try:
        stores = stores if seen is None else {**stores, **seen.stores}
        stores = {**stores, **constant_tables((plan.source for plan in release.plans), stores)}
        executor = executor_of(stores, engine)
        put_in = _as_it_is if seen is None else seen.plan
        bounds = release.choose_bounds(lambda plan: executor.execute(put_in(plan), fresh_key()))
        settled = release.settled(bounds)
        if settled is not release:  # planned anew, so tried anew; by what is released, and no row
            tried(settled, {name.casefold(): store.schema for name, store in stores.items()}, public_stores(stores))
        settled.assert_paid()
        released = settled.privatise(executor.execute(put_in(settled.exact), fresh_key()))
        released = replace(released if seen is None else seen.kept(released), bounds=bounds)
    except Exception as error:  # noqa: BLE001 - whatever it is, it may have seen a row
        failed, changed = type(error).__name__, getattr(error, "changed_files", "")  # names of files, of nothing else
        refusal = getattr(error, "refusal", None)  # of a file as well
        of_memory = isinstance(error, NotEnoughMemory | MemoryError)
    if released is None:  # raised out here, so that nothing of the failure hangs on the error as its context
        spent = "What it cost stays spent, since rows had been read." if paid else "Nothing was charged."
        if changed:
            raise InternalError(
                f"{changed} changed while it was read, and nothing is released. {spent}", hint="Ask again."
            )
        if refusal is not None:
            raise InternalError(f"{refusal.message} {spent}", hint=refusal.hint)
        if of_memory:
            raise InternalError(f"the run needed more memory than it may have. {spent}", hint=remedy(engine.name))
        raise InternalError(
            f"the run failed ({failed}). {spent}",
            hint="This is a fault of dpsql or of the machine (memory?), not of the query. Please report it.",
        )
    return released


def _as_it_is(plan: ExactPlan) -> ExactPlan:
    return plan


def finished(
    prepared: Prepared,
    released: Released,
    footer: str,
    *,
    notes: tuple[str, ...] = (),
    replayed: bool = False,
    public: PublicValues | None = None,
) -> Result:
    """The Result of released values: what the query does with them, and the words below the table. public: the rows of
    public tables, which what is known of the noise may be told with."""
    settled = prepared.release.settled(released.bounds)
    result = result_of(settled, released, footer, notes=notes, replayed=replayed)
    if prepared.program is None:
        return result
    from dpsql.session.program import with_intervals  # most questions have no SELECT over an answer

    return with_intervals(result, settled, released, prepared.program, public)

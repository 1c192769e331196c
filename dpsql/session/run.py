"""Execution of a paid release: compute exact integers and privatise them. Data leave only through noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from dpsql.core.exact import ExactPlan
from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.errors import InternalError, InvalidSchema, UnsupportedSQL
from dpsql.executors.base import Engine, OpenSources, Store, executor_of
from dpsql.executors.pandas.engine import PANDAS
from dpsql.executors.resources import NotEnoughMemory, remedy
from dpsql.plan.prior_releases import tried_with
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.frozen import dataclass
from dpsql.session.dry_run import tried
from dpsql.session.tables.constant_tables import constant_tables
from dpsql.session.tables.public_tables import public_stores

if TYPE_CHECKING:
    from dpsql.session.multi_step.prior_releases import PriorReleases


def check_engine(release: Release, engine: Engine) -> None:
    """Raise UnsupportedSQL if the engine lacks a feature that the release's plans need."""
    for plan in release.once(_tried_with):
        lack = engine.lacks(plan)
        if lack is not None:
            raise UnsupportedSQL(f"the engine {engine.name}, which reads these tables, has no {lack}.")


@dataclass(frozen=True, eq=False)
class OpenTables:
    """Tables of one query, opened before it is charged and held until it is answered. sources: as in `Engine.open`."""

    stores: Mapping[str, Store]
    engine: Engine
    sources: OpenSources | None

    @property
    def stamps(self) -> Mapping[str, object]:
        """As in `OpenSources`."""
        return {} if self.sources is None else self.sources.stamps


@contextmanager
def open_tables(releases: Iterable[Release], stores: Mapping[str, Store], engine: Engine) -> Iterator[OpenTables]:
    """Yield the tables that releases read, opened. Raises InvalidSchema, at no cost, if files are missing, locked,
    unreadable or have other columns than when their table was opened, or if a run lacks space."""
    if engine is PANDAS:  # the rows are in this process
        yield OpenTables(stores, engine, None)
        return
    from dpsql.session.tables.file_versions import tables_read  # frames need no file reader

    read = {name for release in releases for plan in release.plans for name in tables_read(plan.source)}
    there = {name: store for name, store in stores.items() if name.casefold() in read}
    with ExitStack() as contexts:
        try:
            own = {name: store for name, store in there.items() if not store.schema.public}
            sources = contexts.enter_context(engine.open(own))
            executor_of(there, engine, sources)  # also copies public tables to the engine
        except InvalidSchema as error:
            refusal = InvalidSchema(f"{error.message} Nothing was charged.", hint=error.hint)
        else:
            yield OpenTables(stores, engine, sources)
            return
    raise refusal


def _tried_with(release: Release) -> tuple[ExactPlan, ...]:
    return tuple(map(tried_with, release.plans))


def run(
    release: Release, tables: OpenTables, seen: PriorReleases | None = None, *, paid: bool = True
) -> ReleasedValues:
    """Return the released values of a release over open tables. paid: whether it was charged, for messages; seen:
    answers of the statement's prior releases. They enter the engine's plan, and nothing that determines privacy losses.

    Executors are total. If one fails nevertheless while it holds exact values, its message could quote one, so it is
    not passed on. A query that has chosen bounds gets a dry run of its plan with them, as all plans do before they are
    paid for (`session.dry_run`); the charge stays if that fails. Raises InternalError.
    """
    released: ReleasedValues | None = None
    failure: Exception | None = None
    reading = False
    try:
        stores = tables.stores if seen is None else {**tables.stores, **seen.stores}
        stores = {**stores, **constant_tables((plan.source for plan in release.plans), stores)}
        executor = executor_of(stores, tables.engine, tables.sources)
        put_in = _as_it_is if seen is None else seen.plan
        reading = True
        bounds = release.choose_bounds(lambda plan: executor.execute(put_in(plan), fresh_key()))
        settled = release.settled(bounds)
        if settled is not release:  # a new plan needs a new dry run, which sees released bounds and no row
            tried(settled, {name.casefold(): store.schema for name, store in stores.items()}, public_stores(stores))
        settled.assert_paid()
        released = settled.privatise(executor.execute(put_in(settled.exact), fresh_key()))
        released = replace(released if seen is None else seen.kept(released), bounds=bounds)
    except Exception as error:  # noqa: BLE001 - whatever it is, it may have seen a row
        failure = _failure(error, tables.engine, reading=reading, paid=paid)
    if released is None:  # raised out here, so that the failure is not the error's context
        assert failure is not None
        raise failure
    return released


def _failure(error: Exception, engine: Engine, *, reading: bool, paid: bool) -> InternalError:
    """Return the error of a failed run: with file names and the error's class, without its message."""
    has_read = reading and getattr(error, "has_read", True)
    why = "since rows had been read" if has_read else "though no row was read: no charge is ever given back"
    spent = f"What it cost stays spent, {why}." if paid else "Nothing was charged."
    changed, refusal = getattr(error, "changed_files", ""), getattr(error, "refusal", None)
    if changed:
        when = "while it was read" if has_read else "between the charge and the run"
        return InternalError(f"{changed} changed {when}, and nothing is released. {spent}", hint="Ask again.")
    if isinstance(refusal, InvalidSchema):  # also about a file
        return InternalError(f"{refusal.message} {spent}", hint=refusal.hint)
    if isinstance(error, NotEnoughMemory | MemoryError):
        return InternalError(f"the run needed more memory than it may have. {spent}", hint=remedy(engine.name))
    return InternalError(
        f"the run failed ({type(error).__name__}). {spent}",
        hint="This is a fault of dpsql or of the machine (memory?), not of the query. Please report it.",
    )


def _as_it_is(plan: ExactPlan) -> ExactPlan:
    return plan

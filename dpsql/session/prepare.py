"""prepare: SQL text, declared facts and a privacy loss -> a calibrated Release. No row is read, nothing is spent."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.core.goal import Goal, confidence_of
from dpsql.core.loss import Allowance, as_delta, as_epsilon, as_rho, show
from dpsql.core.unit import Neighbours
from dpsql.errors import (
    DPSQLError,
    InternalError,
    InvalidPrivacyParameter,
    QueryRefused,
    SQLSyntaxError,
)
from dpsql.plan.options import Options
from dpsql.release.plan import planned
from dpsql.release.release import Release
from dpsql.schema.frozen import dataclass
from dpsql.session.dry_run import tried
from dpsql.session.prepared_query import PreparedQuery
from dpsql.session.tables.public_tables import stores_of
from dpsql.sql import compile_query
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.parameters import Params, params_of

if TYPE_CHECKING:
    from dpsql.plan.query_plan import Postprocess, QueryPlan, ReleasePlan
    from dpsql.sql.compile import CompiledQuery
    from dpsql.sql.syntax.parse import Statement

_MOST_CACHED = 256


@dataclass(frozen=True)
class Terms:
    """Cost limits of a query: the call's parameters, defaults for missing ones, and the owner's limit.

    OPTIONS in the text can lower the call's parameters or supply missing ones, never raise them.
    """

    epsilon: Fraction | None
    delta: Fraction | None
    default_epsilon: Fraction | None = None
    default_delta: Fraction = Fraction(0)
    max_epsilon: Fraction | None = None
    rho: Fraction | None = None
    max_rho: Fraction | None = None
    """The rho that converts to max_epsilon."""
    goal: Goal | None = None
    """Error goal of the answers; the epsilons are then limits."""
    confidence: Fraction | None = None
    """Confidence of the error goal, in the call or in the text."""
    concentrated: bool = False
    """True if the ledger only adds up rhos."""

    @classmethod
    def of(
        cls,
        epsilon: object,
        delta: object,
        rho: object,
        error: object = None,
        confidence: object = None,
        **defaults: Any,
    ) -> Terms:
        """Return the terms of a call. Raises InvalidPrivacyParameter."""
        goal = None if error is None else Goal.of(error)
        sure = None if confidence is None else confidence_of(confidence)
        if epsilon is not None and rho is not None:
            raise InvalidPrivacyParameter("a query is paid by epsilon or by rho, got both.", hint="Leave one out.")
        return cls(
            None if epsilon is None else as_epsilon(epsilon),
            None if delta is None else as_delta(delta),
            rho=None if rho is None else as_rho(rho),
            goal=goal,
            confidence=sure,
            **defaults,
        )

    def goal_with(self, of_text: Goal | None) -> Goal | None:
        """Return the call's goal, or the text's. Raises InvalidPrivacyParameter."""
        if of_text is not None and self.goal is not None:
            raise InvalidPrivacyParameter("both the text and the call say an error.", hint="Leave one out.")
        goal = of_text or self.goal
        if goal is None:
            if self.confidence is not None:
                raise InvalidPrivacyParameter(
                    "confidence is that of an error, and none is asked for.", hint="Add error=5."
                )
            return None
        if goal.confidence is not None and self.confidence is not None:
            raise InvalidPrivacyParameter("both the text and the call say a confidence.", hint="Leave one out.")
        if self.rho is not None:
            raise InvalidPrivacyParameter(
                "a query is paid by rho, or by what its error needs of epsilon, not both.", hint="Leave one out."
            )
        return replace(goal, confidence=goal.confidence or self.confidence)

    def said(self, options: Options | None) -> tuple[Fraction | None, Fraction]:
        """Return the text's epsilon, and the delta that one query may spend. Raises InvalidPrivacyParameter if the text
        exceeds the call."""
        written = (options.epsilon, options.delta) if options is not None else (None, None)
        for name, word, allowed in (("epsilon", written[0], self.epsilon), ("delta", written[1], self.delta)):
            if word is not None and allowed is not None and word > allowed:
                raise InvalidPrivacyParameter(
                    f"the text's {name} {show(word)} is above the {show(allowed)} that the call allows.",
                    span=options.places.get(name) if options is not None else None,
                    hint="OPTIONS can lower what a call allows, never raise it.",
                )
        return written[0], _first(written[1], self.delta, self.default_delta) or Fraction(0)

    def allowance(self, options: Options | None) -> Allowance:
        """Return what one query may cost. Raises InvalidPrivacyParameter."""
        epsilon, delta = self.said(options)
        if self.rho is None:
            allowance = self.paying(as_epsilon(_first(epsilon, self.epsilon, self.default_epsilon)), delta)
        elif epsilon is not None:
            raise InvalidPrivacyParameter(
                "the text says epsilon, and the call says rho.",
                span=options.places.get("epsilon") if options is not None else None,
                hint="Leave one out.",
            )
        else:
            allowance = Allowance(None, delta, self.rho)
        if self.max_epsilon is None:
            return allowance
        if self.rho is None and allowance.pure > self.max_epsilon:
            raise InvalidPrivacyParameter(
                f"epsilon {show(allowance.pure)} is above the {show(self.max_epsilon)} that one query may spend here."
            )
        if self.rho is not None and self.rho > (self.max_rho or 0):
            most = f"rho {show(self.max_rho)}" if self.max_rho else "no rho"
            raise InvalidPrivacyParameter(
                f"rho {show(self.rho)} is more than one query may spend here: epsilon {show(self.max_epsilon)}, {most}."
            )
        return allowance

    def paying(self, epsilon: Fraction, delta: Fraction) -> Allowance:
        """Return an allowance for this pair, charged to the ledger."""
        return Allowance(epsilon, delta, concentrated=self.concentrated)


def _first(*words: Fraction | None) -> Fraction | None:
    return next((word for word in words if word is not None), None)


_cache: OrderedDict[object, PreparedQuery] = OrderedDict()
_lock = threading.Lock()


def prepare(
    sql: str,
    catalog: Catalog,
    neighbours: Neighbours,
    terms: Terms,
    *,
    params: object = None,
    strategy: str = "auto",
    mechanism: str = "auto",
    dialect: str | None = None,
    whose: str = "",
) -> PreparedQuery:
    """Return a query planned and dry-run, without its data. The same query under the same facts is planned once for
    each `whose`: planning time must not tell one analyst about another's queries. dialect: dialect of the text, None
    for dpsql's own.

    The plan is run on synthetic rows before anything is charged (`session.dry_run`). Raises a QueryRefused,
    InvalidArgument or InvalidPrivacyParameter, or an InternalError; the same on an empty table as on a full one.
    """
    if dialect is not None:
        from dpsql.session.dialects import in_own_words  # most queries are in dpsql's own dialect

        with in_own_words(sql, dialect, catalog) as written:
            return prepare(
                written, catalog, neighbours, terms, params=params, strategy=strategy, mechanism=mechanism, whose=whose
            )
    sql = str.__str__(sql) if isinstance(sql, str) else sql  # a subclass could compare as it likes
    given = () if params is None else params_of(params)
    key = (whose, sql, catalog.fingerprint, neighbours, terms, _typed(given), strategy, mechanism)
    try:
        with _lock:
            known = _cache.get(key)
            if known is not None:
                _cache.move_to_end(key)
                return known
    except TypeError:  # an argument of a wrong type, which is refused below
        pass
    prepared = _prepared(sql, catalog, neighbours, terms, given, strategy=strategy, mechanism=mechanism)
    for release in prepared.dry_runs:
        tried(release, catalog.tables, stores_of(catalog.public))
    return _remember(key, prepared)


def _prepared(
    sql: str, catalog: Catalog, neighbours: Neighbours, terms: Terms, given: Params, *, strategy: str, mechanism: str
) -> PreparedQuery:
    """Return a plan before its dry run. Any error but a DPSQLError is a fault of dpsql."""
    failed = ""
    try:
        compiled = compile_query(sql, catalog, given)
        if compiled.plan.postprocess is not None:
            return _prepared_several(
                compiled,
                compiled.plan.postprocess,
                catalog,
                terms=terms,
                neighbours=neighbours,
                strategy=strategy,
                mechanism=mechanism,
            )
        (plan,) = compiled.plan.releases

        goal = terms.goal_with(compiled.statement.goal)

        def release_for(allowed: Allowance | None = None, law: str = mechanism) -> Release:
            return planned(
                plan.query,
                neighbours,
                lambda: allowed or terms.allowance(plan.options),
                plan.options,
                strategy=strategy,
                mechanism=law,
                auto_bounds=catalog.auto_bounds and goal is None,  # noise of chosen bounds is not known in advance
            )

        release = _released(goal, terms, plan, release_for, mechanism)
        return PreparedQuery(
            (release,), compiled.statement.explain, intervals=_above(release, compiled.statement, catalog, given)
        )
    except DPSQLError:
        raise
    except RecursionError:
        raise SQLSyntaxError("the query is nested too deeply.") from None
    except Exception as error:  # noqa: BLE001 - public tables are read in planning: no words of it are passed on
        failed = type(error).__name__
    raise InternalError(
        f"no plan could be made ({failed}). Nothing was read of people's rows and nothing was charged.",
        hint="This is a fault of dpsql, not of the query. Please report it.",
    )


def _released(
    goal: Goal | None, terms: Terms, plan: ReleasePlan, release_for: Callable[..., Release], mechanism: str
) -> Release:
    if goal is None:
        return release_for()
    from dpsql.session.error_goal import within  # most queries state their cost

    return within(goal, terms, plan, release_for, mechanism)


def _above(release: Release, statement: Statement, catalog: Catalog, given: Params) -> QueryPlan | None:
    if not release.query.stages:
        return None
    from dpsql.session.multi_step.row_local_postprocess import (
        postprocess_of_stages,  # most queries have no SELECT over an answer
    )

    return postprocess_of_stages(release, statement, catalog, given)


def _prepared_several(
    compiled: CompiledQuery, postprocess: Postprocess, catalog: Catalog, *, terms: Terms, **how: Any
) -> PreparedQuery:
    """Return a query of several releases, or of post-processing SQL over one."""
    from dpsql.session.multi_step.run import prepare_multi_step  # most queries have one release
    from dpsql.sql.compile import better_refusal

    law = {each: how[each] for each in ("strategy", "mechanism")}

    def release_for(step: ReleasePlan, allowed: Allowance) -> Release:
        return planned(
            step.query, how["neighbours"], lambda: allowed, step.options, auto_bounds=catalog.auto_bounds, **law
        )

    if terms.goal is not None:
        raise InvalidPrivacyParameter("an error is asked of a query of one step, and this one has several.")
    try:
        return prepare_multi_step(
            compiled.plan,
            postprocess,
            release_for,
            terms.allowance,
            catalog.public,
            explain_only=compiled.statement.explain,
        )
    except QueryRefused as error:
        if compiled.refusal is None:
            raise
        raise better_refusal(error, compiled.refusal) from None


def _typed(params: Params) -> tuple[object, ...]:
    """Return the parameters as a cache key that separates 1, 1.0 and TRUE, and 0.0 and -0.0, which are equal in
    Python."""
    return tuple((name, literal.type, repr(literal.value)) for name, literal in params)


def _remember(key: object, prepared: PreparedQuery) -> PreparedQuery:
    with _lock:
        _cache[key] = prepared
        while len(_cache) > _MOST_CACHED:
            _cache.popitem(last=False)
    return prepared

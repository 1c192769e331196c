"""prepare: SQL text, declared facts and a privacy loss -> a calibrated Release. No row is read, nothing is spent."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from dpsql.analysis.sensitivity import analyse
from dpsql.errors import SQLSyntaxError
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.unit import Neighbours
from dpsql.release import Release, calibrate
from dpsql.sql import plan_of
from dpsql.sql.catalog import Catalog

_MOST_CACHED = 256


@dataclass(frozen=True)
class Prepared:
    """A release ready to run; `explain_only` when the text began with EXPLAIN PRIVACY."""

    release: Release
    explain_only: bool


_cache: OrderedDict[object, Prepared] = OrderedDict()
_lock = threading.Lock()


def prepare(
    sql: str, catalog: Catalog, neighbours: Neighbours, loss: PrivacyLoss, *, strategy: str, mechanism: str
) -> Prepared:
    """Everything about an answer but the data. The same question under the same facts is planned once.

    Raises a QueryRefused, InvalidArgument or InvalidPrivacyParameter; the same on an empty table as on a full one.
    """
    key = (sql, catalog.fingerprint, neighbours, loss, strategy, mechanism)

    def plan() -> Prepared:
        try:
            query, explain_only = plan_of(sql, catalog)
            analysis = analyse(query.plan, neighbours)
            release = calibrate(query, analysis, loss, strategy=strategy, mechanism=mechanism)
        except RecursionError:
            raise SQLSyntaxError("the query is nested too deeply.") from None
        return Prepared(release, explain_only)

    try:
        with _lock:
            found = _cache.get(key)
            if found is not None:
                _cache.move_to_end(key)
    except TypeError:  # an argument of a wrong type, which is refused below
        found = None
    return found or _remember(key, plan())


def _remember(key: object, prepared: Prepared) -> Prepared:
    with _lock:
        _cache[key] = prepared
        while len(_cache) > _MOST_CACHED:
            _cache.popitem(last=False)
    return prepared

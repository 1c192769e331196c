"""Public functions, constructors and methods refuse a keyword that they do not have, with the name that is meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.errors import UnknownArgument
from dpsql.remote.answers import RemoteResult
from dpsql.remote.client import RemoteSession
from dpsql.schema.argument_names import unknown_argument

MODULES = ("dpsql", "dpsql.accounting", "dpsql.accuracy", "dpsql.dbapi", "dpsql.owner", "dpsql.testing")
RECEIVED = {
    "Explanation",
    "Bound",
    "Choice",
    "Bill",
    "Finding",
    "LedgerReport",
    "Mistake",
    "Todo",
    "Integers",
    "CompileTrace",
}
"""Classes whose objects dpsql makes, and nobody else."""


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    classes: list[tuple[str, type]] = [("RemoteSession", RemoteSession), ("RemoteResult", RemoteResult)]
    for module in map(import_module, MODULES):
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, type) and thing.__module__.startswith("dpsql.") and thing.__module__ != "dpsql.errors":
                classes.append((f"{module.__name__}.{name}", thing))
            elif inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing
    for name, cls in classes:
        if name.rpartition(".")[2] in RECEIVED or name == "dpsql.Neighbours":
            continue
        if cls not in {dpsql.Result, RemoteResult}:
            yield name, cls
        for method in dir(cls):
            if not method.startswith("_") and (
                inspect.isfunction(found := getattr(cls, method)) or inspect.ismethod(found)
            ):
                yield f"{name}.{method}", found


CALLABLES = dict(public_callables())


def test_the_public_callables_are_found() -> None:
    assert {"dpsql.query", "dpsql.connect", "dpsql.Budget", "dpsql.Table", "dpsql.Session.explain"} <= CALLABLES.keys()
    assert {"dpsql.Session.quote", "RemoteSession.quotes", "dpsql.owner.cost", "dpsql.Result.plot"} <= CALLABLES.keys()


OTHERS = ("dpsql.owner.cost", "dpsql.owner.rehearse", "dpsql.testing.insecure_exact", "dpsql.testing.insecure_draws")
"""Functions that hand keywords on to a session."""


@pytest.mark.parametrize("name", sorted(CALLABLES.keys() - set(OTHERS) - {"dpsql.owner.Rehearsal.query"}))
def test_a_public_callable_refuses_other_keywords(name: str) -> None:
    function = CALLABLES[name]
    required = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}
    ]
    with pytest.raises(UnknownArgument, match='there is no argument "privacy_unitt"'):
        function(*[None] * len(required), privacy_unitt="pid")


def test_keywords_that_are_handed_on_are_refused_too(tmp_path: Any) -> None:
    frame = pd.DataFrame({"x": [1, 2]})
    session = dpsql.Session({"t": frame}, budget=dpsql.Budget(1))
    file = tmp_path / "t.toml"
    file.write_text('[budget]\nepsilon = 1\n[tables.t]\nunit = "row"\n[tables.t.columns]\nx = { type = "integer" }\n')
    sql = "SELECT COUNT(*) FROM t"
    meant = 'there is no argument "eps". Did you mean "epsilon"'
    for asked in (
        lambda: session.explain(sql, eps=1),
        lambda: session.quote(sql, eps=1),
        lambda: dpsql.owner.cost(session, [sql], eps=1),
        lambda: dpsql.owner.rehearse(file, eps=1),
        lambda: dpsql.owner.rehearse(file).query(sql, eps=1),
        lambda: dpsql.Budget(eps=1),
        lambda: dpsql.dbapi.connect(session, eps=1),
    ):
        with pytest.raises(UnknownArgument, match=meant):
            asked()
    from dpsql.testing import insecure_draws, insecure_exact

    with pytest.raises(UnknownArgument, match=meant):
        insecure_exact(session, sql, bytes(32), eps=1)
    with pytest.raises(UnknownArgument, match=meant):
        insecure_draws(session, sql, 2, eps=1)


@pytest.mark.parametrize(
    ("written", "known", "meant"),
    [("eps", ("self", "epsilon"), "epsilon"), ("privacy_unit", ("frame", "unit"), "unit"), ("eps", ("url",), "")],
)
def test_the_name_that_is_meant_is_one_that_the_function_has(written: str, known: tuple[str, ...], meant: str) -> None:
    text = str(unknown_argument(written, known))
    assert (f'Did you mean "{meant}"' in text) == bool(meant)
    assert "self" not in text


@pytest.mark.parametrize("name", ["bounds", "clip", "keys", "types", "unit", "privacy_id", "max_rows", "public"])
def test_an_argument_of_a_table_is_shown_where_it_belongs(name: str) -> None:
    with pytest.raises(UnknownArgument) as refused:
        dpsql.Session({"t": pd.DataFrame({"x": [1]})}, budget=dpsql.Budget(1), **{name: None})  # type: ignore[arg-type]
    written = str(refused.value)
    assert "It is declared of a table: dpsql.Table(frame, " in written
    words = written.partition("dpsql.Table(frame, ")[2].rpartition(").")[0]
    frame = pd.DataFrame({"x": [1], "id": [1], "person_id": [1], "age": [30], "sex": ["F"], "born": ["2000-01-01"]})
    table = eval(f"dpsql.Table(frame, {words})", {"dpsql": dpsql, "frame": frame})  # the advice, typed back
    dpsql.Session({"t": table}, budget=dpsql.Budget(1))


def test_where_no_table_can_be_declared_none_is_advised() -> None:
    assert "dpsql.Table" not in str(unknown_argument("bounds", ("self", "sql", "epsilon")))

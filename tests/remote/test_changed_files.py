"""A served table whose file is replaced: the server answers from the files it began with, and from no others."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from dpsql.owner import access
from dpsql.remote.server.messages import Config
from dpsql.remote.server.worker import OPERATIONS, Work, answered
from dpsql.session.owner_file import Schema
from tests.lies import Patch, assert_caught
from tests.remote.serving import serving, token_for, until

SCHEMA = """
[budget]
epsilon = 100
[server]
grid = "off"
[tables.people]
path = "{path}"
{words}
[tables.people.columns]
state = {{ type = "text" }}
"""
RUN = "c" * 64
STATES = ["AL", "AK", "AZ"]


def rows(state: str, others: int) -> pd.DataFrame:
    return pd.DataFrame({"state": [state] + ["XX"] * others})


def write(file: Path, state: str, others: int = 20) -> None:
    new = file.with_name("new")
    new.unlink(missing_ok=True)
    if file.suffix == ".csv":
        rows(state, others).to_csv(new, index=False)
    elif file.suffix == ".parquet":
        rows(state, others).to_parquet(new)
    else:
        held = rows(state, others)
        with duckdb.connect(str(new)) as base:
            base.register("held", held)
            base.execute("CREATE TABLE people AS SELECT * FROM held")
    new.rename(file)


VERSIONS = {"none": "", "named": 'version = "1"', "content": 'version = "content"'}
FILES = ["people.csv", "people.parquet", "people.duckdb"]


def shop(folder: Path, name: str, version: str, **more: str) -> Path:
    """An owner's file with its data, and an analyst."""
    write(folder / name, "AL")
    words = VERSIONS[version] + ('\ntable = "people"' if name.endswith(".duckdb") else "")
    file = folder / "shop.toml"
    file.write_text(SCHEMA.format(path=name, words="\n".join([words, *more.values()])), encoding="utf-8")
    return file


def message(operation: str, sql: str, key: str = "a", **more: Any) -> dict[str, Any]:
    terms = {"sql": sql, "epsilon": 0.5}
    return {
        "operation": operation,
        "analyst": "ann",
        "tables": ["people"],
        "hidden": [],
        "request": (key * 64, "b" * 64, RUN, ()),
        "terms": terms,
        "batch": ([terms], False),
        **more,
    }


def ask(work: Work, key: str, sql: str) -> Any:
    """Plan, charge and run, as a server does."""
    planned = answered(work, message("plan", sql, key))
    if planned["outcome"] != "hidden":
        return planned
    charged = answered(work, message("charge", sql, key))
    if charged["outcome"] != "ok":
        return charged
    return answered(work, message("query", sql, key, plan=planned["plan"]))


def count(state: str) -> str:
    return f"SELECT COUNT(*) AS n FROM people WHERE state = '{state}'"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FILES)
def test_a_worker_answers_nothing_over_other_files(tmp_path: Path, name: str, version: str):
    schema = shop(tmp_path, name, version)
    token_for(schema, "ann", epsilon=10, tables="people", delta=0)
    work = Work(Config(str(schema), RUN))
    assert not work.changed
    assert ask(work, "1", count("AL"))["outcome"] == "ok"
    write(tmp_path / name, "AK", 30)
    for operation in OPERATIONS:
        for sql in (count("AL"), count("AK")):  # one was answered, one is new
            assert answered(work, message(operation, sql, "2")) == {"outcome": "changed"}
    with closing(access.ledger_of(Schema.from_toml(schema))) as ledger:
        assert len(ledger.entries) == 1
    again = Work(Config(str(schema), "d" * 64))
    known = ask(again, "3", count("AL"))
    assert known["outcome"] == "ok"
    assert known["replayed"] == (version == "named"), "a name that was kept is the owner's word"


@pytest.mark.parametrize("name", FILES)
def test_parts_of_two_states_add_up(tmp_path: Path, name: str):
    """One worker for each state, all of one run: as one that began before a file was replaced, and one after."""
    schema = shop(tmp_path, name, "none", partition='partition = "state"')
    token_for(schema, "ann", epsilon=10, tables="people", delta=0)
    for place, state in enumerate(STATES):
        write(tmp_path / name, state, 20 + place)
        assert ask(Work(Config(str(schema), RUN)), str(place), count(state))["outcome"] == "ok"
    with closing(access.ledger_of(Schema.from_toml(schema))) as ledger:
        assert ledger.shares()["ann"].spent.epsilon == len(STATES) / 2


@pytest.mark.parametrize("name", ["people.parquet", "people.duckdb"])
def test_a_file_that_is_replaced_between_charge_and_run_keeps_the_key(tmp_path: Path, name: str):
    schema = shop(tmp_path, name, "none")
    token_for(schema, "ann", epsilon=10, tables="people", delta=0)
    work = Work(Config(str(schema), RUN))
    planned = answered(work, message("plan", count("AL")))
    assert answered(work, message("charge", count("AL")))["outcome"] == "ok"
    write(tmp_path / name, "AK", 30)
    assert answered(work, message("query", count("AL"), plan=planned["plan"])) == {"outcome": "changed"}
    restarted = Work(Config(str(schema), "d" * 64))
    reply = answered(restarted, message("query", count("AL")))
    assert reply["outcome"] == "ok", reply
    with closing(access.ledger_of(Schema.from_toml(schema))) as ledger:
        assert len(ledger.entries) == 1


def test_a_server_halts(tmp_path: Path):
    schema = shop(tmp_path, "people.parquet", "named")
    token = token_for(schema, "ann", epsilon=10, tables="people", delta=0)
    with serving(schema) as server:
        assert server.ask(token, sql=count("AL"), key="one").status_code == 200
        write(tmp_path / "people.parquet", "AK", 30)
        for sql in (count("AL"), count("AK")):
            refused = server.ask(token, sql=sql)
            assert refused.status_code == 503
            assert "The data files have changed" in refused.json()["detail"]
            assert not refused.json()["charged"]
        until(lambda: server.send("GET", "/healthz").json() == {"status": "halted"})
        assert server.send("GET", "/v1/budget", token).status_code == 503
    with serving(schema) as server:
        assert server.ask(token, sql=count("AK")).status_code == 200
        assert server.send("GET", "/v1/budget", token).json()["spent"]["epsilon"] == "1/50"


def never_look_at_the_files(patch: Patch) -> None:
    patch.setattr(Work, "changed", False)
    patch.setattr("dpsql.session.served.ServedSession._all_held", False)


def test_a_lie_is_caught(tmp_path: Path):
    turns = iter(range(9))

    def check() -> None:
        folder = tmp_path / str(next(turns))
        folder.mkdir()
        schema = shop(folder, "people.parquet", "none")
        token_for(schema, "ann", epsilon=10, tables="people", delta=0)
        work = Work(Config(str(schema), RUN))
        ask(work, "1", count("AL"))
        write(folder / "people.parquet", "AK", 30)
        assert [ask(work, key, count(state))["outcome"] for key, state in zip("234", STATES, strict=True)] == [
            "changed"
        ] * 3

    assert_caught(never_look_at_the_files, check)

"""Keys under which an answer was given again, for nothing: found after a restart, whatever the tables are."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsql.remote.server import free_keys
from dpsql.remote.server.free_keys import FreeKey, FreeKeys
from dpsql.remote.server.worker import Work
from tests.lies import assert_caught
from tests.remote.desk import Desk, values
from tests.remote.serving import COUNT, serving, shop, token_for

pytestmark = pytest.mark.xdist_group("server")


def test_they_are_remembered_in_a_file_of_its_owner_alone(tmp_path: Path):
    file = tmp_path / "keys"
    keys = FreeKeys(file)
    keys.enter("a", "body", "run")
    keys.enter("a", "another", "later")
    keys.close()
    with file.open("ab") as cut:
        cut.write(b'["b", "bo')
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = FreeKeys(file)
    assert again.find("a") == FreeKey("body", "run")
    assert again.find("b") is None
    again.enter("c", "body", "run")
    again.close()
    assert len(file.read_bytes().splitlines()) == 2  # what was cut off is gone
    assert FreeKeys(file).find("c") == FreeKey("body", "run")


def test_the_oldest_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(free_keys, "MOST", 3)
    keys = FreeKeys(tmp_path / "keys")
    for number in range(10):
        keys.enter(str(number), "body", "run")
        assert len((tmp_path / "keys").read_bytes().splitlines()) < 6
    assert keys.find("9") is not None
    assert keys.find("3") is None


def test_a_full_disk_keeps_nobody_from_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> int:
        raise OSError

    keys = FreeKeys(tmp_path / "keys")
    monkeypatch.setattr(os, "write", full)
    keys.enter("a", "body", "run")
    assert keys.find("a") is not None


def check_nothing_is_charged_under_the_name_of_another_run(folder: Path) -> None:
    desk = Desk(folder)
    without_versions(desk.schema)
    desk.restarted()
    old = desk.ask("a", COUNT)
    assert values(desk.ask("b", COUNT)) == values(old)
    given = desk.send("given", "b", COUNT)
    assert values(given) == values(old)
    assert given["end"] is None
    assert desk.send("given", "b", f"{COUNT} WHERE age > 30")["outcome"] == "hidden"
    assert desk.send("given", "b", COUNT, fresh=True)["outcome"] == "hidden"
    assert len(desk.lines("charge")) == 1


def without_versions(schema: Path) -> None:
    schema.write_text(schema.read_text().replace('version = "1"\n', ""))


def test_nothing_is_charged_under_the_name_of_another_run(tmp_path: Path):
    check_nothing_is_charged_under_the_name_of_another_run(tmp_path)


def test_asking_anew_under_the_name_of_another_run_is_caught(tmp_path: Path):
    folders = iter(tmp_path / str(number) for number in range(10))

    def fresh_folder(check: Callable[[Path], None]) -> Callable[[], None]:
        def checked() -> None:
            folder = next(folders)
            folder.mkdir()
            check(folder)

        return checked

    def whatever_is_asked(patch: pytest.MonkeyPatch) -> None:
        honest = Work.given

        def given(work: Work, message: Any) -> Any:
            reply = honest(work, message)
            return work.charge(message) if reply["outcome"] == "hidden" else reply

        patch.setitem(__import__("dpsql.remote.server.worker", fromlist=["OPERATIONS"]).OPERATIONS, "given", given)

    assert_caught(whatever_is_asked, fresh_folder(check_nothing_is_charged_under_the_name_of_another_run), honest=False)


def test_a_key_finds_its_answer_after_a_restart_over_other_rows(tmp_path: Path):
    """Over tables without a version a new run is a new question, but for a key that has its answer. A file that changed
    is another table: a key that was free asks it anew, and a key that was charged keeps its answer."""
    schema = shop(tmp_path, rows=300)
    without_versions(schema)
    token = token_for(schema, "ann")
    with serving(schema) as server:
        paid = server.ask(token, key="paid").json()
        free = server.ask(token, key="free").json()
        assert (free["replayed"], free["columns"]) == (True, paid["columns"])
        assert "anchor" not in free
        server.kill()
    with serving(schema) as server:
        again = server.ask(token, key="free")
        assert (again.json()["replayed"], again.json()["columns"]) == (True, paid["columns"])
        assert server.ask(token, f"{COUNT} WHERE age > 30", key="free").status_code == 409
        server.kill()
    customers = pd.read_csv(tmp_path / "customers.csv")
    customers[:50].to_csv(tmp_path / "customers.csv", index=False)
    with serving(schema) as server:
        assert not server.ask(token, key="free").json()["replayed"]
        assert server.ask(token, f"{COUNT} WHERE age > 30", key="free").status_code == 409
        assert server.ask(token, key="paid").json()["columns"] == paid["columns"]
        assert len(server.send("GET", "/v1/answers", token).json()["answers"]) == 2
        assert server.ask(token, key="another").json()["replayed"]


def test_a_file_that_cannot_be_put_in_order_is_written_to_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nor is another, which may have its number by then."""
    monkeypatch.setattr(free_keys, "MOST", 1)
    keys = FreeKeys(tmp_path / "shop.ledger.free")

    def full(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(free_keys, "put_in_place", full)
    keys.enter("a", "body", "run")
    keys.enter("b", "body", "run")
    other = tmp_path / "other"
    with other.open("wb", buffering=0):
        keys.enter("c", "body", "run")
        assert other.read_bytes() == b""
    assert keys.find("c") == FreeKey("body", "run")
    keys.close()

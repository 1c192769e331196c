"""Copies of a ledger that is served, and one that goes back: by whom that is noticed, and what it takes to go on."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from dpsql.core.ledger.file import open_ledger
from dpsql.errors import AccessDenied, BudgetExceeded, DPSQLError, InvalidArgument, LedgerError
from dpsql.owner import access
from dpsql.owner.anchors import Anchors, file_of
from dpsql.owner.backups import backup, losses_of, restore
from dpsql.remote.client import RemoteSession
from dpsql.remote.server import links
from dpsql.session.owner_file import Schema
from dpsql.shell.cli import main
from tests.remote.serving import COUNT, Server, serving, shop, token_for

pytestmark = pytest.mark.xdist_group("server")
ORDERS = "SELECT COUNT(*) AS n FROM orders"


def connected(server: Server, token: str, anchor: str | None = None) -> RemoteSession:
    file = server.schema.parent / "token"
    file.write_text(token)
    file.chmod(0o600)
    return dpsql.connect(server.address, token_file=file, anchor=anchor)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str, Path]:
    """A schema with its token, the anchor of an answer that was given after a copy was made, and the copy."""
    schema = shop(tmp_path_factory.mktemp("shop"), rows=200)
    token, copy = token_for(schema, "ann"), schema.parent / "copy.ledger"
    with serving(schema) as server, connected(server, token) as session:
        assert session.ledger_anchor == ""
        session.query(COUNT, epsilon=0.5)
        first = session.ledger_anchor
        assert first.startswith("1:")
        assert main(["ledger", "backup", str(copy), "--schema", str(schema)]) == 0
        with pytest.raises(InvalidArgument, match="there already"):
            backup(Schema.from_toml(schema), copy)
        with pytest.raises(InvalidArgument, match="Stop it first|another server"):
            restore(Schema.from_toml(schema), copy)
        session.query(COUNT, epsilon=0.5)  # which is given again
        assert session.ledger_anchor == first
        session.query(ORDERS, epsilon=0.25)
        assert session.ledger_anchor.startswith("2:")
        with connected(server, token, first) as other:
            assert other.spent.epsilon == Fraction(3, 4), "an earlier anchor holds"
        anchor = session.ledger_anchor
        server.stop()
    return schema, token, anchor, copy


def copied(told: tuple[Path, str, str, Path], folder: Path) -> tuple[Path, str, str, Path]:
    schema, token, anchor, copy = told
    shutil.copytree(schema.parent, folder, dirs_exist_ok=True)
    return folder / schema.name, token, anchor, folder / copy.name


def test_a_copy_is_whole_and_its_owners_alone(told: tuple[Path, str, str, Path]):
    schema, _, _, copy = told
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(open_ledger(copy, owner=True)) as ledger:
        assert [entry.label for entry in ledger.entries] == [COUNT]
        key = ledger.content_key
    with closing(access.ledger_of(Schema.from_toml(schema))) as ledger:
        assert ledger.content_key == key
        assert len(ledger.entries) == 2


def test_a_ledger_that_goes_back_is_noticed_by_server_and_client(told: tuple[Path, str, str, Path], tmp_path: Path):
    schema, token, anchor, copy = copied(told, tmp_path)
    other = token_for(schema, "bob", epsilon=1)
    with closing(access.ledger_of(Schema.from_toml(schema))):
        shutil.copy(schema.with_suffix(".ledger"), tmp_path / "newest")
    shutil.copy(copy, schema.with_suffix(".ledger"))
    bob = token_for(schema, "eve", epsilon=1)
    with serving(schema) as server:
        assert server.send("GET", "/v1/budget", bob).status_code == 200
        forged = anchor[:-1] + ("0" if anchor[-1] != "0" else "1")
        for ignored in (forged, "x", anchor.replace("2:", "3:", 1)):
            response = server.send("GET", "/v1/budget", token, headers={"Ledger-Anchor": ignored})
            assert (response.status_code, response.headers["ledger-anchor"]) == (200, "unknown")
        theirs = server.send("GET", "/v1/budget", bob, headers={"Ledger-Anchor": anchor})
        assert theirs.status_code == 200, "an anchor is of one analyst"
        with pytest.raises(LedgerError, match="went back"):
            connected(server, token, anchor)
        for path in ("/v1/budget", "/v1/tables", "/v1/answers"):
            assert server.send("GET", path, bob).status_code == 503
        assert server.ask(bob).status_code == 503
        assert server.send("GET", "/healthz").json() == {"status": "halted"}
        assert [each["analyst"] for each in server.events("ledger_went_back")] == ["ann"]
        server.stop()
    refused = started(schema)
    assert "does not hold an answer" in refused
    assert "ledger restore" in refused
    shutil.copy(tmp_path / "newest", schema.with_suffix(".ledger"))
    with serving(schema) as server, connected(server, token, anchor) as session:
        assert len(session.ledger()) == 2, "the newest one serves as before"
        spent = session.spent
        for name, sql in zip(ids_of(schema), (COUNT, ORDERS), strict=True):
            path = f"/v1/queries/{name}"
            found = server.send("GET", path, token)
            assert found.status_code == 200, "a link outlives the server"
            assert found.json()["id"] == name
            again = session.query(sql, epsilon=0.5 if sql == COUNT else 0.25)
            assert found.json()["columns"][0]["values"] == again.df["n"].tolist()
            assert server.send("GET", path, other).json()["title"] == "NotFound", "for whoever asked alone"
        assert session.spent == spent


def ids_of(schema: Path) -> list[str]:
    """Of all that ann has paid for, as the links have them."""
    with closing(links.Links(links.file_of(Schema.from_toml(schema)))) as kept:
        return list(kept.of("ann").values())


def started(schema: Path) -> str:
    command = [sys.executable, "-m", "dpsql", "serve", str(schema), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    return done.stderr


def test_a_ledger_that_is_put_back_charges_what_was_left(
    told: tuple[Path, str, str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    schema, token, anchor, copy = copied(told, tmp_path)
    assert main(["ledger", "restore", str(copy), "--schema", str(schema)]) == 0
    assert "ann: charged epsilon=9.5" in capsys.readouterr().out.replace("epsilon 9.5", "epsilon=9.5")
    assert list(tmp_path.glob("shop.ledger.before-*"))
    with serving(schema) as server:
        with pytest.warns(UserWarning, match="does not know the last answer"):
            session = connected(server, token, anchor)
        with session:
            assert session.query(COUNT, epsilon=0.5).replayed
            assert session.remaining.epsilon == 0
            assert session.ledger()[0].label == COUNT
            with pytest.raises(BudgetExceeded):
                session.query(ORDERS, epsilon=0.25)
        looked = [server.send("GET", f"/v1/queries/{name}", token).status_code for name in ids_of(schema)]
        assert looked == [200, 404], "of the second the ledger knows nothing"
    lines = json.loads(subprocess_export(schema))["lines"]
    assert {line["kind"] for line in lines} <= {"share", "charge", "asked", "answer", "unit", "note", "claim", "failed"}


def subprocess_export(schema: Path) -> str:
    with closing(access.ledger_of(Schema.from_toml(schema))) as ledger:
        return ledger.to_json()


def test_what_was_spent_since_may_be_stated(told: tuple[Path, str, str, Path], tmp_path: Path):
    schema, _, _, copy = copied(told, tmp_path)
    declared = Schema.from_toml(schema)
    charged = restore(declared, copy, spent_since=losses_of(["ann=0.25", "gone=1:1e-7"]))
    assert charged == {"ann": (Fraction(1, 4), Fraction(0)), "gone": (Fraction(1), Fraction("1e-7"))}
    reports = {name: report for name, report, _ in access.listed(declared)}
    assert {name: each.spent.epsilon for name, each in reports.items()} == {"ann": Fraction(3, 4), "gone": 1}
    for words in (["ann"], ["ann=x"], ["ann=1", "ann=2"], ["ann=-1"], ["=1/0"], ["ann=1:2"]):
        with pytest.raises(DPSQLError):
            losses_of(words)
    (tmp_path / "broken").write_bytes(copy.read_bytes()[:5000])
    before = schema.with_suffix(".ledger").read_bytes()
    with pytest.raises(LedgerError):
        restore(declared, tmp_path / "broken")
    assert schema.with_suffix(".ledger").read_bytes() == before


def test_links_are_kept_for_whose_they_are_and_never_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "shop.ledger.links"
    monkeypatch.setattr(links, "MOST", 3)
    for content in (b"", b"no such thing" * 999):
        file.write_bytes(content)
        with closing(links.Links(file)) as kept:
            for number in range(5):
                kept.keep(f"id{number}", "ann", links.Link(f"key{number}", "{}"))
            kept.keep("other", "ann", links.Link("key4", "{}"))
            kept.keep("long", "ann", links.Link("long", "x" * (links.LONGEST + 1)))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with closing(links.Links(file)) as kept:
            assert kept.of("ann") == {f"key{number}": f"id{number}" for number in (2, 3, 4)}
            assert kept.find("ann", "id4") == ("key4", "{}")
            assert kept.find("bob", "id4") is None
            assert (kept.name("key4"), kept.name("key0")) == ("id4", "")
    with closing(links.Links(tmp_path / "no folder" / "links")) as kept:
        kept.keep("id", "ann", links.Link("key", "{}"))
        assert kept.find("ann", "id") is None


def test_keys_of_anchors_are_their_owners_alone(tmp_path: Path):
    schema = Schema.from_toml(shop(tmp_path, rows=5))
    file = file_of(schema)
    one = Anchors(file)
    anchor = one.of("ann", 3, "a" * 64)
    assert Anchors(file).read("ann", anchor) == (3, "a" * 64)
    assert one.read("bob", anchor) is None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    with pytest.raises(InvalidArgument, match="can be read by others"):
        Anchors(file)
    file.chmod(0o600)
    file.write_text("zz")
    with pytest.raises(InvalidArgument, match="cannot be read"):
        Anchors(file)
    with pytest.raises((InvalidArgument, AccessDenied)):
        dpsql.connect("http://127.0.0.1:1", anchor="1:2")


def test_a_copy_from_before_a_renewal_is_refused_until_the_total_is_its_own(
    told: tuple[Path, str, str, Path], tmp_path: Path
) -> None:
    schema, _, _, copy = copied(told, tmp_path)
    ledger = schema.with_suffix(".ledger")
    before = schema.read_text()
    assert main(["ledger", "renew", str(schema), "--epsilon", "200", "--reason", "more questions"]) == 0
    schema.write_text(before.replace("epsilon = 100.0", "epsilon = 200.0"))
    content = ledger.read_bytes()
    with pytest.raises(LedgerError, match="the total was set anew after the copy") as refusal:
        restore(Schema.from_toml(schema), copy)
    assert ledger.read_bytes() == content
    assert not list(tmp_path.glob("*.before-*"))
    assert "Write epsilon = 100.0 in [budget] of shop.toml, restore the copy, then run" in str(refusal.value)
    schema.write_text(before)  # as the advice says
    assert main(["ledger", "restore", str(copy), "--schema", str(schema)]) == 0
    assert "dpsql ledger renew shop.toml --epsilon 200.0 --reason TEXT" in str(refusal.value)
    assert main(["ledger", "renew", str(schema), "--epsilon", "200.0", "--reason", "TEXT"]) == 0

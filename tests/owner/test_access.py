"""Who may ask a server: tokens that are kept as hashes, shares in the ledger, and the command for both."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from dpsql.core.ledger import clock
from dpsql.errors import DPSQLError, InvalidArgument, InvalidSchema
from dpsql.owner import access
from dpsql.session.owner_file import Schema
from dpsql.shell.cli import main

TOML = """
[budget]
epsilon = 3.0
delta = 1e-6

[tables.customers]
path = "customers.csv"
unit = "id"
unique = ["id"]
max_rows = 1

[tables.orders]
path = "orders.csv"
unit = "customer -> customers.id"
max_rows = 5
"""


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    file = tmp_path / "shop.toml"
    file.write_text(TOML)
    return file


def command(schema: Path, *words: str) -> int:
    return main(["access", words[0], *words[1:], "--schema", str(schema)])


def token_of(output: str) -> str:
    return output.splitlines()[0]


ADD = ("add", "alice", "--epsilon", "1", "--delta", "1e-7", "--tables", "orders, Customers", "--days", "90")


def test_a_ledger_is_its_owners_alone_from_its_first_byte(schema: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever had opened it before it was closed to others could read on."""
    monkeypatch.setattr(access, "_close_to_others", lambda _: None)
    mask = os.umask(0o022)
    try:
        access.ledger_of(Schema.from_toml(schema)).close()
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(mask)
    assert schema.with_name("shop.ledger").stat().st_mode & 0o777 == 0o600


def test_a_token_is_printed_once_and_kept_as_a_hash(schema: Path, capsys: pytest.CaptureFixture[str]):
    assert command(schema, *ADD) == 0
    token = token_of(capsys.readouterr().out)
    assert re.fullmatch("dpsql-[0-9a-f]{64}", token)
    file = schema.with_name("shop.ledger.access")
    assert file.stat().st_mode & 0o777 == 0o600
    assert token.removeprefix("dpsql-") not in file.read_text()
    assert token.encode() not in schema.with_name("shop.ledger").read_bytes()
    grant = access.read_grants(file)["alice"]
    assert grant.token == access.token_hash(token)
    assert grant.tables == ("orders", "customers")
    assert command(schema, "list") == 0
    shown = capsys.readouterr().out
    assert "alice: share epsilon 1, delta 1e-07; spent epsilon 0 in 0; left epsilon 1, delta 5e-08" in shown
    assert "keeps half of each share's delta" in shown


def test_a_token_changes_and_goes(schema: Path, capsys: pytest.CaptureFixture[str]):
    command(schema, *ADD)
    before = access.token_hash(token_of(capsys.readouterr().out))
    assert command(schema, "rotate", "alice") == 0
    after = access.token_hash(token_of(capsys.readouterr().out))
    owned = Schema.from_toml(schema)
    assert access.read_grants(access.access_file(owned))["alice"].token == after != before
    with closing(access.ledger_of(owned)) as ledger:
        assert ledger.ended_tokens == {before}
    assert command(schema, "share", "alice", "--epsilon", "2") == 0
    assert command(schema, "allow", "alice") == 0
    assert command(schema, "revoke", "alice") == 0
    assert access.read_grants(access.access_file(owned)) == {}
    capsys.readouterr()
    assert command(schema, *ADD) == 2
    assert "a name never starts anew" in capsys.readouterr().err
    assert command(schema, "list") == 0
    assert "alice: revoked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tables", "orders"), "rows of orders belong to people through customers"),
        (("--tables", "order,customers"), 'no table "order". Did you mean "orders"?'),
        (("--tables", ","), 'no table ""'),
        (("--epsilon", "3.1"), "all shares would come to epsilon 3.1, and the budget is 3"),
        (("--delta", "1e-5"), "all shares would come to delta"),
        (("--epsilon", "nan"), "finite"),
        (("--days", "0"), "more than 0"),
        (("--days", "nan"), "more than 0"),
    ],
)
def test_what_is_refused_leaves_no_token(
    schema: Path, words: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert command(schema, *ADD, *words) == 2
    assert said in capsys.readouterr().err
    assert not access.read_grants(access.access_file(Schema.from_toml(schema)))


@pytest.mark.parametrize("name", ["", "*", " a", "a\n", "x" * 65])
def test_names(schema: Path, name: str):
    with pytest.raises(InvalidArgument):
        access.add(Schema.from_toml(schema), name, epsilon=1, delta=0, tables=["customers"], days=1)


def test_a_schema_without_a_budget_or_with_overlapping_shares_is_not_served(tmp_path: Path):
    for text, said in (
        (TOML.replace("[budget]\nepsilon = 3.0\ndelta = 1e-6", ""), "without a .budget. and a ledger is not served"),
        (TOML.replace("[tables.customers]", "[budget.analysts.ann]\nepsilon = 1\n[tables.customers]", 1), "overlap"),
    ):
        file = tmp_path / "other.toml"
        file.write_text(text)
        with pytest.raises(InvalidSchema, match=said):
            access.add(Schema.from_toml(file), "ann", epsilon=1, delta=0, tables=["customers"], days=1)


def test_a_file_that_others_can_read_or_that_is_none_is_refused(schema: Path):
    owned = Schema.from_toml(schema)
    access.add(owned, "ann", epsilon=1, delta=0, tables=["customers"], days=1)
    file = access.access_file(owned)
    file.chmod(0o640)
    with pytest.raises(InvalidArgument, match="can be read by others"):
        access.read_grants(file)
    file.chmod(0o600)
    for text in ("", "{", "[]", json.dumps({"format": 2, "analysts": {}}), '{"format": 1, "analysts": {"a": {}}}'):
        file.write_text(text)
        with pytest.raises(InvalidArgument, match="not what dpsql access writes"):
            access.read_grants(file)


def test_an_end_is_held_against_the_later_of_clock_and_ledger():
    grant = access.Grant("ann", "", (), "2026-12-01T00:00:00.000000Z")
    assert access.has_ended(grant, "2026-12-02T00:00:00.000000Z"), "a clock that was put back wakes nothing"
    late = access.Grant("ann", "", (), "9999-12-01T00:00:00.000000Z")
    assert not access.has_ended(late, clock.text_of(clock.now()))
    assert not access.has_ended(late, "")


def test_shares_of_two_commands_at_once_are_both_there(schema: Path):
    owned = Schema.from_toml(schema)
    access.ledger_of(owned).close()

    def give(name: str) -> str:
        return access.add(owned, name, epsilon=0.1, delta=0, tables=["customers"], days=1)

    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(give, "abcdefgh"))
    kept = access.read_grants(access.access_file(owned))
    assert {name: each.token for name, each in kept.items()} == dict(
        zip("abcdefgh", map(access.token_hash, tokens), strict=True)
    )


def test_help_and_errors(schema: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["access", "--help"]) == 0
    assert main(["access", "revoke", "eve", "--schema", str(schema)]) == 2
    assert 'analyst "eve" has no share' in capsys.readouterr().err
    with pytest.raises(DPSQLError):
        access.share(Schema.from_toml(schema), "eve", epsilon=1)

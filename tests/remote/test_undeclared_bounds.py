"""A server follows the owner's file on bounds that nobody declared, whatever an analyst sends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import dpsql
from dpsql.errors import MissingBounds
from dpsql.owner import access
from dpsql.session.owner_file import Schema
from tests.remote.serving import Server, serving, shop, token_for

SQL = "SELECT AVG(id % 50 + id) AS a FROM customers"
pytestmark = pytest.mark.xdist_group("server")


@pytest.fixture(
    scope="module", params=["", "auto_bounds = true\n", "auto_bounds = false\n"], ids=["-", "true", "false"]
)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    schema = shop(tmp_path_factory.mktemp("shop"))
    schema.write_text(request.param + schema.read_text())
    access.ledger_of(Schema.from_toml(schema)).close()
    with serving(schema) as running:
        yield running, request.param


def test_the_owners_file_decides(server: tuple[Server, str], tmp_path: Path) -> None:
    running, word = server
    token = token_for(running.schema, "ann")
    response = running.ask(token, SQL, epsilon=1)
    said = response.json()
    spent = running.send("GET", "/v1/budget", token).json()["spent"]["epsilon"]
    if "false" not in word:
        assert response.status_code == 200, said
        assert list(said["bounds"]) == ["id"]
        assert said["loss"]["epsilon"] == spent == "1"
        assert any("chosen privately" in each for each in said["notes"])
        return
    assert response.status_code == 400, said
    assert said["title"] == "MissingBounds"
    assert spent == "0"
    for more in ({"auto_bounds": True}, {"bounds": {"id": "auto"}}):  # no word of a request
        assert running.ask(token, SQL, epsilon=1, **more).status_code == 400
    (tmp_path / "token").write_text(token)
    (tmp_path / "token").chmod(0o600)
    with dpsql.connect(running.address, token_file=tmp_path / "token") as remote:
        with pytest.raises(MissingBounds):
            remote.query(SQL, epsilon=1)
        assert remote.spent.epsilon == 0

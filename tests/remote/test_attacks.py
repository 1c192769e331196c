"""Attacks from outside, by somebody who has a token, or none: what is another's, what is nobody's, and what options,
names of files and tokens that have ended can do. What it has from the answers is all that it knows."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dpsql.core.ledger import clock
from dpsql.owner import access
from dpsql.session.owner_file import Schema
from tests.remote.serving import BY_COUNTRY, COUNT, PLANTED, Server, serving, shop, token_for

pytestmark = pytest.mark.xdist_group("server")
VISITS = "SELECT COUNT(*) AS n FROM visits"
FREE = ("/v1/explanations", "/v1/prices", "/v1/remaining", "/v1/rehearsals")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    schema = shop(tmp_path_factory.mktemp("shop"), rows=300)
    access.ledger_of(Schema.from_toml(schema)).close()
    with serving(schema) as served:
        yield served


@pytest.fixture(scope="module")
def ann(server: Server) -> str:
    return token_for(server.schema, "ann")


@pytest.fixture(scope="module")
def bob(server: Server) -> str:
    return token_for(server.schema, "bob", tables="visits")


def said(server: Server, token: str, path: str, sql: str, **terms: Any) -> tuple[int, str]:
    """Status and body, without what is random in it."""
    query = {"sql": sql, "epsilon": 0.01, **terms}
    body = {"queries": [query]} if path == "/v1/prices" else query
    headers = {"Idempotency-Key": secrets.token_hex(16), "Prefer": "wait=30"}
    response = server.send("POST", path, token, headers=headers, json=body)
    told = response.json()
    return response.status_code, json.dumps({**told, "id": ""}, sort_keys=True)


FORBIDDEN = (
    "SELECT COUNT(*) AS n FROM {}",
    "SELECT COUNT(*) AS n FROM visits JOIN {} ON TRUE",
    "SELECT COUNT(*) AS n FROM visits WHERE seconds IN (SELECT age FROM {})",
    "SELECT COUNT(*) AS n FROM visits WHERE EXISTS (SELECT 1 FROM {} WHERE age > 3)",
    "WITH c AS (SELECT * FROM {}) SELECT COUNT(*) AS n FROM c",
    "SELECT COUNT(*) AS n FROM (SELECT age FROM {} UNION ALL SELECT seconds FROM visits) AS u",
    "SELECT {0}.age FROM {0}",
    "SELECT COUNT(*) AS n FROM main.{}",
    'SELECT COUNT(*) AS n FROM "{}" AS visits',
    "SELECT (SELECT COUNT(*) FROM {}) AS a, (SELECT COUNT(*) FROM visits) AS b",
    "SELECT COUNT({}.age) AS n FROM visits",
    "SHOW TABLES FROM {}",
    "DESCRIBE {}",
    "SELECT COUNT(*) AS n FROM {} WITH (unit = id)",
    "EXPLAIN PRIVACY SELECT AVG(age) AS a FROM {}",
)


def test_a_table_without_a_right_to_it_is_as_one_that_is_not_there(server: Server, bob: str):
    """All doors, and all places where a name may stand: every byte is the same but the name itself."""
    for sql in FORBIDDEN:
        for path in ("/v1/queries", *FREE):
            there, nowhere = (said(server, bob, path, sql.format(name)) for name in ("customers", "kustomers"))
            assert there[0] == nowhere[0] == 400, (sql, path, there)
            assert there[1].replace("customers", "kustomers") == nowhere[1], (sql, path)
            for word in ("country", '"age"', "orders", "Lyon", PLANTED):
                assert word not in there[1].replace(json.dumps(sql), ""), (sql, path, word)


def test_what_others_ask_and_spend_shows_in_nothing(server: Server, ann: str, bob: str):
    """Everything that bob can look at, before and after ann asks, is answered, refused and priced."""

    def everything() -> list[tuple[int, str]]:
        seen = [(each.status_code, each.text) for path in ("budget", "answers", "tables")
                for each in [server.send("GET", f"/v1/{path}", bob)]]  # fmt: skip
        for path in FREE[:3]:  # a rehearsal draws anew each time
            seen += [said(server, bob, path, sql) for sql in (VISITS, "SELECT COUNT(*) FROM nowhere", "SELECT")]
        seen.append(said(server, bob, "/v1/queries", VISITS, epsilon=11))
        seen.append(said(server, bob, "/v1/queries", "SELECT SUM(id) FROM visits"))
        return seen

    before = everything()
    key = "one-key-of-two"
    first = server.ask(ann, BY_COUNTRY, key, epsilon=3).json()
    assert server.ask(ann, COUNT, epsilon=8).status_code == 422
    assert server.ask(ann, "SELECT nothing", epsilon=1).status_code == 400
    assert everything() == before
    for path in (f"/v1/queries/{first['id']}", f"/v1/queries/{'0' * 32}", "/v1/queries/..", "/v1/queries/%2e%2e"):
        response = server.send("GET", path, bob)
        assert (response.status_code, response.json()["title"]) == (404, "NotFound")
    assert server.ask(bob, VISITS, key).status_code == 200, "a key of another is free"
    assert (
        server.ask(ann, BY_COUNTRY, key, epsilon=3).content
        == server.send("GET", f"/v1/queries/{first['id']}", ann).content
    )


def test_anchors_of_one_say_nothing_of_another(server: Server, ann: str, bob: str):
    first = server.ask(bob, VISITS, epsilon=0.011).json()["anchor"]
    for number in range(3):
        server.ask(ann, COUNT, epsilon=0.02 + number / 1000)
    second = server.ask(bob, VISITS, epsilon=0.012).json()["anchor"]
    assert int(second.split(":")[0]) == int(first.split(":")[0]) + 1
    for token, anchor, known in ((bob, second, True), (ann, second, False), (bob, "9:" + second[2:], False)):
        response = server.send("GET", "/v1/budget", token, headers={"Ledger-Anchor": anchor})
        assert response.status_code == 200
        assert ("ledger-anchor" not in response.headers) is known


def test_tokens_that_are_guessed_or_have_ended_are_all_alike(server: Server, monkeypatch: pytest.MonkeyPatch):
    schema = Schema.from_toml(server.schema)
    token = token_for(server.schema, "eve", epsilon=1, days=0.5)
    answer = server.ask(token, key="mine").json()
    file = access.access_file(schema)
    guesses = [token[:-1], token + "0", token.swapcase(), "dpsql-", secrets.token_hex(32)]
    guesses += [access.token_hash(token), "*", "eve", "' OR 1=1", "dpsql-" + "f" * 64, "é" * 9]
    plain = {**server.send("GET", "/v1/budget", "x").json(), "id": ""}

    def refused(token: str, scheme: str = "Bearer") -> bool:
        headers = {"Authorization": f"{scheme} {token}".encode()}
        response = server.send("GET", f"/v1/queries/{answer['id']}", headers=headers)
        return response.status_code == 401 and {**response.json(), "id": ""} == plain

    assert all(map(refused, guesses))
    assert refused(token, "Basic")
    assert not refused(token)
    kept = file.read_bytes()
    with closing(access.ledger_of(schema)) as ledger:
        real = clock.now
        with monkeypatch.context() as patch:
            patch.setattr(clock, "now", lambda: real() + timedelta(days=1))
            ledger.allow("eve")  # the clock is put back from here on
        assert refused(token)
        ledger.accept_clock()  # the owner says that it was tomorrow that was wrong
        assert not refused(token)
    again = access.rotate(schema, "eve", days=1)
    assert not refused(again)
    access.revoke(schema, "eve")
    assert refused(again)
    file.write_bytes(kept)  # who puts the file of tokens back wakes none
    time.sleep(0.05)
    assert refused(token)
    assert refused(again)
    with closing(access.ledger_of(schema)) as ledger:
        assert ledger.shares()["eve"].spent.epsilon > 0, "what was spent counts"


LOOSER: tuple[dict[str, Any], ...] = (
    {"bounds": {"age": [0, 1]}},
    {"keys": {"city": ["Lyon"]}},
    {"unit": "row"},
    {"neighbours": "bounded"},
    {"budget": 100},
    {"analyst": "ann"},
    {"tables": ["customers"]},
    {"insecure": True},
    {"insecure_exact": True},
    {"engine": "duckdb"},
    {"ledger": "/tmp/x"},
    {"accountant": "zcdp"},
    {"max_epsilon": 100},
    {"seed": 1},
    {"schema": "shop.toml"},
    {"delta": 0.5},
    {"delta": 1},
    {"confidence": 2},
    {"confidence": 0},
    {"epsilon": 1e300},
    {"epsilon": -1},
    {"rho": -1, "epsilon": None},
    {"error": -1, "epsilon": None},
    {"error": 0, "epsilon": None},
    {"mechanism": "none"},
    {"mechanism": "exact"},
    {"strategy": "insecure"},
)
CLAUSES = (
    "OPTIONS (epsilon = 100)",
    "OPTIONS (delta = 0.9)",
    "OPTIONS (max_groups_contributed = 1000000)",
    "OPTIONS (max_rows_contributed = 1000000)",
    "OPTIONS (privacy_unit_column = age)",
    "OPTIONS (neighbours = 'bounded')",
    "OPTIONS (noise = 'none')",
    "OPTIONS (insecure = TRUE)",
)
FILES = (
    "SELECT * FROM 'customers.csv'",
    "SELECT COUNT(*) AS n FROM 'customers.csv'",
    'SELECT COUNT(*) AS n FROM "customers.csv"',
    "SELECT COUNT(*) AS n FROM read_csv('{}/customers.csv')",
    "SELECT COUNT(*) AS n FROM read_text('/etc/passwd')",
    "SELECT COUNT(*) AS n FROM glob('{}/*')",
    "SELECT COUNT(*) AS n FROM read_parquet('https://evil.example/x')",
    "SELECT (SELECT COUNT(*) FROM visits) + (SELECT size FROM read_text('{}/shop.ledger')) AS n",
    "COPY visits TO '{}/x'",
    "ATTACH '{}/shop.ledger' AS l",
    "INSTALL httpfs",
    "SELECT COUNT(*) AS n FROM sqlite_scan('{}/shop.ledger', 'lines')",
    "SELECT getenv('HOME') AS h, n FROM (SELECT COUNT(*) AS n FROM visits) AS v",
    "SELECT current_setting('memory_limit') AS h, n FROM (SELECT COUNT(*) AS n FROM visits) AS v",
    "SELECT COUNT(*) AS n FROM duckdb_settings()",
    "SELECT COUNT(*) AS n FROM information_schema.tables",
    "SET memory_limit = '1GB'",
    "PRAGMA database_list",
    "SELECT COUNT(*) AS n FROM visits; SELECT 1",
)


def test_options_clauses_and_files_loosen_nothing(server: Server, bob: str):
    server.ask(bob, "SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) AS n FROM visits")
    before = server.send("GET", "/v1/budget", bob).json()
    for terms in LOOSER:
        status, body = said(server, bob, "/v1/queries", VISITS, **terms)
        assert status in (400, 422), (terms, body[:300])
    for clause in CLAUSES:
        sql = f"SELECT WITH DIFFERENTIAL_PRIVACY {clause} COUNT(*) AS n FROM visits"
        status, body = said(server, bob, "/v1/queries", sql)
        same = status == 200 and json.loads(body)["replayed"]  # a limit above the owner's: the question that it was
        assert status in (400, 422) or same, (clause, body[:300])
    folder = str(server.schema.parent)
    for sql in FILES:
        for path in ("/v1/queries", "/v1/explanations"):
            status, body = said(server, bob, path, sql.replace("{}", "/somewhere"))
            assert status == 400, (sql, body[:300])
            assert folder not in body
            assert "root:" not in body
    name = {"p": f"{folder}/customers.csv"}
    for sql in ("SELECT COUNT(*) AS n FROM :p", "SELECT COUNT(*) AS n FROM visits WHERE seconds > :p"):
        assert said(server, bob, "/v1/queries", sql, params=name)[0] == 400
    assert server.send("GET", "/v1/budget", bob).json() == before, "nothing was charged for any of it"


def test_no_answer_and_no_log_holds_what_was_planted_or_written(server: Server, ann: str, bob: str):
    """Runs last: of all that was asked in this file."""
    server.ask(ann, f"SELECT COUNT(*) AS n FROM customers WHERE city = '{PLANTED}'", key="Key-Of-Mine-77")
    server.ask(ann, "SELECT city, COUNT(*) AS n FROM customers GROUP BY city", epsilon=0.5, delta=1e-7)
    time.sleep(0.2)
    log = "".join(server.log)
    assert '"event": "query"' in log
    for word in (PLANTED, "Key-Of-Mine", ann, bob, "SELECT", "customers", "country", "passwd", "Lyon", "/v1", ".csv"):
        assert word not in log, word
    assert str(Path(server.schema).parent) not in log

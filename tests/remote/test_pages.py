"""The pages over HTTP: who may see what, what forms may do, what every page's headers say."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import httpx
import pytest

from dpsql.core.cost import Cost
from dpsql.remote.server.pages.ask_form import AskForm, fields_of, quoted
from dpsql.remote.server.pages.tables import PageTable
from dpsql.remote.server.pages.visits import GRACE, LIFE, MOST, MOST_OF_ANALYST, ROTATION, Visits
from dpsql.remote.server.plot_process import answer_of, written
from dpsql.remote.server.problems import Problem
from tests.remote.serving import COUNT, Server, serving, shop, token_for

pytestmark = pytest.mark.xdist_group("server")
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
PAGES = ("/", "/answers", "/tables", "/budget", "/words")
FORMS = ("/price", "/ask", "/rehearse", "/sign-out")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    schema = shop(tmp_path_factory.mktemp("shop"))
    for name in ("ann", "bob"):
        schema.with_name(name).write_text(token_for(schema, name, epsilon=10, delta=1e-6, tables="customers,orders"))
    with serving(schema) as running:
        yield running


@contextmanager
def client(server: Server, name: str = "") -> Iterator[httpx.Client]:
    """Signed in, where there is a name."""
    with httpx.Client(base_url=server.address, headers={"Origin": server.address}, timeout=60) as made:
        if name:
            signed = made.post("/sign-in", data={"token": server.schema.with_name(name).read_text()})
            assert signed.status_code == 303
        yield made


def asked(visit: httpx.Client, sql: str, epsilon: str = "0.1", **more: str) -> tuple[httpx.Response, dict[str, str]]:
    """What follows on the button of the price, and the form that was sent."""
    page = visit.post("/price", data={"sql": sql, "epsilon": epsilon, **more})
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))
    form = {"sql": sql, "epsilon": epsilon, **more, **fields}
    return visit.post("/ask", data=form), form


def spent(server: Server, name: str) -> str:
    token = server.schema.with_name(name).read_text()
    return str(server.send("GET", "/v1/budget", token).json()["spent"]["epsilon"])


def test_nothing_without_a_visit(server: Server):
    with client(server) as nobody:
        for path in (*PAGES[1:], "/answers/" + "0" * 32, "/answers/x/answer.svg", "/nowhere"):
            page = nobody.get(path, headers={"Accept": "text/html"})
            assert (page.status_code, "Token, from the data owner" in page.text) == (401, True)
            assert "customers" not in page.text
        for path in FORMS[:3]:
            assert nobody.post(path, data={"sql": COUNT}).status_code == 401
        assert nobody.get("/", headers={"Accept": "text/html"}).status_code == 200
        assert nobody.get("/sign-in").status_code == 200
        assert nobody.get("/").headers["content-type"] == "application/problem+json", "as elsewhere"
        for token in ("", "dpsql-" + "0" * 64, "x" * 5000, "é"):
            assert nobody.post("/sign-in", data={"token": token}).status_code == 401
        token = server.schema.with_name("ann").read_text()
        assert nobody.get("/budget", headers={"Authorization": f"Bearer {token}"}).status_code == 401, (
            "pages take cookies"
        )
        assert nobody.get("/v1/budget", headers={"Cookie": f"dpsql={token}"}).status_code == 401
    with client(server, "ann") as visit:
        assert visit.get("/v1/budget").status_code == 401, "and programs tokens"


def test_every_pages_headers(server: Server):
    with client(server, "ann") as visit:
        for path in (*PAGES, "/nowhere", "/static/dpsql.js", "/static/dpsql.css", "/static/nothing"):
            page = visit.get(path, headers={"Accept": "text/html"})
            headers = page.headers
            policy = headers.get_list("content-security-policy")
            assert len(policy) == 1
            assert "unsafe" not in policy[0]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["cache-control"] == "no-store"
            assert headers["referrer-policy"] == "same-origin"
            if "text/html" in headers.get("content-type", ""):
                assert policy == [POLICY]
                assert not re.search(r"style=|<style|\son\w+=|javascript:", page.text)
                assert all('src="/static/' in each for each in re.findall("<script[^>]*>", page.text))


def test_forms_come_from_this_very_server(server: Server):
    before = spent(server, "ann")
    with client(server, "ann") as visit:
        _, form = asked(visit, "SELECT COUNT(*) AS origins FROM orders")
        paid = spent(server, "ann")
        assert paid != before
        form["nonce"] = "0" * 32
        host = server.address.partition("://")[2]
        for origin in (
            "http://evil.example",
            "null",
            f"https://{host}",
            f"http://localhost:{host.rpartition(':')[2]}",
            f"{server.address}/",
        ):
            for path in (*FORMS, "/sign-in"):
                assert visit.post(path, data=form, headers={"Origin": origin}).status_code == 403
        del visit.headers["Origin"]
        for path in (*FORMS, "/sign-in"):
            assert visit.post(path, data=form).status_code == 403, "without one neither"
        assert visit.get("/budget").status_code == 200
        assert spent(server, "ann") == paid


def test_looking_changes_nothing(server: Server):
    with client(server, "ann") as visit:
        before = spent(server, "ann")
        for path in (*PAGES, f"/?sql={COUNT}&epsilon=1", f"/ask?sql={COUNT}", f"/price?sql={COUNT}", "/sign-out"):
            assert visit.get(path).status_code in (200, 401, 405)
        assert visit.get("/budget").status_code == 200, "it is still signed in"
        assert spent(server, "ann") == before


def test_a_form_is_paid_once_and_only_at_the_price_that_was_shown(server: Server):
    with client(server, "ann") as visit:
        sql = "SELECT COUNT(*) AS once FROM orders"
        first, form = asked(visit, sql)
        paid = spent(server, "ann")
        again = visit.post("/ask", data=form)
        assert first.status_code == again.status_code == 303
        fresh = {**form, "fresh": "1"}
        page = visit.post("/ask", data=fresh)
        assert "Nothing was asked yet" in page.text, "another question than was shown"
        assert spent(server, "ann") == paid
        for name, value in (
            ("sql", sql.replace("once", "twice")),
            ("epsilon", "0.2"),
            ("quoted", ""),
            ("quoted", "x:1,2"),
        ):
            page = visit.post("/ask", data={**form, "sql": sql.replace("once", "thrice"), name: value})
            assert "Nothing was asked yet" in page.text
        assert spent(server, "ann") == paid
        drawn, form = asked(visit, sql, fresh="1")
        assert drawn.status_code == 303
        twice = visit.post("/ask", data=form)
        assert twice.headers["location"] == drawn.headers["location"], "sent twice it is drawn anew once"
        assert spent(server, "ann") != paid


def test_anothers_answers_are_as_if_they_were_not_there(server: Server):
    with client(server, "ann") as ann, client(server, "bob") as bob:
        answer, _ = asked(ann, "SELECT COUNT(*) AS mine FROM orders", "0.17")
        path = answer.headers["location"]
        assert ann.get(path).status_code == 200
        for suffix in ("", "/answer.svg", "/answer.csv", "/answer.json", "/answer.parquet", "/answer.exe"):
            theirs, nobodys = bob.get(path + suffix), bob.get("/answers/" + "0" * 32 + suffix)
            assert theirs.status_code == nobodys.status_code == 404
            assert re.sub("[0-9a-f]{32}", "", theirs.text) == re.sub("[0-9a-f]{32}", "", nobodys.text)
        assert "mine" in ann.get("/answers").text
        assert "mine" not in bob.get("/answers").text
        assert "visits" not in ann.get("/tables").text, "a table that was not granted"


def test_more_than_is_left_and_bad_fields(server: Server):
    with client(server, "bob") as visit:
        page = visit.post("/price", data={"sql": COUNT, "epsilon": "11"})
        assert "more than is left" in page.text
        assert re.search(r'id="ask"[^>]* disabled', page.text)
        page, _ = asked(visit, COUNT, "11")
        assert page.status_code == 422
        assert "BudgetExceeded" in page.text
        for fields, words in (
            ({"epsilon": "much"}, "epsilon must be a number"),
            ({"epsilon": "nan"}, "finite"),
            ({"epsilon": "-1"}, "epsilon"),
            ({"epsilon": "1", "params": "low"}, "name=value"),
            ({"epsilon": "1", "sql": " ; "}, "no query"),
            ({"epsilon": "1", "mechanism": "other"}, "mechanism"),
        ):
            page = visit.post("/price", data={"sql": COUNT, **fields})
            assert page.status_code == 400
            assert words in page.text
        sql = "SELECT COUNT(*) AS n FROM customers WHERE age > :low"
        page, _ = asked(visit, sql, params="low = 30")
        assert page.status_code == 303
        assert visit.post("/ask", data={f"f{n}": "" for n in range(30)}).status_code == 400
        assert (
            visit.post(
                "/ask", content=b"sql=%ff", headers={"Content-Type": "application/x-www-form-urlencoded"}
            ).status_code
            == 400
        )
        assert visit.post("/ask", json={"sql": COUNT}).status_code == 415
        assert visit.post("/ask", data={"sql": "x" * 70_000}).status_code == 413
        page, _ = asked(visit, f"EXPLAIN PRIVACY {COUNT}")
        assert "Protects" in page.text
        failed, _ = asked(
            visit, "SELECT COUNT(*) / (SELECT COUNT(*) FROM orders WHERE total > 200) AS q FROM customers"
        )
        assert failed.status_code == 303


def test_a_visit_ends_and_its_cookie_is_replaced():
    now = [0.0]
    visits = Visits(lambda: now[0])
    cookie = visits.begin("hash", "ann")
    visit, other = visits.find(cookie)
    assert visit is not None
    assert (visit.token, other) == ("hash", "")
    now[0] = ROTATION
    assert visits.find(cookie)[0] is visit
    now[0] += 1
    _, other = visits.find(cookie)
    assert other == "", "it was replaced by the request before"
    now[0] += GRACE
    assert visits.find(cookie) == (None, ""), "the one before does not hold for long"
    cookie, ends = visits.begin("hash", "ann"), now[0] + LIFE
    while now[0] < ends - ROTATION:
        now[0] += ROTATION
        found, after = visits.find(cookie)
        assert found is not None
        assert len(after) == 64
        cookie = after
    now[0] = ends
    assert visits.find(cookie) == (None, ""), "it ends, whatever was replaced"
    first, second = visits.begin("one", "ann"), visits.begin("two", "bob")
    visits.end(first)
    assert visits.find(first) == (None, "")
    assert visits.find(second)[0] is not None
    for each in range(MOST + 5):
        last = visits.begin(str(each), f"analyst {each}")
    assert len(visits._cookies) == MOST
    assert visits.find(second) == (None, "")
    assert visits.find(last)[0] is not None


def test_signing_in_often_ends_no_visit_of_another_analyst():
    visits = Visits(lambda: 0.0)
    others = visits.begin("hash of bob", "bob")
    own = [visits.begin("hash of ann", "ann") for _ in range(MOST_OF_ANALYST + 5)]
    assert visits.find(others)[0] is not None
    assert [visits.find(each)[0] is not None for each in own] == [False] * 5 + [True] * MOST_OF_ANALYST
    rotated = [visits.begin(f"another token {each}", "ann") for each in range(MOST_OF_ANALYST)]
    assert all(visits.find(each)[0] is None for each in own), "the limit is the analyst's, whatever the tokens"
    assert visits.find(rotated[0])[0] is not None


HALF = "\ud800 and $\\frac$"


def hostile() -> dict[str, Any]:
    """An answer with halves of characters, which a frame may hold, and a file that is read as text may not."""
    cell, heads = "\\ud800 and $\\frac$", ["k", "n", "95 %"]
    return {
        "columns": [
            {"name": "k", "type": "text", "end": False, "values": [HALF, "x" * 10_000]},
            {"name": "n$\\frac$" + "y" * 300, "type": "integer", "end": False, "values": [3, 2**60]},
            {"name": "n_low", "type": "real", "end": True, "values": [1.0, "-inf"]},
            {"name": "n_high", "type": "real", "end": True, "values": [5.0, "inf"]},
        ],
        "drawn": ["n$\\frac$" + "y" * 300],
        "table": {
            "heads": heads,
            "rows": [[cell, "3", "±2"], ["x" * 10_000, str(2**60), "any"]],
            "numeric": [False, True, True],
            "limits": [2],
            "spans": [[2, [3, 5], [1.0, "-inf"], [5.0, "inf"]]],
        },
        "level": 0.95,
        "notes": ["spent epsilon 1"],
        "warnings": [],
        "footer": "spent epsilon 1",
        "heading": "",
        "replayed": False,
        "price": "epsilon 1",
        "loss": {"epsilon": "1", "delta": "0", "rho": "1/2", "hidden": "0"},
        "bounds": {},
    }


def test_what_was_paid_is_written_in_every_form_whatever_it_holds():
    content = json.dumps(hostile()).encode("ascii")
    picture = written(content, "svg").decode()
    assert "$\\frac$" in picture
    assert "x" * 40 not in picture
    assert "\\ud800" in written(content, "csv").decode()
    assert json.loads(written(content, "json"))[0]["k"] == HALF
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(written(content, "parquet")))
    assert table.column("k").to_pylist()[0] == "\\ud800 and $\\frac$"
    assert written(content, "arrow")
    shown = PageTable.of(answer_of(hostile()))
    assert shown.cut
    assert max(len(cell[0]) for row in shown.rows for cell in row) == 200
    assert shown.rows[0][2][3] is not None


def test_a_form_carries_what_was_shown():
    form = AskForm.of({"sql": "SELECT 1", "epsilon": "0.5", "nonce": "a" * 32})
    terms = form.terms()
    assert terms == {"sql": "SELECT 1", "epsilon": 0.5}
    price = Cost.of(Fraction(1, 2))
    shown = AskForm(form.fields, form.nonce, quoted(terms, price))
    assert shown.promised(terms, price)
    assert shown.promised(terms, Cost.of(Fraction(0)))
    assert not shown.promised(terms, Cost.of(Fraction(1)))
    assert not shown.promised({**terms, "fresh": True}, price)
    for wrong in ("", ":", "x", shown.quoted + ",1", shown.quoted.replace(":", ":1/0,")):
        assert not AskForm(form.fields, form.nonce, wrong).promised(terms, price)
    assert form.key(terms) != AskForm(form.fields, "b" * 32).key(terms)
    assert form.key(terms) != form.key({**terms, "fresh": True})
    assert AskForm.of({"nonce": "é" * 32}).nonce != "é" * 32
    with pytest.raises(Problem):
        fields_of(b"sql=a&sql=b")

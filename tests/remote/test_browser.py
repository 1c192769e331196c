"""The pages in a browser, headless Chromium, as a new analyst uses them: with a mouse, without one, without scripts."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpsql.owner import access
from dpsql.session.owner_file import Schema
from tests.remote.serving import BY_COUNTRY, COUNT, Server, serving, shop, token_for
from tests.test_architecture import ROOT

pytestmark = pytest.mark.xdist_group("browser")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SHOTS = ROOT / "build" / "pages"
KEYS = {
    "a script": "<script>document.title = 'taken'</script>",
    "mathematics": "$\\frac$",
    "from right to left": "שלום עולם",
    "an override": "abc\u202edef",
    "long": "x" * 10_000,
    "a formula": "=cmd()",
    "quotes": 'it\'s "quoted", & so on',
}
STRANGE = "SELECT word, COUNT(*) AS n FROM strange GROUP BY word"
TABLE = """
[tables.strange]
path = "strange.csv"
version = "1"
[tables.strange.columns]
word = {{ keys = {keys} }}
"""


def needs(what: object, hint: str) -> None:
    """Where it is not there a test is skipped; not so in CI, where it would be missed."""
    if not what:
        if os.environ.get("CI"):
            pytest.fail(f"{hint}, which CI has to have")
        pytest.skip(hint)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("shop")
    schema = shop(folder)
    with schema.open("a") as file:
        file.write(TABLE.format(keys=json.dumps(list(KEYS.values()), ensure_ascii=False)))
    with (folder / "strange.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["word"], *([key] for key in KEYS.values() for _ in range(20))])
    token = token_for(schema, "ann", epsilon=50, delta=1e-6, tables="customers,orders,visits,strange")
    folder.joinpath("token").write_text(token)
    with serving(schema) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    needs(CHROMIUM, "no Chromium on the path")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


class Visitor:
    """One browser with nothing kept, and what went wrong in it."""

    def __init__(self, browser: Any, server: Server, *, signed_in: bool = True, **how: Any) -> None:
        self.server, self.token = server, server.schema.with_name("token").read_text()
        self.context = browser.new_context(**how)
        self.context.set_default_timeout(20_000)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda sent: self.wrong.append(sent.url) if not self._ours(sent.url) else None)
        if signed_in:
            self.go("/")
            self.sign_in(self.token)
            self.page.locator("#sql").wait_for()

    def _ours(self, url: str) -> bool:
        return url.startswith((self.server.address, "data:", "blob:", "about:"))

    def go(self, path: str) -> int:
        response = self.page.goto(f"{self.server.address}{path}")
        assert response is not None
        return int(response.status)

    def sign_in(self, token: str) -> None:
        self.page.fill("#token", token)
        self.page.keyboard.press("Enter")

    def ask(self, sql: str, epsilon: str = "0.1") -> None:
        """With a script: type, see the price, press the button, see the answer."""
        self.go("/")
        self.page.fill("#epsilon", epsilon)
        self.page.fill("#sql", sql)
        button = self.page.locator("#ask", has_text="Ask, spends")
        button.wait_for()
        button.click()
        self.page.wait_for_url("**/answers/*")
        self.page.locator("table").first.wait_for()

    def rows(self) -> list[list[str]]:
        rows = self.page.locator("main table tbody tr")
        cells = [rows.nth(place).locator("td:not([aria-hidden]), th") for place in range(rows.count())]
        return [each.all_inner_texts() for each in cells]

    def check(self, *expected: str) -> None:
        """Nothing went wrong but what is expected; then all is closed."""
        left = [each for each in self.wrong if not any(word in each for word in expected)]
        self.context.close()
        assert not left


@pytest.fixture
def visitor(browser: Any, server: Server) -> Iterator[Visitor]:
    visiting = Visitor(browser, server, accept_downloads=True)
    yield visiting
    visiting.context.close()


def test_a_question_its_price_its_answer_and_its_downloads(visitor: Visitor):
    page = visitor.page
    page.fill("#sql", BY_COUNTRY)
    page.fill("#epsilon", "0.5")
    page.locator("#ask", has_text="Ask, spends 0.5").wait_for()
    assert "left epsilon" in page.inner_text("#price")
    assert "Nothing" not in page.inner_text("#price")
    page.keyboard.press("Escape")
    page.click("#ask")
    page.wait_for_url("**/answers/*")
    link = page.url
    rows = visitor.rows()
    assert [row[0] for row in rows] == ["DE", "FR", "NO"]
    assert all("±" in row[2] or "…" in row[2] for row in rows)
    assert page.locator("svg.marks").count() == 6
    picture = page.locator("img.plot")
    assert picture.evaluate("each => each.decode().then(() => each.naturalWidth)") > 100
    assert "Plot of n, age" in (picture.get_attribute("alt") or "")
    page.locator("summary", has_text="How it was made").click()
    assert "Guarantee" in page.inner_text("details pre")

    files = {}
    for form in ("CSV", "JSON", "Parquet"):
        with page.expect_download() as got:
            page.locator(".downloads a", has_text=form).click()
        files[form] = Path(got.value.path()).read_bytes()
    from_csv = list(csv.DictReader(io.StringIO(files["CSV"].decode())))
    from_json = json.loads(files["JSON"])
    assert [row["country"] for row in from_csv] == ["DE", "FR", "NO"]
    assert [int(row["n"]) for row in from_csv] == [row["n"] for row in from_json]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(io.BytesIO(files["Parquet"])).to_pylist() == from_json
    assert [row[1] for row in rows] == [row["n"] for row in from_csv]

    visitor.go("/answers")
    page.locator("a", has_text="Answer of").first.click()
    assert page.url == link
    assert visitor.rows() == rows
    visitor.go("/budget")
    assert "epsilon 50" in page.inner_text("dl")
    visitor.check()


def test_it_needs_no_script(browser: Any, server: Server):
    visitor = Visitor(browser, server, java_script_enabled=False)
    page = visitor.page
    page.fill("#sql", "SELECT COUNT(*) AS n FROM visits")
    page.click("#ask")
    page.locator("#ask", has_text="Ask, spends 0.1").wait_for()
    assert "Guarantee" in page.inner_text("section pre")
    page.fill("#sql", "SELECT COUNT(*) AS n FROM orders")  # another question than the price is of
    page.click("#ask")
    page.locator(".note", has_text="Nothing was asked yet").wait_for()
    page.locator("#ask", has_text="Ask, spends 0.1").click()
    page.wait_for_url("**/answers/*")
    assert len(visitor.rows()) == 1
    visitor.go("/")
    page.fill("#sql", "SELECT SUM(agee) FROM customers")
    page.click("#ask")
    refusal = page.inner_text(".refusal")
    assert re.search(r"UnknownColumn.*Did you mean \"age\".*LINE 1: SELECT SUM\(agee\).*\^\^\^\^", refusal, re.DOTALL)
    assert page.input_value("#sql") == "SELECT SUM(agee) FROM customers"
    page.fill("#sql", COUNT)
    page.locator("button", has_text="made-up").click()
    assert "MADE-UP ROWS" in page.inner_text("main")
    visitor.check("status of 400")


def test_wrong_tokens_and_visits_that_have_ended(browser: Any, server: Server):
    token = token_for(server.schema, "eve", epsilon=1, delta=0)
    visitor = Visitor(browser, server, signed_in=False)
    page = visitor.page
    assert visitor.go("/tables") == 401
    visitor.sign_in("dpsql-" + "0" * 64)
    page.locator("[role=alert]", has_text="does not hold").wait_for()
    visitor.sign_in(token)
    page.locator("#sql").wait_for()
    (cookie,) = visitor.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"]) == (True, "Lax", False)
    assert token not in cookie["value"]
    page.locator("#ask").wait_for()
    access.rotate(Schema.from_toml(server.schema), "eve")
    page.fill("#sql", COUNT)
    page.locator("#price", has_text="not signed in any more").wait_for()
    assert visitor.go("/budget") == 401
    page.locator("[role=alert]", has_text="not signed in any more").wait_for()
    visitor.check("status of 401")

    visitor = Visitor(browser, server)
    (cookie,) = visitor.context.cookies()
    visitor.page.locator("button", has_text="Sign out").click()
    visitor.page.locator("#token").wait_for()
    assert visitor.context.cookies() == []
    visitor.context.add_cookies([cookie])
    assert visitor.go("/") == 401, "a cookie from before does not hold"
    visitor.check("status of 401")


def test_hostile_keys_are_texts(visitor: Visitor):
    visitor.ask(STRANGE)
    page = visitor.page
    cells = [row[0] for row in visitor.rows()]
    assert KEYS["a script"] in cells
    assert KEYS["mathematics"] in cells
    assert KEYS["from right to left"] in cells
    assert "abc\\u202edef" in cells
    assert max(map(len, cells)) == 200
    assert "Long texts are cut here" in page.inner_text("main")
    assert page.title() == "Answer · dpsql"
    assert page.locator("main script").count() == 0
    assert page.locator("img.plot").evaluate("each => each.decode().then(() => each.naturalWidth)") > 100
    picture = page.request.get(page.locator("img.plot").evaluate("each => each.src")).text()
    assert "<script" not in picture
    assert "$\\frac$" in picture
    assert "x" * 40 not in picture
    with page.expect_download() as got:
        page.locator(".downloads a", has_text="CSV").click()
    assert {row["word"] for row in csv.DictReader(io.StringIO(Path(got.value.path()).read_text()))} == set(
        KEYS.values()
    )
    alias = 'SELECT COUNT(*) AS "<b>$\\frac$</b>" FROM visits'
    visitor.ask(alias)
    assert "<b>$\\frac$</b>" in page.inner_text("main thead")
    assert page.locator("img.plot").evaluate("each => each.decode().then(() => each.naturalWidth)") > 100
    visitor.go("/answers")
    assert alias in page.locator("code.query").all_inner_texts()
    visitor.go("/tables")
    assert max(map(len, page.locator("td.facts").all_inner_texts())) == 600, "of a key of 10,000 characters"
    visitor.check()


def test_all_of_it_by_keyboard(browser: Any, server: Server):
    visitor = Visitor(browser, server, signed_in=False)
    page, keys = visitor.page, visitor.page.keyboard
    visitor.go("/")

    def tab_to(selector: str) -> None:
        """Tab, until it is there."""
        for _ in range(40):
            if page.evaluate("each => document.activeElement.matches(each)", selector):
                return
            keys.press("Tab")
        raise AssertionError(f"no way to {selector}")

    tab_to("#token")
    keys.type(visitor.token)
    keys.press("Enter")
    page.locator("#sql").wait_for()
    tab_to("#sql")
    keys.type("SELECT COUNT(*) AS n FROM cust")
    page.locator(".choices li").first.wait_for()
    keys.press("ArrowDown")
    keys.press("Enter")
    assert page.input_value("#sql") == "SELECT COUNT(*) AS n FROM customers"
    keys.type(" WHERE ")
    keys.type("ag")
    page.locator(".choices li", has_text="age").first.wait_for()
    keys.press("Escape")
    assert page.locator(".choices li").first.is_hidden()
    keys.type("e > 20")
    page.locator("#ask", has_text="Ask, spends").wait_for()
    keys.press("Control+Enter")
    page.wait_for_url("**/answers/*")
    assert len(visitor.rows()) == 1
    tab_to("summary")
    keys.press("Enter")
    assert page.locator("details[open]").count() == 1
    tab_to(".downloads a")
    tab_to("main form button")
    keys.press("Enter")
    page.locator("#ask", has_text="spends nothing").wait_for()
    tab_to("#ask")
    keys.press("Enter")
    page.wait_for_url("**/answers/*")
    tab_to("nav a[href='/budget']")
    keys.press("Enter")
    page.locator("meter").wait_for()
    tab_to(".out button")
    keys.press("Enter")
    page.locator("#token").wait_for()
    visitor.check()


LOOKS = ({"color_scheme": "light"}, {"color_scheme": "dark"}, {"color_scheme": "light", "viewport": (360, 740)})


def test_no_violation_in_the_light_in_the_dark_and_on_narrow_screens(browser: Any, server: Server):
    needs(AXE.is_file(), "no axe-core: npm install --prefix build/axe --no-save axe-core")
    script = AXE.read_text(encoding="utf-8")
    SHOTS.mkdir(parents=True, exist_ok=True)
    for place, look in enumerate(LOOKS):
        width, height = look.get("viewport", (1100, 850))
        how = {"color_scheme": look["color_scheme"], "viewport": {"width": width, "height": height}}
        visitor = Visitor(browser, server, signed_in=False, **how)
        page, seen = visitor.page, []

        def look_at(name: str, page: Any = page, seen: list[str] = seen, place: int = place) -> None:
            page.context.new_cdp_session(page).send("Runtime.evaluate", {"expression": script})
            found = page.evaluate("axe.run()")["violations"]
            seen.extend(f"{name}: {each['id']} {[node['html'][:120] for node in each['nodes']]}" for each in found)
            wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
            seen.extend([f"{name} is wider than its window"] if wide else [])
            page.screenshot(path=SHOTS / f"{place}-{name}.png", full_page=True)

        visitor.go("/sign-in")
        look_at("sign-in")
        visitor.sign_in("x")
        page.locator("[role=alert]").wait_for()
        look_at("wrong")
        visitor.sign_in(visitor.token)
        page.locator("#sql").wait_for()
        page.click("#sql")
        page.keyboard.type("SELECT co")
        page.locator(".choices li").first.wait_for()
        page.keyboard.press("ArrowDown")
        page.locator("#refusal h2").wait_for()
        look_at("choices")
        visitor.ask(STRANGE)
        page.locator("summary").click()
        look_at("answer")
        page.locator("main form button").click()
        page.locator("#ask", has_text="Ask, spends").wait_for()
        page.locator("summary").click()
        look_at("ask")
        for name in ("answers", "tables", "budget", "nowhere"):
            visitor.go(f"/{name}")
            look_at(name)
        visitor.check("status of 401", "status of 404")
        assert not seen

"""Processes killed under load, data replaced, a ledger that cannot be written: no answer without its charge, no charge
without its answer or its one error."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from contextlib import closing, suppress
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import httpx
import pytest

from dpsql.core.cost import Cost
from dpsql.core.ledger import clock
from dpsql.core.ledger.file import open_ledger
from dpsql.core.ledger.sharing import Request
from dpsql.owner import access
from dpsql.session.owner_file import Schema
from tests.remote.serving import COUNT, Server, serving, shop, token_for, until

pytestmark = pytest.mark.xdist_group("server")
EPSILON = Fraction(1, 100)
Outcome = tuple[int, str]


class Analyst(threading.Thread):
    """Asks one question after another, each under a key of its own, and takes down what it is told."""

    def __init__(self, name: str, token: str) -> None:
        super().__init__(daemon=True)
        self.asker, self.token, self.stopped = name, token, False
        self.told: dict[str, set[Outcome]] = {}
        self.wrong: list[object] = []
        self.server: Server | None = None

    def run(self) -> None:
        number = 0
        while not self.stopped:
            if self.server is not None:
                number += 1
                self.ask(f"{self.asker}-{number}")
            time.sleep(0.1)

    def ask(self, key: str) -> None:
        """Once, whatever comes of it."""
        self.told.setdefault(key, set())
        server = self.server
        if server is None:
            return
        with suppress(httpx.HTTPError):
            number = int(key.rpartition("-")[2])
            response = server.ask(self.token, f"{COUNT} WHERE age > {number % 60}", key, epsilon=float(EPSILON))
            self.note(key, response)

    def note(self, key: str, response: httpx.Response) -> None:
        body = response.json()
        if response.status_code == 200:
            self.told[key].add((200, json.dumps([each["values"] for each in body["columns"]])))
        elif response.status_code == 500:
            self.told[key].add((500, body["detail"]))
            self.wrong += [] if body["charged"] else [body]

    def finish(self) -> None:
        """Ask again for whatever was begun, until each key has an answer or an error for good."""
        for key in self.told:
            deadline = time.monotonic() + 60
            while not self.told[key]:
                assert time.monotonic() < deadline, key
                self.ask(key)
            self.ask(key)


def check_kills(folder: Path, servers: int, workers: int, seed: int) -> int:
    """Workers and servers die at random moments, under four analysts: each server, and so many workers of it before.
    How many were killed."""
    chance = random.Random(seed)
    schema = shop(folder, server='grid = "off"\nlimits = "off"', epsilon=1000)
    analysts = [Analyst(name, token_for(schema, name, epsilon=200, tables="customers")) for name in "abcd"]
    killed = 0
    for each in analysts:
        each.start()
    for _ in range(servers):
        with serving(schema) as server:
            for each in analysts:
                each.server = server
            for _ in range(workers):
                time.sleep(chance.uniform(0.3, 1.2))
                alive = server.workers()
                with suppress(ProcessLookupError, IndexError):
                    os.kill(chance.choice(alive), signal.SIGKILL)
                    killed += 1
            time.sleep(chance.uniform(0.3, 1.2))
            _allow(schema, analysts)
            running = server.workers()
            server.kill()
            killed += 1
            # what workers come from may have been begun anew just now, and hears of it when it has loaded everything
            until(lambda pids=running: not any(_runs(pid) for pid in pids), 120)
            for each in analysts:
                each.server = None
    for each in analysts:
        each.stopped = True
        each.join(60)
    with serving(schema) as server:
        for each in analysts:
            each.server = server
            _allow(schema, analysts)
            each.finish()
    check_books(schema, analysts)
    return killed


def _runs(pid: int) -> bool:
    """Whether it is a process of the server that has not ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and b"multiprocessing" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _allow(schema: Path, analysts: list[Analyst]) -> None:
    for each in analysts:
        access.allow(Schema.from_toml(schema), each.asker)


def check_books(schema: Path, analysts: list[Analyst]) -> None:
    """Every key has one answer or one error; every answer has its charge, and nothing is paid twice."""
    with closing(access.ledger_of(Schema.from_toml(schema))) as ledger:
        lines = json.loads(ledger.to_json())["lines"]
        reports = ledger.shares()
    for each in analysts:
        assert not each.wrong
        for key, outcomes in each.told.items():
            assert len(outcomes) == 1, (key, outcomes)
        charges = [line for line in lines if line["kind"] == "charge" and line["analyst"] == each.asker]
        keys = [line for line in lines if line["kind"] == "asked" and line["analyst"] == each.asker]
        assert len({line["key"] for line in keys}) == len(keys) == len(charges)
        assert {line["charge"] for line in keys} == {line["number"] for line in charges}
        answered = [line["charge"] for line in lines if line["kind"] == "answer"]
        failed = [line["charge"] for line in lines if line["kind"] == "failed"]
        assert len(set(answered)) == len(answered)
        assert not set(answered) & set(failed)
        assert {line["number"] for line in charges} <= {*answered, *failed}
        given = [outcome for outcomes in each.told.values() for outcome in outcomes]
        assert sum(status == 500 for status, _ in given) == len({*failed} & {line["number"] for line in charges})
        distinct = {values for status, values in given if status == 200}
        assert len(distinct) <= len(charges)
        assert reports[each.asker].spent.epsilon <= len(charges) * EPSILON


def test_processes_that_are_killed_lose_nothing(tmp_path: Path):
    assert check_kills(tmp_path, 4, 4, 1) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_processes_that_are_killed_often_lose_nothing(tmp_path: Path, seed: int):
    assert check_kills(tmp_path, 7, 2, seed) >= 18


def test_a_full_disk_and_a_clock_that_went_back_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What cannot be charged is not run; what cannot be kept is not sent, and its key has it when there is room."""
    resource = pytest.importorskip("resource")
    schema = shop(tmp_path, rows=100)
    token, short = token_for(schema, "ann", days=9), token_for(schema, "eve", epsilon=1, days=0.5)
    with serving(schema) as server:
        assert server.ask(token).status_code == 200

        def limited(most: int) -> None:
            """As a disk that is full: files may not grow."""
            for pid in (server.process.pid, *server.workers()):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

        spent = server.send("GET", "/v1/budget", token).json()["spent"]["epsilon"]
        limited(512)
        full = server.ask(token, key="full", epsilon=0.05)
        assert (full.status_code, full.json().get("charged")) == (503, False), full.text
        limited(resource.RLIM_INFINITY)
        assert server.send("GET", "/v1/budget", token).json()["spent"]["epsilon"] == spent
        assert server.ask(token, key="full", epsilon=0.05).status_code == 200

        real = clock.now
        with monkeypatch.context() as patch, closing(access.ledger_of(Schema.from_toml(schema))) as owner:
            patch.setattr(clock, "now", lambda: real() + timedelta(days=1))
            owner.allow("ann")  # a line of tomorrow, which is what a clock that went back leaves
        back = server.ask(token, key="back", epsilon=0.07)
        assert (back.status_code, back.json()["charged"]) == (503, False)
        assert server.send("GET", "/v1/budget", short).status_code == 401, "by the ledger's time it has ended"
        with closing(access.ledger_of(Schema.from_toml(schema))) as owner:
            owner.accept_clock()
        assert server.ask(token, key="back", epsilon=0.07).status_code == 200
        assert server.send("GET", "/v1/budget", token).json()["spent"]["epsilon"] == "13/100"


def test_an_answer_outlives_the_server_and_new_data_end_serving(tmp_path: Path):
    schema = shop(tmp_path)
    token = token_for(schema, "ann")
    with serving(schema) as server:
        before = server.ask(token, key="kept").json()
        stopped = server.stop()
    assert stopped == 0
    with serving(schema) as server:
        after = server.ask(token, key="kept").json()
        assert after["columns"] == before["columns"]
        assert server.ask(token, key="kept", epsilon=0.02).status_code == 409
        assert server.send("GET", "/v1/budget", token).json()["spent"]["epsilon"] == "1/100"
        visits = tmp_path / "customers.csv"
        visits.write_text(visits.read_text() + "99999,DE,30,Lyon\n")
        for pid in server.workers():
            os.kill(pid, signal.SIGKILL)
        codes: set[int] = set()

        def halted() -> bool:
            """A worker that was killed is a 503 as well, before another is started and looks at the files."""
            codes.add(server.ask(token, wait=1, epsilon=0.03).status_code)
            return bool(server.send("GET", "/healthz").json() == {"status": "halted"})

        until(halted)
        assert codes <= {202, 503}, "nothing was answered from other rows"
        assert server.send("GET", "/v1/budget", token).status_code == 503


def test_answers_wait_for_their_point_of_the_grid(tmp_path: Path):
    """As the analyst sees it: accepted, nothing but that, then there; meanwhile its price is that of a new one."""
    schema = shop(tmp_path, server='grid = "2s"')
    token = token_for(schema, "ann")
    with serving(schema) as server:
        start = time.monotonic()
        response = server.ask(token, key="slow", wait=0)
        assert response.status_code == 202
        assert response.json().keys() == {"id", "state"}
        place = response.headers["location"]
        states = []
        while (look := server.send("GET", place, token)).status_code == 202:
            states.append(look.json()["state"])
            price = server.send("POST", "/v1/prices", token, json={"queries": [{"sql": COUNT, "epsilon": 0.01}]})
            assert time.monotonic() - start > 1.9 or not price.json()["prices"][0]["replayed"]
            time.sleep(0.05)
        assert time.monotonic() - start >= 2
        assert set(states) == {"accepted"}
        assert look.status_code == 200
        start = time.monotonic()
        assert server.ask(token, key="again").json()["replayed"]
        assert time.monotonic() - start < 1.9


def test_runs_that_die_stop_their_analyst_until_the_owner_says_so(tmp_path: Path):
    schema = shop(tmp_path)
    token = token_for(schema, "ann")
    owned = Schema.from_toml(schema)
    with closing(access.ledger_of(owned)) as ledger, serving(schema) as server:
        for number in range(3):
            answer = server.ask(token, key=f"k{number}", epsilon=0.01 + number / 1000)
            assert answer.status_code == 200
        for line in json.loads(ledger.to_json())["lines"]:
            if line["kind"] == "charge":
                assert not ledger.fail(line["number"], "died"), "what has its answer has not failed"
        # three of whose runs nothing is known
        with closing(open_ledger(tmp_path / "shop.ledger", analyst="ann")) as asked:
            for number in range(3):
                asked.request = Request(f"{number}" * 64, "b" * 64, "c" * 64)
                assert ledger.fail(asked.charge(Cost.of(EPSILON), "q").number, "deadline")
        refused = server.ask(token, epsilon=0.03)
        assert (refused.status_code, refused.json()["title"]) == (403, "Forbidden")
        access.allow(owned, "ann")
        assert server.ask(token, epsilon=0.03).status_code == 200

"""When an answer is seen, from outside: points of the grid, of pairs of tables that differ in one person's rows.

**What is compared.** A pair is the same question, asked of two tables one after the other in random order, each with a
number in it that no other has, so that nothing is a replay. Three observers wait for each answer: one looks at its
status shortly after each point, one waits for it under its key, one asks the same question over another connection
under another key. Of each the last point of the grid before it saw the answer is taken: what an analyst can tell of the
run but for the noise of the network.

**The difference** of two tables, of an observer, at a point k: of all pairs, the share n+ in which the first was seen
after k and the second was not, less the share n- of the opposite. It is the difference of the probabilities of "seen
after k", which is what a run that takes longer makes likelier. Each share is of so many independent pairs, so
Clopper-Pearson bounds it whatever its law: the upper bound of one less the lower bound of the other is an upper bound
of the difference, at 95 % for all observers and points together (each look has its part of the .05, each of the two
bounds half of that). The largest is the bound of a run.

**What it is held against.** Load moves answers by a point, of both tables alike, and makes the bound wider. How wide it
is for two equal tables follows from the same pairs: were the tables equal, each pair could as well have come the other
way round. So pairs are turned round at random, 2,000 times, and the largest bound of these is that of a run of two
equal tables, which such a run is above once in 2,000. A difference is seen where the bound is not below that plus .02.
Of 500 pairs on a quiet machine that is a difference of .1; where every tenth answer comes a point late, one of .15.
"""

from __future__ import annotations

import http.client
import itertools
import json
import math
import random
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from tests.remote.serving import Server

GRID = 0.05
ALLOWED = 0.02
POINTS = range(8)
"""Points that are told apart: 50 ms, 100, ... 6.4 s, and after."""
TURNS = 2_000
SCHEMA = """
[budget]
epsilon = 1000000.0
delta = 0.001

[server]
grid = "50ms"
limits = "off"
max_runs = 1000000
time_epsilon = 1.0
"""
TABLE = """
[tables.{name}]
path = "{name}.csv"
version = "1"
unit = "person"
max_rows = 20
max_groups = 3

[tables.{name}.columns]
person = {{ type = "integer" }}
age = {{ bounds = [0, 100] }}
pay = {{ bounds = [0, 100000] }}
g = {{ keys = ["a", "b"] }}
city = {{ type = "text" }}
note = {{ type = "text" }}
"""
SOMEBODY = 999_999
"""Whose rows one of two neighbours has."""
HOSTILE = (
    "SELECT COUNT(*) AS n FROM {t} WHERE city = 'Zyzzyxburg' AND age < {x}",
    "SELECT COUNT(*) AS n FROM {t} WHERE age < {x} AND LENGTH(REPLACE(UPPER(note), 'A', 'BBBB')) > 100",
    "SELECT COUNT(*) AS n FROM {t} WHERE age < {x} AND REGEXP_MATCHES(note, '(a|aa)+b$')",
    "SELECT COUNT(*) AS n FROM {t} WHERE age < {x} AND note LIKE '%a%a%a%a%a%a%b'",
    "SELECT COUNT(*) AS n FROM {t} WHERE age < {x} AND CAST(note AS INTEGER) > 3",
    "SELECT COUNT(*) AS n FROM {t} WHERE age < {x} AND pay / (age - age) > 1",
    "SELECT COUNT(*) AS n FROM {t} WHERE age < {x} AND POWER(pay, 300) > 1",
    "SELECT SUM(CLAMP(SQRT(pay) * EXP(age), 0, 1000)) AS s FROM {t} WHERE age < {x}",
    "SELECT AVG(CASE WHEN person = 999999 THEN LN(pay) ELSE 1 END) AS s FROM {t} WHERE age < {x} AND pay >= 1",
    "SELECT g, COUNT(*) AS n, AVG(pay) AS p FROM {t} WHERE age < {x} GROUP BY g",
    "SELECT city, COUNT(*) AS n FROM {t} WHERE age < {x} GROUP BY city",
    "SELECT MEDIAN(age) AS m FROM {t} WHERE age < {x}",
    "SELECT COUNT(DISTINCT person) AS n FROM {t} WHERE age < {x}",
    "SELECT COUNT(*) AS n FROM {t} AS l JOIN {t} AS r ON l.person = r.person WHERE l.age < {x}",
    "SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY person ORDER BY g) AS k FROM {t}) WHERE k < {x}",
    "SELECT COUNT(*) AS n FROM {t} WHERE age < {x} AND person IN (SELECT person FROM {t} WHERE pay > 99)",
    "SELECT COUNT(*) AS n FROM (SELECT person, age FROM {t} UNION ALL SELECT person, age FROM {t}) WHERE age < {x}",
    "SELECT VAR_POP(pay) AS v FROM {t} WHERE age < {x}",
    "SELECT AVG(n) AS m FROM (SELECT g, COUNT(*) AS n FROM {t} WHERE age < {x} GROUP BY g)",
    "SELECT COUNT(*) AS n FROM {t} WHERE age < {x} AND pay > (SELECT AVG(pay) FROM {t})",
)
"""Questions in which one person's rows might make work: {t} is a table, {x} a number that makes each another."""
LONG = (
    "SELECT COUNT(*) AS n FROM {t} WHERE age < {x} AND LENGTH(REPLACE(UPPER(CAST(pay * age AS TEXT)), '9', 'ab')) > 5"
)
"""What takes a slot longer over many rows than over few."""
_numbers = itertools.count(1)


def people(rows: int) -> pd.DataFrame:
    chance = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "person": np.arange(rows) // 3,
            "age": chance.integers(0, 99, rows),
            "pay": chance.integers(0, 90_000, rows),
            "g": chance.choice(["a", "b"], rows),
            "city": chance.choice(["Lyon", "Oslo", "Bonn"], rows),
            "note": "aaab",
        }
    )


def tables(folder: Path, *, rows: int = 2_000, many: int = 0) -> Path:
    """An owner's file over `base`; `same`, which is equal; `more`, which has one person's rows besides; and `large`, of
    `many` rows, where that is said."""
    base = people(rows)
    odd = people(400).assign(person=SOMEBODY, city="Zyzzyxburg", note="a" * 2_000)
    frames = {"base": base, "same": base, "more": pd.concat([base, odd])}
    if many:
        frames["large"] = people(many)
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    schema = folder / "times.toml"
    schema.write_text(SCHEMA + "".join(TABLE.format(name=name) for name in frames))
    return schema


class Observers:
    """One analyst's connections, each of which sees an answer at a point of the grid."""

    def __init__(self, server: Server, token: str) -> None:
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._wires = [http.client.HTTPConnection(*server.host, timeout=60) for _ in range(3)]

    def points(self, sql: str, **terms: float) -> tuple[int, ...]:
        """Where status, wait and the same question by another see the answer to a new question."""
        body = json.dumps({"sql": sql, "epsilon": 0.01, **terms})
        mine, other = (f"time-{next(_numbers)}" for _ in range(2))
        begin = time.monotonic()
        status, said = self._asked(0, mine, body, 0)
        assert status == 202, said
        seen = [0.0] * 3

        def wait(place: int, key: str) -> None:
            status, said = self._asked(place, key, body, 30)
            assert status == 200, said
            seen[place] = time.monotonic() - begin

        threads = [threading.Thread(target=wait, args=each) for each in ((1, mine), (2, other))]
        for each in threads:
            each.start()
        for point in itertools.chain([0.9], (1.3 * 2**each for each in itertools.count())):
            time.sleep(max(0.0, begin + point * GRID - time.monotonic()))
            looked = time.monotonic() - begin  # later than meant where the machine is busy
            if self._sent(0, "GET", f"/v1/queries/{said['id']}")[0] == 200:
                break
        seen[0] = time.monotonic() - begin
        for each in threads:
            each.join()
        assert min(seen) >= GRID, "nothing is seen before the first point"
        seen[0] = max(looked, GRID)
        return tuple(math.floor(math.log2(each / GRID)) for each in seen)

    def _asked(self, place: int, key: str, body: str, wait: int) -> tuple[int, dict[str, str]]:
        return self._sent(place, "POST", "/v1/queries", body, {"Idempotency-Key": key, "Prefer": f"wait={wait}"})

    def _sent(
        self, place: int, method: str, path: str, body: str | None = None, more: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str]]:
        wire = self._wires[place]
        try:
            wire.request(method, path, body, {**self._headers, **(more or {})})
            response = wire.getresponse()
        except (
            http.client.RemoteDisconnected,
            ConnectionError,
        ):  # of a busy machine it had nothing to say for too long
            wire.close()
            wire.request(method, path, body, {**self._headers, **(more or {})})
            response = wire.getresponse()
        return response.status, json.loads(response.read())


Points = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
"""Of each pair, what the observers saw of the first table, and of the second."""


def seen_of(
    observers: Observers, question: str, pair: tuple[str, str], count: int, seed: int = 0, **terms: float
) -> Points:
    """So many pairs, each in random order."""
    return [(one, other) for one, other in _seen_of(observers, question, pair, count, seed, terms)]


def seen_beside(
    observers: Observers, question: str, tables: tuple[str, str, str], count: int, **terms: float
) -> tuple[Points, Points]:
    """As many pairs of the first table with either of the others, by three questions for each two pairs: all three are
    in random order, so either of them is, and the same load was felt by both."""
    told = _seen_of(observers, question, tables, count, 0, terms)
    return [(first, one) for first, one, _ in told], [(first, other) for first, _, other in told]


def _seen_of(
    observers: Observers, question: str, tables: Sequence[str], count: int, seed: int, terms: dict[str, float]
) -> list[list[tuple[int, ...]]]:
    """What the observers saw of each table, so many times, each in random order."""
    chance, told = random.Random(seed), []
    for _ in range(count):
        points: list[tuple[int, ...]] = [()] * len(tables)
        for place in chance.sample(range(len(tables)), len(tables)):
            sql = question.format(t=tables[place], x=f"{90 + next(_numbers) / 10**7:.7f}")
            points[place] = observers.points(sql, **terms)
        told.append(points)
    return told


def bound(points: Points) -> float:
    """The upper bound of the difference in these pairs."""
    first_later, second_later = _later(points)
    return _largest(first_later.sum(0), second_later.sum(0), len(points))


def _later(points: Points) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Of each pair, and each observer and point, 1 where the first table alone was seen after it; and the second."""
    later = np.greater.outer(np.asarray(points), POINTS)  # pair, table, observer, point
    first, second = (later[:, table].reshape(len(points), -1) for table in (0, 1))
    return (first & ~second).astype(float), (second & ~first).astype(float)


def _largest(plus: npt.NDArray[np.float64], minus: npt.NDArray[np.float64], count: int) -> float:
    """The largest upper bound of a difference, by how often of so many pairs either table alone was seen later; the
    last axis is of observers and points."""
    high, low = _clopper_pearson(count, 0.05 / plus.shape[-1] / 2)
    plus, minus = plus.astype(int), minus.astype(int)
    return float(np.maximum(high[plus] - low[minus], high[minus] - low[plus]).max())


@lru_cache
def _clopper_pearson(count: int, level: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The upper and the lower bounds of a probability by how often it was seen, each wrong with the level's chance."""
    seen = np.arange(count + 1)
    high = np.append(stats.beta.isf(level, seen[:-1] + 1, count - seen[:-1]), 1.0)
    low = np.append(0.0, stats.beta.ppf(level, seen[1:], count - seen[1:] + 1))
    return high, low


def of_equal_tables(points: Points, seed: int = 0) -> float:
    """The largest bound of runs of two equal tables, as these pairs tell it."""
    first_later, second_later = _later(points)
    turned = (np.random.default_rng(seed).random((TURNS, len(points))) < 0.5).astype(float)
    plus, minus = (
        turned @ other + (1 - turned) @ one for one, other in ((first_later, second_later), (second_later, first_later))
    )  # whole numbers, exactly
    return _largest(plus, minus, len(points))


def differs(points: Points) -> bool:
    """Whether one table's answers are seen at other points of the grid than the other's."""
    return bound(points) >= of_equal_tables(points) + ALLOWED

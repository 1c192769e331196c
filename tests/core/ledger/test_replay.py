"""The same question is answered with the same numbers for nothing; any other one is drawn anew and pays."""

import os
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.ledger import Ledger
from dpsql.errors import BudgetExceeded, InvalidArgument
from dpsql.plan.expressions import Vector
from dpsql.release.release import ReleasedValues
from dpsql.session.cache.released_text import from_bytes, to_bytes
from tests.core.ledger import checks
from tests.core.ledger.checks import COUNT, fork, needs_fork, session, values


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "pid": np.arange(60) % 20,
            "city": ["a", "b", "c"] * 20,
            "age": np.arange(60),
            "income": np.arange(60) / 4,
            "vip": [True, False, False] * 20,
            "day": pd.to_datetime(["2020-01-01", "2020-02-01", "2021-01-01"] * 20),
        }
    )


WORDS: dict[str, Any] = {
    "version": "1",
    "bounds": {"age": (0, 50), "income": (0.0, 10.0)},
    "keys": {"city": ["a", "b"]},
}
BASE: dict[str, Any] = {
    "sql": "SELECT city, COUNT(*) AS n, AVG(income) FROM t WHERE age > :low AND income < 9.5 GROUP BY city",
    "params": {"low": 3},
    "epsilon": 0.5,
    "delta": 1e-9,
}


def asker(path: Path | None, *, words: dict[str, Any] | None = None, name: str = "t", **more: Any) -> dpsql.Session:
    budget = more.pop("budget", Budget(10**6, 1e-3))
    return dpsql.Session({name: dpsql.Table(frame(), **(words or WORDS))}, budget=budget, ledger=path, **more)


def ask(asked: dpsql.Session, **more: Any) -> Any:
    call = {**BASE, **more}
    return asked.query(call.pop("sql"), **call)


def charges(asked: dpsql.Session) -> int:
    return len(asked.ledger())


SAME: dict[str, dict[str, Any]] = {
    "once more": {},
    "white space": {
        "sql": "SELECT\n city ,COUNT( * )\tAS n,AVG(income)FROM t\nWHERE age>:low AND income<9.5 GROUP  BY city"
    },
    "case of keywords": {
        "sql": "select city, count(*) as n, avg(income) from t where age > :low and income < 9.5 group by city"
    },
    "case of names": {
        "sql": "SELECT City, COUNT(*) AS n, AVG(INCOME) FROM T WHERE AGE > :low AND Income < 9.5 GROUP BY city"
    },
    "comments": {"sql": "/* again */ " + BASE["sql"] + " -- and again"},
    "a semicolon": {"sql": BASE["sql"] + ";"},
    "parentheses": {"sql": BASE["sql"].replace("age > :low", "((age) > (:low))")},
    "quotes": {"sql": BASE["sql"].replace("city", '"city"')},
    "another number of digits": {"sql": BASE["sql"].replace("9.5", "9.50")},
    "epsilon as a fraction": {"epsilon": Fraction(1, 2)},
    "epsilon of the text": {
        "sql": BASE["sql"].replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5)", 1)
    },
    "options in order": {
        "sql": BASE["sql"].replace(
            "SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, delta = 1e-9)", 1
        )
    },
    "options in another order": {
        "sql": BASE["sql"].replace(
            "SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1e-9, epsilon = 0.5)", 1
        )
    },
    "order of the rows": {"sql": BASE["sql"] + " ORDER BY n"},
    "a NumPy number": {"params": {"low": np.int64(3)}},
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_question_costs_nothing(tmp_path: Path, name: str):
    path = tmp_path / "a.ledger"
    with asker(path) as asked:
        told = ask(asked)
        before = path.read_bytes()
        again = ask(asked, **SAME[name])
        assert charges(asked) == 1
        assert path.read_bytes() == before
    for _ in range(2):
        with asker(path) as asked:
            later = ask(asked, **SAME[name])
            assert charges(asked) == 1
            for each in (again, later):
                expected, found = told.to_pandas(), each.to_pandas()
                if name != "order of the rows":
                    assert values(each) == values(told)
                assert sorted(map(repr, found.values.tolist())) == sorted(map(repr, expected.values.tolist()))


def _next(number: float) -> float:
    return float(np.nextafter(number, 100))


OTHER: dict[str, dict[str, Any]] = {
    "another value": {"params": {"low": 4}},
    "a real value": {"params": {"low": 3.0}},
    "no value": {"params": {"low": None}},
    "a constant of a bit more": {"sql": BASE["sql"].replace("9.5", repr(_next(9.5)))},
    "a whole constant": {"sql": BASE["sql"].replace("9.5", "9")},
    "less epsilon": {"epsilon": 0.49999999999999994},
    "more epsilon": {"epsilon": 0.6},
    "rho": {"epsilon": None, "rho": Fraction(1, 8)},
    "strategy": {"strategy": "split"},
    "mechanism": {"mechanism": "gaussian", "delta": 1e-6},
    "another condition": {"sql": BASE["sql"].replace("age > ", "age >= ")},
    "another column": {"sql": BASE["sql"].replace("income <", "age <")},
    "another aggregate": {"sql": BASE["sql"].replace("AVG", "SUM")},
    "no group": {"sql": "SELECT COUNT(*) AS n, AVG(income) FROM t WHERE age > :low AND income < 9.5"},
    "one condition less": {"sql": BASE["sql"].replace("AND income < 9.5", "")},
    "own epsilons": {"sql": BASE["sql"].replace("COUNT(*)", "COUNT(*, epsilon => 0.1)")},
    "other bounds in the text": {"sql": BASE["sql"].replace("AVG(income)", "AVG(CLAMP(income, 0, 9))")},
}


@pytest.mark.parametrize("name", OTHER)
def test_another_question_pays(tmp_path: Path, name: str):
    path = tmp_path / "a.ledger"
    with asker(path) as asked:
        ask(asked)
        ask(asked, **OTHER[name])
        assert charges(asked) == 2
        ask(asked, **OTHER[name])
        ask(asked)
        assert charges(asked) == 2


def test_parameters_of_every_type_are_told_apart(tmp_path: Path):
    """1 and 1.0; 0.0 and -0.0; whole numbers that are one as reals; texts that look alike; NULL."""
    path = tmp_path / "a.ledger"
    sets = [
        ("income < :p", [1, 1.0, _next(1.0), 0, 0.0, -0.0, None, 2**53, 2**53 + 1, float(2**53)]),
        ("vip = :p", [True, False, None]),
        ("city = :p", ["1", "a", "A", "a ", "", "é", "e\u0301", None]),
        ("day < :p", [date(2020, 1, 1), datetime(2020, 1, 1, 0, 0, 0, 1), None]),
    ]
    with asker(path) as asked:
        paid = 0
        for condition, several in sets:
            for value in several:
                sql = f"SELECT COUNT(*) FROM t WHERE {condition}"
                asked.query(sql, epsilon=1, params={"p": value})
                paid += 1
                assert charges(asked) == paid, f"{condition} {value!r} was taken for an earlier one"
                asked.query(sql, epsilon=1, params={"p": value})
                assert charges(asked) == paid, f"{condition} {value!r} paid twice"
    with asker(path) as asked:
        for condition, several in sets:
            for value in several:
                asked.query(f"SELECT COUNT(*) FROM t WHERE {condition}", epsilon=1, params={"p": value})
        assert charges(asked) == paid


DECLARED: dict[str, dict[str, Any]] = {
    "version": {"version": "2"},
    "version as a number": {"version": 1},
    "bounds": {"bounds": {"age": (0, 50), "income": (0.0, _next(10.0))}},
    "bounds of a filter's column": {"bounds": {"age": (0, 51), "income": (0.0, 10.0)}},
    "keys": {"keys": {"city": ["a", "b", "c"]}},
    "order of keys": {"keys": {"city": ["b", "a"]}},
    "types": {"types": {"age": "real"}},
    "nullable": {"nullable": {"income": False}},
    "partition": {"partition": "city"},
}


@pytest.mark.parametrize("name", DECLARED)
def test_other_declarations_pay(tmp_path: Path, name: str):
    path = tmp_path / "a.ledger"
    with asker(path) as asked:
        told = ask(asked)
    with asker(path, words={**WORDS, **DECLARED[name]}) as asked:
        ask(asked)
        changed = 1 if name == "version as a number" and charges(asked) == 1 else 2
        assert charges(asked) == changed
    with asker(path) as asked:
        assert values(ask(asked)) == values(told)
        assert charges(asked) == changed


@pytest.mark.parametrize("more", [{"max_rows": 2}, {"max_groups": 1, "max_rows": 3}])
def test_other_limits_pay(tmp_path: Path, more: dict[str, Any]):
    path = tmp_path / "a.ledger"
    words = {**WORDS, "unit": "pid", "max_rows": 1}
    with asker(path, words=words) as asked:
        ask(asked)
    with asker(path, words={**words, **more}) as asked:
        ask(asked)
        assert charges(asked) == 2


def test_another_table_pays(tmp_path: Path):
    path = tmp_path / "a.ledger"
    with asker(path) as asked:
        ask(asked)
    with asker(path, name="u") as asked:
        ask(asked, sql=BASE["sql"].replace("FROM t", "FROM u"))
        assert charges(asked) == 2


def test_another_ledger_pays(tmp_path: Path):
    """Other neighbours want another ledger; its answers are its own."""
    with asker(tmp_path / "a.ledger") as one, asker(tmp_path / "b.ledger", neighbours="bounded") as other:
        ask(one)
        ask(other)
        assert charges(one) == charges(other) == 1


@pytest.mark.parametrize("path", [None, "a.ledger"])
def test_fresh_pays_and_the_last_answer_is_given_again(tmp_path: Path, path: str | None):
    file = None if path is None else tmp_path / path
    with asker(file) as asked:
        drawn = [ask(asked, fresh=True) for _ in range(4)]
        assert charges(asked) == 4
        assert len({repr(values(each)) for each in drawn}) > 1
        assert values(ask(asked)) == values(drawn[-1])
        if file:
            with asker(file) as other:
                assert values(ask(other)) == values(drawn[-1])
                last = ask(other, fresh=True)
            assert values(ask(asked)) == values(last)
        assert charges(asked) == (5 if file else 4)
        with pytest.raises(InvalidArgument):
            ask(asked, fresh=1)


def test_without_a_version_only_within_a_session(tmp_path: Path):
    path = tmp_path / "a.ledger"
    words = {key: said for key, said in WORDS.items() if key != "version"}
    with asker(path, words=words) as one, asker(path, words=words) as other:
        told = ask(one)
        assert values(ask(one)) == values(told)
        assert charges(one) == 1
        ask(other)
        assert charges(one) == 2
        assert values(ask(one)) == values(told)
    assert [line["kind"] for line in checks.texts(path)] == ["unit", "charge", "charge"]  # nothing was kept


def test_a_joined_table_without_a_version(tmp_path: Path):
    path = tmp_path / "a.ledger"
    public = pd.DataFrame({"k": ["a", "b"], "w": [1, 2]})
    for number, words in enumerate(({}, {}, {"version": "x"}, {"version": "x"})):
        tables = {
            "t": dpsql.Table(frame(), **WORDS),
            "pub": dpsql.Table(public, public=True, unique=["k"], **words),
        }
        with dpsql.Session(tables, budget=Budget(100), ledger=path) as asked:
            asked.query("SELECT COUNT(*) FROM t JOIN pub ON city = k WHERE w > 1", epsilon=1)
            assert charges(asked) == min(number + 1, 3)


def test_a_replay_where_the_budget_is_used_up(tmp_path: Path):
    with asker(tmp_path / "a.ledger", budget=Budget(0.5, 1e-6)) as asked:
        told = ask(asked, delta=0)
        with pytest.raises(BudgetExceeded):
            ask(asked, delta=0, fresh=True)
        assert values(ask(asked, delta=0)) == values(told)


@needs_fork
def test_replayed_in_another_process(tmp_path: Path):
    path = tmp_path / "a.ledger"
    with asker(path) as asked:
        told = ask(asked)

        def elsewhere() -> list[Any]:
            with asker(path) as other:
                return [values(ask(other)), charges(other)]

        assert checks.fork_to_say(elsewhere).said() == [values(told), 1]
        checks.check_forks(tmp_path)


@needs_fork
def test_a_crash_between_the_charge_and_the_answer_pays_again(tmp_path: Path):
    path = tmp_path / "a.ledger"
    asker(path).close()

    def crash(_: int) -> None:
        with pytest.MonkeyPatch.context() as patch, asker(path) as asked:
            patch.setattr(Ledger, "keep", lambda *_: os._exit(1))
            ask(asked)

    for number in range(1, 4):
        fork(crash).read()
        assert len(checks.charges(path)) == number
    with asker(path) as asked:
        told = ask(asked)
        assert charges(asked) == 4
        assert values(ask(asked)) == values(told)


# Answers as bytes

TEXTS = ["", "a", "é", "e\u0301", "\0", "\n\t\\\"'", "\u2028", "\U0001f600", "\ud800", "x" * 5000, "NULL", "nan"]
REALS = [0.0, -0.0, float("inf"), -float("inf"), 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, -1e-300, float(2**53)]
WHOLE = [0, 1, -1, 2**62, -(2**62), 2**53 + 1, 2**63 - 1, -(2**63)]


def _bits(vector: Vector) -> Any:
    cells = vector.values.tobytes() if vector.values.dtype != object else vector.values.tolist()
    return vector.values.dtype, vector.values.shape, cells, None if vector.valid is None else vector.valid.tolist()


def _objects(cells: list[Any]) -> Any:
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


@pytest.mark.parametrize(
    "cells",
    [
        _objects(TEXTS),
        np.array(REALS),
        np.array(WHOLE),
        np.array([True, False]),
        np.array([], dtype=np.int64),
        _objects([]),
    ],
    ids=["texts", "reals", "whole numbers", "booleans", "none", "no texts"],
)
@pytest.mark.parametrize("valid", [None, True, False])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_keys_and_values_come_back_to_the_last_bit(cells: Any, valid: bool | None, count: int):
    number = len(cells)
    marks = None if valid is None else np.array([(i % 2 == 0) == valid for i in range(number)], dtype=bool)
    numbers = np.resize(np.array([*REALS, float("nan")]), (count, number)).astype(float)
    released = ReleasedValues((Vector(cells, marks), Vector(np.arange(number))), numbers)
    again = from_bytes(to_bytes(released))
    assert [_bits(key) for key in again.keys] == [_bits(key) for key in released.keys]
    assert again.values.shape == numbers.shape
    assert again.values.tobytes() == numbers.tobytes()
    assert again.groups == released.groups


def _many(cells: list[Any], dtype: Any) -> pd.DataFrame:
    from tests.core.checks import series

    return pd.DataFrame({"k": series([cell for cell in cells for _ in range(30)], dtype)})


GROUPS: dict[str, tuple[list[Any], Any, dict[str, Any]]] = {
    "text": ([*TEXTS, None], object, {"types": {"k": "text"}}),
    "integer": ([*[each for each in WHOLE if abs(each) < 2**62], None], "Int64", {}),
    "real": ([*REALS, None], "float64", {}),
    "boolean": ([True, False, None], "boolean", {}),
    "date": ([date(2020, 1, 1), date(1, 1, 1), date(9999, 12, 31), None], object, {"types": {"k": "date"}}),
    "timestamp": ([datetime(2020, 1, 1, 1, 2, 3, 4), datetime(1900, 1, 1), None], "datetime64[us]", {}),
    "category": (["a", "b", None], "category", {}),
    "listed text": (["a", "b", None], object, {"types": {"k": "text"}, "keys": {"k": ["b", "a", None]}}),
    "listed real": ([0.5, -0.0, None], "float64", {"keys": {"k": [0.5, 1, 0.0]}}),
    "listed boolean": ([True, None], "boolean", {"keys": {"k": [False, True]}}),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups_of_every_type_in_a_later_session(tmp_path: Path, name: str):
    cells, dtype, words = GROUPS[name]
    path, sql = tmp_path / "a.ledger", "SELECT k, COUNT(*), COUNT(k) FROM t GROUP BY k"

    def opened() -> dpsql.Session:
        made = dpsql.Table(_many(cells, dtype), version="1", **words)
        return dpsql.Session({"t": made}, budget=Budget(10**6, 0.9), ledger=path, accountant="basic")

    with opened() as asked:
        told = asked.query(sql, epsilon=50, delta=1e-3)
        assert len(told.to_pandas()) >= 2
        assert values(asked.query(sql, epsilon=50, delta=1e-3)) == values(told)
        assert charges(asked) == 1
    with opened() as asked:
        later = asked.query(sql, epsilon=50, delta=1e-3)
        assert charges(asked) == 1
        assert values(later) == values(told)
        assert later.to_pandas().dtypes.equals(told.to_pandas().dtypes)
        strip: Callable[[Any], list[str]] = lambda result: str(result).splitlines()[:-1]  # noqa: E731
        assert strip(later)[: len(told.to_pandas())] == strip(told)[: len(told.to_pandas())]


def test_nothing_is_shown_of_groups_that_are_hidden(tmp_path: Path):
    """The kept answer holds what was released: no group below the threshold."""
    path = tmp_path / "a.ledger"
    made = dpsql.Table(pd.DataFrame({"k": ["seen"] * 500 + [checks.SECRET]}), version="1")
    with dpsql.Session({"t": made}, budget=Budget(10, 1e-6), ledger=path) as asked:
        asked.query("SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1, delta=1e-9)
    assert checks.SECRET.encode() not in path.read_bytes()
    assert b"seen" in path.read_bytes()


def test_in_memory_it_is_the_same():
    with session() as asked:
        told = asked.query(COUNT, epsilon=1)
        assert values(asked.query("select count(*) from people", epsilon=1)) == values(told)
        assert len(asked.ledger()) == 1

"""Keys of questions: the same after a class is renamed, in every version, and never those of another question.

`golden/keys.json` holds the keys of QUESTIONS. Where one changes, every ledger that people keep pays again for
questions of that kind: so a form may be added, and one that is there stays. DPSQL_REGEN=1 writes the file anew.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, make_dataclass, replace
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsql
from dpsql.core.ledger.budget import Budget
from dpsql.core.unit import Neighbours
from dpsql.plan import functions
from dpsql.plan.aggregates import AGGREGATES
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.nodes import Filter, Scan
from dpsql.release.release import Release
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.session.cache import canonical_forms
from dpsql.session.cache import question_key as canonical
from dpsql.session.cache.canonical_forms import FORMS, NAMES
from dpsql.session.cache.canonical_text import NoCanonicalForm, Writer, form
from dpsql.session.prepare import Terms, prepare

GOLDEN = Path(__file__).parent / "golden" / "keys.json"
REGEN = os.environ.get("DPSQL_REGEN") == "1"

WINDOWED = """
SELECT COUNT(*), SUM(total) FROM (
    SELECT *, LAG(total, 2, 0) IGNORE NULLS OVER (PARTITION BY person, state ORDER BY oid DESC NULLS FIRST) AS before,
        MAX(total) OVER (PARTITION BY person ORDER BY total RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS most
    FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY person ORDER BY oid) <= 2) WHERE before > 1 AND most > 2"""

PEOPLE = pd.DataFrame(
    {
        "id": [1, 2, 3, 4],
        "age": [20, 30, 40, 50],
        "pay": [1.5, 2.5, 3.0, 4.0],
        "sex": ["f", "m", "f", "m"],
        "city": ["a", "b", "c", "a"],
        "vip": [True, False, True, False],
        "born": pd.to_datetime(["2000-01-01"] * 4),
    }
)
ORDERS = pd.DataFrame({"oid": [1, 2, 3], "person": [1, 1, 2], "total": [5, 6, 7], "state": ["x", "y", "x"]})
WORDS: dict[str, Any] = {
    "version": "1",
    "bounds": {"age": (0, 100), "pay": (0.0, 10.0)},
    "keys": {"sex": ["f", "m"]},
}
ORDERED: dict[str, Any] = {
    "version": "1",
    "unit": "person -> people.id",
    "unique": ["oid"],
    "max_rows": 4,
    "max_groups": 2,
    "bounds": {"total": (0, 9)},
    "keys": {"state": ["x", "y"]},
}
LISTS = dpsql.Table(pd.DataFrame({"k": ["a", "b"], "w": [1, 2]}), public=True, unique=["k"], version="1")
OPTIONS = "WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon=1, delta=1e-6, group_selection_strategy=TRUNCATED_GEOMETRIC)"

TABLES: dict[str, dict[str, Any]] = {
    "rows": {"people": dpsql.Table(PEOPLE, **WORDS), "lists": LISTS},
    "units": {
        "people": dpsql.Table(PEOPLE, **WORDS, unit="id", unique=["id"], max_rows=1),
        "orders": dpsql.Table(ORDERS, **ORDERED),
        "lists": LISTS,
    },
    "cities": {
        "people": dpsql.Table(PEOPLE, **WORDS, unit="city", unique=["id"], max_rows=9),
        "orders": dpsql.Table(ORDERS, **ORDERED),
    },
    "weights": {"people": dpsql.Table(PEOPLE, **WORDS, unit="id", max_rows=8)},
    "auto": {"people": dpsql.Table(PEOPLE, version="1", bounds="auto", keys={"sex": ["f", "m"]})},
    "parts": {"people": dpsql.Table(PEOPLE, **WORDS, partition="city")},
    "visits": {
        "visits": dpsql.Table(
            pd.DataFrame({"person": [1, 1, 2], "day": [0, 1, 0]}),
            version="1",
            unit="person",
            max_groups=7,
            max_rows_per_group=1,
            keys={"day": list(range(7))},
        )
    },
    "written": {
        "visits": dpsql.Table(
            pd.DataFrame({"day": ["05/02/2024"]}, dtype="str"),
            version="1",
            types={"day": "date"},
            format={"day": ["%d/%m/%Y", "%d.%m.%y"]},
            null={"day": "-"},
        )
    },
}


@dataclass(frozen=True)
class Asked:
    """A question about some of the tables."""

    sql: str
    tables: str = "rows"
    neighbours: str = "unbounded"
    terms: tuple[Any, ...] = (1, 1e-6, None)
    how: tuple[tuple[str, str], ...] = ()
    params: tuple[tuple[str, Any], ...] = ()


AT = "FROM people WHERE"
BY = "FROM people GROUP BY"
QUESTIONS: dict[str, Asked] = {
    "count": Asked("SELECT COUNT(*) FROM people"),
    "windows": Asked(WINDOWED, "units"),
    "count of one changed": Asked("SELECT COUNT(*) FROM people WHERE age > 3", neighbours="bounded"),
    "count of values": Asked("SELECT COUNT(age) FROM people"),
    "declared formats": Asked("SELECT COUNT(day) FROM visits", "written"),
    "filter": Asked(f"SELECT COUNT(*) {AT} age > 30 AND city = 'a' OR vip"),
    "groups that an earlier answer shows": Asked(
        f"SELECT city, COUNT(*) {AT} city IN (SELECT city FROM people GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2) "
        "AND age > (SELECT AVG(age) FROM people) GROUP BY city"
    ),
    "parameter": Asked(f"SELECT COUNT(*) {AT} age > :low", params=(("low", 30),)),
    "dates": Asked(
        f"SELECT COUNT(*) {AT} born > TIMESTAMP '1999-01-01 00:00:00' AND CAST(born AS DATE) < DATE '2009-01-01'"
    ),
    "constants": Asked(f"SELECT COUNT(*) {AT} pay < 1.25 AND vip = TRUE AND NULLIF(city, 'b') IS NULL"),
    "sum": Asked("SELECT SUM(age), SUM(pay) FROM people"),
    "stairs": Asked("SELECT SUM(age) FROM people", terms=(8, None, None)),
    "average": Asked("SELECT AVG(age) FROM people"),
    "public groups": Asked(f"SELECT sex, COUNT(*), AVG(pay) {BY} sex"),
    "keys that stand together": Asked(f"SELECT age // 10, age > 33, COUNT(*) {BY} age // 10, age > 33"),
    "several keys": Asked(f"SELECT sex, vip, SUM(age) {BY} sex, vip"),
    "hidden groups": Asked(f"SELECT city, COUNT(*) {BY} city"),
    "hidden groups of units": Asked("SELECT city, COUNT(*) FROM people GROUP BY city", tables="units"),
    "selected groups": Asked(f"SELECT {OPTIONS} city, COUNT(*) {BY} city", tables="units"),
    "keys by weights": Asked("SELECT city FROM people GROUP BY city", tables="weights"),
    "gaussian": Asked(f"SELECT sex, COUNT(*) {BY} sex", how=(("mechanism", "gaussian"),)),
    "paid by rho": Asked(f"SELECT sex, COUNT(*) {BY} sex", terms=(None, None, 0.5)),
    "split": Asked("SELECT COUNT(*), SUM(age), SUM(pay) FROM people", how=(("strategy", "split"),)),
    "own epsilon": Asked("SELECT COUNT(*), AVG(age, epsilon => 0.25) FROM people"),
    "variance": Asked("SELECT VAR_POP(age), STDDEV_SAMP(pay) FROM people"),
    "variance of a sample": Asked("SELECT VAR_SAMP(age), STDDEV_POP(pay) FROM people"),
    "covariance": Asked("SELECT COVAR_POP(age, pay), CORR(age, pay) FROM people"),
    "regression": Asked("SELECT REGR_SLOPE(pay, age), REGR_INTERCEPT(pay, age), REGR_R2(pay, age) FROM people"),
    "covariance of a sample": Asked(f"SELECT sex, COVAR_SAMP(age, pay) {BY} sex", neighbours="bounded"),
    "quantiles together": Asked("SELECT QUANTILE(age, 0.25), MEDIAN(age) FROM people"),
    "median": Asked("SELECT MEDIAN(age), QUANTILE(pay, 0.25) FROM people"),
    "ends": Asked("SELECT MIN(age), MAX(pay) FROM people"),
    "mode": Asked("SELECT MODE(sex) FROM people"),
    "most frequent": Asked("SELECT APPROX_TOP_K(sex, 2) FROM people"),
    "different": Asked("SELECT COUNT(DISTINCT age) FROM people"),
    "different units": Asked("SELECT COUNT(DISTINCT person) FROM orders", tables="units"),
    "rollup": Asked(f"SELECT sex, vip, COUNT(*), AVG(age) {BY} ROLLUP (sex, vip)"),
    "cube by rho": Asked(f"SELECT sex, vip, COUNT(*) {BY} CUBE (sex, vip)", terms=(None, None, 0.5)),
    "chosen bounds": Asked("SELECT AVG(pay), SUM(age) FROM people", tables="auto"),
    "chosen bounds by rho": Asked("SELECT AVG(pay) FROM people", tables="auto", terms=(None, None, 0.5)),
    "units": Asked("SELECT state, COUNT(*), SUM(total) FROM orders GROUP BY state", tables="units"),
    "a path": Asked("SELECT COUNT(*) FROM orders", tables="cities"),
    "totals of units": Asked(
        "SELECT WITH DIFFERENTIAL_PRIVACY SUM(total, contribution_bounds_per_group => (0, 20)), AVG(total), COUNT(*) "
        "FROM orders",
        tables="units",
    ),
    "join": Asked("SELECT COUNT(*) FROM people JOIN lists ON city = k WHERE w > 1"),
    "a table of constants": Asked(
        "SELECT COUNT(*) FROM people JOIN (VALUES ('a', 1), ('b', 2)) AS v(k, w) ON city = k WHERE w > 1"
    ),
    "left join": Asked("SELECT COUNT(w) FROM people LEFT JOIN lists ON city = k"),
    "join of people": Asked(
        "SELECT COUNT(*), SUM(total) FROM orders JOIN people ON person = id WHERE age > 3", tables="units"
    ),
    "union": Asked(
        "SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT id FROM people) WHERE age > 2", tables="units"
    ),
    "in a list": Asked("SELECT COUNT(*) FROM people WHERE city IN (SELECT k FROM lists WHERE w > 1)"),
    "exists": Asked(
        "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM orders WHERE person = id AND total > 5)",
        tables="units",
    ),
    "of each unit": Asked(
        "SELECT COUNT(*), AVG(CLAMP(t, 0, 20)) FROM (SELECT person, SUM(total) AS t FROM orders GROUP BY person)",
        tables="units",
    ),
    "functions": Asked("SELECT SUM(CLAMP(ROUND(pay * 2 + ABS(age)), 0, 50)) FROM people WHERE UPPER(city) LIKE 'A%'"),
    "case": Asked("SELECT SUM(CASE WHEN vip THEN age ELSE 0 END) FROM people"),
    "filtered": Asked("SELECT COUNT(*), COUNT(*) FILTER (WHERE vip) FROM people"),
    "bands": Asked("SELECT COUNT_IF(age < 20), COUNT_IF(age >= 30), COUNT(*) FROM people"),
    "people in many groups": Asked("SELECT day, COUNT(*) FROM visits GROUP BY day", tables="visits"),
    "partition": Asked("SELECT COUNT(*) FROM people WHERE city = 'a'", tables="parts"),
    "public": Asked("SELECT COUNT(*), MAX(w) FROM lists"),
}


def release_of(asked: Asked) -> Release:
    opened = dpsql.Session(TABLES[asked.tables], budget=Budget(10**6, 0.5), neighbours=asked.neighbours)
    terms = Terms.of(*asked.terms)
    relation = Neighbours(asked.neighbours)
    made = prepare(asked.sql, opened.catalog, relation, terms, params=dict(asked.params) or None, **dict(asked.how))
    return made.releases[-1]


def key_of(asked: Asked) -> str:
    made = release_of(asked)
    assert canonical.explain(made) == ""
    key = canonical.canonical(replace(made), None, None)
    assert key is not None
    return key


def check_golden_keys(_: Path | None = None) -> None:
    found = {name: key_of(asked) for name, asked in QUESTIONS.items()}
    if REGEN:
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    held = json.loads(GOLDEN.read_text(encoding="utf-8"))
    changed = [name for name in QUESTIONS if held.get(name) != found[name]]
    assert not changed, f"questions of these kinds would be paid again by everybody: {changed}"
    assert set(held) == set(found)


def test_golden_keys():
    check_golden_keys()


def test_golden_keys_from_before_aliases_were_numbered():
    held = json.loads(GOLDEN.with_name("keys_by_aliases.json").read_text(encoding="utf-8"))
    found = {name: canonical.canonical_by_aliases(release_of(QUESTIONS[name]), None, None) for name in held}
    assert found == held


def test_no_two_questions_have_one_key():
    keys = [key_of(asked) for asked in QUESTIONS.values()]
    assert len(set(keys)) == len(keys)


def _held(value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Everything that a value is made of."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    yield value
    if isinstance(value, tuple | list):
        for each in value:
            yield from _held(each, seen)
    elif type(value) in FORMS:
        for read in FORMS[type(value)].words.values():
            yield from _held(read(value), seen)


def test_the_questions_are_of_all_kinds():
    """So that the golden keys speak of every form and every word."""
    seen: dict[int, Any] = {}
    kept = [canonical._measured(release_of(asked)) for asked in QUESTIONS.values()]
    every = [each for measured in kept for each in _held(measured, seen)]
    missing = [kind.__name__ for kind in FORMS if kind not in set(map(type, every))]
    assert not missing, f"no question with {missing}"
    members = {each for each in every if isinstance(each, Enum)}
    assert set(NAMES) - members <= {Type.OTHER, Type.OBJECT}
    functions = {each for each in every if isinstance(each, AggregateFunction)}
    assert set(AGGREGATES.values()) - functions <= {AGGREGATES["VAR_SAMP"]}


def test_forms_list_every_field():
    """A field that tells questions apart is written out; one that does not is left out by name."""
    for kind, held in FORMS.items():
        assert held.unlisted(kind) == [], f"{kind.__name__} has fields that its form does not know"
        if not held.enough:
            gone = (held.reads | held.apart) - {each.name for each in fields(kind)}
            assert not gone, f"{kind.__name__} has no {gone} any more"
    tags = [held.tag for held in FORMS.values()]
    assert len(set(tags)) == len(tags)
    kinds = {type(each) for each in NAMES}
    for kind in kinds:
        names = [NAMES[each] for each in kind]
        assert len(set(names)) == len(names), f"{kind.__name__}: a member without a tag, or two with one"


def check_renamed_classes(_: Path | None = None) -> None:
    """Names of classes and of enumerations' members are in no key."""
    before = {name: key_of(asked) for name, asked in QUESTIONS.items()}
    names = {kind: (kind.__name__, kind.__qualname__, kind.__module__) for kind in FORMS}
    try:
        for number, kind in enumerate(FORMS):
            kind.__name__, kind.__qualname__, kind.__module__ = f"Renamed{number}", f"Other{number}", "elsewhere"
        after = {name: key_of(asked) for name, asked in QUESTIONS.items()}
    finally:
        for kind, said in names.items():
            kind.__name__, kind.__qualname__, kind.__module__ = said
    assert before == after


def test_renamed_classes():
    check_renamed_classes()


def _twin(kind: type, forms: dict[type, Any]) -> type:
    """The class under another name, every field under another name too, and its form, edited as a renaming would be."""
    held = FORMS[kind]
    twin = make_dataclass(f"New{kind.__name__}", [(f"new_{each.name}", Any) for each in fields(kind)], frozen=True)
    words = {
        word: (lambda value, name=name: getattr(value, f"new_{name}"))
        for word, name in ((word, _field(kind, word)) for word in held.words)
    }
    forms[twin] = replace(
        held,
        words=words,
        reads=frozenset(f"new_{n}" for n in held.reads),
        apart=frozenset(f"new_{n}" for n in held.apart),
    )
    return twin


def _field(kind: type, word: str) -> str:
    """The field that is written under a word."""
    probe = type("Probe", (), {"__getattr__": lambda _self, name: name})()
    return FORMS[kind].words[word](probe)  # type: ignore[return-value]


def _renamed(value: Any, twins: dict[type, type]) -> Any:
    if isinstance(value, tuple):
        return tuple(_renamed(each, twins) for each in value)
    if is_dataclass(value) and type(value) in twins:
        said = {f"new_{each.name}": _renamed(getattr(value, each.name), twins) for each in fields(value)}
        return twins[type(value)](**said)
    return value


@pytest.mark.parametrize("name", QUESTIONS)
def test_renamed_fields(name: str):
    """Every class and every field renamed at once, and their forms with them: the digest is the same."""
    forms: dict[type, Any] = dict(FORMS)
    twins = {kind: _twin(kind, forms) for kind in FORMS if not FORMS[kind].enough}
    measured = canonical._measured(release_of(QUESTIONS[name]))
    renamed = _renamed(measured, twins)
    assert Writer(forms, NAMES).digest(renamed) == Writer(FORMS, NAMES).digest(measured)


def check_every_fact_counts(_: Path | None = None) -> None:
    """Each word of each value in a question, said otherwise, makes another key."""
    told: set[tuple[type, str]] = set()
    for asked in QUESTIONS.values():
        measured = canonical._measured(release_of(asked))
        honest = Writer(FORMS, NAMES).digest(measured)
        for value in list(_held(measured, {})):
            kind = type(value)
            if kind not in FORMS:
                continue
            for word in _WORDS[kind]:
                if (kind, word) in told:
                    continue
                told.add((kind, word))
                assert _with_another(kind, word, value, measured) != honest, f"{kind.__name__}.{word} does not count"
    assert len(told) > 120


_WORDS = {kind: tuple(held.words) for kind, held in FORMS.items()}


def _with_another(kind: type, word: str, value: Any, measured: Any) -> bytes:
    """The digest where this one value says something else under that word."""
    held = FORMS[kind]
    if word not in held.words:
        return Writer(FORMS, NAMES).digest(measured)
    read = held.words[word]
    words = {**held.words, word: lambda each: ("something", "else") if each is value else read(each)}
    return Writer({**FORMS, kind: replace(held, words=words)}, NAMES).digest(measured)


def test_every_fact_counts():
    check_every_fact_counts()


BASE = Asked("SELECT sex, COUNT(*), AVG(pay) FROM people WHERE age > 30 GROUP BY sex")
VARIED: dict[str, Asked] = {
    "base": BASE,
    "epsilon": replace(BASE, terms=(1.0000001, 1e-6, None)),
    "by rho": replace(BASE, terms=(None, None, 0.5)),
    "neighbours": replace(BASE, neighbours="bounded"),
    "gaussian": replace(BASE, how=(("mechanism", "gaussian"),)),
    "split": replace(BASE, how=(("strategy", "split"),)),
    "a constant": replace(BASE, sql=BASE.sql.replace("30", "31")),
    "a real constant": replace(BASE, sql=BASE.sql.replace("30", "30.0")),
    "another sign": replace(BASE, sql=BASE.sql.replace(">", ">=")),
    "another column": replace(BASE, sql=BASE.sql.replace("age", "id")),
    "another aggregate": replace(BASE, sql=BASE.sql.replace("AVG", "SUM")),
    "another argument": replace(BASE, sql=BASE.sql.replace("COUNT(*)", "COUNT(vip)")),
    "another key": replace(BASE, sql=BASE.sql.replace("sex", "vip")),
    "no filter": replace(BASE, sql=BASE.sql.replace("WHERE age > 30", "")),
    "units": replace(BASE, tables="units"),
}


def test_questions_that_differ_in_one_thing():
    keys = {name: key_of(asked) for name, asked in VARIED.items()}
    assert len(set(keys.values())) == len(keys), keys


@pytest.mark.parametrize(
    "sql",
    [
        "select  sex , count( * ), avg( pay ) from PEOPLE where age > 30 group by sex",
        f"{BASE.sql} ORDER BY 2 LIMIT 1",
        f"SELECT * FROM ({BASE.sql}) ORDER BY 1",
        "SELECT people.sex, COUNT(*), AVG(people.pay) FROM people WHERE people.age > 30 GROUP BY people.sex",
    ],
)
def test_the_same_question_in_other_words(sql: str):
    assert key_of(replace(BASE, sql=sql)) == key_of(BASE)


def test_analysts_and_sessions_are_told_apart():
    made = release_of(BASE)
    mores = [(None, None), ("a", None), (None, "a"), ("a", "b"), ("b", "a"), ("None", None), ("ab", ""), ("a", "b", "")]
    keys = [canonical.canonical(made, *more) for more in mores]
    assert len(set(keys)) == len(keys)
    assert all(key is not None and key.startswith("2:") and len(key) == 66 for key in keys)


def check_unknown_kinds_have_no_key(_: Path | None = None) -> None:
    """A kind of node that has no form has no key, so that nothing can be taken for it, or it for anything."""

    @dataclass(frozen=True)
    class Sieve:
        input: Any
        predicate: Any

    made = release_of(QUESTIONS["filter"])
    source = made.query.plan.input
    odd = replace(made, query=replace(made.query, plan=replace(made.query.plan, input=Sieve(source, True))))
    assert canonical.canonical(odd, None, None) is None
    assert "Sieve" in canonical.explain(odd)
    for value in (object(), {1: 2}, {1}, b"bytes", complex(1), type, len, [object()]):
        with pytest.raises(NoCanonicalForm):
            Writer(FORMS, NAMES).digest(value)


def test_unknown_kinds_have_no_key():
    check_unknown_kinds_have_no_key()


def check_a_name_is_one_function(_: Path | None = None) -> None:
    """Kernels see the type of their result and their arguments, which are in the key, and nothing else. So a function's
    name has to decide its kernel: another function under the same name has no key."""
    rooms = [room for room in vars(functions).values() if isinstance(room, ModuleType)]
    listed = [each for room in rooms for each in vars(room).get("FUNCTIONS", ())]
    assert len(listed) == len({each.name for each in listed}) == len(functions.FUNCTIONS) > 150
    for function in functions.FUNCTIONS.values():
        assert Writer(FORMS, NAMES).digest(function)
        twin = replace(function, kernel=lambda _kind, vectors: vectors[0])
        with pytest.raises(NoCanonicalForm):
            Writer(FORMS, NAMES).digest(twin)
        with pytest.raises(NoCanonicalForm):
            Writer(FORMS, NAMES).digest(replace(function, name="another"))
    digests = {Writer(FORMS, NAMES).digest(each) for each in functions.FUNCTIONS.values()}
    assert len(digests) == len(functions.FUNCTIONS)


def test_a_name_is_one_function():
    check_a_name_is_one_function()


def test_a_class_that_is_like_another_has_no_part_in_its_form():
    """A class is told by itself, not by its name, nor by what it inherits from."""

    class Scan2(Scan):
        pass

    Scan2.__name__ = "Scan"
    (scan,) = [each for each in _held(canonical._measured(release_of(BASE)), {}) if type(each) is Scan][:1]
    with pytest.raises(NoCanonicalForm):
        Writer(FORMS, NAMES).digest(Scan2(scan.table, scan.name))


def test_a_member_without_a_tag_has_no_key(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(canonical_forms.NAMES, Type.REAL)
    made = replace(release_of(QUESTIONS["average"]))
    assert canonical.canonical(made, None, None) is None


def test_an_aggregate_that_the_language_does_not_have_has_no_key(monkeypatch: pytest.MonkeyPatch):
    """Its tag tells nothing of it: the language may have another one by its name."""
    made = replace(release_of(QUESTIONS["average"]))
    monkeypatch.setitem(AGGREGATES, "AVG", replace(AGGREGATES["AVG"], tag="another"))
    assert canonical.canonical(made, None, None) is None


def test_tags_of_aggregates_are_their_own():
    tags = [each.tag for each in AGGREGATES.values()]
    assert len(set(tags)) == len(tags)


def test_what_has_no_key_is_answered_and_paid_each_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(canonical_forms.FORMS, Filter)
    with dpsql.Session(TABLES["rows"], budget=Budget(10)) as asked:
        for number in range(1, 3):
            assert not asked.query("SELECT COUNT(*) FROM people WHERE age > 77", epsilon=1).replayed  # type: ignore[union-attr]
            assert len(asked.ledger()) == number


def test_a_field_that_nobody_listed_counts():
    """Until its form knows it: never the key of a question that differs in it."""
    old = ColumnSchema("a", Type.INTEGER)
    wider = make_dataclass("ColumnSchema", [("more", Any, 0)], bases=(ColumnSchema,), frozen=True)
    forms = {**FORMS, wider: FORMS[ColumnSchema]}
    digests = {Writer(forms, NAMES).digest(wider(name="a", type=Type.INTEGER, more=k)) for k in (0, 1)}
    assert len({*digests, Writer(FORMS, NAMES).digest(old)}) == 3


def test_a_word_that_came_later_changes_no_older_key():
    @dataclass(frozen=True)
    class Old:
        a: int

    @dataclass(frozen=True)
    class New:
        a: int
        b: int = 0

    old, new = form("thing", "a"), form("thing", "a", "b", later={"b": 0})
    writer = Writer({Old: old, New: new}, {})
    assert writer.digest(Old(1)) == writer.digest(New(1)) != writer.digest(New(1, 2))


def check_pieces_are_told_apart(_: Path | None = None) -> None:
    values = [
        "ab",
        ("a", "b"),
        ("ab",),
        (("a",), "b"),
        ("a", ("b",)),
        ("", "ab"),
        ((), "ab"),
        ("ab", ()),
        ("a", "", "b"),
    ]
    values += [
        1,
        True,
        1.0,
        "1",
        Fraction(1),
        Fraction(1, 2),
        "1/2",
        0.5,
        0.0,
        -0.0,
        0,
        None,
        "None",
        "none",
        False,
        "",
    ]
    values += [float("inf"), float("nan"), "inf", 2**70, Type.TEXT, "text", "word text", Neighbours.BOUNDED]
    digests = [Writer(FORMS, NAMES).digest(value) for value in values]
    assert len(set(digests)) == len(values)


def test_pieces_are_told_apart():
    check_pieces_are_told_apart()


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.fractions()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


def _told(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_told, value))
    return type(value).__name__, value.hex() if isinstance(value, float) else repr(value)


@given(VALUES, VALUES)
def test_two_values_have_one_digest_only_if_they_are_one(one: Any, other: Any):
    same = Writer(FORMS, NAMES).digest(one) == Writer(FORMS, NAMES).digest(other)
    assert same == (_told(one) == _told(other))


def test_tables_have_their_version_in_the_key():
    other = {"people": dpsql.Table(PEOPLE, **{**WORDS, "version": "2"}), "lists": LISTS}
    asked = dpsql.Session(other, budget=Budget(10**6, 0.5))
    made = prepare(BASE.sql, asked.catalog, Neighbours.UNBOUNDED, Terms.of(*BASE.terms)).releases[0]
    assert canonical.canonical(made, None, None) != key_of(BASE)
    assert FORMS[TableSchema].words["version"](TableSchema("t", (), version="7")) == "7"

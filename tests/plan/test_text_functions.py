"""The functions of texts against DuckDB's own, and the SQL that they are emitted as against their kernels.

Differences from DuckDB, on purpose:
- CONCAT, CONCAT_WS, ||, REPLACE, REPEAT, LPAD and RPAD give NULL for a result of more than 16,384 characters.
- REVERSE turns round code points, as LENGTH counts them (DuckDB keeps graphemes whole, there alone).
- LIKE and ILIKE with an escape character: NULL for a pattern that ends in it, for one that is not ASCII, and for more
  than one character (DuckDB fails, or for some texts is FALSE); NULL for ESCAPE '%', with which DuckDB's answers
  contradict each other ('a' LIKE 'a%%' is TRUE).
- A place or length that SUBSTRING or LEFT refuse (beyond 32 bits) is NULL, as is padding with nothing. LPAD and RPAD
  take any INTEGER (DuckDB refuses BIGINT).
- Only texts are concatenated; DuckDB turns anything into text.

Case mappings are the same for every code point; the time that LIKE takes is not exponential, as it can be in DuckDB.
"""

import itertools
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dpsql.plan.evaluation import constant
from dpsql.plan.expressions import DTYPES, Fact, Function, Literal, Vector
from dpsql.plan.functions import patterns, text
from dpsql.plan.functions.letters import lower, upper
from dpsql.plan.functions.patterns import matcher
from dpsql.plan.functions.text import LONGEST, MOST_CHARACTERS
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval, point

OURS = {function.name: function for function in (*text.FUNCTIONS, *patterns.FUNCTIONS)}
SHORT = [None, "", " ", "a", "b", "aaaa", "abc", "abcABC", "é", "e\u0301", "👩\u200d👧 🇩🇪", "a\0b", "\0"]
TEXTS = [
    *SHORT, "  padded  ", "\ttab\n", "naïve ÉTÉ ß", "İıſK", "ΑΣ ας ᾳ ŉ ǰ", "\u00a0\u3000x\u2003", "%", "_", "a%b_c!",
    "\\", "x" * 16_383, "x" * 16_384, "é" * 16_384, "x" * 16_385, "ab" * 20_000,
]  # fmt: skip
INTEGERS = [
    None, 0, 1, 2, 3, 5, -1, -2, -3, -100, 100, 8_192, 16_384, 16_385, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1,
    2**32 - 1, 2**32, -(2**32), -(2**32) - 1, 2**62, 2**63 - 1, -(2**63),
]  # fmt: skip
PATTERNS = [
    None, "", "%", "%%", "_", "__", "_%", "%_", "a", "A", "é", "É", "a%", "%a", "%a%", "a%a", "%b%c%", "a_c", "%_b%",
    "a%b_c!", "!", "!!", "a!", "!%", "!_%", "a!%%", "%!!", "\\", "\\%", "a\0b", "a_b", "%\0%", "%é", "İ", "%_\u0301%",
]  # fmt: skip
ESCAPES = [None, "", "!", "a", "A", "_", "%", "\\", "\0", "!!", "é", "İ"]
CELLS: dict[str, tuple[Type, list[Any]]] = {
    "x": (Type.TEXT, TEXTS), "y": (Type.TEXT, SHORT), "z": (Type.TEXT, [*SHORT, "x" * 16_384]),
    "n": (Type.INTEGER, INTEGERS), "m": (Type.INTEGER, INTEGERS),
    "p": (Type.TEXT, PATTERNS), "e": (Type.TEXT, ESCAPES),
}  # fmt: skip


class Case(NamedTuple):
    """A function, how users write it, and the columns that it reads, in the order of its arguments."""

    name: str
    written: str
    columns: str
    domain: str = "TRUE"
    """Where DuckDB has an answer that holds here too."""
    null_elsewhere: bool = True


BUILT = "length({}) <= 16384"
PLACES = "{} BETWEEN -4294967296 AND 4294967295"
PADDED = "n <= 16384 AND (y <> '' OR n <= length(x))"
CASES = [
    Case("upper", "UPPER(x)", "x"),
    Case("split_part", "SPLIT_PART(x, y, n)", "xyn"),
    Case("lower", "LOWER(x)", "x"),
    Case("trim", "TRIM(x)", "x"),
    Case("trim", "TRIM(x, y)", "xy"),
    Case("trim", "TRIM(BOTH y FROM x)", "xy"),
    Case("ltrim", "LTRIM(x)", "x"),
    Case("ltrim", "TRIM(LEADING y FROM x)", "xy"),
    Case("rtrim", "RTRIM(x)", "x"),
    Case("rtrim", "RTRIM(x, y)", "xy"),
    Case("length", "LENGTH(x)", "x"),
    Case("length", "CHAR_LENGTH(x)", "x"),
    Case("length", "LEN(x)", "x"),
    Case("strpos", "STRPOS(x, y)", "xy"),
    Case("strpos", "INSTR(x, y)", "xy"),
    Case("strpos", "POSITION(y IN x)", "xy"),
    Case("substring", "SUBSTRING(x, n)", "xn", PLACES.format("n")),
    Case("substring", "SUBSTR(x, n, m)", "xnm", f"{PLACES.format('n')} AND {PLACES.format('m')}"),
    Case("substring", "SUBSTRING(x FROM n FOR m)", "xnm", f"{PLACES.format('n')} AND {PLACES.format('m')}"),
    Case("left", "LEFT(x, n)", "xn", "n <= 4294967295"),
    Case("right", "RIGHT(x, n)", "xn"),
    Case("reverse", "REVERSE(x)", "x", "length_grapheme(x) = length(x)", null_elsewhere=False),
    Case("text_join", "x || z", "xz", BUILT.format("x || z")),
    Case("concat", "CONCAT(x)", "x", BUILT.format("CONCAT(x)")),
    Case("concat", "CONCAT(x, y, z)", "xyz", BUILT.format("CONCAT(x, y, z)")),
    Case("concat_ws", "CONCAT_WS(z, x, y)", "zxy", BUILT.format("CONCAT_WS(z, x, y)")),
    Case("concat_ws", "CONCAT_WS(y, x)", "yx", BUILT.format("CONCAT_WS(y, x)")),
    Case("replace", "REPLACE(x, y, p)", "xyp", BUILT.format("REPLACE(x, y, p)")),
    Case("repeat", "REPEAT(x, n)", "xn", "CAST(length(x) AS HUGEINT) * n <= 16384"),
    Case("lpad", "LPAD(x, CAST(CASE WHEN n < -1 THEN -1 ELSE n END AS INTEGER), y)", "xny", PADDED),
    Case("rpad", "RPAD(x, CAST(CASE WHEN n < -1 THEN -1 ELSE n END AS INTEGER), y)", "xny", PADDED),
    Case("starts_with", "STARTS_WITH(x, y)", "xy"),
    Case("starts_with", "PREFIX(x, y)", "xy"),
    Case("starts_with", "x ^@ y", "xy"),
    Case("ends_with", "ENDS_WITH(x, y)", "xy"),
    Case("ends_with", "SUFFIX(x, y)", "xy"),
    Case("contains", "CONTAINS(x, y)", "xy"),
    Case("like", "x LIKE p", "xp"),
    Case("ilike", "x ILIKE p", "xp"),
    Case("like", "x LIKE p ESCAPE e", "xpe", "(p, e) IN (FROM well_formed)"),
    Case("ilike", "x ILIKE p ESCAPE e", "xpe", "strlen(e) <= 1 AND (lower(p), lower(e)) IN (FROM well_formed)"),
]
IDS = [case.written for case in CASES]


def well_formed(pattern: str, escape: str) -> bool:
    """Whether the escape character, if any, is ASCII and not %, and is always followed by another one."""
    if escape:
        while escape in pattern:
            pattern = pattern[pattern.index(escape) + 1 :]
            if not pattern:
                return False
            pattern = pattern[1:]
    return len(escape.encode()) <= 1 and escape != "%"


WELL_FORMED = [
    pair
    for pair in {(fold(p), fold(e)) for fold in (str, lower) for p in PATTERNS[1:] for e in ESCAPES[1:]}
    if well_formed(*pair)
]


@pytest.fixture(scope="module")
def connection():
    """DuckDB with a table for each set of columns that a case reads: all combinations of their cells, by `row`."""
    with duckdb.connect() as made:
        made.execute("CREATE TABLE well_formed (p VARCHAR, e VARCHAR)")
        made.executemany("INSERT INTO well_formed VALUES (?, ?)", WELL_FORMED)
        for columns in {case.columns for case in CASES}:
            parts, row = [], "0"
            for name in columns:
                kind, cells = CELLS[name]
                stored = "VARCHAR" if kind is Type.TEXT else "BIGINT"
                made.execute(
                    f"CREATE OR REPLACE TABLE one_{name} AS SELECT unnest(?::{stored}[]) AS {name},"
                    f" unnest(range({len(cells)})) AS {name}_at", [cells],
                )  # fmt: skip
                row = f"({row}) * {len(cells)} + {name}_at"
                parts.append(f"one_{name}")
            made.execute(
                f"CREATE TABLE t_{columns} AS SELECT {row} AS row, {', '.join(columns)} FROM {', '.join(parts)}"
            )
        yield made


def vector(kind: Type, cells: Sequence[Any], blank: Any = None) -> Vector:
    """A block; a NULL's cell holds `blank`."""
    fill = blank if blank is not None else "" if kind is Type.TEXT else 0
    values: Any = np.empty(len(cells), dtype=DTYPES[kind])
    values[:] = [fill if cell is None else cell for cell in cells]
    return Vector(values, np.array([cell is not None for cell in cells], dtype=bool))


@cache
def block(columns: str) -> list[Vector]:
    rows = list(itertools.product(*(CELLS[name][1] for name in columns)))
    kinds = [CELLS[name][0] for name in columns]
    return [vector(kind, cells) for kind, cells in zip(kinds, zip(*rows, strict=True), strict=True)]


def kinds_of(function: Function) -> list[tuple[Type, ...]]:
    """Every list of argument types that the function takes, of at most three arguments."""
    most = min(function.arity[1] or 3, 3)
    sizes = range(function.arity[0], most + 1)
    lists = itertools.chain.from_iterable(itertools.product(Type, repeat=size) for size in sizes)
    return [kinds for kinds in lists if function.type_of(kinds, [Fact()] * len(kinds)) is not None]


def result_type(function: Function, kinds: Sequence[Type]) -> Type:
    kind = function.type_of(kinds, [Fact()] * len(kinds))
    assert kind is not None
    return kind


def run(function: Function, vectors: Sequence[Vector]) -> list[Any]:
    """The cells that the kernel gives, None for NULL; it must not warn, and must give the right length and dtype."""
    kind = result_type(function, [Type.TEXT if each.values.dtype == object else Type.INTEGER for each in vectors])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        result = function.kernel(kind, vectors)
    assert result.values.dtype == DTYPES[kind]
    assert result.values.shape == result.where_valid().shape == (len(vectors[0]),)
    assert kind is not Type.TEXT or all(type(cell) is str for cell in result.values)
    return [cell if valid else None for cell, valid in zip(result.values.tolist(), result.where_valid(), strict=True)]


def one(name: str, *cells: Any) -> Any:
    """The function of a single row."""
    kinds = [Type.INTEGER if isinstance(cell, int) else Type.TEXT for cell in cells]
    return run(OURS[name], [vector(kind, [cell]) for kind, cell in zip(kinds, cells, strict=True)])[0]


def differences(columns: str, ours: dict[int, Any], theirs: dict[int, Any]) -> list[Any]:
    """The first rows where the two are not the same, with both answers."""
    rows = list(itertools.product(*(CELLS[name][1] for name in columns)))
    wrong = [(rows[row], cell, theirs.get(row)) for row, cell in ours.items() if cell != theirs.get(row)]
    return [tuple(str(part)[:60] for part in each) for each in wrong[:5]]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_kernels_give_what_duckdb_gives(case: Case, connection: duckdb.DuckDBPyConnection):
    ours = run(OURS[case.name], block(case.columns))
    read = f"SELECT row, {case.written} FROM t_{case.columns} WHERE {case.domain}"
    theirs = dict(connection.execute(read).fetchall())
    assert len(theirs) > len(ours) / 8
    rows = range(len(ours)) if case.null_elsewhere else theirs
    assert differences(case.columns, {row: ours[row] for row in rows}, theirs) == []


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.parametrize("again", [False, True], ids=["emitted", "through sqlglot"])
def test_emitted_sql_gives_what_the_kernel_gives(case: Case, again: bool, connection: duckdb.DuckDBPyConnection):
    function = OURS[case.name]
    kinds = [CELLS[name][0] for name in case.columns]
    emitted = function.emit(kinds, result_type(function, kinds), list(case.columns))
    if again:
        emitted = sqlglot.parse_one(emitted, dialect="duckdb").sql(dialect="duckdb")
    theirs = dict(connection.execute(f"SELECT row, {emitted} FROM t_{case.columns}").fetchall())
    assert len(theirs) == len(block(case.columns)[0])
    assert differences(case.columns, dict(enumerate(run(function, block(case.columns)))), theirs) == []


@pytest.mark.parametrize("case", [case for case in CASES if OURS[case.name].syntax], ids=lambda case: case.written)
def test_the_parser_reads_what_the_record_says(case: Case):
    node = sqlglot.parse_one(f"SELECT {case.written}", dialect="duckdb").selects[0]
    if isinstance(node, exp.Anonymous):
        assert node.this.upper() in OURS[case.name].syntax
        found = node.expressions
    else:
        (form,) = [each for each in OURS[case.name].syntax if each.startswith(type(node).__name__ + "(")]
        names = form.removesuffix(")").split("(")[1].split(", ")
        parts = [node.args.get(name.removeprefix("*")) for name in names]
        found = [each for part in parts if part for each in (part if isinstance(part, list) else [part])]
    assert "".join(each.name for each in found) == case.columns


def test_every_function_is_tested_and_has_its_own_sql():
    assert {case.name for case in CASES} == set(OURS)
    assert all(function.sql and len(kinds_of(function)) in (1, 2, 3) for function in OURS.values())


@pytest.mark.parametrize(
    ("refused", "name", "cells"),
    [
        ("SUBSTRING('abc', 4294967296)", "substring", ("abc", 2**32)),
        ("SUBSTRING('abc', 1, -4294967297)", "substring", ("abc", 1, -(2**32) - 1)),
        ("LEFT('abc', 4294967296)", "left", ("abc", 2**32)),
        ("LPAD('abc', 4, '')", "lpad", ("abc", 4, "")),
        ("RPAD('abc', 4, '')", "rpad", ("abc", 4, "")),
        ("REPEAT('ab', 9223372036854775807)", "repeat", ("ab", 2**63 - 1)),
        ("'ab' LIKE 'a!' ESCAPE '!'", "like", ("ab", "a!", "!")),
        ("'a' LIKE 'a' ESCAPE 'é'", "like", ("a", "a", "é")),
        ("'a' ILIKE 'a' ESCAPE '!!'", "ilike", ("a", "a", "!!")),
    ],
)
def test_what_duckdb_refuses_is_null(refused: str, name: str, cells: tuple[Any, ...]):
    with pytest.raises(duckdb.Error, match="outside|Insufficient|escape|string of size"):
        duckdb.sql(f"SELECT {refused}").fetchall()
    assert one(name, *cells) is None


@pytest.mark.parametrize(
    ("there", "name", "cells", "here"),
    [
        ("REVERSE(chr(101) || chr(769) || 'a')", "reverse", ("e\u0301a",), "a\u0301e"),
        ("'a' LIKE 'a%%' ESCAPE '%'", "like", ("a", "a%%", "%"), None),
        ("'b' LIKE 'a!' ESCAPE '!'", "like", ("b", "a!", "!"), None),
        ("length(REPEAT('a', 16385))", "repeat", ("a", 16_385), None),
    ],
)
def test_listed_differences_are_still_ones(there: str, name: str, cells: tuple[Any, ...], here: object):
    ((answer,),) = duckdb.sql(f"SELECT {there}").fetchall()
    assert answer is not None
    assert answer != here
    assert one(name, *cells) == here


def test_case_of_every_code_point_is_duckdbs(connection: duckdb.DuckDBPyConnection):
    codes = [code for code in range(1, sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    read = "SELECT i, upper(chr(i)), lower(chr(i)) FROM (SELECT unnest(?::INTEGER[]) AS i)"
    theirs = connection.execute(read, [codes]).fetchall()
    assert len(theirs) == len(codes)
    assert [each for each in theirs if (upper(chr(each[0])), lower(chr(each[0]))) != each[1:]] == []
    assert sum(large != chr(code) for code, large, _ in theirs) > 1_400


# Facts, NULL, blanks and blocks.


@pytest.mark.parametrize("name", OURS)
def test_facts_hold_for_every_row(name: str):
    function = OURS[name]
    for case in (each for each in CASES if each.name == name):
        rows = block(case.columns)
        known = [row.where_valid() for row in rows]
        kept = np.logical_and.reduce(known)
        facts = [Fact(nullable=False)] * len(rows)
        fact = function.fact_of(facts)
        found = run(function, [row.at(kept) for row in rows])
        assert fact.nullable or None not in found
        assert all(cell in fact.range for cell in found if isinstance(cell, int))
        assert function.fact_of([Fact(nullable=True)] * len(rows)).nullable


@pytest.mark.parametrize(("name", "size"), [("substring", 2), ("substring", 3), ("left", 2)])
def test_places_known_to_be_small_give_no_null(name: str, size: int):
    def nullable(*places: Interval) -> bool:
        return OURS[name].fact_of([Fact(nullable=False), *(Fact(each, nullable=False) for each in places)]).nullable

    inside, outside = Interval(-(2**32), 2**32 - 1), point(2**32)
    assert not nullable(*[inside] * (size - 1))
    assert nullable(*[inside] * (size - 2), outside)
    assert nullable(*[inside] * (size - 2), Interval(0, 2**32))
    assert one(name, "abc", *[2**32 - 1] * (size - 1)) is not None


def test_counts_never_leave_their_range(monkeypatch: pytest.MonkeyPatch):
    assert OURS["length"].fact_of([Fact()]).range == OURS["strpos"].fact_of([Fact()] * 2).range == Interval(0, LONGEST)
    monkeypatch.setattr(text, "LONGEST", 3)  # a text of 2^32 characters is too large for a test
    assert [one("length", "abcdef"), one("strpos", "abcdef", "f"), one("strpos", "abcdef", "b")] == [3, 3, 2]


@pytest.mark.parametrize("name", OURS)
def test_empty_blocks_null_cells_and_constants(name: str):
    function = OURS[name]
    for kinds in kinds_of(function):
        assert run(function, [vector(kind, []) for kind in kinds]) == []
        strange = [vector(kind, [None] * 3, "%_!" if kind is Type.TEXT else 2**63 - 1) for kind in kinds]
        assert run(function, strange) == [{"concat": ""}.get(name)] * 3
        cells = [Literal("a%b", Type.TEXT) if kind is Type.TEXT else Literal(2, kind) for kind in kinds]
        (expected,) = run(function, [constant(cell, 1) for cell in cells])
        assert run(function, [constant(cell, 3) for cell in cells]) == [expected] * 3
        for place, kind in enumerate(kinds):  # one NULL among constants, and constants beside a column
            nulls = [constant(Literal(None, kind) if at == place else cell, 3) for at, cell in enumerate(cells)]
            if name not in ("concat", "concat_ws") or (name == "concat_ws" and place == 0):
                assert run(function, nulls) == [None] * 3
            column = vector(kind, [cells[place].value, None, cells[place].value])
            mixed = [column if at == place else constant(cell, 3) for at, cell in enumerate(cells)]
            assert run(function, mixed)[::2] == [expected] * 2
        nothing = [vector(kind, [None, None, None]) for kind in kinds]
        assert run(function, [each.at(slice(1)) for each in nothing]) == [{"concat": ""}.get(name)]


def test_null_arguments_are_skipped_by_the_two_that_skip_them():
    assert one("concat", None, "a", None) == "a"
    assert one("concat_ws", ",", None, "a", "", None) == "a,"
    assert one("concat_ws", None, "a") is None
    half = Vector(np.broadcast_to(np.array(["a"], dtype=object), 2), np.array([True, False]))
    assert run(OURS["concat"], [half, half]) == ["aa", ""]


@pytest.mark.parametrize("name", OURS)
def test_other_types_are_refused(name: str):
    function = OURS[name]
    assert all(set(kinds) <= {Type.TEXT, Type.INTEGER} for kinds in kinds_of(function))
    assert function.type_of((Type.INTEGER,) * function.arity[0], [Fact()] * function.arity[0]) is None


# Memory and depth.

GREEDY = [
    ("repeat", ("x" * 10_000, 2**60)),
    ("repeat", ("x", 10**9)),
    ("lpad", ("x", 10**9, "y")),
    ("rpad", ("x", 10**9, "y")),
    ("replace", ("x" * 16_000, "x", "y" * 100_000)),
    ("replace", ("x" * 16_000, "x", "y" * 16_384)),
]


@pytest.mark.parametrize(("name", "cells"), GREEDY, ids=lambda each: each if isinstance(each, str) else "")
def test_what_is_too_long_is_never_built(name: str, cells: tuple[Any, ...], connection: duckdb.DuckDBPyConnection):
    tracemalloc.start()
    assert one(name, *cells) is None
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    kinds = [Type.INTEGER if isinstance(cell, int) else Type.TEXT for cell in cells]
    emitted = OURS[name].emit(kinds, Type.TEXT, [f"c{i}" for i in range(len(cells))])
    selected = ", ".join(f"? AS c{i}" for i in range(len(cells)))
    with duckdb.connect(config={"memory_limit": "500MB", "threads": "1"}) as small:
        small.execute(f"CREATE TABLE t AS SELECT {selected} FROM range(2000)", list(cells))
        assert small.execute(f"SELECT count(*), count({emitted}) FROM t").fetchall() == [(2000, 0)]


@pytest.mark.parametrize("name", ["concat", "concat_ws", "text_join"])
def test_texts_that_are_too_long_together_are_not_joined(name: str):
    separator = [","] if name == "concat_ws" else []
    parts = ["x" * 8_192, "x" * (8_192 - len(separator))]
    assert len(one(name, *separator, *parts)) == MOST_CHARACTERS
    tracemalloc.start()
    assert one(name, *separator, parts[0], "x" * 50_000_000) is None
    assert tracemalloc.get_traced_memory()[1] < 60_000_000  # the argument, but not a second text of its size
    tracemalloc.stop()


def test_emitted_sql_grows_with_the_depth_alone(connection: duckdb.DuckDBPyConnection):
    def nested(depth: int) -> str:
        emitted = "x"
        for _ in range(depth):
            emitted = OURS["replace"].emit([Type.TEXT] * 3, Type.TEXT, [emitted, "'a'", "'b'"])
            emitted = OURS["text_join"].emit([Type.TEXT] * 2, Type.TEXT, ["'a'", emitted])
        return emitted

    assert len(nested(40)) - len(nested(20)) == len(nested(60)) - len(nested(40))
    ((answer,),) = connection.execute(f"SELECT {nested(40)} FROM (SELECT 'a' AS x)").fetchall()
    assert answer == "a" + "b" * 40


def test_columns_named_as_the_parameter_of_a_lambda_are_not_mixed_up(connection: duckdb.DuckDBPyConnection):
    joined = OURS["text_join"].emit([Type.TEXT] * 2, Type.TEXT, ["s", "x"])
    replaced = OURS["replace"].emit([Type.TEXT] * 3, Type.TEXT, ["x", "s", joined])
    table = "(SELECT 'b' AS s, 'abc' AS x) AS s"
    read = f"SELECT {replaced}, count(*) FROM {table} WHERE {joined} <> '' GROUP BY {replaced}"
    assert connection.execute(read).fetchall() == [("ababcc", 1)]


# LIKE.


def holds(pattern: str, escape: str, subject: str) -> bool | None:
    """LIKE by the set of all places that can be reached: slow, and simple. None for a malformed pattern."""
    places, signs = {0}, iter(pattern)
    for sign in signs:
        wanted: str | None = sign
        if sign == escape:
            wanted = next(signs, None)
            if wanted is None:
                return None
        elif sign == "%":
            places = {later for place in places for later in range(place, len(subject) + 1)}
            continue
        fits = sign == "_" and sign != escape
        places = {place + 1 for place in places if place < len(subject) and (fits or subject[place] == wanted)}
    return len(subject) in places


@settings(max_examples=1500, deadline=None)
@given(
    st.text("ab%!é\n", max_size=12) | st.text("ab", max_size=8),
    st.text("ab%_!é\n", max_size=8) | st.lists(st.text("ab_", max_size=3), max_size=5).map("%".join),
    st.sampled_from(["", "!", "a", "_"]),
)
def test_like_is_what_its_definition_says(subject: str, pattern: str, escape: str):
    test = matcher(pattern, escape)
    assert (test and test(subject)) == holds(pattern, escape, subject)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=8), st.text(max_size=8))
def test_like_of_any_text(subject: str, pattern: str):
    test = matcher(pattern)
    assert test is not None
    assert test(subject) == holds(pattern, "", subject)
    literal = "".join("!" + sign for sign in subject)
    exact = matcher(literal, "!")
    assert exact is not None
    assert exact(subject)
    assert exact(pattern) == (subject == pattern)


PATHOLOGICAL = """
from dpsql.plan.functions.patterns import matcher
for part in ("%a", "%a%_", "%_a", "%aa_a"):
    assert not matcher(part * 2000 + "%b")("a" * 16000)
assert not matcher("%" + "a_" * 4000 + "b%")("a" * 16000)
assert not matcher("%" + "a" * 8000 + "b%c")("a" * 16000)
assert matcher("%a" * 8000 + "%b")("a" * 16000 + "b")
"""


def test_patterns_made_for_backtracking_take_little_time():
    subprocess.run([sys.executable, "-c", PATHOLOGICAL], timeout=60, check=True)


def test_patterns_that_differ_from_row_to_row():
    subjects = [f"name {i}" for i in range(5_000)]
    own = [f"%_e {i % 1500}" for i in range(5_000)]
    columns = [vector(Type.TEXT, subjects), vector(Type.TEXT, own)]
    expected = [i % 1500 == i for i in range(5_000)]
    assert run(OURS["like"], columns) == run(OURS["ilike"], columns) == expected

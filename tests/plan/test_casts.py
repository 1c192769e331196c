"""Casts beside DuckDB's own TRY_CAST.

What differs from DuckDB, on purpose:
- there is no INTEGER beyond 64 bits with a sign: a cast to BIGINT, UBIGINT, HUGEINT or UHUGEINT is NULL there;
- a DECIMAL is held as REAL, so arithmetic on it is in floats, and a number with a point is REAL: CAST(2.5 AS INT) is 2
  (of a REAL halves go to the even integer), where DuckDB, which takes 2.5 for a DECIMAL, says 3;
- FLOAT is rounded to 32 bits but stays REAL: as text it is written with the digits of 64; of a text it is rounded by
  way of DOUBLE, and NULL where it is beyond the largest FLOAT (infinity there);
- TRUE as DECIMAL(1, 1) is NULL (0.1 there);
- texts of UNREAD and UNREAD_TIMES are NULL here; a date with a blank after it is a TIMESTAMP here (NULL there).
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from sqlglot import exp, parse_one

from dpsql.plan.expressions import Call, Column, Expr, Fact, Literal, Vector, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.functions.casts import WIDTHS, cast_name
from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN, INT64, Interval
from tests.plan.records import as_number, column, computed, oracle, selected
from tests.plan.samples import LARGEST, SAMPLES, STORED, day, moment, randoms

I, R, B, T, D, M = Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT, Type.DATE, Type.TIMESTAMP  # noqa: E741
INTEGERS = (
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "UHUGEINT",
)
TARGETS = (*INTEGERS, "DOUBLE", "FLOAT", "REAL", "BOOLEAN", "VARCHAR", "TEXT", "DATE", "TIMESTAMP", "DATETIME")
DECIMALS = ("DECIMAL(4, 1)", "DECIMAL(18, 3)", "DECIMAL(38, 5)", "DECIMAL(10, 0)", "NUMERIC(2, 2)")


def parsed(target: str) -> tuple[str, list[int]]:
    """The parser's word for a type, and its sizes."""
    node = parse_one(f"CAST(x AS {target})", dialect="duckdb").args["to"]
    assert isinstance(node, exp.DataType)
    return node.this.name, [int(each.name) for each in node.expressions]


def cast(source: Type, target: str, arg: Expr) -> Expr | None:
    """The cast as an expression; the argument itself where there is nothing to do."""
    word, sizes = parsed(target)
    name = cast_name(source, word)
    if not name:
        return arg if name == "" else None
    expr = call(FUNCTIONS[name], arg, *(Literal(size, I) for size in sizes))
    assert expr is not None
    return expr


def of_value(value: Any, kind: Type, target: str) -> Any:
    """The cast of one value, by the kernel."""
    expr = cast(kind, target, Column("a0", kind, Fact()))
    assert isinstance(expr, Call)
    return computed(expr, [(value,)])[0]


# Which casts there are.


@pytest.mark.thinned(4)
@pytest.mark.parametrize("target", TARGETS + DECIMALS)
@pytest.mark.parametrize("source", list(STORED))
def test_each_cast_gives_its_type(source: Type, target: str):
    word = parsed(target)[0]
    result = next((k for k in (D, M, R, B, T) if word in GIVES[k]), I)
    expr = cast(source, target, Column("x", source, Fact()))
    if source.temporal:
        fits = result.temporal or result is T
    elif source is T:
        fits = True
    else:
        fits = not result.temporal
    assert (expr is not None) == fits
    assert expr is None or expr.type is result
    assert cast_name(Type.OTHER, word) is None


GIVES = {
    R: ("DOUBLE", "FLOAT", "DECIMAL"),
    B: ("BOOLEAN",),
    T: ("TEXT",),
    D: ("DATE",),
    M: ("TIMESTAMPNTZ",),
}


@pytest.mark.parametrize(
    ("source", "target"),
    [(I, "BIGINT"), (I, "HUGEINT"), (R, "DOUBLE"), (B, "BOOL"), (T, "STRING"), (D, "DATE"), (M, "DATETIME")],
)
def test_a_cast_to_its_own_type_is_none(source: Type, target: str):
    assert cast_name(source, parsed(target)[0]) == ""


@pytest.mark.parametrize(
    "target", ["TIME", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_NS", "BLOB", "UUID", "INTERVAL", "JSON"]
)
@pytest.mark.parametrize("source", list(STORED))
def test_types_that_are_not_of_the_language(source: Type, target: str):
    assert cast_name(source, parsed(target)[0]) is None


# Beside DuckDB.

UNREAD = re.compile(
    r"""
      .*[0-9]_[0-9].*            # 1_000
    | \s*[+-]?0[xXbB].*          # hexadecimal and binary
    | \s*\+[+-].*                # DOUBLE takes +-1
    | (?i:\s*[+-]?nan\s*)        # which is NULL
    | .*[eE][+-]?[0-9]{4,}\s*    # exponents of more than three digits
    | .*[0-9]{31,}.*             # and integers of more than thirty
    """,
    re.VERBOSE | re.DOTALL,
)
OFFSET = re.compile(r".*:[0-9.]+ ?[+-][0-9]{2}(:?[0-9]{2})?\s*", re.DOTALL)
"""DuckDB leaves offsets out; here a time is converted to UTC."""
UNREAD_TIMES = re.compile(
    r"""
      .*(?i:[a-z)])\s*              # 10:00 Europe/Paris, (BC), epoch, infinity
    | \s*-.*                         # years before 1
    | \s*0+[-/].*                    # and the year 0
    | \s*[0-9]{5,}-.*                # years after 9999
    """,
    re.VERBOSE | re.DOTALL,
)


def differs(source: Type, target: str, cell: Any, ours: Any, theirs: Any) -> bool:
    """Whether a result may differ from DuckDB's, for the reasons above."""
    if ours is None and target in ("BIGINT", "HUGEINT", "UBIGINT", "UHUGEINT") and theirs is not None:
        return not -(2**63) <= theirs < 2**63 or (source is T and bool(UNREAD.fullmatch(cell)))
    if source is B and target == "NUMERIC(2, 2)":
        return ours is None
    if source is not T or ours == theirs:
        return False
    if target == "BOOLEAN" and theirs is None:
        return cell != cell.strip()
    if target in ("TIMESTAMP", "DATETIME") and OFFSET.fullmatch(cell):
        return ours is not None
    if target in ("TIMESTAMP", "DATETIME") and re.fullmatch(r"\s*[0-9]+[-/][0-9]+[-/][0-9]+\s+", cell):
        return theirs is None
    if target in ("DATE", "TIMESTAMP", "DATETIME"):
        return UNREAD_TIMES.fullmatch(cell) is not None and ours is None
    if target in ("FLOAT", "REAL") and ours is None and theirs is not None and math.isinf(theirs):
        return True
    if "(" in target and ("e" in cell or "E" in cell):
        return ours is None
    if target.startswith("U") and cell.strip().startswith("-"):  # '-0.4' to the nearest is 0
        return ours == 0 and theirs is None
    if re.fullmatch(r"\s*[+-]?[0-9.]{19,}[eE]-[0-9]+\s*", cell) and target in INTEGERS:
        return theirs is None  # more digits before the point than the type has, but for the exponent
    return ours is None and UNREAD.fullmatch(cell) is not None


MORE_TEXTS = [
    "+1", "-0", "+", "-", "1.", ".5", "-.5", ".", "1e", "e5", "1e+", "15e-1", "1.5e1", "1_000", "1__0", "0x1F",
    "0b11", "1,000", "--1", "+-1", "1 2", "Infinity", "-INF", "+inf", "nan", "1e400", "-1e-400",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1d", "１", "٣", "\u00a01", "\v7\f", "1\x00",
    "00012", "0" * 50 + "5", "0.49999999999999999999999", "2.5000000000000000001", "-127.5", "-128.4", "-128.5",
    "255.49", "255.5", "-0.4", "32767.5", "1e9999999999", "TRUE", "yEs", "n", "F", "on", "off", "tr", " true", "1.0",
    "YEſ", "123456789123456789123456789e-18", "3.5e38", "1.4e-45", "0.285", "1.005", "99.949", "99.95", "999.95",
    "-999.95", "2020-1-5", "2020/01/05", "2020/1-5", "20-1-5", "1-1-1", "0000-01-01", "-0001-01-01", "10000-01-01",
    "2020-02-30", " 2020-01-05 ", "2020-01-05T10:00:00", "2020-01-05 10:00", "2020-01-05 10", "2020-01-05 1:2:3",
    "2020-01-05 24:00:00", "2020-01-05 23:59:60", "2020-01-05 10:00:00.", "2020-01-05 10:00:00Z",
    "2020-01-05 10:00:00+02", "2020-01-05 10:00 UTC", "2020-01-05T", "2020-01-05  10:00", "2020-01-05 T10:00",
    "2020-01-05TT10:00", "20200105", "2020-01", "epoch", "infinity", "2020-01-05 (BC)", "2020\\1\\5", "2020 1 5",
    "2020.01.05", "Jan 5 2020", "2020-13-01", "２020-01-05", "2020-01-05\u00a0", "2020-01-05\n10:00:00",
    "2020-01-05 10:00:00.0000000000001", "9999-12-31 23:59:59.9999999", "2020-01-05 10:60",
]  # fmt: skip


def plain(texts: list[str], target: str) -> list[Any]:
    rows = [(place, text) for place, text in enumerate(texts)]
    connection = oracle().cursor()
    connection.execute("CREATE TEMP TABLE more (k INTEGER, v VARCHAR)")
    connection.executemany("INSERT INTO more VALUES (?, ?)", rows)
    return [row[0] for row in connection.execute(f"SELECT {shown(target)} FROM more AS a0 ORDER BY k").fetchall()]


def shown(target: str) -> str:
    written = f"TRY_CAST(a0.v AS {target})"
    if target.startswith(("DECIMAL", "NUMERIC", "FLOAT", "REAL")):
        written = f"CAST({written} AS DOUBLE)"
    if target in ("DATE", "TIMESTAMP", "DATETIME"):
        limits = DAYS if target == "DATE" else MICROSECONDS
        kind = D if target == "DATE" else M
        return f"CASE WHEN NOT isfinite({written}) THEN {limits.upper + 1} ELSE {as_number(kind, written)} END"
    return written


@pytest.mark.thinned(4)
@pytest.mark.parametrize("target", TARGETS + DECIMALS)
@pytest.mark.parametrize("source", list(STORED))
def test_duckdbs_own_cast(source: Type, target: str):
    arg = column(source, [*SAMPLES[source], *(cell for cell in randoms(source) if cell not in SAMPLES[source])])
    expr = cast(source, target, arg.expr("a0"))
    if not isinstance(expr, Call):
        return
    cells = list(arg.cells)
    theirs = [row[0] for row in selected([arg], shown(target))]
    if source is T:
        theirs += plain(MORE_TEXTS, target)
        cells += MORE_TEXTS
    ours = computed(expr, [(cell,) for cell in cells])
    wrong = [
        f"{expr} of {cell!r} is {one!r}, in DuckDB {other!r}"
        for cell, one, other in zip(cells, ours, theirs, strict=True)
        if not near(one, other) and not differs(source, target, cell, one, other)
    ]
    assert not wrong, f"{len(wrong)} of {len(cells)}: " + "; ".join(wrong[:9])
    assert sum(one is not None for one in ours) > (len(cells) / 20 if source is not T and "(" not in target else 0)


def near(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, float) and math.isnan(theirs):
        return ours is None
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or abs(ours - theirs) <= 2 * math.ulp(ours)
    return type(ours) is type(theirs) and bool(ours == theirs)


# Values and facts as worked out.


@pytest.mark.parametrize(
    ("value", "kind", "target", "wanted"),
    [
        (2.5, R, "INT", 2),
        (-3.5, R, "INT", -4),
        ("2.5", T, "INT", 3),
        (127.5, R, "TINYINT", None),
        (-128.5, R, "TINYINT", -128),
        (-0.5, R, "UTINYINT", 0),
        (math.inf, R, "BIGINT", None),
        (2.0**62, R, "BIGINT", LARGEST),
        (2.0**62 + 1024, R, "HUGEINT", LARGEST + 1024),
        (2.0**63, R, "BIGINT", None),
        (2.0**63 - 1024, R, "BIGINT", 2**63 - 1024),
        (-(2.0**63), R, "BIGINT", -(2**63)),
        (2.0**63, R, "UBIGINT", None),
        (2**63 - 1, I, "UBIGINT", 2**63 - 1),
        ("9223372036854775807", T, "BIGINT", 2**63 - 1),
        ("9223372036854775808", T, "BIGINT", None),
        ("-9223372036854775808", T, "BIGINT", -(2**63)),
        ("-9223372036854775809", T, "HUGEINT", None),
        (-1, I, "UBIGINT", None),
        (300, I, "UTINYINT", None),
        (True, B, "INT", 1),
        ("1e400", T, "DOUBLE", math.inf),
        ("nan", T, "DOUBLE", None),
        (0.1, R, "FLOAT", 0.10000000149011612),
        (16_777_217, I, "FLOAT", 16_777_216.0),
        (9_007_199_791_611_905, I, "FLOAT", 9_007_200_328_482_816.0),  # not by way of DOUBLE
        (1e300, R, "FLOAT", None),
        (-math.inf, R, "FLOAT", -math.inf),
        (0.125, R, "DECIMAL(10, 2)", 0.13),
        (-0.125, R, "DECIMAL(10, 2)", -0.13),
        (99.95, R, "DECIMAL(3, 1)", None),
        (1000, I, "DECIMAL(4, 1)", None),
        (999, I, "DECIMAL(4, 1)", 999.0),
        (LARGEST, I, "DECIMAL(38, 5)", float(LARGEST)),
        (True, B, "DECIMAL(1, 1)", None),
        ("999.949", T, "DECIMAL(4, 1)", 999.9),
        ("999.95", T, "DECIMAL(4, 1)", None),
        ("1e2", T, "DECIMAL(4, 1)", None),
        (0.5, R, "BOOLEAN", True),
        (-0.0, R, "BOOLEAN", False),
        ("Yes", T, "BOOLEAN", True),
        (" yes", T, "BOOLEAN", True),
        (7, I, "TEXT", "7"),
        (1.0, R, "TEXT", "1.0"),
        (1e16, R, "TEXT", "1e+16"),
        (123_456_789.125, R, "TEXT", "123456789.125"),
        (False, B, "TEXT", "false"),
        (day("0987-06-05"), D, "TEXT", "0987-06-05"),
        (moment("2020-02-29 01:02:03.0405"), M, "TEXT", "2020-02-29 01:02:03.0405"),
        ("2020-02-30", T, "DATE", None),
        (" 2020-2-9 23:59:59", T, "DATE", day("2020-02-09")),
        ("2020-02-29T1:2:3.5", T, "TIMESTAMP", moment("2020-02-29 01:02:03.5")),
        ("2020-02-29 24:00", T, "TIMESTAMP", moment("2020-03-01")),
        (None, T, "INT", None),
    ],
)
def test_values_as_worked_out(value: Any, kind: Type, target: str, wanted: Any):
    found = of_value(value, kind, target)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    ("kind", "held", "target", "wanted", "nullable"),
    [
        (R, Interval(-2.5, 3.5), "TINYINT", Interval(-2, 4), False),
        (R, Interval(0.0, 127.4), "TINYINT", Interval(0, 127), False),
        (R, Interval(0.0, 127.5), "TINYINT", Interval(0, 127), True),
        (I, Interval(-5, 300), "UTINYINT", Interval(0, 255), True),
        (I, Interval(300, 400), "UTINYINT", Interval(0, 255), True),
        (I, Interval(0, 255), "UTINYINT", Interval(0, 255), False),
        (R, Interval(-math.inf, math.inf), "BIGINT", INT64, True),
        (B, BOOLEAN, "INT", BOOLEAN, False),
        (I, Interval(0, 2**53 + 1), "DOUBLE", Interval(0, 2**53 + 2), False),
        (R, Interval(0.0, 0.5), "FLOAT", Interval(0.0, 0.5), False),
        (R, Interval(0.0, 0.1), "FLOAT", Interval(0.0, 0.10000000894069672), False),
        (R, Interval(0.0, 1e39), "FLOAT", Interval(0.0, math.inf), True),
        (R, Interval(0.04, 9.96), "DECIMAL(3, 1)", Interval(0.0, 10.0), False),
        (R, Interval(0.04, 99.96), "DECIMAL(3, 1)", Interval(0.0, 99.96), True),
        (I, Interval(0, 99), "DECIMAL(3, 1)", Interval(0, 99), False),
        (I, Interval(-math.inf, math.inf), "DECIMAL(38, 5)", Interval(-(2**63), 2**63), False),
        (T, Interval(-math.inf, math.inf), "DECIMAL(3, 1)", Interval(-100, 100), True),
        (T, Interval(-math.inf, math.inf), "SMALLINT", WIDTHS["SMALLINT"], True),
        (T, Interval(-math.inf, math.inf), "DATE", DAYS, True),
    ],
)
def test_facts_as_worked_out(kind: Type, held: Interval, target: str, wanted: Interval, nullable: bool):
    expr = cast(kind, target, Column("x", kind, Fact(held, nullable=False)))
    assert isinstance(expr, Call)
    assert (expr.held.range, expr.held.nullable) == (wanted, nullable)


@pytest.mark.parametrize(("digits", "scale"), [(0, 0), (39, 0), (3, 4), (3, -1)])
def test_digits_of_a_decimal(digits: int, scale: int):
    x = Column("x", R, Fact())
    assert call(FUNCTIONS["to_decimal"], x, Literal(digits, I), Literal(scale, I)) is None
    assert call(FUNCTIONS["to_decimal"], x, Column("p", I, Fact()), Literal(0, I)) is None
    assert call(FUNCTIONS["to_decimal"], x, Literal(None, I), Literal(0, I)) is None


@pytest.mark.parametrize(
    ("kind", "target", "text"),
    [
        (R, "INT", "CAST(x AS INTEGER)"),
        (T, "UTINYINT", "CAST(x AS UTINYINT)"),
        (I, "DECIMAL(4, 1)", "CAST(x AS DECIMAL(4, 1))"),
        (D, "VARCHAR", "CAST(x AS TEXT)"),
        (T, "TIMESTAMP", "CAST(x AS TIMESTAMP)"),
        (D, "TIMESTAMP", "CAST(x AS TIMESTAMP)"),
    ],
)
def test_a_cast_is_shown_as_one(kind: Type, target: str, text: str):
    assert str(cast(kind, target, Column("x", kind, Fact()))) == text


def test_what_stands_in_the_cell_of_a_null_is_no_matter():
    """No number is too large to be written, if it is not there."""
    gone = Vector(np.array([2**63 - 1, -(2**63)]), np.zeros(2, dtype=bool))
    for name in ("date_to_text", "timestamp_to_text"):
        found = FUNCTIONS[name].kernel(T, [gone])
        assert not found.where_valid().any()
        assert all(isinstance(cell, str) for cell in found.values)


def test_a_long_text_takes_no_time():
    """Neither does a large exponent make a number that fills the memory."""
    for text in ("9" * 60_000, "0." + "9" * 60_000, "1e" + "9" * 60_000, "1e999999999", "1e-999999999", " " * 60_000):
        for target in ("INT", "DOUBLE", "DECIMAL(38, 10)", "BOOLEAN", "DATE", "TIMESTAMP"):
            found = of_value(text, T, target)
            assert found is None or text == "9" * 60_000 or found in (1.0, 0.9999999999)

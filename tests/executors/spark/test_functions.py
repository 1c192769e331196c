"""Each function in Spark's SQL gives what its kernel gives, cell by cell: over mixes of samples, and with constants.

Functions of the same types are columns of one statement, so that some sixty jobs ask about all of them. Their rows are
no local relation, so that the code that Spark generates is run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from dpsql.executors.spark import functions, number_functions
from dpsql.executors.spark.dialect import SPARK_SQL
from dpsql.executors.spark.session import own_session
from dpsql.executors.sql.dialect import MissingFeature
from dpsql.plan.expressions import Call, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.columns import Type
from tests.plan.records import Arg, Use, column, computed, grid, rows_of, same, typed, with_constants
from tests.plan.samples import NARROW, SAMPLES
from tests.plan.test_function_records import OF_CONSTANTS, USES
from tests.plan.test_rounding_edges import NUMERIC, arguments, is_same

AT_ONCE = 40
CONSTANTS = 5
ARROW = {
    Type.INTEGER: pa.int64(),
    Type.DATE: pa.int64(),
    Type.TIMESTAMP: pa.int64(),
    Type.REAL: pa.float64(),
    Type.TEXT: pa.string(),
    Type.BOOLEAN: pa.bool_(),
}
Asked = tuple[Use, Call, str]
Columns = tuple[tuple[Type, ...], tuple[tuple[Any, ...], ...]]
"""Types, and the rows of them."""


def edges(use: Use) -> Iterator[Sequence[Arg]]:
    """The values at which rounding decides, with digits that are constants and ones that are not."""
    for args in arguments(use):
        yield [Arg(each.kind, each.cells[::5] if len(each.cells) > 60 else each.cells, each.fact) for each in args]


def argument_lists(use: Use) -> Iterator[Sequence[Arg]]:
    if use.function.name not in OF_CONSTANTS or len(use.kinds) < 2:
        yield grid(use, {}, nullable=True)
        yield grid(use, NARROW, nullable=True)
    if len(use.kinds) > 1:
        draw = random.Random(str(use))
        first = column(use.kinds[0], SAMPLES[use.kinds[0]])
        for _ in range(CONSTANTS):
            yield [first, *with_constants(use, draw)[1:]]


Lists = Callable[[Use], Iterator[Sequence[Arg]]]


def batches(uses: Sequence[Use], lists: Lists) -> dict[Columns, list[Asked]]:
    """What is asked over the same rows."""
    held: dict[Columns, list[Asked]] = {}
    for use in uses:
        for args in lists(use):
            expr = typed(use, args)
            if expr is None:
                continue
            places = [place for place, arg in enumerate(args) if arg.fact is not None]
            texts = [
                f"a{place}" if arg.fact is not None else SPARK_SQL.literal(arg.cells[0], arg.kind)
                for place, arg in enumerate(args)
            ]
            try:
                text = SPARK_SQL.call(expr, texts)
            except MissingFeature:
                continue
            rows = tuple(tuple(row[place] for place in places) for row in rows_of(args))
            held.setdefault((tuple(use.kinds[place] for place in places), rows), []).append((use, expr, text))
    return held


def differences(spark: Any, uses: Sequence[Use], lists: Lists = argument_lists) -> list[str]:
    own = own_session(spark)
    own.conf.set("spark.sql.codegen.wholeStage", "true")
    try:
        return list(wrong_cells(own, uses, lists))
    finally:
        own.conf.unset("spark.sql.codegen.wholeStage")
        own.catalog.dropTempView("samples")


def wrong_cells(own: Any, uses: Sequence[Use], lists: Lists) -> Iterator[str]:
    alike = is_same if lists is edges else lambda function, one, other: same(FUNCTIONS[function], one, other)
    for (kinds, rows), asked in batches(uses, lists).items():
        columns: dict[str, Any] = {"k": pa.array(range(len(rows)), pa.int64())}
        for place, kind in enumerate(kinds):
            columns[f"a{place}"] = pa.array([row[place] for row in rows], ARROW[kind])
        own.createDataFrame(pa.table(columns)).repartition(1).createOrReplaceTempView("samples")
        for start in range(0, len(asked), AT_ONCE):
            some = asked[start : start + AT_ONCE]
            listed = ", ".join(f"{text} AS r{number}" for number, (_, _, text) in enumerate(some))
            answers = sorted(own.sql(f"SELECT k, {listed} FROM samples").collect())
            for number, (use, expr, _) in enumerate(some):
                ours = computed(expr, rows) if expr.args else computed(expr, rows) * len(rows)
                theirs = [answer[number + 1] for answer in answers]
                yield from [
                    f"{expr} of {row} is {one!r}, in Spark {other!r}"
                    for row, one, other in zip(rows, ours, theirs, strict=True)
                    if not alike(use.function.name, one, other)
                ][:3]


KINDS = list(dict.fromkeys(use.kinds[:1] for use in USES))


@pytest.mark.parametrize("first", KINDS, ids=lambda kinds: str(*kinds) if kinds else "nothing")
def test_every_function(first: tuple[Type, ...], spark: Any):
    assert differences(spark, [use for use in USES if use.kinds[:1] == first]) == []


@pytest.mark.parametrize("first", [Type.INTEGER, Type.REAL], ids=str)
def test_where_rounding_decides(first: Type, spark: Any):
    uses = [
        use for use in NUMERIC if use.kinds[0] is first and len(use.kinds) < 3 + (use.function.name == "to_decimal")
    ]
    assert differences(spark, uses, edges) == []


def test_each_function_has_one_text_or_none():
    known = (set(functions.OWN), set(functions.AS_IN_RECORD), set(functions.LACKING))
    assert set().union(*known) == set(FUNCTIONS)
    assert sum(map(len, known)) == len(FUNCTIONS)


def test_a_function_without_a_text_is_lacking():
    stranger = next(use for use in USES if use.function.name == "real_to_text")
    expr = typed(stranger, grid(stranger, {}, nullable=True))
    assert expr is not None
    with pytest.raises(MissingFeature, match="CAST of a REAL to text"):
        SPARK_SQL.call(expr, ["a0"])


def test_another_text_is_seen(spark: Any, monkeypatch: pytest.MonkeyPatch):
    uses = [use for use in USES if use.function.name == "round" and use.kinds == (Type.REAL,)]
    monkeypatch.setitem(number_functions._ROUNDINGS, "round", number_functions.floor_text)  # type: ignore[index]
    assert differences(spark, uses) != []


def test_patterns_that_would_go_back_and_forth_take_no_time(spark: Any):
    """A hundred pieces over a text that has all but the last of them."""
    like = call(
        FUNCTIONS["like"], *(arg.expr("a0") for arg in (column(Type.TEXT, ["a"]), Arg(Type.TEXT, ("%a" * 100 + "%b",))))
    )
    assert isinstance(like, Call)
    text = SPARK_SQL.call(like, [f"REPEAT('a', {16_000})"])
    assert own_session(spark).sql(f"SELECT {text}").collect()[0][0] is False

"""Categories of intervals, periods and time spans are texts; other values without a type are counted or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsql
from dpsql.errors import InvalidSchema, QueryRefused
from dpsql.sources.frames import stored_columns
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, session

ENGINES = ["pandas", "duckdb"]
TIMES = pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01", None]))
BYTES: Any = pa.chunked_array([pa.array([b"a", b"b", None]).dictionary_encode()])
DAYS = pd.Series(pd.to_timedelta([0, 1, 1, None], unit="D"))
LABELS: dict[str, tuple[Any, list[str | None]]] = {
    "interval": (pd.cut(pd.Series([5, 15, 25, 99]), [0, 18, 40]), ["(0, 18]", "(0, 18]", "(18, 40]", None]),
    "interval of floats": (
        pd.cut(pd.Series([0.1, 0.2, 0.3, None]), [0.05, 0.25, 0.5]),
        ["(0.05, 0.25]", "(0.05, 0.25]", "(0.25, 0.5]", None],
    ),
    "interval of times": (
        pd.cut(TIMES, pd.to_datetime(["2019-06-01", "2020-06-01"])),
        ["(2019-06-01 00:00:00, 2020-06-01 00:00:00]", None, None],
    ),
    "period": (
        pd.Series(pd.PeriodIndex(["2020-01", "2020-02", None], freq="M")).astype("category"),
        ["2020-01", "2020-02", None],
    ),
    "span": (DAYS.astype("category"), ["0 days 00:00:00", "1 days 00:00:00", "1 days 00:00:00", None]),
    "span of Arrow": (
        DAYS.astype(pd.ArrowDtype(pa.duration("us"))).astype("category"),
        ["0 days 00:00:00", "1 days 00:00:00", "1 days 00:00:00", None],
    ),
}  # fmt: skip
OTHERS: dict[str, Any] = {
    "complex": pd.Series(np.array([1j, 2j, np.nan])).astype("category"),
    "interval": pd.cut(pd.Series([5, 15, 99]), [0, 18, 40]).astype("interval"),
    "period": pd.Series(pd.PeriodIndex(["2020-01", "2020-02", None], freq="M")),
    "span": DAYS.iloc[1:],
    "bytes": pd.Series(pd.arrays.ArrowExtensionArray(BYTES)),
    "clock": pd.Series(pd.array([1, 2, None], dtype=pd.ArrowDtype(pa.time64("us")))),
    "list": pd.Series([[1], [2], None], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LABELS)
def test_a_category_of_spans_is_text(name: str, engine: str):
    column, texts = LABELS[name]
    held = session({"t": dpsql.Table(pd.DataFrame({"x": column}))}, engine)
    exact = insecure_exact(held, "SELECT x, COUNT(*) FROM t GROUP BY x", KEY, **TERMS)
    assert {group[0]: parts[0] for group, parts in exact.parts.items()} == {each: texts.count(each) for each in texts}
    here = [each for each in texts if each is not None]
    for condition, count in ((f"x = '{here[0]}'", here.count(here[0])), ("x IS NULL", texts.count(None))):
        exact = insecure_exact(held, f"SELECT COUNT(*) FROM t WHERE {condition}", KEY, **TERMS)
        assert exact.parts == {(): (count,)}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_band_tells_people_apart_by_its_text(engine: str):
    frame = pd.DataFrame({"x": LABELS["interval"][0]})
    held = session({"t": dpsql.Table(frame, unit="x", max_rows=1)}, engine)
    assert insecure_exact(held, "SELECT COUNT(*) FROM t", KEY, **TERMS).parts == {(): (2,)}


def test_a_band_is_read_as_no_other_type():
    for name, (column, _) in LABELS.items():
        (stored,) = stored_columns(pd.DataFrame({"x": column}))
        assert stored.storage.startswith("category of "), name
        for kind in ("integer", "real", "boolean", "date", "timestamp"):
            with pytest.raises(InvalidSchema, match=f"is read as text, and cannot be read as {kind}"):
                dpsql.Session(
                    {"t": dpsql.Table(pd.DataFrame({"x": column}), types={"x": kind})}, budget=dpsql.Budget(1)
                )
        dpsql.Session({"t": dpsql.Table(pd.DataFrame({"x": column}), types={"x": "text"})}, budget=dpsql.Budget(1))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OTHERS)
def test_values_without_a_type_are_counted_or_refused(name: str, engine: str):
    frame = pd.DataFrame({"x": OTHERS[name]})
    held = session({"t": frame}, engine)
    exact = insecure_exact(held, "SELECT COUNT(*) FROM t WHERE x IS NULL", KEY, **TERMS)
    assert exact.parts == {(): (1,)}
    for sql in (
        "SELECT x, COUNT(*) FROM t GROUP BY x",
        "SELECT COUNT(*) FROM t WHERE x = 'a'",
        "SELECT COUNT(*) FROM (SELECT x, ROW_NUMBER() OVER (ORDER BY x) AS n FROM t) WHERE n = 1",
    ):
        with pytest.raises(QueryRefused) as refused:
            held.query(sql, epsilon=1, delta=1e-6)
        if "OVER" not in sql:
            assert 'df["x"] = df["x"].astype(str)' in refused.value.hint, sql


def test_the_advice_is_accepted():
    """What a refusal of a column without a type says to do makes the question answered."""
    df = pd.DataFrame({"x": OTHERS["interval"]})
    df["x"] = df["x"].astype(str)
    assert dpsql.query({"t": df}, "SELECT x, COUNT(*) AS n FROM t GROUP BY x", epsilon=1, delta=1e-6) is not None

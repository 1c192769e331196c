"""A value that is drawn among public points says how far apart they are where it was drawn."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import dpsql


def frame_of(**bounds: object) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({
        "x": rng.uniform(700_000, 700_001, 2_000),
        "k": rng.integers(0, 10, 2_000),
        "d": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 1000, 2_000), "s"),
        "b": rng.integers(0, 50, 2_000),
    })  # fmt: skip
    declared = {"x": (0, 1e7), "k": (0, 10**9), "d": ("1900-01-01", "2100-01-01"), "b": (0, 50)}
    return dpsql.declare(frame, bounds={**declared, **bounds})


def test_points_that_are_further_apart_than_the_data_are_wide_say_so():
    """All rows lie between two points: a rank within so many rows says nothing, the distance of points does."""
    result = dpsql.query({"frame": frame_of()}, "SELECT MAX(x) AS m FROM frame", epsilon=3)
    (note,) = [each for each in result.notes if each.startswith("MAX(x)")]
    found = re.search(r"candidates up to ([\d.,e-]+) apart here$", note)
    assert found is not None, note
    apart = float(found[1].replace(",", ""))
    assert abs(result.item() - 700_000.5) <= apart
    assert 10 < apart < 1_000


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("MAX(d)", "candidates 1.11 days apart"),
        ("MAX(k * 1000000)", "apart here"),
        ("MAX(x)", "apart here"),
    ],
)
def test_words_for_each_kind(asked: str, words: str):
    result = dpsql.query({"frame": frame_of()}, f"SELECT {asked} AS m FROM frame", epsilon=3)
    assert any(words in note for note in result.notes), result.notes


def test_explain_says_how_far_apart_all_points_are():
    text = str(dpsql.query({"frame": frame_of()}, "SELECT MAX(x) AS m FROM frame", epsilon=3).explanation)
    assert re.search(r"candidates [\d.e-]+ to [\d.,]+\s+apart", text), text


def test_fine_candidates_are_not_mentioned():
    sql = "SELECT QUANTILE(k * 1000000, 0.9) AS a, QUANTILE(x, 0.9) AS b FROM frame"
    assert "apart" not in str(dpsql.query({"frame": frame_of()}, sql, epsilon=3))


def test_nothing_is_said_where_every_value_is_a_point():
    result = dpsql.query({"frame": frame_of()}, "SELECT MEDIAN(b) AS m, MAX(b), MEDIAN(k) FROM frame", epsilon=3)
    assert "apart" not in result.to_text()

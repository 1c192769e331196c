"""Tables for notebooks: escaped, with a bar for each interval, and nothing that runs."""

from __future__ import annotations

import re

import pandas as pd

import dpsql
from dpsql.answer.html import html_table, html_text
from dpsql.answer.render import Cells, Span

SCRIPT = "<script>alert(1)</script>"


def cells(span: Span, rows: int = 2) -> Cells:
    return Cells(["k", "n", "95 %"], [["a", "1", "±1"]] * rows, [False, True, True], 0, frozenset({2}), (span,))


def test_a_bar_lies_where_its_interval_does():
    html = html_table(cells(Span(2, [0, 10], [0, 5], [2, 10])), ())
    lines = re.findall(r"left:(\d+)px;width:(\d+)px", html)
    assert lines == [("0", "19"), ("48", "48")]
    assert re.findall(r"left:(-?\d+)px;top:4px", html) == ["-3", "93"]


def test_open_ends_reach_to_the_edge_and_null_has_no_bar():
    inf = float("inf")
    html = html_table(cells(Span(2, [0, 10], [-inf, 5], [2, inf])), ())
    assert re.findall(r"left:(\d+)px;width:(\d+)px", html) == [("0", "19"), ("48", "48")]
    assert html_table(cells(Span(2, [None, 10], [0, 5], [2, 10])), ()).count("top:4px") == 1


def test_one_row_or_one_value_needs_no_bar():
    assert "top:4px" not in html_table(cells(Span(2, [1], [0], [2]), rows=1), ())
    assert "top:4px" not in html_table(cells(Span(2, [1, 1], [1, 1], [1, 1])), ())


def test_everything_is_escaped_and_nothing_runs():
    frame = pd.DataFrame({"k": [SCRIPT] * 300})
    answer = dpsql.query(frame, f'SELECT k AS "{SCRIPT}", COUNT(*) AS n FROM t GROUP BY k', epsilon=1, delta=1e-6)
    for html in (answer._repr_html_(), html_text(SCRIPT), answer.to_html()):
        assert "<script" not in html
        assert "&lt;script&gt;" in html
        assert "javascript" not in html.lower()


def test_a_text_or_a_truth_made_of_a_count_has_no_bar_and_is_shown():
    frame = pd.DataFrame({"k": ["a", "b"] * 200})
    for made in ("CASE WHEN COUNT(*) > 8.5 THEN 'many' ELSE 'few' END", "COUNT(*) > 8.5", "DATE '2026-01-01'"):
        answer = dpsql.query(frame, f"SELECT k, {made} AS n FROM t GROUP BY k", epsilon=1, delta=1e-6)
        assert "top:4px" not in answer._repr_html_()
    assert (
        "many" in dpsql.query(frame, "SELECT CASE WHEN COUNT(*) > 8.5 THEN 'many' END AS n FROM t", epsilon=1).to_html()
    )

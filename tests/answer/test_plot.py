"""Pictures of answers: each value where it was released, each bar as long as its interval."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidArgument

mpl.use("Agg")

FRAME = pd.DataFrame(
    {
        "k": ["a", "b$", "c\n", None] * 50,
        "n": [1, 2, 3, 4] * 50,
        "d": pd.to_datetime(["2020-01-01", "2020-02-01", "2020-03-01", "2020-04-01"] * 50),
        "x": [1.0, 2.0, 3.0, 4.0] * 50,
    }
)
FACTS: dict[str, Any] = {
    "bounds": {"x": (0, 5), "n": (1, 4)},
    "keys": {"k": ["a", "b$", "c\n", None], "d": ["2020-01-01", "2020-02-01", "2020-03-01", "2020-04-01"]},
}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def ask(sql: str, **more: Any) -> dpsql.Result:
    return dpsql.query(FRAME, sql, **{"epsilon": 1, **FACTS, **more})


def points_of(axis: Any) -> tuple[list[Any], list[Any]]:
    return list(axis.lines[0].get_xdata()), list(axis.lines[0].get_ydata())


def bars_of(axis: Any) -> list[Any]:
    return [segment.tolist() for segment in axis.collections[0].get_segments()]


def test_groups_are_dots_with_bars() -> None:
    answer = ask("SELECT k, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY k")
    figure = answer.plot()
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["n", "a"]
    held = answer.to_pandas(intervals=True)
    for axis, name in zip(figure.axes, ("n", "a"), strict=True):
        assert points_of(axis) == (held[name].tolist(), [0, 1, 2, 3])
        ends = zip(held[f"{name}_low"], held[f"{name}_high"], strict=True)
        assert bars_of(axis) == [[[low, row], [high, row]] for row, (low, high) in enumerate(ends)]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["a", "b$", "c ", "NULL"]
    assert [text.get_text() for text in figure.texts] == ["95 % intervals, epsilon 1"]


def test_dates_lie_along_a_line() -> None:
    answer = ask("SELECT d, AVG(x) AS a FROM t GROUP BY d ORDER BY a DESC")
    (axis,) = answer.plot(level=0.5).axes
    held = answer.to_pandas(intervals=True, level=0.5).sort_values("d")
    assert list(axis.lines[0].get_ydata()) == held["a"].tolist()
    assert axis.get_xlabel() == "d"
    lengths = [segment[1][1] - segment[0][1] for segment in bars_of(axis)]
    np.testing.assert_allclose(lengths, held["a_high"] - held["a_low"])


def heights_of(axis: Any) -> list[float]:
    return [float(patch.get_height()) for patch in sorted(axis.patches, key=lambda patch: patch.get_x())]


def x_labels_of(axis: Any) -> list[str]:
    return [tick.get_text() for tick in axis.get_xticklabels()]


def test_numbers_are_bars_in_their_order() -> None:
    answer = ask("SELECT n, AVG(x) AS a FROM t GROUP BY n ORDER BY a DESC")
    (axis,) = answer.plot().axes
    held = answer.to_pandas(intervals=True).sort_values("n")
    assert heights_of(axis) == held["a"].tolist()
    assert x_labels_of(axis) == ["1", "2", "3", "4"]
    ends = sorted((segment[0][1], segment[1][1]) for segment in bars_of(axis))
    assert ends == sorted(zip(held["a_low"], held["a_high"], strict=True))


BANDS = "CASE WHEN x < 2 THEN '0-1' WHEN x < 3 THEN '2' ELSE '3+' END"


def test_bands_are_bars_and_years_a_line() -> None:
    (axis,) = ask(f"SELECT {BANDS} AS band, COUNT(*) AS n FROM t GROUP BY 1 ORDER BY 1 DESC").plot().axes
    assert x_labels_of(axis) == ["3+", "2", "0-1"]
    assert len(axis.patches) == 3
    (axis,) = ask("SELECT n + 2000 AS year, COUNT(*) AS n FROM t GROUP BY 1").plot().axes
    assert list(axis.lines[0].get_xdata()) == [2001, 2002, 2003, 2004]


def test_a_line_for_each_category() -> None:
    answer = ask(f"SELECT d, {BANDS} AS band, COUNT(*) AS n FROM t GROUP BY 1, 2")
    figure = answer.plot(title="By band")
    (axis,) = figure.axes
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["0-1", "2", "3+"]
    for line, band in zip(axis.lines, ["0-1", "2", "3+"], strict=True):
        rows = answer.df[answer.df["band"] == band].sort_values("d")
        assert list(line.get_ydata()) == rows["n"].tolist()
    assert figure.get_suptitle() == "By band"
    (axis,) = answer.plot(kind="bar").axes
    assert len(axis.patches) == len(answer)
    assert axis.patches[0].get_width() < 0.3


def test_a_line_leaves_null_out_and_says_so() -> None:
    answer = ask("SELECT d, COUNT(*) AS n FROM t GROUP BY d", keys={"d": ["2020-01-01", "2020-02-01", None]})
    figure = answer.plot()
    assert len(figure.axes[0].lines[0].get_xdata()) == 2
    assert figure.texts[0].get_text() == "not drawn: NULL of d\n95 % intervals, epsilon 1"


def test_one_column_is_drawn_into_given_axes() -> None:
    from matplotlib import pyplot

    answer = ask("SELECT k, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY k")
    figure, axes = pyplot.subplots(1, 2)
    assert answer.plot(ax=axes[1], column="a", title="Age") is figure
    assert axes[1].get_title(loc="left") == "Age"
    assert axes[1].get_xlabel() == "95 % intervals, epsilon 1"
    assert not axes[0].lines
    with pytest.raises(InvalidArgument, match=r"ax= takes one column, and the answer has 2: n, a\.(.|\n)*column='n'"):
        answer.plot(ax=axes[0])


def test_columns_and_kinds_are_chosen() -> None:
    answer = ask("SELECT k, COUNT(*) AS n, AVG(x) AS a, MEDIAN(x) AS m FROM t GROUP BY k")
    assert [axis.get_title(loc="left") for axis in answer.plot(column=["a", "n"]).axes] == ["a", "n"]
    assert answer.plot(column="m").texts[0].get_text() == "no intervals, epsilon 1"
    assert len(answer.plot(column="n", kind="bar").axes[0].patches) == 4
    assert x_labels_of(answer.plot(column="n", kind="line").axes[0]) == ["a", "b$", "c ", "NULL"]
    with pytest.raises(InvalidArgument, match=r"no column .aa. of numbers to draw"):
        answer.plot(column="aa")
    with pytest.raises(InvalidArgument, match=r"kind is one of 'auto', 'line', 'bar', 'dot', got 'pie'"):
        answer.plot(kind="pie")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="needs a column of keys"):
        ask("SELECT COUNT(*) FROM t").plot(kind="line")


def test_the_chart_of_medians_claims_no_intervals() -> None:
    from dpsql.answer.chart import chart

    answer = ask("SELECT d, MEDIAN(x) AS m FROM t GROUP BY d")
    assert chart(answer).endswith("no intervals, epsilon 1")
    assert chart(answer).splitlines()[1].startswith("2020-01-01 │")


def test_one_row_and_values_without_intervals() -> None:
    figure = ask("SELECT COUNT(*) AS n, MEDIAN(x) AS m FROM t").plot()
    assert [len(axis.lines[0].get_xdata()) for axis in figure.axes] == [1, 1]
    assert bars_of(figure.axes[1]) == []
    assert [text.get_text() for text in figure.texts] == ["95 % intervals (none for m), epsilon 1"]


def test_the_caption_of_medians_claims_no_intervals() -> None:
    figure = ask("SELECT k, MEDIAN(x) AS m FROM t GROUP BY k").plot()
    assert [text.get_text() for text in figure.texts] == ["no intervals, epsilon 1"]


def test_only_the_first_groups_are_drawn() -> None:
    frame = pd.DataFrame({"k": [f"key {number:02}" for number in range(40)] * 9})
    answer = dpsql.query(frame, "SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1, keys={"k": sorted(set(frame["k"]))})
    figure = answer.plot()
    assert len(figure.axes[0].get_yticklabels()) == 30
    assert figure.texts[0].get_text().startswith("and 10 more groups")


def test_what_is_null_is_not_drawn() -> None:
    answer = ask("SELECT k, VAR_SAMP(x) AS v FROM t WHERE x > 4 GROUP BY k", epsilon=0.01)
    (axis,) = answer.plot().axes
    assert len(axis.lines[0].get_xdata()) == answer.df["v"].notna().sum()


def test_answers_over_answers_and_public_tables() -> None:
    later = ask("SELECT k, n * 2 AS twice FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) AS s")
    assert [axis.get_title(loc="left") for axis in later.plot().axes] == ["twice"]
    table = dpsql.Table(FRAME, public=True)
    public = dpsql.query({"t": table, "p": FRAME}, "SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1)
    assert [axis.get_title(loc="left") for axis in public.plot().axes] == ["n"]


def test_what_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgument, match="no column of numbers"):
        ask("SELECT MODE(k) AS m FROM t").plot()
    answer = ask("SELECT COUNT(*) FROM t")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(InvalidArgument, match="pip install matplotlib"):
        answer.plot()


def test_a_picture_is_written(tmp_path: Path) -> None:
    ask("SELECT k, COUNT(*) AS n FROM t GROUP BY k").plot().savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


HOSTILE = (
    *(
        "\x1b[31mred\x1b[0m",
        "a\x00b",
        "\u202eRTL",
        "x" * 10_000,
        "<script>alert(1)</script>",
        r"$\frac$",
        r"\$a$",
        "$x^{$",
    ),
    *("tab\tnew\nline\r", "| pipe | `code`", "", "\x7f\x9b31m", "\u2028sep", "{0} %s", "\\"),
)


def test_keys_and_names_cannot_draw_run_or_break_any_form() -> None:
    """Each as a key and as the name of a column, in every form that there is."""
    from dpsql.answer.chart import chart
    from dpsql.shell.output.modes import MODES, written

    frame = pd.DataFrame({"k": ["a"] * 5, "x": [1] * 5})
    asked = [("SELECT k, COUNT(*) AS n FROM t GROUP BY k", HOSTILE)]
    asked += [(f'SELECT x AS "{name}", COUNT(*) AS "n{name}" FROM t GROUP BY x', ("a",)) for name in HOSTILE if name]
    for sql, keys in asked:
        answer = dpsql.query(frame, sql, epsilon=1, keys={"k": keys}, bounds={"x": (1, 3)})
        for seen in (
            repr(answer),
            chart(answer),
            *(written(answer, mode).decode() for mode in ("box", "line", "markdown")),
        ):
            assert all(sign.isprintable() or sign == "\n" for sign in seen), sql
        assert "<script" not in answer._repr_html_(), sql
        assert all(written(answer, mode) for mode in MODES), sql
        figure = answer.plot()
        figure.canvas.draw()  # a formula that is none fails here
        texts = [
            text.get_text() for axis in figure.axes for text in (axis.title, axis.xaxis.label, *axis.get_yticklabels())
        ]
        assert all(sign.isprintable() for text in [*texts, axis_title(figure)] for sign in text), sql
        assert max(map(len, texts)) < 40, sql


def axis_title(figure: Any) -> str:
    return str(figure.axes[0].get_title(loc="left"))

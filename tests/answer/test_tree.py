"""Explanations are data before they are words: nothing is decided by a text, and no text is made of another."""

from __future__ import annotations

import ast
import copy
import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.answer import explanation_text as writer
from dpsql.answer.explanation_builder import explained
from dpsql.errors import BudgetExceeded, DPSQLError, MissingBounds, UnknownGroups
from dpsql.plan.expressions import Column, Literal
from dpsql.release.output.labels import Label
from dpsql.schema.columns import Type
from dpsql.session.advice import Place, error_text

ROOT = Path(dpsql.__file__).parent
FRAME = pd.DataFrame({"who": [1, 2] * 20, "x": [1.0, 2.0] * 20, "age": range(40), "city": ["a", "b"] * 20})
TABLE = dpsql.Table(FRAME, bounds={"x": "auto", "age": (0, 100)})


def session(budget: dpsql.Budget = dpsql.Budget(3, 1e-5), **facts: Any) -> dpsql.Session:  # noqa: B008 - frozen
    return dpsql.Session({"t": TABLE}, budget=budget, **facts)


def refused(sql: str, asker: dpsql.Session, **how: Any) -> DPSQLError:
    with pytest.raises(DPSQLError) as caught:
        asker.query(sql, **how)
    return caught.value


TEXTS = frozenset({"split", "replace", "startswith", "endswith", "removeprefix", "removesuffix", "partition", "find"})
PRINTED = {"explanation_text.py": 1, "export_formats.py": 5, "multi_step.py": 1}
"""A mechanism's name, as it is printed; signs that CSV and Markdown read otherwise; the
lines of a release, moved to the right."""


@pytest.mark.parametrize("path", sorted((ROOT / "answer").glob("*.py")), ids=lambda path: path.name)
def test_no_text_is_taken_apart(path: Path) -> None:
    """`render` lays texts out; all else makes each once. (`replace` of dataclasses is a plain name, not a method.)"""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    taken = [each for each in calls if isinstance(each, ast.Attribute) and each.attr in TEXTS]
    imports = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert len(taken) <= PRINTED.get(path.name, 0)
    assert "re" not in imports


def test_words_of_the_writer_change_no_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    explanation = session().explain("SELECT AVG(age) AS a, COUNT(*) AS n FROM t", epsilon=1)
    told, text = explanation.to_dict(), str(explanation)
    monkeypatch.setattr(writer, "_JOINT", {})
    monkeypatch.setattr(Label, "__str__", lambda _self: "something")
    assert {each["name"] for each in explanation.to_dict()["releases"]} == {"something", "n"}
    assert {each["scale"] for each in explanation.to_dict()["releases"]} == {each["scale"] for each in told["releases"]}
    assert str(explanation) != text


def test_the_tree_is_frozen_and_equal_for_equal_releases() -> None:
    sql = "SELECT AVG(age) AS a, MEDIAN(age) AS m FROM t"
    trees = [explained(session().explain(sql, epsilon=1)._release) for _ in range(2)]
    assert trees[0] == trees[1]
    with pytest.raises(AttributeError):
        trees[0].strategy = "split"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (Label("count"), "count"),
        (Label("units", (Literal(3, Type.INTEGER),)), "units(3)"),
        (Label("sum", (Literal(3, Type.INTEGER),), 2.5), "sum(3 - 2.5)"),
        (Label("sum", (Literal(3, Type.INTEGER),), -2.5), "sum(3 + 2.5)"),
        (Label("sum", (Literal(3, Type.INTEGER),), -0.0), "sum(3 + 0)"),
        (Label("count", around=Label("count")), "count around count / 2"),
        (Label("sum", (Literal(3, Type.INTEGER),), 1.0, Literal(4, Type.INTEGER)), "sum(3 - 1, where 4 is not NULL)"),
    ],
    ids=str,
)
def test_labels_print_as_explanations_name_them(label: Label, text: str) -> None:
    assert str(label) == text


def test_a_value_less_nothing_that_was_asked_for_stands_as_it_is() -> None:
    """Only the centre of a grid is left out where it is 0, not what the query takes from its own values."""
    told = str(session().explain("SELECT SUM(age - 0) AS s FROM t", epsilon=1))
    assert "sum(age - 0) + Laplace" in told


def test_a_front_end_leaves_out_what_only_python_says() -> None:
    asker = session()
    error = refused("SELECT COUNT(*), SUM(age), AVG(x) FROM t", asker, epsilon=4, delta=1e-6)
    assert isinstance(error, BudgetExceeded)
    assert ", mechanism='laplace', reuse" in str(error)
    assert ", reuse" in error_text(error, Place.PROMPT)
    assert "mechanism" not in error_text(error, Place.PROMPT)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_of_errors_hold_what_callers_read(again: Any) -> None:
    for error in (
        refused("SELECT COUNT(*) FROM t", session()),
        refused("SELECT city, COUNT(*) FROM t GROUP BY city", session(), epsilon=1),
        refused("SELECT COUNT(*) FROM t", session(), epsilon=4, delta=1e-6),
    ):
        other = again(error)
        assert (type(other), str(other), other.about) == (type(error), str(error), error.about)


def test_refusals_ask_for_the_delta_that_is_left() -> None:
    error = refused("SELECT city, COUNT(*) FROM t GROUP BY city", session(dpsql.Budget(3, 1e-8)), epsilon=1)
    assert isinstance(error, UnknownGroups)
    assert "or allow delta=5e-09: groups of fewer than about 20 rows are then hidden." in str(error)
    assert "1e-6" not in str(error)


def test_refusals_speak_of_columns_as_the_text_has_them() -> None:
    error = refused("SELECT SUM(x / (x - 1)) FROM t", session(), epsilon=1)
    assert isinstance(error, MissingBounds)
    assert "SUM(x / (x - 1)) has no bounds: x / (x - 1) can be as large as" in str(error)
    assert "CLAMP(x," not in str(error)


def test_a_table_with_a_bracket_in_its_name_is_a_table() -> None:
    """Whether a sub-query made a column is asked of the plan, not of its place's name."""
    tables = {"(t": dpsql.Table(FRAME), "u": dpsql.Table(FRAME)}
    asker = dpsql.Session(tables, budget=dpsql.Budget(3), auto_bounds=False)
    error = refused('SELECT AVG(x) FROM "(t"', asker, epsilon=1)
    assert 'Add bounds={"x": (0, 100)}' in str(error)


def test_columns_of_labels_are_data() -> None:
    release = session().explain("SELECT AVG(age) AS a FROM t", epsilon=1)._release
    (read,) = {each for coordinate in release.coordinates for each in coordinate.name.of}
    assert isinstance(read, Column)
    assert read.name == "age"

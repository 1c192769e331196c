"""Which Session a cell asks, from the variables of a notebook."""

import re
from typing import Any

import pandas as pd
import pytest

from dpsql.core.ledger.ledger import Budget
from dpsql.errors import DPSQLError, InvalidArgument, InvalidSchema
from dpsql.session.session import Session
from dpsql.session.tables.table import Table, declare
from dpsql.shell.notebook.sessions import Notebook

COUNT = "SELECT COUNT(*) FROM people"


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"age": [30, 40, 50]})


@pytest.fixture
def variables(frame: pd.DataFrame) -> dict[str, Any]:
    """A declared frame, one that is not, and what a notebook keeps by itself."""
    people = declare(frame, bounds={"age": (0, 100)})
    return {"frame": frame, "people": people, "_": people, "_1": people, "n": 3}


@pytest.fixture
def notebook(variables: dict[str, Any]) -> Notebook:
    return Notebook(variables)


def test_without_a_session_a_budget_must_be_stated(notebook: Notebook):
    with pytest.raises(InvalidArgument, match="no budget: how much may all answers of this notebook"):
        notebook.session(COUNT)


def test_declared_tables_are_asked_under_the_stated_budget(notebook: Notebook, variables: dict[str, Any]):
    opened = notebook.state_budget(Budget(2))
    session = notebook.session(COUNT)
    assert session is opened
    assert session.tables == ("people",)
    assert notebook.tables() == ["people"]
    variables["more"] = Table(variables["frame"], nullable={"age": False})
    assert notebook.session("select count(*) from MORE").tables == ("people", "more")


def test_a_budget_is_stated_once(notebook: Notebook):
    session = notebook.state_budget(Budget(2))
    assert notebook.state_budget(Budget(2.0, 0)) is session
    for other in (Budget(1), Budget(3), Budget(2, 1e-6)):
        with pytest.raises(InvalidArgument, match=re.escape("the budget is Budget(epsilon=2, delta=0)")):
            notebook.state_budget(other)
    assert notebook.session() is session


def test_looking_at_the_budget_takes_no_table(notebook: Notebook):
    notebook.state_budget(Budget(2))
    assert notebook.session().tables == ()


def test_only_what_is_mentioned_is_taken_or_all_where_nothing_is(notebook: Notebook, variables: dict[str, Any]):
    variables["others"] = variables["people"].copy()
    notebook.state_budget(Budget(2))
    assert notebook.session("SELECT COUNT(*) FROM Others").tables == ("others",)
    assert set(notebook.session("SELECT COUNT(*) FROM peple").tables) == {"others", "people"}  # "Did you mean ...?"


def test_the_only_session_is_asked_under_whatever_names(notebook: Notebook, variables: dict[str, Any]):
    session = Session({"t": variables["frame"]}, budget=Budget(1))
    variables.update(s=session, same=session, _hidden=Session({}, budget=Budget(1)))
    assert notebook.session(COUNT) is session
    assert notebook.tables() == ["t"]
    with pytest.raises(InvalidArgument, match="there is a Session already"):
        notebook.state_budget(Budget(3))


def test_of_several_sessions_one_must_be_named(notebook: Notebook, variables: dict[str, Any]):
    variables.update(a=Session({}, budget=Budget(1)), b=Session({}, budget=Budget(2)))
    with pytest.raises(InvalidArgument, match=re.escape("there are several Sessions: a, b.")):
        notebook.session(COUNT)
    assert notebook.connect("b") is variables["b"]
    assert notebook.session(COUNT) is variables["b"]
    variables["b"] = Session({}, budget=Budget(3))
    assert notebook.session(COUNT) is variables["b"]  # the variable is connected, not what it held
    del variables["b"]
    with pytest.raises(InvalidArgument, match='no variable "b"'):
        notebook.session(COUNT)


def test_connecting_to_what_is_no_session(notebook: Notebook, variables: dict[str, Any]):
    with pytest.raises(InvalidArgument, match='"people" holds no dpsql'):
        notebook.connect("people")
    variables["session"] = Session({}, budget=Budget(1))
    with pytest.raises(InvalidArgument, match=re.escape('no variable "sesion". Did you mean "session"?')):
        notebook.connect("sesion")
    assert notebook.session(COUNT) is variables["session"]


def test_the_same_table_may_be_declared_again(notebook: Notebook, variables: dict[str, Any], frame: pd.DataFrame):
    notebook.state_budget(Budget(2))
    session = notebook.session(COUNT)
    variables["people"] = declare(frame.copy(), bounds={"age": (0, 100)})  # the cell was run again
    assert notebook.session(COUNT) is session
    del variables["people"]
    assert notebook.session(COUNT) is session


@pytest.mark.parametrize("change", ["rows", "cell", "bounds"])
def test_a_table_that_changed_is_not_silently_the_old_one(
    change: str, notebook: Notebook, variables: dict[str, Any], frame: pd.DataFrame
):
    notebook.state_budget(Budget(2))
    notebook.session(COUNT)
    if change == "rows":
        variables["people"] = variables["people"].head(2)
    elif change == "cell":
        variables["people"].loc[0, "age"] = 99
    else:
        variables["people"] = declare(frame, bounds={"age": (0, 50)})
    with pytest.raises(InvalidArgument, match='"people" is not what it was'):
        notebook.session(COUNT)
    variables["younger"] = variables["people"]
    assert "younger" in notebook.session("SELECT COUNT(*) FROM younger").tables  # other tables can still be asked


def test_a_table_that_cannot_be_taken_hurts_only_questions_about_it(notebook: Notebook, variables: dict[str, Any]):
    variables["spoilt"] = variables["people"].astype(str)  # it keeps bounds, which text cannot have
    notebook.state_budget(Budget(2))
    assert notebook.session("SELECT 1").tables == ("people",)
    with pytest.raises(InvalidSchema):
        notebook.session("SELECT COUNT(*) FROM spoilt")


def test_two_names_that_differ_in_case_are_refused(notebook: Notebook, variables: dict[str, Any]):
    variables["PEOPLE"] = variables["people"]
    notebook.state_budget(Budget(2))
    with pytest.raises(DPSQLError, match='there is a table "PEOPLE" already'):
        notebook.session(COUNT)

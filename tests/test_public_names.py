"""What `dpsql` gives by name, and what it loads for it: nothing before it is asked for."""

import pickle
import subprocess
import sys
from importlib import import_module

import pytest

import dpsql


def printed(code: str) -> str:
    """What a new Python prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_dpsql_loads_no_engine_and_no_libraries():
    code = "import sys, dpsql; print(*sorted(set(sys.modules) & {'numpy', 'pandas', 'sqlglot', 'dpsql.session'}))"
    assert printed(code) == ""


def test_every_public_name_is_there_when_it_is_the_first_that_is_asked_for():
    names = [name for name in dpsql.__all__ if name != "__version__"]
    code = f"""
import sys
for name in {names}:
    for module in [each for each in sys.modules if each.split(".")[0] == "dpsql"]:
        del sys.modules[module]
    import dpsql
    first = getattr(dpsql, name)
    exec(f"from dpsql import {{name}}")
    assert name in dir(dpsql) and locals()[name] is first
    print(name)
"""
    assert printed(code).split() == names


def test_all_names_are_listed_before_they_are_loaded():
    assert printed("import dpsql; print(set(dpsql.__all__) <= set(dir(dpsql)))") == "True"
    assert printed("from dpsql import *; print(query.__module__, Session.__module__)") == (
        "dpsql.session.query dpsql.session.session"
    )


def test_a_name_is_the_same_thing_each_time_and_pickles_by_its_home():
    for name in ("Budget", "Neighbours", "Session", "Table", "DPSQLError"):
        thing = getattr(dpsql, name)
        assert thing is getattr(dpsql, name)
        assert thing is getattr(import_module(thing.__module__), name)
        assert pickle.loads(pickle.dumps(thing)) is thing


def test_a_name_that_is_none_of_them():
    with pytest.raises(AttributeError, match="module 'dpsql' has no attribute 'Sesion'"):
        dpsql.Sesion  # noqa: B018

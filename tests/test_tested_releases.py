"""Releases of sqlglot and DuckDB: a newer sqlglot gives one warning, and an untested DuckDB is no engine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidSchema
from dpsql.executors.duckdb import releases
from dpsql.sql.syntax import dialect
from tests.test_architecture import ROOT

FRAME = pd.DataFrame({"sex": ["F", "M"] * 50, "age": range(100)})
TERMS = {"epsilon": 1, "bounds": {"age": (0, 100)}, "keys": {"sex": ["F", "M"]}}
SQL = "SELECT sex, a, RANK() OVER (ORDER BY a) AS r FROM (SELECT sex, AVG(age) AS a FROM df GROUP BY sex)"
UNTESTED = "DuckDB 2.9.1 has not been tested as an engine"


@pytest.fixture
def untested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "__version__", "2.9.1")


@pytest.mark.usefixtures("untested")
def test_an_untested_duckdb_runs_no_query_over_a_frame() -> None:
    with pytest.raises(InvalidSchema, match=UNTESTED):
        dpsql.query(FRAME, SQL, engine="duckdb", **TERMS)


@pytest.mark.parametrize("public", [False, True])
def test_an_untested_duckdb_reads_no_file(tmp_path: Path, untested: None, public: bool) -> None:
    FRAME.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidSchema, match=UNTESTED):
        dpsql.Session({"t": dpsql.Table(tmp_path / "t.parquet", public=public)}, epsilon=1)


@pytest.mark.usefixtures("untested")
def test_pandas_and_post_processing_go_on() -> None:
    assert sorted(dpsql.query(FRAME, SQL, **TERMS).df["r"]) == [1, 2]


@pytest.mark.usefixtures("untested")
def test_the_hint_names_a_tested_release() -> None:
    with pytest.raises(InvalidSchema) as refusal:
        releases.check_release()
    (named,) = re.findall(r'"duckdb==(\d+)\.(\d+)\.\*"', str(refusal.value))
    assert tuple(map(int, named)) in releases.TESTED


def test_the_installed_duckdb_is_tested() -> None:
    releases.check_release()


@pytest.mark.parametrize(("version", "warnings"), [("30.31.0", 1), ("31.0", 1), ("30.30.7", 0), ("30.22.0", 0)])
def test_a_newer_sqlglot_gives_one_warning(version: str, warnings: int) -> None:
    script = f"import sqlglot; sqlglot.__version__ = {version!r}; import dpsql.sql.syntax.dialect"
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stderr.count(f"dpsql has not been tested with sqlglot {version}:") == warnings


def test_the_package_accepts_what_was_tested() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    major, minor = releases.TESTED[0]
    assert f'"duckdb>={major}.{minor},' in text
    major, minor = dialect.NEWEST_TESTED
    assert f'"sqlglot<{major}.{minor + 1}"' in text

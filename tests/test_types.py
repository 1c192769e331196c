"""What type checkers are told: the README's code passes, and answers are Results."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/first-steps.md"))

REVEALED = """
import pandas as pd
import dpsql

frame = pd.DataFrame({"age": [1]})
reveal_type(dpsql.query(frame, "SELECT AVG(age) FROM t", epsilon=1))
session = dpsql.Session({"t": frame}, budget=dpsql.Budget(1))
reveal_type(session.query("SELECT AVG(age) FROM t"))
reveal_type(session.explain("SELECT AVG(age) FROM t"))
reveal_type(dpsql.query(frame, "SELECT AVG(age) FROM t", epsilon=1)["age"])
reveal_type(session.query("SELECT AVG(age) FROM t").to_polars())
reveal_type(dpsql.declare(frame, bounds={"age": (0, 100)}))
dpsql.query(session.query("SELECT AVG(age) FROM t").to_polars(), "SELECT COUNT(*) FROM t", epsilon=1)
dpsql.query({"t": dpsql.declare(frame, bounds={"age": "auto"}, unit="age")}, "SELECT COUNT(*) FROM t", epsilon=1)
dpsql.query(frame, 1)
"""


def checked(text: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """What mypy says of a program. It shares the cache of the package's own check, which has usually just been run."""
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache"), str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_readmes_code_passes_and_answers_are_results(tmp_path: Path) -> None:
    readme = "\n".join(re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE))
    assert "dpsql.query(" in readme
    run = checked(readme + REVEALED, tmp_path)
    revealed = re.findall(r'Revealed type is "([\w.]+)', run.stdout)
    assert revealed == [
        "dpsql.answer.result.Result",
        "dpsql.answer.result.Result",
        "dpsql.answer.explain.Explanation",
        "pandas.core.series.Series",
        "polars.dataframe.frame.DataFrame",
        "pandas.core.frame.DataFrame",
    ], run.stdout
    errors = [line for line in run.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, run.stdout  # the one that is planted: a number is no query
    assert 'incompatible type "int"; expected "str"' in errors[0]


def test_the_package_says_that_it_has_types() -> None:
    assert (ROOT / "dpsql" / "py.typed").exists()
    assert re.search(r"^dpsql = .*py\.typed", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not on the path; it brings Node along")
def test_pyright_sees_the_same(tmp_path: Path) -> None:
    """Through what this Python imports, as an editable install is a plain path."""
    program = tmp_path / "program.py"
    program.write_text("\n".join(re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)) + REVEALED)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))
    run = subprocess.run(
        ["pyright", "--project", str(tmp_path), "--pythonpath", sys.executable, "--outputjson"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    told = json.loads(run.stdout)["generalDiagnostics"]
    revealed = [each["message"] for each in told if each["severity"] == "information"]
    kinds = ["Result", "Result", "Explanation", "Series", "DataFrame", "DataFrame"]
    assert [re.findall(r'is "([\w.]+)', each)[0] for each in revealed] == kinds
    (error,) = [each["message"] for each in told if each["severity"] == "error"]
    assert '"Literal[1]" is not assignable to "str"' in error

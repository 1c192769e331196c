"""README, script and notebook run as they stand, and print what they promise."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
README = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/first-steps.md"))
"""The README, and the page whose examples go on from it."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def test_readme_python_runs_in_order(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    shown = blocks("text")[0].splitlines()
    assert [line.split("|")[1] for line in shown if line.startswith("| ")] == [
        line.split("|")[1] for line in printed.splitlines()[:6] if line.startswith("| ")
    ], "the README's table has other rows than the code gives"
    assert "spent epsilon 1 (calls add up" in printed
    assert "United-States" in printed
    assert "Guarantee  epsilon 0.5" in printed
    assert "epsilon 0.5 | epsilon 2.5, delta 5e-07" in printed
    assert re.search(r"^zcdp +0\.1775", printed, flags=re.MULTILINE)


def test_readme_numbers_are_those_of_the_sample(adult) -> None:
    stated = re.search(r"exact values are (\d+) and (\d+), ([\d.]+\d) and ([\d.]+\d)", README)
    assert stated is not None
    by_sex = adult.groupby("sex")["age"].agg(["size", "mean"])
    expected = [str(n) for n in by_sex["size"]] + [f"{mean:.4f}" for mean in by_sex["mean"]]
    assert list(stated.groups()) == expected


def test_readme_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"^make ([\w-]+)", "\n".join(blocks("sh")), flags=re.MULTILINE):
        assert re.search(rf"^(?:[\w-]+ )*{command}(?: [\w-]+)*:", makefile, flags=re.MULTILINE), command


def test_readme_command_line_runs(sample: Path) -> None:
    line = next(line for line in "\n".join(blocks("sh")).splitlines() if " -c " in line)
    sql = re.search(r'-c "(.*)"', line)
    assert sql is not None
    words = line.split(' -c "')[0].split()[1:]
    run = subprocess.run(
        [sys.executable, "-m", "dpsql", *words, "-c", sql.group(1)],
        cwd=sample.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    assert re.search(r"^14[12]\d\d,", run.stdout, re.MULTILINE), run.stdout


def test_quickstart_script(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "quickstart.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.search(r"\| +38\.\d+ \|", printed), "the average age is about 38.58"
    assert "| United-States" in printed
    assert "BudgetExceeded: this query costs epsilon 0.1 but 0 is left" in printed


def test_shop_script(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "shop.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Protects   one person (unit c_custkey), with all rows in all tables" in printed
    assert len(re.findall(r"^spent epsilon", printed, re.MULTILINE)) == 9 + 3, (
        "nine questions and one with three limits"
    )
    average = re.search(r"at most 10 orders of a customer:.*?\|\s+(\d+) \| ±", printed, re.DOTALL)
    assert average is not None
    assert 1_300_000 < int(average[1]) < 2_300_000, "the revenue is 1,795,437, cut a little and with noise"


def test_quickstart_notebook() -> None:
    notebook = nbformat.read(ROOT / "examples" / "quickstart.ipynb", as_version=4)
    resources = {"metadata": {"path": str(ROOT)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    shown = "\n".join(str(cell.get("outputs", "")) for cell in notebook.cells)
    assert "Female" in shown
    assert "hours_low" in shown
    assert "epsilon" in shown


def test_committed_notebook_holds_no_output() -> None:
    notebook = nbformat.read(ROOT / "examples" / "quickstart.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)

"""dpsql demo: on the sample, with its ledger in the user's folder."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dpsql.shell import demo
from dpsql.shell.cli import Exit, main

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder for the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("platformdirs.user_state_path", lambda name, **_: tmp_path / name)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    return tmp_path / "dpsql"


def test_three_examples_where_nobody_asks_and_again_for_nothing(state: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["demo"]) == 0
    first = capsys.readouterr()
    assert first.err.count("spent epsilon 0.5") == 3
    assert (state / "demo.ledger").exists()
    assert main(["demo"]) == 0
    again = capsys.readouterr()
    assert again.err.count("answered before: spent nothing") == 3
    assert again.out == first.out
    assert not (demo.sample_folder() / "adult.ledger").exists() or demo.sample_folder().name == "adult_sample"


def test_its_options_are_the_shells(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    assert main(["demo", "--epsilon", "1", "-c", "SELECT COUNT(*) AS n FROM adult"]) == 0
    assert "spent epsilon 1 " in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT AVG(age) AS a FROM adult;"))
    assert main(["demo", "--no-ledger"]) == 0
    told = capsys.readouterr().err
    assert "spent epsilon 0.5" in told
    assert "counts in this process only" in told
    assert main(["demo", "people.csv"]) == Exit.USAGE
    assert main(["demo", "--help"]) == 0
    assert "usage: dpsql demo" in capsys.readouterr().out


def test_a_folder_that_cannot_be_made(state: Path, capsys: pytest.CaptureFixture[str]):
    state.write_text("a file")
    assert main(["demo"]) == Exit.USAGE
    assert "Name another place: --ledger FILE" in capsys.readouterr().err


@pytest.mark.slow  # a wheel is built, by a setuptools that pip fetches
def test_a_wheel_carries_the_sample(tmp_path: Path):
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "dpsql", clone / "dpsql", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "adult_sample", clone / "adult_sample")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    (clone / "adult_sample" / "adult.ledger").write_text("which must not go along")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(tmp_path)]
    subprocess.run([*pip, str(clone)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"dpsql/sample/adult.csv", "dpsql/sample/adult.toml"} <= set(names)
    assert not any(name.endswith(".ledger") for name in names)
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    command = [sys.executable, "-m", "dpsql", "demo", "-c", "SELECT COUNT(*) AS n FROM adult"]
    environment = {"PYTHONPATH": str(site), "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "state" / "dpsql" / "demo.ledger").exists()

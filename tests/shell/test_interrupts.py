"""Ctrl-C at any moment of the command's life: exit code 130, one line, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.shell.interrupts import EXIT, is_command

ROOT = Path(__file__).parent.parent.parent
_PRESSED = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


def run(arguments: list[str], folder: Path, modules: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Python with modules of the test's own in front of all others."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    paths = os.pathsep.join(map(str, (folder, ROOT)))
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        input="",
    )


@pytest.mark.parametrize("module", ["pandas", "numpy", "argparse"])
def test_while_libraries_are_imported(module: str, tmp_path: Path):
    """A library that is Ctrl-C itself: the first that is imported, or one that only the command needs."""
    ended = run(["-m", "dpsql", "--version"], tmp_path, {module: _PRESSED})
    assert (ended.returncode, ended.stderr.strip()) == (EXIT, "Interrupted.")


def test_of_the_installed_script(tmp_path: Path):
    script = tmp_path / "bin" / "dpsql"
    script.parent.mkdir()
    script.write_text("import sys\nfrom dpsql.shell.cli import main\nsys.exit(main())\n", encoding="utf-8")
    ended = run([str(script), "--version"], tmp_path, {"pandas": _PRESSED})
    assert (ended.returncode, ended.stderr.strip()) == (EXIT, "Interrupted.")


def test_while_the_command_opens_and_reads(tmp_path: Path):
    """After the imports: in the reading of options, of the owner's file, of the data."""
    (tmp_path / "people.csv").write_text("age\n30\n", encoding="utf-8")
    for where in (
        "dpsql.shell.arguments.parse",
        "dpsql.shell.session_setup.open_session",
        "dpsql.sources.frames.read_table",
    ):
        module, name = where.rsplit(".", 1)
        text = (
            f"import os, signal, sys\nimport {module} as m\n"
            f"def pressed(*a, **k):\n    os.kill(os.getpid(), signal.SIGINT)\n    sys.stdin.read()\n"
            f"m.{name} = pressed\nimport dpsql.shell.cli as cli\n"
            f"if hasattr(cli, {name!r}): cli.{name} = pressed\n"
            "sys.exit(cli.main(sys.argv[1:]))\n"
        )
        ended = run(
            ["-c", text, "people.csv", "--budget", "1", "--epsilon", "1", "-c", "SELECT COUNT(*) FROM people"],
            tmp_path,
            {},
        )
        assert (ended.returncode, "Traceback" in ended.stderr) == (EXIT, False), (where, ended.stderr)


def test_a_program_that_imports_dpsql_has_its_own_interrupt(tmp_path: Path):
    ended = run(
        ["-c", "try:\n    from dpsql import query\nexcept KeyboardInterrupt:\n    print('mine')"],
        tmp_path,
        {"pandas": _PRESSED},
    )
    assert ended.stdout == "mine\n"


def test_an_error_of_the_command_is_still_shown(tmp_path: Path):
    ended = run(["-m", "dpsql", "--version"], tmp_path, {"pandas": "raise ImportError('none here')"})
    assert ended.returncode == 1
    assert "ImportError: none here" in ended.stderr


@pytest.mark.parametrize(
    ("argv", "started", "command"),
    [
        (["-m"], ["python", "-m", "dpsql"], True),
        (["/usr/bin/dpsql"], ["python", "/usr/bin/dpsql", "x.csv"], True),
        (["dpsql.exe"], ["dpsql.exe"], True),
        (["/usr/bin/pytest"], ["python", "-m", "pytest"], False),
        (["-c"], ["python", "-c", "import dpsql"], False),
        (["/home/ann/report.py"], ["python", "/home/ann/report.py"], False),
        ([""], ["python"], False),
        ([], ["python", "-m"], False),
    ],
)
def test_what_is_the_command(argv: list[str], started: list[str], command: bool):
    assert is_command(argv, started) is command

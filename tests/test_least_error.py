"""The benchmark of least errors: it knows its lines by name, and what it prints of one is what was measured."""

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "least_error.py"


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(BENCHMARK), *words], capture_output=True, text=True, check=False)


def test_each_line_has_a_name_of_its_own() -> None:
    names = ran("--list").stdout.split()
    assert {"bands", "staircase", "unknown", "quantiles", "small_groups"} <= set(names)
    assert len(names) == len(set(names))


def test_a_line_runs_alone_and_names_its_setting() -> None:
    printed = ran("staircase", "session", "--runs", "200").stdout
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if line.startswith("|")]
    sums, counts = ([row for row in rows if row[0].startswith(name)] for name in ("SUM", "Gaussian"))
    assert (len(sums), len(counts)) == (1, 2)
    assert "epsilon 10" in sums[0][1]
    now, _, reach, ratio = map(float, sums[0][2:])
    assert abs(now / reach - ratio) < 0.01
    first = next(row for row in rows if row[0] == "question")
    assert first == ["question", "setting", "now", "theory", "to reach", "now / to reach"]


def test_a_name_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    found = ran("bonds")
    assert found.returncode == 2
    assert "no line is called bonds" in found.stderr
    assert "bands" in found.stderr

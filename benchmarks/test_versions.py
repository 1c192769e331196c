"""Runs the tests of SQL, engines and post-processing with the oldest and the newest sqlglot and DuckDB accepted.

python benchmarks/test_versions.py [--contract] [pytest arguments]

The oldest are the lower ends of the ranges in pyproject.toml, the newest are those that the extra `test` allows. Each
pair is installed into build/versions/ and stands before the environment's own on the path. With `--contract` only tests
of `make test` run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("sqlglot", "duckdb")
TESTS = ("tests/sql", "tests/executors", "tests/postprocess", "tests/test_tested_releases.py")
NOT_SPARK = ("--ignore", "tests/executors/spark")


def requirements() -> dict[str, list[str]]:
    """The requirements to install with pip, by the name of the pair."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest, newest = [], []
    for library in LIBRARIES:
        lowest = _found(rf"{library}>=([\d.]+)", project["dependencies"])
        oldest.append(f"{library}=={lowest}.0")
        newest.append(_found(rf"({library}<[\d.]+)", project["optional-dependencies"]["test"]))
    return {"oldest": oldest, "newest": newest}


def _found(pattern: str, requirements: list[str]) -> str:
    return next(match[1] for each in requirements if (match := re.match(pattern, each)))


def main() -> int:
    arguments = sys.argv[1:]
    chosen = ["--level", "contract"] if "--contract" in arguments else []
    arguments = [each for each in arguments if each != "--contract"]
    failed = []
    for name, wanted in requirements().items():
        folder = ROOT / "build" / "versions" / name
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--upgrade", "--target", str(folder), *wanted], check=True)
        environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
        versions = "; ".join(f"import {each}; print('{each}', {each}.__version__)" for each in LIBRARIES)
        subprocess.run([sys.executable, "-P", "-c", versions], check=True, env=environment)
        tests = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", *NOT_SPARK, *chosen]
        if subprocess.run([*tests, *arguments, *TESTS], env=environment, cwd=ROOT, check=False).returncode:
            failed.append(f"{name}: {', '.join(wanted)}")
    print(*(failed or ["passed with both"]), sep="\n")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())

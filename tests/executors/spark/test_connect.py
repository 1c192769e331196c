"""Frames of a Spark Connect client, in a process of its own: one process has one kind of session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    if find_spec("grpc") is None:
        pytest.skip('Spark Connect needs grpc: pip install "pyspark[connect]"')
    ran = subprocess.run(
        [sys.executable, "-m", "tests.executors.spark.connect_client"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answer


@pytest.mark.spark
def test_a_client_gives_the_same_integers(told: dict[str, Any]):
    assert told["module"].startswith("pyspark.sql.connect")
    assert told["engine"] == "spark"
    assert told["differences"] == []


@pytest.mark.spark
def test_its_session_is_set_back(told: dict[str, Any]):
    assert told["settings stay"]
    assert told["views"] == []


@pytest.mark.spark
def test_functions_in_the_place_of_sparks_are_refused(told: dict[str, Any]):
    assert "no functions of its own under the names md5" in told["registered"]

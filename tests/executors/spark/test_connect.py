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
def test_its_session_stays_as_it_is(told: dict[str, Any]):
    assert told["settings stay"]
    assert told["views"] == []
    assert told["global views"] == []


@pytest.mark.spark
def test_functions_and_views_of_its_own_are_not_seen(told: dict[str, Any]):
    assert told["registered"] == []
    assert told["threads"] == ""


@pytest.mark.spark
def test_frames_of_two_sessions_are_refused(told: dict[str, Any]):
    assert "o and t are frames of two sessions of Spark" in told["two sessions"]


@pytest.mark.spark
def test_errors_quote_no_cell(told: dict[str, Any]):
    assert "the run failed" in told["failing"]
    assert "somebody" not in told["failing"]

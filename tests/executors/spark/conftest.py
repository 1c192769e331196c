"""One session of Spark for all tests here: two threads, few partitions, in one worker of pytest-xdist.

Where Java or pyspark is missing these tests are skipped, and fail where CI says that it runs them.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
OWNERS = {
    "spark.sql.session.timeZone": "America/Lima",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
}
"""Settings of the owner's, which must not matter."""


def missing() -> str:
    """What Spark needs and is not there."""
    if find_spec("pyspark") is None:
        return 'pyspark is not installed: pip install "dpsql[spark]"'
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and (home is None or not Path(home, "bin", "java").exists()):
        return "there is no Java: apt-get install openjdk-17-jre-headless"
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session", autouse=True)
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    every = request.config.option.markexpr == "spark or not spark"  # make spark
    reason = missing()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of newer pandas, which is not used
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").appName("tests of dpsql")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.adaptive.enabled": "false",
            "spark.driver.memory": "2g",
            # To compile the code of a statement takes longer than it does: `make spark` does so, and functions do.
            "spark.sql.codegen.wholeStage": str(every).lower(),
            **OWNERS,
        }.items():
            builder = builder.config(name, value)
        held = builder.getOrCreate()
    held.sparkContext.setLogLevel("OFF")
    yield held
    held.stop()

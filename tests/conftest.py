"""What all tests share: levels (`make test`, `make test-all`), the sample data, property tests without a clock."""

import os
import shutil
from collections.abc import Generator
from pathlib import Path
from zlib import crc32

import pandas as pd
import pytest
from hypothesis import settings

from tests.levels import LEVELS, has_contract, is_contract

settings.register_profile("dpsql", deadline=None)  # a slow machine is no failure
settings.load_profile("dpsql")


ROOT = Path(__file__).parent.parent
MAY_BE_SKIPPED = (
    "root writes everywhere",
    "pyright is not on the path",
    "needs a program that shows system calls",
    "system calls cannot be watched here",
    "no such place here",
    "no Python that another user can run",
)
"""Reasons to skip a test that CI accepts. It fails for any other: a browser, kernel or engine that it lacks."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--level", choices=LEVELS, help="the tests of `make test` (contract), or all others (rest)")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.getoption("--level") != "contract" or collection_path.suffix != ".py" or not collection_path.is_file():
        return None
    file = collection_path.relative_to(ROOT).as_posix()
    return not has_contract(file, collection_path.read_text(encoding="utf-8")) or None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_if_skipped_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        fail_if_skipped_in_ci(report)
    return report


def fail_if_skipped_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Makes a skip a failure where CI=true, unless its reason is one of MAY_BE_SKIPPED."""
    if os.environ.get("CI") == "true" and report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(accepted in reason for accepted in MAY_BE_SKIPPED):
            report.outcome = "failed"
            report.longrepr = f"{reason}: CI=true, so nothing may be skipped for this"


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test under `thinned(n)`, about one case in n runs by default, the others with the slow tests.

    By a hash of the case's name: the same ones everywhere, and no pattern of the parameters can leave a kind out. The
    first case of a test always runs."""
    kept: set[str] = set()
    for item in items:
        thinned = item.get_closest_marker("thinned")
        if thinned is not None:
            test = item.nodeid.partition("[")[0]
            if test in kept and crc32(item.nodeid.encode()) % thinned.args[0]:
                item.add_marker(pytest.mark.slow)
            kept.add(test)
    level = config.getoption("--level")
    if level is not None:
        left_out = [item for item in items if is_contract(item.nodeid) != (level == "contract")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if is_contract(item.nodeid) == (level == "contract")]


SAMPLE = ROOT / "adult_sample"


@pytest.fixture
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample's folder: adult.csv, adult.toml, README.md. Its ledger goes with it, and no budget of the
    clone's is spent."""
    files = shutil.ignore_patterns("*.ledger")
    return Path(shutil.copytree(SAMPLE, tmp_path_factory.mktemp("clone") / SAMPLE.name, ignore=files))


@pytest.fixture(scope="session")
def _read_once() -> pd.DataFrame:
    return pd.read_csv(SAMPLE / "adult.csv")


@pytest.fixture
def adult(_read_once: pd.DataFrame) -> pd.DataFrame:
    """The sample as a DataFrame, which a test may change: copy-on-write keeps the others' as it was."""
    return _read_once.copy(deep=False)

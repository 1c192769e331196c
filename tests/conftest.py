"""What all tests share: the sample data, and property tests without a clock."""

import shutil
from pathlib import Path
from zlib import crc32

import pandas as pd
import pytest
from hypothesis import settings

settings.register_profile("dpsql", deadline=None)  # a slow machine is no failure
settings.load_profile("dpsql")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
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


SAMPLE = Path(__file__).parent.parent / "adult_sample"


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

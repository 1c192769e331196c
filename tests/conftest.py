"""What all tests share: the sample data, and property tests without a clock."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import settings

settings.register_profile("dpsql", deadline=None)  # a slow machine is no failure
settings.load_profile("dpsql")


@pytest.fixture(scope="session")
def sample() -> Path:
    """The folder of the sample data: adult.csv, adult.toml, README.md."""
    return Path(__file__).parent.parent / "adult_sample"


@pytest.fixture(scope="session")
def _read_once(sample: Path) -> pd.DataFrame:
    return pd.read_csv(sample / "adult.csv")


@pytest.fixture
def adult(_read_once: pd.DataFrame) -> pd.DataFrame:
    """The sample as a DataFrame, which a test may change: copy-on-write keeps the others' as it was."""
    return _read_once.copy(deep=False)

"""The sample data are the copy that its README describes, and the owner's schema fits them."""

import hashlib
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest


@pytest.fixture
def declared(sample: Path) -> dict[str, dict]:
    return tomllib.loads((sample / "adult.toml").read_text())["tables"]["adult"]["columns"]


def test_copy_has_the_known_facts(adult: pd.DataFrame):
    assert adult.shape == (32_561, 14)
    assert adult["age"].mean() == pytest.approx(38.58164675532078, abs=1e-12)
    assert (adult["age"] >= 40).sum() == 14_237
    assert (adult["salary"] == ">50K").sum() == 7_841
    assert not adult.isna().to_numpy().any()


def test_levels_of_education_are_as_frequent_as_in_the_original(adult: pd.DataFrame):
    counts = adult["education"].value_counts()
    assert len(counts) == 16
    assert counts.head(3).to_dict() == {"HS-grad": 10_501, "Some-college": 7_291, "Bachelors": 5_355}
    assert (counts.index[-1], counts.iloc[-1]) == ("Preschool", 51)


def test_readme_gives_the_checksum(sample: Path):
    digest = hashlib.sha256((sample / "adult.csv").read_bytes()).hexdigest()
    assert f"{digest}  adult.csv" in (sample / "README.md").read_text()


def test_schema_names_the_budget_the_neighbours_and_the_file(sample: Path):
    schema = tomllib.loads((sample / "adult.toml").read_text())
    assert schema["budget"] == {"epsilon": 3.0, "delta": 1e-6}
    assert schema["neighbours"] == "unbounded"
    assert (sample / schema["tables"]["adult"]["path"]).is_file()


def test_every_column_is_declared_in_order(adult: pd.DataFrame, declared: dict[str, dict]):
    assert list(declared) == list(adult.columns)
    numeric = [name for name, facts in declared.items() if facts["type"] == "integer"]
    assert numeric == list(adult.select_dtypes("int64").columns)
    assert {facts["type"] for facts in declared.values()} == {"integer", "text"}


def test_declared_facts_hold_on_the_sample(adult: pd.DataFrame, declared: dict[str, dict]):
    for name, facts in declared.items():
        assert ("bounds" in facts) == (facts["type"] == "integer"), name
        if "bounds" in facts:
            assert adult[name].between(*facts["bounds"]).all(), name
        if "keys" in facts:
            assert set(adult[name]) <= set(facts["keys"]), name
            assert len(set(facts["keys"])) == len(facts["keys"]), name


def test_only_the_native_country_has_unknown_keys(declared: dict[str, dict]):
    assert [name for name, facts in declared.items() if not {"bounds", "keys"} & set(facts)] == ["native-country"]


def test_a_comment_above_each_column_gives_the_reason(sample: Path, declared: dict[str, dict]):
    lines = (sample / "adult.toml").read_text().splitlines()
    reasons = {match[1]: above for above, line in pairwise(lines) if (match := re.match(r'"?([\w-]+)"? = \{', line))}
    assert list(reasons) == list(declared)
    for name, reason in reasons.items():
        assert re.match(r"# \w.{20,}", reason), f"no reason above {name}"

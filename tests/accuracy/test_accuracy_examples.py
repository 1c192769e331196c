"""The examples on accuracy draw their plots, docs/accuracy quotes what they print, and what they claim holds."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import re
import sys
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpsql
from dpsql.accuracy import exponential, laplace, permute_and_flip
from tests.seeding import seed
from tests.test_privacy_examples import alike, check_plot, fixed, prints, stated

ROOT = Path(__file__).parent.parent.parent
SCRIPTS, PAGES = ROOT / "examples" / "accuracy", ROOT / "docs" / "accuracy"
EXAMPLES = sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem != "shared")


@cache
def example(name: str) -> ModuleType:
    """The script as a module; scripts import `shared` from their own folder."""
    if str(SCRIPTS) not in sys.path:
        sys.path.append(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location(f"accuracy_example_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page(name), re.DOTALL | re.MULTILINE)


# Every example


def test_every_script_has_its_page_and_its_plot() -> None:
    assert len(EXAMPLES) == 7
    assert sorted(path.stem for path in PAGES.glob("*.md")) == ["README", *EXAMPLES]
    assert sorted(path.stem for path in PAGES.glob("*.png")) == EXAMPLES
    assert sorted(re.findall(r"^- \[.*\]\((\w+)\.md\): ", page("README"), re.MULTILINE)) == EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, printed = example(name), io.StringIO()
    if hasattr(module, "ANSWERS"):
        monkeypatch.setattr(module, "ANSWERS", 5)
    with contextlib.redirect_stdout(printed):
        module.main(tmp_path / "plots")
    assert [path.name for path in (tmp_path / "plots").iterdir()] == [f"{name}.png"]
    assert check_plot(tmp_path / "plots" / f"{name}.png") == check_plot(PAGES / f"{name}.png")

    out, text = printed.getvalue(), page(name)
    assert "nan" not in out
    assert f"]({name}.png)" in text
    assert f"python examples/accuracy/{name}.py" in text
    assert blocks(name, "text")
    for block in blocks(name, "text"):
        for line in fixed([line for line in block.splitlines() if line]):
            assert prints(out, line), f"the script does not print: {line}"
    found = re.findall(r"\d+\.\d+", out)
    for number in stated(text):
        assert any(alike(number, each) for each in found), f"the script does not print {number}"


def test_links_lead_somewhere() -> None:
    for name in ("README", *EXAMPLES):
        for link in re.findall(r"\]\(([^)#]+)\)", page(name)):
            assert (PAGES / link).exists(), f"{name}: {link}"


def test_code_on_the_pages_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("README", "python")
    exec(compile(block, "README", "exec"), {})
    assert "Bound(paper=" in capsys.readouterr().out
    for line in re.findall(r"`dpsql\.accuracy\.(\w+\([^`.]*\))`", page("noise_on_a_histogram")):
        assert eval(f"dpsql.accuracy.{line}", {"dpsql": dpsql}) > 0


# 1. Sensitivity


def test_distance() -> None:
    distance = example("sensitivity").distance
    table = pd.DataFrame({"a": [1, 1, 2], "b": ["x", "x", "y"]})
    assert distance(table, table[::-1]) == 0
    assert distance(table, table[1:]) == distance(table[1:], table) == 1
    assert distance(table, table.assign(a=[1, 1, 3])) == 2
    assert distance(table, pd.concat([table, table])) == 3


@pytest.mark.parametrize("question", ["COUNT(*)", "SUM(age)", "AVG(age)"])
def test_moves_by_plain_brute_force(question: str) -> None:
    """On a small table: every row taken out, put in again, made like every other, one at a time."""
    module = example("sensitivity")
    rows = np.array([[1, 30], [0, 0], [1, 41], [1, 17], [0, 0], [1, 90]], dtype=float)

    def answer(table: np.ndarray) -> float:
        return float(module.QUESTIONS[question](table.sum(axis=0)))

    removed = [np.delete(rows, i, axis=0) for i in range(len(rows))]
    added = [np.vstack([rows, row]) for row in rows]
    changed = [np.vstack([one, row]) for one in removed for row in rows]
    for tables, found in zip((removed, added, changed), module.most(question, rows), strict=True):
        assert found == pytest.approx(max(abs(answer(table) - answer(rows)) for table in tables))


def test_one_row_never_moves_further_than_stated(adult: pd.DataFrame) -> None:
    """By the page's numbers: what was measured is at most what dpsql states, for counts and sums."""
    for block in blocks("sensitivity", "text")[1:3]:
        lines = block.splitlines()[3:]
        assert len(lines) == 4
        for line in lines:
            _, removed, added, changed, *facts = map(float, re.findall(r"\d+(?= )|\d+$", line.split("  ", 1)[1]))
            assert max(removed, added) <= facts[0]
            assert changed <= max(facts[1:])


# 2. Clipping


def test_errors_of_clipping() -> None:
    module = example("clipping")
    ages = np.array([10.0, 20, 30, 70])
    lost, noise, both = module.errors(ages, 25)
    assert (lost, noise) == (5 + 45, pytest.approx(25 * math.sqrt(2)))
    assert both == pytest.approx(math.hypot(50, 25 * math.sqrt(2)))
    told = dpsql.query(pd.DataFrame({"age": ages}), f"EXPLAIN PRIVACY {module.SQL}", epsilon=1, bounds={"age": (0, 25)})
    assert told.to_dict()["releases"][0]["scale"] == 25


def test_what_the_page_says_of_bounds(adult: pd.DataFrame) -> None:
    module = example("clipping")
    few, everyone = adult["age"].to_numpy(dtype=float)[:1000], adult["age"].to_numpy(dtype=float)

    def best(ages: np.ndarray) -> int:
        return min(range(1, 200), key=lambda upper: module.errors(ages, upper)[2])

    assert best(few) == 77
    assert best(everyone) == everyone.max() == 90
    assert 30 < module.errors(few, 77 / 2)[2] / module.errors(few, 77)[2] < 50


# 3. Bounds by growing


def test_growing_gives_one_person_away(adult: pd.DataFrame) -> None:
    module, ages = example("bounds_by_growing"), adult["age"].to_numpy()[:1000]
    assert np.count_nonzero(ages == ages.max()) == 1
    assert (module.grown(ages), module.grown(ages[ages < ages.max()])) == (90, 85)
    assert module.sums(np.array([3, 7, 12]), module.STEPS).tolist()[:3] == [13, 20, 22]
    assert set(module.STEPS) > {85, 90}, "what it stops at is among what it tries"


def test_private_choices_follow_what_the_page_says(adult: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """2^(k/2) down to whole numbers; each half octave is worth 0.75 / (30 % of epsilon) people, and is drawn by the
    exponential mechanism. [-B, B] beside [0, B] leaves the shares of each B as they are."""
    seed(monkeypatch, 1)
    module, people, runs = example("bounds_by_growing"), adult[:1000], 150
    whole = sorted({math.isqrt(2**k) for k in range(125)})
    steps = np.array([min(k for k in range(125) if math.isqrt(2**k) == bound) for bound in whole])
    above = (people["age"].to_numpy()[:, np.newaxis] > np.array(whole, dtype=float)).sum(axis=0)
    weights = np.exp(-0.3 * above - 0.75 * steps + 0.75 * steps[whole.index(90)])
    law = dict(zip(whole, weights / weights.sum(), strict=True))
    drawn = Counter(module.chosen(people) for _ in range(runs))
    assert sum(count for bound, count in drawn.items() if bound not in law) <= runs / 20, "intervals that lie anywhere"
    assert set(module.HALF_OCTAVES) < set(law)
    for bound, chance in law.items():
        assert abs(drawn[bound] - runs * chance) <= 5 * math.sqrt(runs * chance * (1 - chance)) + 3
    assert max(law, key=law.__getitem__) == 90


# 4, 5. Noise


def test_the_table_of_reaches() -> None:
    found = dict(re.findall(r"^([\d.]+) +\d+ +(\d+) +\d+$", blocks("noise_on_a_histogram", "text")[1], re.MULTILINE))
    assert found == {f"{e}": f"{laplace(epsilon=e, k=16, discrete=True).exact:.0f}" for e in (1, 0.1, 0.01)}


def test_the_largest_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 1)
    module = example("largest_noise")
    for k in module.SIZES:
        drawn = module.largest(k)
        assert drawn.shape == (module.RUNS,)
        law = lambda x, k=k: (1 - np.exp(-x / module.SCALE)) ** k  # noqa: E731
        assert stats.kstest(drawn, law).pvalue > 1e-6
        assert np.quantile(drawn, 0.95) == pytest.approx(laplace(module.SCALE, k=k).exact, rel=0.12)


# 6. Choices


def test_who_is_ahead(adult: pd.DataFrame) -> None:
    counts = adult["education"].value_counts()
    assert counts.iloc[0] - counts.iloc[1] == 3210
    bounds = [worst(16, Fraction(1, 5000), monotone=True, counts=True) for worst in (exponential, permute_and_flip)]
    assert bounds[0].paper > len(adult) > bounds[0].exact > bounds[1].exact > counts.iloc[0] - counts.iloc[-1] > 10333


def test_the_examples_draw_by_their_laws(adult: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 1)
    module, people = example("exponential_mechanism"), adult["education"].value_counts().to_numpy()
    runs, epsilon = 20_000, Fraction("0.0002")
    for mechanism, draw in module.DRAW.items():
        law = np.array(module.choice(people.tolist(), epsilon, mechanism=mechanism, monotone=True).probabilities)
        drawn = np.bincount(draw(np.tile(people.max() - people, (runs, 1)), epsilon), minlength=16)
        assert stats.chisquare(drawn, runs * law).pvalue > 1e-6


# 7. Pivots


def test_pivots_mean_the_same_bands(adult: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    module, people = example("pivot_three_ways"), adult[:1000].rename(columns={"hours-per-week": "hours"})
    monkeypatch.setattr(module, "EPSILON", 10**6)
    ages, hours = people["age"].to_numpy(), people["hours"].to_numpy()
    within = [(ages >= low) & (ages < high) for low, high in zip(module.ENDS, (*module.ENDS[1:], 91), strict=True)]
    for ask, _ in module.WAYS.values():
        assert ask(people, "1").tolist() == [np.count_nonzero(band) for band in within]
        assert ask(people, "hours").tolist() == [hours[band].sum() for band in within]


def test_pivots_have_the_noise_that_the_page_says(adult: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    module, people = example("pivot_three_ways"), adult[:10].rename(columns={"hours-per-week": "hours"})
    texts: list[tuple[str, float]] = []
    honest = module.asked

    def asked(people: pd.DataFrame, sql: str, epsilon: float) -> pd.DataFrame:
        texts.append((sql, epsilon))
        found: pd.DataFrame = honest(people, sql, epsilon)
        return found

    monkeypatch.setattr(module, "asked", asked)
    for way, (ask, shares) in module.WAYS.items():
        for worth, most in (("1", 1), ("hours", 99)):
            texts.clear()
            ask(people, worth)
            assert len(texts) == shares, way
            scale = most * shares / module.EPSILON
            assert math.fsum(epsilon for _, epsilon in texts) == pytest.approx(module.EPSILON)
            for sql, epsilon in texts:
                told = dpsql.query(people, f"EXPLAIN PRIVACY {sql}", epsilon=epsilon, bounds=module.BOUNDS).to_dict()
                assert {each["mechanism"] for each in told["releases"]} == {"discrete_laplace"}
                assert [each["scale"] for each in told["releases"]] == pytest.approx([scale] * len(told["releases"]))
            assert module.noise(most, shares) == pytest.approx(math.sqrt(2) * scale, rel=0.01)

"""The lessons in examples/privacy draw their plots, docs/privacy quotes what they print, and what they claim holds."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import math
import re
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image
from scipy import integrate, stats

from dpsql import accounting
from dpsql.core.mechanisms.noise import CubeLaplace

ROOT = Path(__file__).parent.parent
SCRIPTS, PAGES = ROOT / "examples" / "privacy", ROOT / "docs" / "privacy"
LESSONS = sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem != "lesson")
RANDOM = "random draw"


@cache
def lesson(name: str) -> ModuleType:
    """The script as a module; scripts import `lesson` from their own folder."""
    if str(SCRIPTS) not in sys.path:
        sys.path.append(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location(f"privacy_lesson_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


# Every lesson.


def test_every_script_has_its_page_and_its_plot() -> None:
    assert len(LESSONS) == 8
    assert sorted(path.stem for path in PAGES.glob("*.md")) == ["README", *LESSONS]
    assert sorted(path.stem for path in PAGES.glob("*.png")) == LESSONS
    assert sorted(re.findall(r"^- \[.*\]\((\w+)\.md\): ", page("README"), re.MULTILINE)) == LESSONS


def check_plot(path: Path) -> tuple[int, int]:
    """A PNG of sensible size that shows something; its width and height."""
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert 5_000 < path.stat().st_size < 60_000
    with Image.open(path) as image:
        seen = np.asarray(image.convert("L"))
        assert 0.01 < (seen < 200).mean() < 0.5, "some ink, and not too much"
        return image.size


def text_blocks(name: str) -> list[list[str]]:
    blocks = re.findall(r"^```text\n(.*?)^```$", page(name), re.DOTALL | re.MULTILINE)
    return [[line for line in block.splitlines() if line] for block in blocks]


def fixed(block: list[str]) -> list[str]:
    """The lines of a printed table without what depends on random draws: a table, a row or the last column of it."""
    if RANDOM in block[0]:
        return block[1:2]
    if len(block) > 1 and RANDOM in block[1]:
        return [block[0], *(line.rsplit(maxsplit=1)[0] for line in block[2:])]
    return [line for line in block if RANDOM not in line]


def alike(said: str, printed: str) -> bool:
    """The same word, or decimal numbers that differ by no more than an accountant's margin."""
    if said == printed or not ("." in said and "." in printed):
        return said == printed
    try:
        return math.isclose(float(said), float(printed), rel_tol=2e-3)
    except ValueError:
        return False


def prints(out: str, line: str) -> bool:
    """Whether a line of the output begins with the words of this line."""
    words = line.split()
    lines = (seen.split() for seen in out.splitlines())
    return any(len(seen) >= len(words) and all(map(alike, words, seen)) for seen in lines)


def stated(text: str) -> list[str]:
    """The decimal numbers of a page's prose: no code, formulas, or places in the literature."""
    text = re.sub(r"^```.*?^```$|`[^`]*`|^    .*$", "", text, flags=re.DOTALL | re.MULTILINE)
    places = r"\b(?:theorem|proposition|definition|section|lemma|corollary|appendix)s?\s+[\d.]+(?:\s+and\s+[\d.]+)?"
    return re.findall(r"(?<![\w.])\d+\.\d+(?![\w])", re.sub(places, "", text))


@pytest.mark.parametrize("name", LESSONS)
def test_lesson(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, printed = lesson(name), io.StringIO()
    if hasattr(module, "DRAWN"):
        monkeypatch.setattr(module, "DRAWN", 32)
    with contextlib.redirect_stdout(printed):
        module.main(tmp_path / "plots")
    assert [path.name for path in (tmp_path / "plots").iterdir()] == [f"{name}.png"]
    assert check_plot(tmp_path / "plots" / f"{name}.png") == check_plot(PAGES / f"{name}.png")

    out, text = printed.getvalue(), page(name)
    assert "nan" not in out
    assert f"]({name}.png)" in text
    assert f"python examples/privacy/{name}.py" in text
    assert text_blocks(name)
    for block in text_blocks(name):
        for line in fixed(block):
            assert prints(out, line), f"the script does not print: {line}"
    printed_numbers = re.findall(r"\d+\.\d+", out)
    for number in stated(text):
        assert any(alike(number, each) for each in printed_numbers), f"the script does not print {number}"


def test_code_on_the_pages_runs(capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        block
        for name in LESSONS
        for block in re.findall(r"^```python\n(.*?)^```$", page(name), re.DOTALL | re.MULTILINE)
    ]
    assert found
    for block in found:
        exec(compile(block, "page", "exec"), {})
    assert "zcdp" in capsys.readouterr().out


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    module = lesson("catastrophe")
    monkeypatch.setattr(sys, "argv", ["catastrophe.py", "--out", str(tmp_path)])
    module.run(module.main)
    assert (tmp_path / "catastrophe.png").exists()
    monkeypatch.setattr(sys, "argv", ["catastrophe.py"])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "catastrophe.png").unlink()
    module.run(module.main)
    assert (tmp_path / "catastrophe.png").exists()
    assert "What delta allows" in capsys.readouterr().out


# 1. Laplace and Gaussian.


def test_densities() -> None:
    module = lesson("laplace_and_gaussian")
    x = np.linspace(-80, 80, 160_001)
    laplace, tight = module.laplace_density, module.tight_sigma(0.5, 1e-5)
    assert integrate.trapezoid(laplace(x, 2), x) == pytest.approx(1)
    assert integrate.trapezoid(module.gaussian_density(x, tight), x) == pytest.approx(1)
    assert (laplace(x, 2) / laplace(x - 1, 2)).max() == pytest.approx(math.exp(0.5))
    over = module.gaussian_density(x, tight) - math.exp(0.5) * module.gaussian_density(x - 1, tight)
    assert integrate.trapezoid(np.maximum(over, 0), x) == pytest.approx(1e-5, rel=1e-4)
    assert module.laplace_width(2, 0.05) == pytest.approx(stats.laplace.isf(0.025, scale=2))
    assert module.gaussian_width(7, 0.05) == pytest.approx(stats.norm.isf(0.025, scale=7))


def test_the_three_calibrations_are_ordered(adult) -> None:
    module = lesson("laplace_and_gaussian")
    zcdp, tight = module.zcdp_sigma(0.5, 1e-5), module.tight_sigma(0.5, 1e-5)
    assert tight < zcdp < accounting.classic_gaussian_sigma(0.5, 1e-5)
    assert accounting.zcdp([accounting.Gaussian(zcdp)], 1e-5) == pytest.approx(0.5, abs=1e-4)
    assert module.engine_scale(adult, "gaussian") == pytest.approx(tight, rel=1e-5)
    assert module.engine_scale(adult, "laplace") == 2


# 2. Vectors.


@pytest.mark.parametrize(("delta", "tight", "zcdp"), [(1e-5, 7.0, 8.2), (1e-6, 8.9, 10.3), (1e-9, 15.1, 16.7)])
def test_crossovers(delta: float, tight: float, zcdp: float) -> None:
    module = lesson("vector_norms")
    sigma = module.tight_sigma(delta)
    exact = stats.norm.cdf(0.5 / sigma - sigma) - math.e * stats.norm.cdf(-0.5 / sigma - sigma)
    assert exact == pytest.approx(delta, rel=1e-6)
    assert sigma**2 / 2 == pytest.approx(tight, abs=0.05)
    assert module.zcdp_sigma(delta) ** 2 / 2 == pytest.approx(zcdp, abs=0.05)
    found = module.engine_scale(1, "gaussian", delta)[1] ** 2 / 2
    assert found == pytest.approx(tight, abs=0.05)
    assert module.engine_scale(math.floor(found), "auto", delta)[0] == "discrete_laplace"
    assert module.engine_scale(math.ceil(found), "auto", delta)[0] == "rounded_gaussian"


def test_norms_and_what_noise_they_take() -> None:
    module = lesson("vector_norms")
    for k in (1, 4, 9):
        assert module.l1(np.ones(k)) == k
        assert module.l2(-np.ones(k)) == pytest.approx(math.sqrt(k))
        assert module.engine_scale(k, "laplace")[1] == k
        one = module.engine_scale(1, "gaussian")[1]
        assert module.engine_scale(k, "gaussian")[1] == pytest.approx(math.sqrt(k) * one, rel=1e-6)
    k_norm = lesson("composition_is_tight").k_norm_deviation
    gaussian = module.engine_scale(1, "gaussian")[1]
    better = [k for k in range(1, 101) if k_norm(k) < gaussian * math.sqrt(k)]
    assert 36 <= better[-1] <= 46, "the page says: up to some forty"
    assert better == list(range(1, better[-1] + 1))


# 3. The catastrophe.


def test_the_catastrophe_happens_with_probability_delta() -> None:
    module, draw = lesson("catastrophe"), np.random.default_rng(1)
    for delta in (0.3, 0.01):
        told = [module.catastrophe("secret", delta, draw) for _ in range(50_000)]
        assert set(told) == {"secret", None}
        happened = sum(answer is not None for answer in told)
        assert stats.binomtest(happened, len(told), delta).pvalue > 1e-4


def test_name_and_shame() -> None:
    module, draw = lesson("catastrophe"), np.random.default_rng(2)
    shamed = [len(module.name_and_shame(1000, 1e-3, draw)) for _ in range(5000)]
    assert np.mean(shamed) == pytest.approx(1, abs=0.07)
    somebody = int(np.count_nonzero(shamed))
    assert stats.binomtest(somebody, 5000, module.anyone(1000, 1e-3)).pvalue > 1e-4
    assert module.anyone(1000, 1e-3) == pytest.approx(stats.binom.sf(0, 1000, 1e-3))
    assert module.anyone(1e6, 1e-6) == pytest.approx(1 - math.exp(-1), rel=1e-5)
    assert module.anyone(32561, 1e-9) == pytest.approx(32561e-9, rel=1e-4)


def test_the_engine_has_no_such_mechanism() -> None:
    for path in (ROOT / "dpsql").rglob("*.py"):
        assert not re.search("catastroph|name_and_shame", path.read_text(encoding="utf-8"), re.IGNORECASE), path


# 4. Composition is tight.


def test_the_two_lines_coincide(adult) -> None:
    module = lesson("composition_is_tight")
    for k in (1, 2, 3, 5, 8, 16):
        one, vector = module.stated_scales(adult, k)
        assert one == pytest.approx(vector, rel=1e-9)
        assert one == pytest.approx(k / module.EPSILON)


def test_no_accountant_can_say_less() -> None:
    k, below = 16, -100.0
    ratio = sum(stats.laplace.logpdf(below, 0, k) - stats.laplace.logpdf(below, 1, k) for _ in range(k))
    assert ratio == pytest.approx(1)


def test_the_deviation_of_k_norm_noise() -> None:
    k_norm = lesson("composition_is_tight").k_norm_deviation
    for k in (1, 4, 16):
        drawn = CubeLaplace(Fraction(2**20), k).draw(20_000).astype(float) / 2**20
        assert np.sqrt((drawn**2).mean()) == pytest.approx(k_norm(k), rel=0.06)
    assert math.sqrt(2) * 10**6 / k_norm(10**6) == pytest.approx(math.sqrt(6), rel=1e-5)


# 5. Advanced composition.


def test_advanced_scales_solve_the_theorem() -> None:
    module = lesson("advanced_composition")
    for k in (1, 25, 26, 1024):
        each = 1 / module.advanced_scale(k)
        total = each * math.sqrt(2 * k * math.log(1e5)) + k * each * math.expm1(each)
        assert total == pytest.approx(1, rel=1e-5)
    assert module.advanced_scale(25) > module.basic_scale(25)
    assert module.advanced_scale(26) < module.basic_scale(26)


def test_gaussians_for_vectors() -> None:
    module = lesson("advanced_composition")
    for k in (4, 64, 1024):
        assert module.zcdp_sigma(k) == pytest.approx(math.sqrt(k) * module.zcdp_sigma(1), rel=1e-5)
        assert module.tight_sigma(k) == pytest.approx(math.sqrt(k) * module.tight_sigma(1), rel=1e-5)
        assert math.sqrt(2) * module.advanced_scale(k) > 1.7 * module.zcdp_sigma(k)
    assert math.sqrt(2) * module.basic_scale(8) < module.zcdp_sigma(8)
    assert math.sqrt(2) * module.basic_scale(9) > module.zcdp_sigma(9)


def test_many_laplace_answers_have_root_two_times_the_noise() -> None:
    module = lesson("advanced_composition")
    ratio = math.sqrt(2) * module.exact_scale(1024) / module.tight_sigma(1024)
    assert ratio == pytest.approx(math.sqrt(2), rel=0.01)


# 6. Epsilon by iterations.

AT_100 = {
    "basic": 1.882,
    "advanced": 1.009,
    "RDP, alpha 60": 0.2701,
    "zCDP, classic": 0.2412,
    "RDP, best alpha": 0.1775,
    "zCDP, tight": 0.1775,
    "PLD": 0.1600,
}


@pytest.mark.parametrize(("name", "epsilon"), AT_100.items(), ids=AT_100)
def test_check_values_at_100_iterations(name: str, epsilon: float) -> None:
    module = lesson("epsilon_by_iterations")
    assert module.ACCOUNTANTS[name][0](module.steps(100)) == pytest.approx(epsilon, rel=1e-3)


def test_the_best_order_makes_rdp_what_zcdp_says() -> None:
    module = lesson("epsilon_by_iterations")
    for k in (1, 100, 1000):
        best = module.classic_rdp(k, module.best_classic_alpha(k))
        assert best == pytest.approx(module.ACCOUNTANTS["zCDP, classic"][0](module.steps(k)), rel=1e-6)
        assert best <= min(module.classic_rdp(k, alpha) for alpha in np.logspace(0.1, 4, 300))
        for alpha in (20, 60):
            told = module.ACCOUNTANTS[f"RDP, alpha {alpha}"][0](module.steps(k))
            assert told == pytest.approx(module.classic_rdp(k, alpha), rel=1e-6)


def test_accountants_are_ordered() -> None:
    module = lesson("epsilon_by_iterations")
    for k in (10, 100, 1000):
        told = {name: epsilon(module.steps(k)) for name, (epsilon, _, _) in module.ACCOUNTANTS.items()}
        assert told["PLD"] < told["zCDP, tight"] < told["zCDP, classic"] < told["advanced"]
        assert told["RDP, best alpha"] == pytest.approx(told["zCDP, tight"], rel=1e-3)


# 7. Stability.


def test_proposition_2_against_the_square() -> None:
    module = lesson("stability")
    for c in (1, 2, 3, 4):
        slope = accounting.RDP(lambda alpha: alpha).stable(c).at(4) / 4
        assert slope / 4**c == pytest.approx(module.proposition_2(c))
    assert module.proposition_2(3) == 27 / 8


@pytest.mark.parametrize("k", [1, 2, 8, 32])
def test_group_privacy_by_each_rule(k: int) -> None:
    module = lesson("stability")
    gaussian, laplace = (accounting.group_privacy(event, k, 1e-5)["epsilon"] for event in module.EVENTS.values())
    assert gaussian["exact"] == pytest.approx(accounting.gaussian_epsilon(100, 1e-5, k), rel=1e-4)
    assert gaussian["exact"] <= gaussian["zcdp"] * (1 + 1e-9) <= gaussian["rdp_proposition_2"] * (1 + 1e-3)
    assert gaussian["zcdp"] == pytest.approx(accounting.zcdp([accounting.Gaussian(100, k)], 1e-5), rel=1e-4)
    assert gaussian["exact"] <= gaussian["approximate"]
    pure = k * sum(float(event.epsilon) * event.count for event in [list(module.EVENTS.values())[1]])
    assert laplace["pure"] == pytest.approx(pure)
    assert laplace["exact"] <= laplace["pure"] * (1 + 1e-9)


def test_dpsql_has_the_rows_of_a_person_in_its_sensitivity() -> None:
    module = lesson("stability")
    for mechanism in ("laplace", "gaussian"):
        one, eight = module.explained(None, mechanism), module.explained(8, mechanism)
        assert (one["sensitivity"]["l1"], eight["sensitivity"]["l1"]) == (1, 8)
        assert eight["scale"] == pytest.approx(8 * one["scale"], rel=1e-6)


# 8. Propose-test-release. Small tables: sorted tuples of values in 0..3.

LOW, HIGH = 0, 3
SMALL = [rows for size in range(8) for rows in itertools.combinations_with_replacement(range(LOW, HIGH + 1), size)]


def mean(rows: tuple[int, ...]) -> Fraction:
    return Fraction(sum(rows), len(rows)) if rows else Fraction(LOW + HIGH, 2)


@cache
def brute_sensitivity(rows: tuple[int, ...]) -> Fraction:
    added = [Fraction(sum(rows) + v, len(rows) + 1) for v in (Fraction(i, 4) for i in range(4 * LOW, 4 * HIGH + 1))]
    removed = [mean(rows[:i] + rows[i + 1 :]) for i in range(len(rows))]
    return max(abs(each - mean(rows)) for each in added + removed)


def neighbours(rows: tuple[int, ...]) -> set[tuple[int, ...]]:
    added = {tuple(sorted((*rows, v))) for v in range(LOW, HIGH + 1)}
    return added | {rows[:i] + rows[i + 1 :] for i in range(len(rows))}


def brute_distance(rows: tuple[int, ...], bound: float) -> float:
    reached, steps = {rows}, 0
    while not any(brute_sensitivity(each) > bound for each in reached):
        wider = reached.union(*(neighbours(each) for each in reached)) & set(SMALL)
        if wider == reached:
            return math.inf
        reached, steps = wider, steps + 1
    return steps


def array(rows: tuple[int, ...]) -> np.ndarray:
    return np.array(rows, dtype=float)


def test_local_sensitivity_against_brute_force() -> None:
    module = lesson("propose_test_release")
    for rows in SMALL:
        assert module.local_sensitivity(array(rows), LOW, HIGH) == pytest.approx(float(brute_sensitivity(rows)))
        assert float(brute_sensitivity(rows)) <= (HIGH - LOW) / max(1, len(rows)), "never above (U - L)/n"


def test_adding_a_row_never_raises_local_sensitivity() -> None:
    for rows in (each for each in SMALL if len(each) < 7):
        for v in range(LOW, HIGH + 1):
            assert brute_sensitivity(tuple(sorted((*rows, v)))) <= brute_sensitivity(rows)


@pytest.mark.parametrize("bound", [0.31, 0.43, 0.61, 0.77, 1.1, 1.49, 1.6])
def test_distance_against_brute_force(bound: float) -> None:
    module = lesson("propose_test_release")
    for rows in (each for each in SMALL if len(each) <= 5):
        assert module.distance(array(rows), bound, LOW, HIGH) == brute_distance(rows, bound)


def test_one_row_moves_the_distance_by_one_at_most() -> None:
    module = lesson("propose_test_release")
    found = {rows: module.distance(array(rows), 0.4, LOW, HIGH) for rows in SMALL}
    for rows in (each for each in SMALL if len(each) < 7):
        assert all(abs(found[rows] - found[each]) <= 1 for each in neighbours(rows))


def test_a_bound_for_so_many_rows_is_safe_with_more() -> None:
    module = lesson("propose_test_release")
    for least in (2, 3, 4):
        bound = (HIGH - LOW) / least
        for rows in SMALL:
            assert module.distance(array(rows), bound, LOW, HIGH) >= len(rows) - least + 1


@pytest.mark.parametrize("bound", [0.31, 0.61, 1.1])
def test_the_guarantee_on_small_tables(bound: float) -> None:
    """The exact delta at 2 epsilon, over refusals and released values, of all pairs of small neighbours."""
    module, epsilon, delta = lesson("propose_test_release"), 0.5, 0.05
    scale, x = bound / epsilon, np.linspace(-25, 28, 20_001)
    refusal, density = {}, {}
    for rows in SMALL:
        refusal[rows] = module.refusal(module.distance(array(rows), bound, LOW, HIGH), epsilon, delta)
        density[rows] = (1 - refusal[rows]) * stats.laplace.pdf(x, float(mean(rows)), scale)
    worst = 0.0
    for rows in (each for each in SMALL if len(each) < 6):
        for other in neighbours(rows):
            over = max(0.0, refusal[rows] - math.exp(2 * epsilon) * refusal[other])
            released = np.maximum(density[rows] - math.exp(2 * epsilon) * density[other], 0)
            worst = max(worst, over + integrate.trapezoid(released, x))
    assert worst <= delta / 2 + 1e-6
    assert worst > 0 or bound > 1, "some pairs differ by more than the bound, so delta is needed"


@pytest.mark.parametrize("steps", [0, 10, 25, 27, 28, 30, 41])
def test_the_probability_of_refusal(steps: int) -> None:
    module, draw = lesson("propose_test_release"), np.random.default_rng(steps)
    limit = module.threshold(module.EPSILON, module.DELTA)
    exact = stats.laplace.cdf(limit - steps, scale=1 / module.EPSILON)
    assert module.refusal(steps) == pytest.approx(exact)
    refused = np.count_nonzero(steps + draw.laplace(scale=1 / module.EPSILON, size=100_000) <= limit)
    assert stats.binomtest(int(refused), 100_000, module.refusal(steps)).pvalue > 1e-4
    if steps == 0:
        assert 1 - module.refusal(0) == pytest.approx(module.DELTA / 2, rel=1e-6), "the whole delta is never used"


def test_the_mechanism_refuses_as_stated(adult) -> None:
    module, draw = lesson("propose_test_release"), np.random.default_rng(4)
    ages = adult["age"].to_numpy(dtype=float)[:760]
    told = [module.propose_test_release(ages, module.PROPOSED, draw) for _ in range(1000)]
    expected = module.refusal(module.distance(ages, module.PROPOSED))
    assert stats.binomtest(sum(each is None for each in told), 1000, expected).pvalue > 1e-4
    noise = np.array([each for each in told if each is not None]) - ages.mean()
    assert stats.kstest(noise, stats.laplace(scale=module.PROPOSED / module.EPSILON).cdf).pvalue > 1e-4
    safe = module.safe_distance()
    assert module.refusal(safe) <= module.FAILURE < module.refusal(safe - 1)


def test_dpsql_is_nearer_than_the_best_bound(adult) -> None:
    module = lesson("propose_test_release")
    ages = adult["age"].to_numpy(dtype=float)
    best = module.after_removing(ages)[module.safe_distance() - 1]
    assert module.distance(ages, best) >= module.safe_distance() > module.distance(ages, best * (1 - 1e-6))
    assert module.engine_half_width(ages) < 0.7 * module.half_width(best)

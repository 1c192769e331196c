"""Groups of k, and people with k rows: converting the loss afterwards, or putting k into the sensitivity.

python examples/privacy/stability.py [--out DIR]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from lesson import label, panels, run, save, show

import dpsql
from dpsql.accounting import Gaussian, Laplace, group_privacy

DELTA = 1e-5
SIZES = [1, 2, 4, 8, 16, 32]
EVENTS = {"Gaussian, sigma 100": Gaussian(100), "100 Laplace steps, scale 200": Laplace(200, count=100)}
STYLES = {
    "pure": ("tab:purple", "-"),
    "rdp_proposition_2": ("tab:orange", "-"),
    "zcdp": ("tab:blue", "-"),
    "rdp": ("tab:brown", "--"),
    "exact": ("tab:green", "-"),
    "approximate": ("tab:red", ":"),
}


def proposition_2(c: int) -> float:
    """How much looser Mironov's proposition 2 is than k^2 for a Gaussian and k = 2^c, as a ratio of slopes.

    (alpha, r alpha) becomes (alpha / 2^c, 3^c r alpha): at the new order a slope of 2^c 3^c r, where k^2 = 4^c does.
    """
    return 2**c * 3**c / 4**c


def explained(max_rows: int | None, mechanism: str) -> dict[str, Any]:
    """What dpsql states of a count where a person has at most max_rows visits (None: each row is a person's own)."""
    rows = pd.DataFrame({"person": pd.Series(dtype="int64")})
    table = dpsql.Table(rows) if max_rows is None else dpsql.Table(rows, unit="person", max_rows=max_rows)
    sql = "EXPLAIN PRIVACY SELECT COUNT(*) FROM visits"
    told = dpsql.query(table, sql, epsilon=1, delta=DELTA, mechanism=mechanism)
    return told.to_dict()["releases"][0]


def main(out: Path) -> None:
    """Group privacy by five rules, what dpsql does instead, and the plot."""
    found = {
        name: pd.DataFrame({k: group_privacy(event, k, DELTA)["epsilon"] for k in SIZES})
        for name, event in EVENTS.items()
    }
    for name, table in found.items():
        show(
            f"Epsilon of a group of k at delta {DELTA:g}: {name}",
            ["rule", *(f"k = {k}" for k in SIZES)],
            [
                [str(rule), *("-" if pd.isna(table.loc[rule, k]) else f"{table.loc[rule, k]:.4f}" for k in SIZES)]
                for rule in table.index
            ],
        )
    print("\nProposition 2 against k^2, slopes of a Gaussian: ", end="")
    print(", ".join(f"{proposition_2(c):.3f} at k = {2**c}" for c in (1, 2, 3, 4)))

    rows = []
    for mechanism in ("laplace", "gaussian"):
        for max_rows in (None, 8):
            release = explained(max_rows, mechanism)
            who = "a row each" if max_rows is None else f"max_rows={max_rows}"
            rows.append([mechanism, who, f"{release['sensitivity']['l1']:g}", f"{release['scale']:.3f}"])
    show(f"dpsql, SELECT COUNT(*), epsilon 1, delta {DELTA:g}", ["mechanism", "unit", "sensitivity", "scale"], rows)

    figure, axes = panels(2)
    for each, (name, table) in zip(axes, found.items(), strict=True):
        for rule, (color, style) in STYLES.items():
            ratio = (table.loc[rule] / table.loc["exact"]).dropna()
            if len(ratio):
                each.plot(ratio.index, ratio, color=color, linestyle=style, marker=".", label=rule.replace("_", " "))
        each.set_xscale("log", base=2)
        label(each, f"{name}, delta {DELTA:g}", "k (rows of one person)", "epsilon by the rule / exact epsilon")
    save(figure, out, "stability.png")


if __name__ == "__main__":
    run(main)

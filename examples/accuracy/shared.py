"""What these examples share: plots and tables as in the lessons on privacy, and what dpsql explains."""

import sys
from pathlib import Path

import pandas as pd

import dpsql

sys.path.append(str(Path(__file__).resolve().parent.parent / "privacy"))
from lesson import BETTER, GAUSSIAN, LAPLACE, PLAIN, WORSE, adult, label, panels, run, save, show

__all__ = ["BETTER", "GAUSSIAN", "LAPLACE", "PLAIN", "WORSE", "adult", "label", "panels", "run", "save"]
__all__ += ["sensitivities", "show"]


def sensitivities(people: pd.DataFrame, sql: str, neighbours: str, bounds: dict[str, tuple[float, float]]) -> str:
    """Of each number that dpsql adds noise to for this query, for any table within the bounds. No row is read."""
    told = dpsql.query(people, f"EXPLAIN PRIVACY {sql}", epsilon=1, bounds=bounds, neighbours=neighbours)
    return ", ".join(f"{each['sensitivity']['l1']:g} ({each['parts']})" for each in told.to_dict()["releases"])

"""How answers look in a notebook, in the light and in the dark: make look writes build/look/*.png, to be looked at.

Needs nbconvert, nbclient, ipykernel, matplotlib, and Chromium on the path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

ROOT = Path(__file__).parent.parent
CELLS = (
    """import pandas as pd, dpsql
adult = pd.read_csv("adult.csv")
session = dpsql.Session(schema=dpsql.Schema.from_toml("adult.toml"), epsilon=0.2)
%load_ext dpsql""",
    """%%dpsql by_education=<<
SELECT education, COUNT(*) AS n, AVG("hours-per-week") AS hours FROM adult GROUP BY education""",
    "low = 40\n%dpsql --plot SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM adult WHERE age >= :low GROUP BY sex",
    "%dpsql --dry-run SELECT sex, AVG(age) AS age FROM adult GROUP BY sex",
    "%dpsql budget",
    "%dpsql SELECT SUM(agee) FROM adult",
    "answer = dpsql.query(\n    adult, 'SELECT AVG(age) FROM adult', epsilon=1)",
    "%dpsql DESCRIBE adult",
)


def executed(folder: Path) -> nbformat.NotebookNode:
    """The notebook with what its cells give, beside a copy of the sample, with a ledger of its own."""
    for name in ("adult.csv", "adult.toml"):
        shutil.copy(ROOT / "adult_sample" / name, folder)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    os.environ["PYTHONPATH"] = str(ROOT)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, kernel_name="python3", timeout=120, allow_errors=True, resources=resources).execute()
    return notebook


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium on the path", file=sys.stderr)
        return 1
    folder = ROOT / "build" / "look"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as copies:
        notebook = executed(Path(copies))
    for theme in ("light", "dark"):
        page = folder / f"{theme}.html"
        page.write_text(HTMLExporter(theme=theme).from_notebook_node(notebook)[0], encoding="utf-8")
        picture = folder / f"{theme}.png"
        flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu", "--window-size=1100,2700"]
        subprocess.run([chromium, *flags, f"--screenshot={picture}", page.as_uri()], check=True, capture_output=True)
        print(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())

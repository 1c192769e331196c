"""The README's picture: hours worked by education in the Adult sample, with where the exact averages lie."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import dpsql

ROOT = Path(__file__).parent.parent
SQL = 'SELECT education, COUNT(*) AS people, AVG("hours-per-week") AS hours FROM adult GROUP BY education'


def main(path: Path = ROOT / "docs" / "answer.png") -> None:
    with tempfile.TemporaryDirectory() as folder:  # a copy: the ledger beside the sample is its owner's
        for name in ("adult.csv", "adult.toml"):
            shutil.copy(ROOT / "adult_sample" / name, folder)
        with dpsql.Session(schema=dpsql.Schema.from_toml(Path(folder) / "adult.toml")) as session:
            figure = session.query(SQL, epsilon=0.2).plot()
    figure.savefig(path, dpi=110, facecolor="white")


if __name__ == "__main__":
    main()

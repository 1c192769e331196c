"""What the lessons share: the Adult sample, plots of one look, tables as text, and the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

SAMPLE = Path(__file__).resolve().parent.parent.parent / "adult_sample" / "adult.csv"
LAPLACE, GAUSSIAN, BETTER, WORSE, PLAIN = "tab:blue", "tab:orange", "tab:green", "tab:red", "tab:gray"


def adult() -> pd.DataFrame:
    """The 32,561 people of the Adult sample."""
    return pd.read_csv(SAMPLE)


def panels(count: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels side by side. It draws with Agg, so no screen is needed."""
    figure = Figure(figsize=(7 if count == 1 else 5.2 * count, 4.3), dpi=100, layout="constrained")
    axes = list(figure.subplots(1, count, squeeze=False)[0])
    for each in axes:
        each.grid(alpha=0.3)
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def label(axes: Axes, title: str, x: str, y: str, legend: str = "best") -> None:
    """The words of one panel, with a legend if its lines have names."""
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.title.set_fontsize(11)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=9, loc=legend)


def save(figure: Figure, out: Path, name: str) -> None:
    """Write one plot into the folder `out`, with few colours, so that the file is small."""
    out.mkdir(parents=True, exist_ok=True)
    drawn = BytesIO()
    figure.savefig(drawn, format="png")
    Image.open(drawn).convert("RGB").quantize(128).save(out / name, optimize=True)


def show(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: its title, its head and its rows, every column as wide as its widest cell."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    print(f"\n{title}\n")
    for line in lines:
        first, *rest = (
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join([first, *rest]).rstrip())


def crossing(falling: Callable[[float], float], low: float, high: float, halvings: int = 60) -> float:
    """Where a falling function passes zero between low and high; of the last two points the one to the right."""
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high


def run(main: Callable[[Path], None]) -> None:
    """The command line of a lesson: where its plots go."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path(), help="the folder for the plots (default: the current one)")
    main(parser.parse_args().out)

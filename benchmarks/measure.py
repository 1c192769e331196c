"""Measuring side by side on a busy machine: interleaved medians, memory and start-up in fresh processes, tables."""

from __future__ import annotations

import gc
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import sqlglot

import dpsql
from dpsql.core.exact import ExactTable
from dpsql.core.loss import PrivacyLoss, as_delta, as_epsilon
from dpsql.core.unit import Neighbours
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.release.release import Release
from dpsql.schema.declaration import resolve
from dpsql.session.prepare import Terms, prepare
from dpsql.sources.frames import stored_columns
from dpsql.sql.names.catalog import Catalog

Row = Mapping[str, object]


def seconds(run: Callable[[], object]) -> float:
    """How long one call takes; garbage of others is collected before it."""
    gc.collect()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def side_by_side(repeats: int, **runs: Callable[[], object]) -> dict[str, float]:
    """Medians in ms. Each round runs every function once, forwards and backwards in turn, so that a slow spell of the
    machine falls on all of them."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for each in range(repeats):
        for name in list(runs) if each % 2 == 0 else reversed(runs):
            times[name].append(seconds(runs[name]))
    return {name: 1e3 * median(found) for name, found in times.items()}


def stages(
    name: str,
    table: dpsql.Table,
    sql: str,
    *,
    epsilon: float,
    delta: float = 0,
    neighbours: str = "unbounded",
    strategy: str = "auto",
    mechanism: str = "auto",
) -> tuple[Release, ColumnStore]:
    """A query taken apart: the calibrated release, and the store that `exact` runs it on."""
    schema = resolve(name, stored_columns(table.frame), table.declaration)
    loss = PrivacyLoss(as_epsilon(epsilon), as_delta(delta))
    catalog = Catalog({name: schema})
    prepared = prepare(
        sql, catalog, Neighbours.of(neighbours), Terms(loss.epsilon, loss.delta), strategy=strategy, mechanism=mechanism
    )
    return prepared.releases[0], ColumnStore(table.frame, schema)


def exact(release: Release, store: ColumnStore) -> ExactTable:
    """The exact integers of a release."""
    return PandasExecutor({store.schema.name: store}).execute(release.exact)


def extra_memory(run: Callable[[], object]) -> float:
    """MB by which the resident memory of this process rises during the call, at its peak. Linux only, else NaN."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    except OSError:
        return math.nan
    before = _resident("VmRSS")
    kept = run()
    peak = _resident("VmHWM")
    del kept
    return max(0.0, peak - before)


def _resident(which: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(which)) / 1024


def fresh_process(*arguments: str) -> str:
    """What a new Python prints. Freed memory goes back to the system at once, so that its peak is what is in use."""
    thresholds = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, *arguments], env=os.environ | thresholds, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def environment() -> dict[str, object]:
    """What the numbers depend on."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pandas": pd.__version__,
        "sqlglot": sqlglot.__version__,
        "dpsql": dpsql.__version__,
        "cores": os.cpu_count(),
        "text": f"str ({pd.Series(['a'], dtype='str').dtype.storage})",
    }


def show(title: str, rows: Sequence[Row], note: str = "") -> None:
    """A Markdown table."""
    print(f"\n## {title}\n")
    if note:
        print(f"{note}\n")
    if not rows:
        return
    cells = [[_cell(value) for value in row.values()] for row in rows]
    lines = [list(rows[0]), *cells]
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    left = [isinstance(value, str) for value in rows[0].values()]
    marks = [":" + "-" * (w - 1) if text else "-" * (w - 1) + ":" for w, text in zip(widths, left, strict=True)]
    for line in [lines[0], marks, *cells]:
        padded = [c.ljust(w) if text else c.rjust(w) for c, w, text in zip(line, widths, left, strict=True)]
        print(f"| {' | '.join(padded)} |", flush=True)


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, tuple):  # a measured value and its standard error
        digits = max(0, 1 - math.floor(math.log10(value[1]))) if value[1] else 3
        return f"{value[0]:,.{digits}f} ± {value[1]:,.{digits}f}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}" if abs(value) >= 1 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)

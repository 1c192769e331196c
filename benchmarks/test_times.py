"""CPU seconds of each test file, written to tests/times.csv; tests/test_levels.py reads them.

python benchmarks/test_times.py [--most N] [pytest arguments, such as paths and -m; in one process]

A row is a file, a level of tests/levels.py, the number of tests, and the CPU seconds of collection, fixtures and tests,
with those of the processes that they waited for. Rows that were not measured stay. `--most 6` runs at most six tests of
each row and extrapolates: a full run takes more than an hour of CPU time.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from statistics import mean
from zlib import crc32

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # where it is run as a script

from tests.levels import is_contract  # noqa: E402

Row = tuple[str, str]
"""A file and a level."""
Times = dict[Row, tuple[int, float]]
"""Tests and CPU seconds."""
TABLE = ROOT / "tests" / "times.csv"


def row_of(node_id: str) -> Row:
    return node_id.partition("::")[0], "contract" if is_contract(node_id) else "rest"


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Recorder:
    """A pytest plugin that measures collection and tests."""

    def __init__(self) -> None:
        self.tests: dict[str, float] = {}  # by node id
        self.collection: dict[str, float] = {}  # by file

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, object, object]:
        start = cpu_seconds()
        report = yield
        if isinstance(collector, pytest.Module):
            self.collection[collector.nodeid] = cpu_seconds() - start
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        start = cpu_seconds()
        done = yield
        self.tests[item.nodeid] = cpu_seconds() - start
        return done


class Sample:
    """A pytest plugin that keeps so many tests of each row, the first and others by a hash."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.tests: dict[Row, int] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        rows: dict[Row, list[pytest.Item]] = defaultdict(list)
        for item in items:
            rows[row_of(item.nodeid)].append(item)
        self.tests = {row: len(found) for row, found in rows.items()}
        if self.most is not None:
            kept = {item for found in rows.values() for item in self._chosen(found, self.most)}
            config.hook.pytest_deselected(items=[item for item in items if item not in kept])
            items[:] = [item for item in items if item in kept]

    def _chosen(self, tests: list[pytest.Item], most: int) -> list[pytest.Item]:
        first, *others = tests
        return [first, *sorted(others, key=lambda item: crc32(item.nodeid.encode()))[: most - 1]]


def times(recorder: Recorder, tests: dict[Row, int]) -> Times:
    """Tests that did not run count with the mean of those that did, without the first, which may have made fixtures
    that the others share."""
    rows: dict[Row, list[float]] = defaultdict(list)
    for test, seconds in recorder.tests.items():
        rows[row_of(test)].append(seconds)
    found = {}
    for row, measured in rows.items():
        rest = (tests[row] - len(measured)) * mean(measured[1:] or measured)
        found[row] = (tests[row], recorder.collection.get(row[0], 0) + sum(measured) + rest)
    return found


def read(table: Path = TABLE) -> Times:
    if not table.exists():
        return {}
    with table.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        return {(row["file"], row["level"]): (int(row["tests"]), float(row["cpu_seconds"])) for row in rows}


def write(rows: Times, table: Path = TABLE) -> None:
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file", "level", "tests", "cpu_seconds"))
        writer.writerows((*row, tests, f"{seconds:.1f}") for row, (tests, seconds) in sorted(rows.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int)
    parser.add_argument("--table", type=Path, default=TABLE)
    options, arguments = parser.parse_known_args()
    recorder, sample = Recorder(), Sample(options.most)
    status = pytest.main(["-q", *arguments], plugins=[recorder, sample])
    rows = read(options.table) | times(recorder, sample.tests)
    write({row: found for row, found in rows.items() if (ROOT / row[0]).exists()}, options.table)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())

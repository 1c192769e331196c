"""CPU seconds of each test file, written to tests/times.csv; tests/test_levels.py reads them.

python benchmarks/test_times.py [--most N] [pytest arguments, such as paths and -m; in one process]

A row is a file, its number of tests, and the CPU seconds of its collection, fixtures and tests, with those of the
processes that they waited for. Files that were not measured keep their row. `--most 6` runs at most six tests of each
file and extrapolates: a full run takes more than an hour of CPU time.
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
TABLE = ROOT / "tests" / "times.csv"


def file_of(node_id: str) -> str:
    return node_id.partition("::")[0]


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
    """A pytest plugin that keeps so many tests of each file, the first and others by a hash."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.tests: dict[str, int] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        files: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            files[file_of(item.nodeid)].append(item)
        self.tests = {file: len(found) for file, found in files.items()}
        if self.most is not None:
            kept = {item for found in files.values() for item in self._chosen(found, self.most)}
            config.hook.pytest_deselected(items=[item for item in items if item not in kept])
            items[:] = [item for item in items if item in kept]

    def _chosen(self, tests: list[pytest.Item], most: int) -> list[pytest.Item]:
        first, *others = tests
        return [first, *sorted(others, key=lambda item: crc32(item.nodeid.encode()))[: most - 1]]


def by_file(recorder: Recorder, tests: dict[str, int]) -> dict[str, tuple[int, float]]:
    """Tests and CPU seconds of each file. Tests that did not run count with the mean of those that did, without the
    first, which may have made fixtures that the others share."""
    files: dict[str, list[float]] = defaultdict(list)
    for test, seconds in recorder.tests.items():
        files[file_of(test)].append(seconds)
    rows = {}
    for file, measured in files.items():
        rest = (tests[file] - len(measured)) * mean(measured[1:] or measured)
        rows[file] = (tests[file], recorder.collection.get(file, 0) + sum(measured) + rest)
    return rows


def read(table: Path = TABLE) -> dict[str, tuple[int, float]]:
    """Tests and CPU seconds by file."""
    if not table.exists():
        return {}
    with table.open(encoding="utf-8", newline="") as lines:
        return {row["file"]: (int(row["tests"]), float(row["cpu_seconds"])) for row in csv.DictReader(lines)}


def write(rows: dict[str, tuple[int, float]], table: Path = TABLE) -> None:
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file", "tests", "cpu_seconds"))
        writer.writerows((name, tests, f"{seconds:.1f}") for name, (tests, seconds) in sorted(rows.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int)
    parser.add_argument("--table", type=Path, default=TABLE)
    options, arguments = parser.parse_known_args()
    recorder, sample = Recorder(), Sample(options.most)
    status = pytest.main(["-q", *arguments], plugins=[recorder, sample])
    rows = read(options.table) | by_file(recorder, sample.tests)
    write({file: row for file, row in rows.items() if (ROOT / file).exists()}, options.table)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())

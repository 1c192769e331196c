"""How far answers are from the least error that is known for their question, line by line.

python benchmarks/least_error.py [NAME ...] [--runs 4000] [--list] [--json FILE]

A line is a question in a named setting: what its error is now, what theory says of the better way in just this setting,
and what the project asks of itself. Errors are RMSE at total epsilon 1 unless the line says otherwise, from so many
runs or from the exact law; the last column is 1 where a figure is reached (of groups shown, more are better: there it
rises to 1). Nothing is asserted of time. `python benchmarks/least_error.py bands` measures one of them alone.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import least_error_counts as counts
import least_error_designs as designs
import least_error_grids as grids
import least_error_groups as groups
import least_error_parts as parts
import least_error_small as small
from least_error_lines import Measure
from measure import Row, environment, show

SECTIONS: dict[str, dict[str, Measure]] = {
    "Never worse than plain": {
        "people_of_rows": designs.people_of_rows,
        "nulls": designs.nulls,
        "people_of_groups": designs.people_of_groups,
        "quotient": designs.quotient,
        "correlation": designs.correlation,
        "spread": designs.spread,
    },
    "Rows that are in one part": {
        "bands": parts.bands,
        "sexes": parts.sexes,
        "booleans": parts.booleans,
        "null_part": parts.null_part,
        "public_number": parts.public_number,
    },
    "Large epsilon": {
        "large_epsilon": counts.large_epsilon,
        "staircase": counts.staircase,
        "thresholds": counts.thresholds,
    },
    "Unknown groups (more are better)": {"unknown": groups.unknown, "hidden_averages": groups.hidden_averages},
    "People in many of few public groups": {"many_of_few": groups.many_of_few},
    "Gaussian noise": {"gaussian": counts.gaussian, "session": counts.session},
    "Automatic bounds": {"bounds": grids.bounds, "sums": grids.declared_sum, "capital_gain": grids.capital_gain},
    "Quantiles": {"quantiles": grids.quantiles, "medians": grids.medians},
    "Small groups": {"small_groups": small.small_groups},
    "Several quantities over one column": {
        "average_and_spread": designs.average_and_spread,
        "moment_intervals": small.moment_intervals,
    },
}
NAMES = tuple(name for section in SECTIONS.values() for name in section)


def main() -> None:
    parser = argparse.ArgumentParser(description="errors beside the least that is known")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all if none is given")
    parser.add_argument("--runs", type=int, default=4_000)
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--json", type=Path, help="write all figures to this file too")
    said = parser.parse_args()
    unknown = [name for name in said.names if name not in NAMES]
    if unknown:
        parser.error(f"no line is called {unknown[0]}; there are {', '.join(NAMES)}")
    if said.list:
        print("\n".join(NAMES))
        return
    print(f"# Least error\n\nFrom {said.runs} runs, or the exact law.")
    sections: dict[str, list[Row]] = {}
    for title, section in SECTIONS.items():
        asked = [measure for name, measure in section.items() if name in said.names or not said.names]
        if asked:
            sections[title] = [line.row for measure in asked for line in measure(said.runs)]
            show(title, sections[title])
    if said.json:
        found = {"environment": environment(), "runs": said.runs, **sections}
        said.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

"""The questions of docs/cookbook.md, asked of the sample tables.

python examples/cookbook.py            # prints each with its answer
python examples/cookbook.py --write    # puts these answers into the page

In the page a question is a heading, its SQL names the table's owner (`shop` or `adult`) and the epsilon beside the
language, and its answer follows.
"""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dpsql

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "cookbook.md"
MOST_ROWS = 8
DELTA = 1e-6
_ENTRY = re.compile(
    r"^### (?P<question>.+?)\n(?P<said>.*?)^```sql (?P<of>\w+) (?P<epsilon>[\d.]+)\n(?P<sql>.*?)^```\n\n"
    r"^```text\n(?P<answer>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)


class Entry(NamedTuple):
    """A question of the page: `of` says whose tables it is about; `answer` is what the page shows."""

    question: str
    of: str
    epsilon: float
    sql: str
    answer: str


def entries(text: str) -> Iterator[Entry]:
    """The questions of a page."""
    for each in _ENTRY.finditer(text):
        yield Entry(each["question"], each["of"], float(each["epsilon"]), each["sql"], each["answer"])


def sessions() -> dict[str, dpsql.Session]:
    """The shop and the census sample, by their owners' words but for the budget, which forty questions would not leave
    much of, and the version, so that nothing is kept."""
    shop = runpy.run_path(str(ROOT / "examples" / "shop" / "make.py"))["tables"]()
    return {
        "shop": _opened(ROOT / "examples" / "shop" / "shop.toml", shop),
        "adult": _opened(ROOT / "adult_sample" / "adult.toml", None),
    }


def _opened(path: Path, tables: Any) -> dpsql.Session:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    content["budget"] = {"epsilon": 1e9, "delta": 0.01}
    for table in content["tables"].values():
        table.pop("version", None)
    return dpsql.Session(tables, schema=dpsql.Schema.from_dict(content, path.parent))


def shown(result: dpsql.Result) -> str:
    """An answer as the page shows it: of the last line, what was spent."""
    lines = result.to_text(most_rows=MOST_ROWS).split("\n")
    return "\n".join([*lines[:-1], lines[-1].split(" · ")[0]]) + "\n"


def main() -> None:
    """Ask all of them."""
    asked = sessions()
    text = PAGE.read_text(encoding="utf-8")
    for each in entries(text):
        answer = shown(asked[each.of].query(each.sql, epsilon=each.epsilon, delta=DELTA, fresh=True))
        print(f"{each.question}\n{answer}")
        text = text.replace(f"{each.sql}```\n\n```text\n{each.answer}```", f"{each.sql}```\n\n```text\n{answer}```")
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

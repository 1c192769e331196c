"""How much of a public SQL test suite dpsql answers, and whether it answers as DuckDB does.

    python benchmarks/logic_suite.py FOLDER [--dialect mysql] [--most 5000] [--show 20]

FOLDER holds test files of sqllogictest (.test, .slt: "statement ok", "query I") or of mysqltest, or plain .sql (both:
statements that end in ";"). Their tables are made in DuckDB, every row three times, so that no group is too small to
be shown. SELECTs over one table are asked of dpsql with next to no noise and of DuckDB: aggregating ones as they are,
others as questions over each of their expressions: how many rows have its first values. Expected results in the files
are not read: DuckDB's answer to the very text is what counts, with what dpsql means otherwise spelt out (x / 0 and a
failed cast are NULL, SUM over no rows is 0).

No suite is part of this repository. One is in Debian's package mariadb-test-data:
apt-get download mariadb-test-data && dpkg-deb -x mariadb-test-data_*.deb suite
"""

from __future__ import annotations

import argparse
import logging
import math
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

import dpsql

EPSILON = 1e9
DELTA = 1e-9
COPIES = 3
MOST_VALUES = 5
MOST_ROWS = 5_000
STORED = {
    "BIGINT": "Int64",
    "INTEGER": "Int64",
    "SMALLINT": "Int64",
    "TINYINT": "Int64",
    "UBIGINT": "Int64",
    "UINTEGER": "Int64",
    "USMALLINT": "Int64",
    "UTINYINT": "Int64",
    "DOUBLE": "float64",
    "FLOAT": "float64",
    "VARCHAR": "str",
    "BOOLEAN": "boolean",
    "DATE": "datetime64[us]",
    "TIMESTAMP": "datetime64[us]",
}


@dataclass
class Tally:
    """What came of the questions."""

    found: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    """One text for each reason."""
    shown: list[str] = field(default_factory=list)

    def add(self, verdict: str, detail: str = "", text: str = "") -> None:
        self.found[verdict] += 1
        if verdict == "refused":
            self.reasons[detail] += 1
            self.examples.setdefault(detail, text)
        elif verdict in ("different", "crashed"):
            self.shown.append(f"{verdict}: {text}\n    {detail}")


def statements(path: Path) -> Iterator[str]:
    """The statements of a file, those left out that are meant to fail."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if re.search(r"^(statement (ok|error)|query )", text, re.MULTILINE):
        yield from _records(text)
    else:
        yield from _commands(text)


def _records(text: str) -> Iterator[str]:
    for record in re.split(r"\n\s*\n", text):
        lines = [line for line in record.strip().splitlines() if not line.startswith(("#", "skipif", "onlyif"))]
        if lines and re.match(r"statement ok|query ", lines[0]):
            yield "\n".join(lines[1:]).split("\n----")[0].rstrip("; \n")


def _commands(text: str) -> Iterator[str]:
    fails = False
    pending: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith("#") or (bare.startswith("--") and not pending):
            fails = fails or bare.replace("-- ", "--").startswith("--error")
            continue
        pending.append(line)
        if bare.endswith(";"):
            if not fails:
                yield "\n".join(pending).strip().rstrip(";")
            pending, fails = [], False


def translated(text: str, dialect: str) -> exp.Expr | None:
    """The statement as a tree; None for what is no SQL."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = sqlglot.parse_one(text, read=dialect)
    except (SqlglotError, RecursionError, ValueError):
        return None
    return found if isinstance(found, exp.Expr) else None


def plain_table(node: exp.Create) -> exp.Create:
    """CREATE TABLE without keys, defaults and engines."""
    node.set("properties", None)
    schema = node.this
    if isinstance(schema, exp.Schema):
        columns = [each for each in schema.expressions if isinstance(each, exp.ColumnDef)]
        for column in columns:
            column.set("constraints", [])
            if column.kind is not None and column.kind.this not in (
                exp.DType.DECIMAL,
                exp.DType.CHAR,
                exp.DType.VARCHAR,
            ):
                column.kind.set("expressions", [])  # int(11)
        schema.set("expressions", columns)
    return node


def total(node: exp.Expr) -> exp.Expr:
    """DuckDB's text for what dpsql means: functions are total, SUM over no rows is 0."""
    copy = node.copy()
    root = exp.Paren(this=copy)  # so that the outermost node can be replaced as well
    for part in list(root.find_all(exp.Div, exp.Mod, exp.IntDiv)):
        part.set("expression", exp.Nullif(this=part.expression, expression=exp.Literal.number(0)))
    for part in [each for each in root.find_all(exp.Cast) if type(each) is exp.Cast]:
        part.replace(exp.TryCast(this=part.this, to=part.args["to"]))
    for part in list(root.find_all(exp.Sum)):
        part.replace(exp.Coalesce(this=part.copy(), expressions=[exp.Literal.number(0)]))
    return root.this


class Suite:
    """One file's tables, in DuckDB and as frames."""

    def __init__(self, dialect: str, tally: Tally) -> None:
        self.dialect = dialect
        self.tally = tally
        self.oracle = duckdb.connect(config={"threads": 1, "memory_limit": "500MB"})
        self.oracle.execute("PRAGMA disable_optimizer")
        self.oracle.execute("CREATE TABLE one_row AS SELECT 1 AS one_column")
        self.frames: dict[str, dpsql.Table | None] = {}
        self.copied: set[str] = set()
        """Tables whose rows are there three times."""

    def run(self, text: str) -> None:
        dropped = re.match(r"drop\s+(temporary\s+)?table\s+(if\s+exists\s+)?(?P<names>[^;]+)", text, re.IGNORECASE)
        if dropped:
            self.drop(dropped["names"])
            return
        node = translated(text, self.dialect)
        if isinstance(node, exp.Select):
            self.ask(node)
        elif isinstance(node, exp.Create | exp.Insert | exp.Delete | exp.Update):
            self.frames.clear()
            if isinstance(node, exp.Create):
                self.copied -= {table.name for table in node.find_all(exp.Table)}
            if isinstance(node, exp.Create):
                node = plain_table(node)
            try:
                self.oracle.execute(node.sql(dialect="duckdb"))
            except duckdb.Error:
                self.tally.found["statements that DuckDB does not take"] += 1

    def drop(self, names: str) -> None:
        for each in names.split(","):
            name = each.strip(' `"\n')
            self.frames.pop(name, None)
            self.copied.discard(name)
            with suppress(duckdb.Error):
                self.oracle.execute(f'DROP TABLE IF EXISTS "{name}"')

    def ask(self, select: exp.Select) -> None:
        source = select.args.get("from_")
        inside = list(select.find_all(exp.Select, exp.Subquery, exp.SetOperation))
        if select.args.get("joins") or len(inside) > 1 or (source and not isinstance(source.this, exp.Table)):
            self.tally.add("left out: joins, sub-queries")
            return
        if select.find(exp.Window, exp.Parameter, exp.SessionParameter):
            self.tally.add("left out: windows, variables")
            return
        if source is None:
            select = select.from_("one_row")
            source = select.args["from_"]
        if select.find(exp.AggFunc) or select.args.get("group"):
            self.compare(select, source.this.name)
            return
        for item in select.expressions:
            if not item.find(exp.Star):
                self.ask_values(select, item.unalias(), source.this.name)

    def ask_values(self, select: exp.Select, value: exp.Expr, table: str) -> None:
        """Questions over the values of one expression for the rows that WHERE keeps."""
        where = select.args.get("where")
        kept = exp.select().from_(select.args["from_"].this.copy())
        if where is not None:
            kept = kept.where(where.this.copy())
        try:
            listed = kept.select(total(value)).distinct().limit(MOST_VALUES).sql(dialect="duckdb")
            values = [row[0] for row in self.oracle.execute(listed).fetchall()]
        except duckdb.Error:
            self.tally.add("left out: DuckDB does not take it")
            return
        wanted: list[exp.Expr] = [exp.Count(this=exp.Star()), exp.Count(this=value.copy())]
        for each in values:
            test = _is_value(value, each)
            if test is not None:
                wanted.append(exp.Count(this=exp.Case(ifs=[exp.If(this=test, true=exp.Literal.number(1))])))
        self.compare(kept.select(*wanted), table)

    def compare(self, select: exp.Select, table: str) -> None:
        text = select.sql(dialect="duckdb")
        data = self.table(table)
        if data is None:
            self.tally.add("left out: no such table, or a large one")
            return
        try:
            theirs = self.oracle.execute(total(select).sql(dialect="duckdb")).fetchall()
        except duckdb.Error:
            self.tally.add("left out: DuckDB does not take it")
            return
        try:
            ours = list(dpsql.query({table: data}, text, epsilon=EPSILON, delta=DELTA))
        except dpsql.errors.DPSQLError as error:
            self.tally.add("refused", _reason(error), text)
            return
        except Exception as error:  # noqa: BLE001 - any other is a bug
            self.tally.add("crashed", f"{type(error).__name__}: {error}", text)
            return
        unmet, missing = _unmatched(ours, theirs)
        public = bool(select.args.get("group")) and not missing
        alike = not unmet and not missing
        verdict = "answered alike" if alike else "answered alike, with public groups" if public else "different"
        self.tally.add(verdict, f"{ours[:6]} is not {theirs[:6]}", text)

    def table(self, name: str) -> dpsql.Table | None:
        if name not in self.frames:
            try:
                self.frames[name] = self._frame(name)
            except (duckdb.Error, dpsql.errors.DPSQLError, ValueError, TypeError, OverflowError):
                self.frames[name] = None
        return self.frames[name]

    def _frame(self, name: str) -> dpsql.Table | None:
        """The table as a frame, its own least and greatest values for bounds; DuckDB's has each row three times too."""
        quoted = f'"{name}"'
        found = self.oracle.execute(
            f"SELECT column_name, data_type FROM (DESCRIBE {quoted}) AS t({DESCRIBED})"
        ).fetchall()
        rows = self.oracle.execute(f"SELECT * FROM {quoted}").fetchall()
        if not rows or len(rows) * COPIES > MOST_ROWS:
            return None
        kinds = {column: re.sub(r"\(.*", "", kind) for column, kind in found}
        for column, kind in kinds.items():
            if kind in ("DECIMAL", "HUGEINT"):
                self.oracle.execute(f'ALTER TABLE {quoted} ALTER "{column}" TYPE DOUBLE')
                kinds[column] = "DOUBLE"
        rows = self.oracle.execute(f"SELECT * FROM {quoted}").fetchall()
        if name not in self.copied:
            self.copied.add(name)
            for _ in range(COPIES - 1):
                self.oracle.executemany(f"INSERT INTO {quoted} VALUES ({', '.join('?' for _ in kinds)})", rows)
            rows = rows * COPIES
        columns = {
            column: pd.Series([row[place] for row in rows], dtype=STORED[kind])
            for place, (column, kind) in enumerate(kinds.items())
            if kind in STORED  # what asks for another is refused: there is no such column
        }
        frame = pd.DataFrame(columns, index=range(len(rows)))
        numbers = [column for column, kind in kinds.items() if STORED.get(kind) in ("Int64", "float64")]
        bounds = {}
        for column in numbers:
            present = frame[column].dropna()
            if len(present) and all(map(math.isfinite, present)):
                bounds[column] = (present.min() - 1, present.max() + 1)
        types = {column: "date" for column, kind in kinds.items() if kind == "DATE"}
        return dpsql.Table(frame, bounds=bounds, types=types)


DESCRIBED = "column_name, data_type, a, b, c, d"


def _is_value(expr: exp.Expr, value: Any) -> exp.Expr | None:
    """Whether the expression has a value; a number to nine digits."""
    if isinstance(value, bool) or value is None:
        return exp.Is(this=exp.Paren(this=expr.copy()), expression=exp.convert(value))
    if isinstance(value, int | float | Decimal):
        number = float(value)
        if not math.isfinite(number):
            return None
        near = 1e-9 * max(1.0, abs(number))
        return exp.Between(
            this=exp.Paren(this=expr.copy()), low=exp.convert(number - near), high=exp.convert(number + near)
        )
    if isinstance(value, str):
        return exp.EQ(this=exp.Paren(this=expr.copy()), expression=exp.Literal.string(value))
    if isinstance(value, date):
        kind = "TIMESTAMP" if isinstance(value, datetime) else "DATE"
        return exp.EQ(this=exp.Paren(this=expr.copy()), expression=exp.cast(exp.Literal.string(str(value)), kind))
    return None


def _reason(error: Exception) -> str:
    """The class and the message without the query's own names and numbers."""
    words = re.sub(r"\"[^\"]*\"|'[^']*'|[0-9]+(\.[0-9]+)?", "...", str(error).split("\n")[0])
    return f"{type(error).__name__}: {words[:70]}"


def _unmatched(ours: list[Any], theirs: list[Any]) -> tuple[list[Any], list[Any]]:
    missing, unmet = list(theirs), []
    for row in ours:
        place = next(
            (k for k, other in enumerate(missing) if len(row) == len(other) and all(map(_same, row, other))), None
        )
        if place is None:
            unmet.append(row)
        else:
            missing.pop(place)
    return unmet, missing


def _same(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None or isinstance(ours, str) or isinstance(theirs, str):
        return bool(ours == theirs)
    if isinstance(ours, date) or isinstance(theirs, date):
        return str(pd.Timestamp(ours)) == str(pd.Timestamp(theirs))
    return math.isclose(float(ours), float(theirs), rel_tol=1e-6, abs_tol=1e-3)


def main() -> int:
    parser = argparse.ArgumentParser(description="Asks dpsql and DuckDB the SELECTs of a SQL test suite.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dialect", default="mysql", help="sqlglot's name of the suite's dialect")
    parser.add_argument("--most", type=int, default=20_000, help="questions in all")
    parser.add_argument("--show", type=int, default=20, help="how many differences to print")
    args = parser.parse_args()
    tally = Tally()
    warnings.simplefilter("ignore")
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    files = sorted(path for path in args.folder.rglob("*") if path.suffix in (".test", ".slt", ".sql"))
    for path in files:
        print(f"{path.name} ({tally.found.total()} so far)", file=sys.stderr)
        suite = Suite(args.dialect, tally)
        for text in statements(path):
            try:
                suite.run(text)
            except (SqlglotError, KeyError, ValueError, RecursionError):  # of the translation; what is asked is caught
                tally.add("left out: cannot be translated")
        suite.oracle.close()
        if tally.found.total() >= args.most:
            break
    print(f"{len(files)} files")
    for verdict, count in sorted(tally.found.items()):
        print(f"{count:7} {verdict}")
    print("refused:")
    for reason, count in tally.reasons.most_common(60):
        print(f"{count:7} {reason}\n            {tally.examples[reason][:150]}")
    print("\n".join(tally.shown[: args.show]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

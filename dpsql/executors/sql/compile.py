"""compile_plan: an exact plan as one SQL statement.

    source -> groups -> contributions of rows -> contribution bounds -> sections, combined by UNION ALL

A section holds one kind of count: parts of rows by group, parts of units by group, and each grid by group and point.
One statement computes all sections from the same rows: an encoding of values and its count, from two snapshots, could
change by more than their sensitivity. Numbers are returned as integers of 128 bits, never as floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.core.exact import ExactPlan, expressions_of, of_units
from dpsql.executors.keyed_hash import HashKey
from dpsql.executors.sql.column_facts import NOTHING, ColumnFacts
from dpsql.executors.sql.contributions import Contributions, contributions
from dpsql.executors.sql.dialect import Dialect, StoredTable
from dpsql.executors.sql.groups import hashed_keys, keyed
from dpsql.executors.sql.limits import ContributingRows, kept_rows
from dpsql.executors.sql.pre_grouping import GROUPED, by_stored_keys, of_stored_keys, stored_keys
from dpsql.executors.sql.read_columns import read_columns
from dpsql.executors.sql.row_values import Lists
from dpsql.executors.sql.rows import Names, Rows, Writer
from dpsql.executors.sql.sections import SectionWriter, sections_of
from dpsql.executors.sql.sources import Sources
from dpsql.executors.sql.statement import Section, Statement, below_one_another
from dpsql.executors.sql.sums import Sums, with_moments
from dpsql.plan.nodes import Filter, Scan, nodes_of


def compile_plan(
    plan: ExactPlan,
    key: bytes,
    dialect: Dialect,
    tables: Mapping[str, StoredTable],
    seen: ColumnFacts = NOTHING,
    *,
    early: bool = False,
) -> Statement:
    """Return the statement of a plan over stored tables, by folded name. early: whether rows may first be grouped by
    stored cells, which is faster, but takes memory for each distinct cell. Raises MissingFeature."""
    hash_key = HashKey.of(key)
    by_cells = _Compiler(plan, hash_key, dialect, tables, seen, shifted=early).early_statement() if early else None
    return by_cells or _Compiler(plan, hash_key, dialect, tables, seen, shifted=early).statement()


class _Compiler:
    def __init__(
        self,
        plan: ExactPlan,
        key: HashKey,
        dialect: Dialect,
        tables: Mapping[str, StoredTable],
        seen: ColumnFacts,
        *,
        shifted: bool,
    ) -> None:
        self.plan = plan
        self.shifted = shifted
        self.key = key
        self.dialect = dialect
        self.names = Names()
        self.writer = Writer(dialect, self.names)
        self.lists = Lists()
        above = [each.expr for each in plan.keys]
        above += [expr for part in (*plan.parts, *plan.grids) for expr in expressions_of(part)]
        limited = plan.limits is not None or plan.groups is not None or any(map(of_units, plan.parts))
        units = limited or any(not isinstance(node, Scan | Filter) for node in nodes_of(plan.source))
        read = read_columns(plan.source, above)
        self.sources = Sources(dialect, self.names, tables, read, seen, units=units, key=key)

    def early_statement(self) -> Statement | None:
        """Return the statement that first groups rows by stored cells; None if the plan does not allow it."""
        rows = self.sources.all_rows(self.plan.source)
        stored = stored_keys(self.plan, rows)
        if stored is None:
            return None
        rows_of, columns = contributions(self.plan, rows, self.writer, self.lists)
        rows_of, sums = self._summed(rows_of, columns)
        texts = [sums.text(part, []) for part in self.plan.parts]
        self.sources.named[GROUPED] = by_stored_keys(stored, rows_of, texts)
        self.lists.few = True
        groups, keys = keyed(self.plan, of_stored_keys(stored, rows, self.names), self.writer, self.lists)
        listed = ", ".join([*keys, *(f"SUM(n{place}) AS n{place}" for place in range(len(texts)))])
        inside = [
            f"COUNT({name}) > 0" for name, key in zip(keys, self.plan.keys, strict=True) if key.values is not None
        ]
        having = f" HAVING {' AND '.join(inside)}" if inside else ""
        text = f"SELECT {listed} FROM {groups.text} GROUP BY {', '.join(keys)}{having}"
        return self._statement([(text, len(texts))], keys, (Section(tuple(range(len(texts)))),), self.sources.named)

    def statement(self) -> Statement:
        plan = self.plan
        rows = self.sources.all_rows(plan.source)
        rows, keys = keyed(plan, rows, self.writer, self.lists)
        rows, columns = contributions(plan, rows, self.writer, self.lists)
        by_row = None
        if plan.limits is not None or plan.groups is not None:
            names = (*keys, *columns.names, str(rows.unit))
            hashed = tuple(hashed_keys(plan, keys)), tuple(columns.hashed(plan))
            given = ContributingRows(rows, tuple(dict.fromkeys(names)), *hashed, self.sources.named)
            kept = kept_rows(plan, given, self.writer, self.key)
            rows, by_row = kept.rows, kept.by_row
        rows, sums = self._summed(rows, columns)
        sections = sections_of(plan)
        source = rows.text if len(sections) == 1 else "kept"
        conditions = [by_row] if by_row is not None else []
        writer = SectionWriter(plan, sums, source, keys, rows.unit, conditions)
        named = self.sources.named | ({} if source != "kept" else {"kept": f"SELECT * FROM {rows.text}"})
        return self._statement([writer.text(each) for each in sections], keys, sections, named)

    def _summed(self, rows: Rows, columns: Contributions) -> tuple[Rows, Sums]:
        """Return the rows with all columns that the sums need."""
        rows, moments = with_moments(self.plan.parts, columns, rows, self.writer)
        return rows, Sums(columns, moments, self.writer, self.shifted)

    def _statement(
        self,
        texts: Sequence[tuple[str, int]],
        keys: Sequence[str],
        sections: tuple[Section, ...],
        named: Mapping[str, str],
    ) -> Statement:
        text = f"{self.dialect.head(named)}{below_one_another(texts, keys, self.dialect)}"
        return Statement(text, sections, dict(self.lists.found), named)

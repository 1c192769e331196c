"""compile_plan: an exact plan as one statement of SQL.

    source -> groups -> what rows contribute -> limits of units -> sections, one below the other

A section is what is counted alike: parts of rows by group, parts of units by group, and each grid by group and point.
All sections are of one statement, so that they are of the same rows: an encoding of values and its count, from two
snapshots, would move by more than any sensitivity says. Numbers leave as integers of 128 bits, never as floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dpsql.core.exact import (
    SHARE_STEPS,
    AllUnits,
    CountDistinct,
    CountRows,
    Edges,
    ExactPlan,
    GridCounts,
    InCell,
    LatticeProduct,
    LatticeShare,
    LatticeSum,
    Leading,
    Part,
    expressions_of,
    of_units,
    readings_of,
)
from dpsql.executors.keyed_hash import HashKey, Reading, contributed, limbs_of_key
from dpsql.executors.sql.dialect import Dialect, Lacking, StoredTable
from dpsql.executors.sql.early_groups import GROUPED, by_stored_keys, of_stored_keys, stored_keys
from dpsql.executors.sql.limits import Hashed, kept_rows
from dpsql.executors.sql.null_cells import of_values
from dpsql.executors.sql.readings import (
    Lists,
    bare_steps,
    big,
    product_text,
    rounded_text,
    share_text,
    steps_text,
    with_code,
    with_place,
)
from dpsql.executors.sql.rows import Names, Rows, Writer
from dpsql.executors.sql.sources import Sources, read_columns
from dpsql.executors.sql.unit_numbers import most_of_unit, number_of
from dpsql.plan.expressions import Call, Expr, walk
from dpsql.plan.nodes import Filter, Scan, nodes_of
from dpsql.plan.query import GroupKey
from dpsql.plan.row_local import INEXACT
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass
from dpsql.sql.last_bits import inexact_in, made_of


@dataclass(frozen=True)
class Section:
    """Rows of an answer with one number: those of some parts of the plan, or of one grid. `of_all`: one row, without
    keys, of parts that are the same in all groups."""

    parts: tuple[int, ...] = ()
    grid: int | None = None
    of_all: bool = False


@dataclass(frozen=True, repr=False)
class Statement:
    """A statement, and what its rows are: the number of a section, a cell for each key (of a public list the place in
    it; dates and times as numbers), and whole numbers. lists: what public lists it joins, by name: their type, and
    their values without NULL, to stand in columns v and p, p their places. named: SELECTs that it reads by name, each
    over those before it (`Dialect.head`)."""

    text: str
    sections: tuple[Section, ...]
    lists: Mapping[str, tuple[Type, tuple[Key, ...]]]
    named: Mapping[str, str]


def compile_plan(
    plan: ExactPlan, key: bytes, dialect: Dialect, tables: Mapping[str, StoredTable], *, early: bool = False
) -> Statement:
    """The statement of a plan over stored tables, by folded name. early: whether rows may be grouped by stored cells
    first, which is quicker, and takes memory for each different cell. Raises Lacking."""
    hash_key = HashKey.of(key)
    found = _Compiler(plan, hash_key, dialect, tables, shifted=early).early_statement() if early else None
    return found or _Compiler(plan, hash_key, dialect, tables, shifted=early).statement()


class _Compiler:
    def __init__(
        self, plan: ExactPlan, key: HashKey, dialect: Dialect, tables: Mapping[str, StoredTable], *, shifted: bool
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
        self.sources = Sources(dialect, self.names, tables, read, units=units)

    def early_statement(self) -> Statement | None:
        """The statement that groups rows by stored cells first; None where that is not to be done."""
        rows = self.sources.all_rows(self.plan.source)
        stored = stored_keys(self.plan, rows)
        if stored is None:
            return None
        summed = self._summed(self._contributions(rows))
        sums = [self._sum_of_rows(part, []) for part in self.plan.parts]
        self.sources.named[GROUPED] = by_stored_keys(stored, summed, sums)
        groups, keys = self._keyed(of_stored_keys(stored, rows, self.names))
        listed = ", ".join([*keys, *(f"SUM(n{place}) AS n{place}" for place in range(len(sums)))])
        text = f"SELECT {listed} FROM {groups.text} GROUP BY {', '.join(keys)}"
        return self._statement([(text, len(sums))], keys, (Section(tuple(range(len(sums)))),), self.sources.named)

    def statement(self) -> Statement:
        plan = self.plan
        rows = self.sources.all_rows(plan.source)
        rows, keys = self._keyed(rows)
        rows = self._contributions(rows)
        limited = plan.limits is not None or plan.groups is not None
        by_row = None
        if limited:
            hashed = self._hashed_keys(keys), self._hashed_parts()
            kept = kept_rows(plan, rows, hashed, self.writer, self.key)
            rows, by_row = kept.rows, kept.by_row
        rows = self._summed(rows)
        return self._sections(rows, keys, by_row)

    # Groups.

    def _keyed(self, rows: Rows) -> tuple[Rows, list[str]]:
        """The rows that are in a group, with a column for each key."""
        names: list[str] = []
        for key in self.plan.keys:
            rows, name = self._key(key, rows)
            names.append(name)
        listed = [name for name, key in zip(names, self.plan.keys, strict=True) if key.values is not None]
        if listed:
            inside = " AND ".join(f"{name} IS NOT NULL" for name in listed)
            rows = replace(rows, text=self.writer.select("*", rows.text, f" WHERE {inside}"))
        return rows, names

    def _key(self, key: GroupKey, rows: Rows) -> tuple[Rows, str]:
        if key.values is not None:
            return self._place(key, rows)
        rows = self.writer.ready(rows, [key.expr])
        name = self.names.fresh("g")
        text = self.sources.key_text(key.expr, self.writer.ready(rows, [key.expr]))
        if key.expr.type is Type.OTHER:
            raise Lacking("groups of a type without values")
        if key.expr.type in (Type.DATE, Type.TIMESTAMP):
            text = self.dialect.whole(text, key.expr.type)
        return replace(rows, text=self.writer.select(f"*, {text} AS {name}", rows.text)), name

    def _place(self, key: GroupKey, rows: Rows) -> tuple[Rows, str]:
        """The rows with the place of a key in its public list, which was made by functions of another library."""
        function = inexact_in(key.expr, made_of(self.plan.source))
        power = key.expr.type is Type.REAL and any(_is_power(each) for each in walk(key.expr))
        if function is not None or power:
            raise Lacking(f"groups by the last bits of {function or key.expr} (ROUND it)")
        return with_code(key, rows, self.writer, self.lists)

    def _hashed_keys(self, names: Sequence[str]) -> list[Hashed]:
        return [
            (name, _as_held(key.expr.type) if key.values is None else Type.INTEGER, limbs_of_key(key))
            for name, key in zip(names, self.plan.keys, strict=True)
        ]

    # What rows contribute.

    def _contributions(self, rows: Rows) -> Rows:
        """The rows with a column for each lattice, place, value or presence that anything reads."""
        plan = self.plan
        readings = [each for part in (*plan.parts, *plan.grids) for each in readings_of(part)]
        lattices = list(dict.fromkeys(each for each in readings if isinstance(each, LatticeSum)))
        exprs = list(dict.fromkeys(expr for part in (*plan.parts, *plan.grids) for expr in expressions_of(part)))
        rows, names = self.writer.with_values(rows, exprs)
        self.values: dict[Expr, str] = dict(zip(exprs, names, strict=True))
        self.steps: dict[LatticeSum, str] = {}
        self.bare: dict[LatticeSum, str] = {}
        products: dict[LatticeSum, str] = {}
        for part in lattices:
            value = self.values[part.value]
            if part.value.type is Type.INTEGER and bare_steps(part, rows.bounded.get(value)):
                self.bare[part] = value
                text = f"{value} - {big(int(part.origin))}" if part.origin else value
                rows, self.steps[part] = self._with(rows, text, "s")
                continue
            text = steps_text(part, value, self.dialect)
            if part.whole:
                rows, self.steps[part] = self._with(rows, text, "s")
            else:
                rows, products[part] = self._with(rows, text, "r")
        for part, product in products.items():
            rows, self.steps[part] = self._with(rows, rounded_text(part, product, self.dialect), "s")
        self.places: dict[GridCounts, str] = {}
        for grid in plan.grids:
            if isinstance(grid.of, GroupKey):
                rows, self.places[grid] = self._place(grid.of, rows)
            elif not isinstance(grid.of, LatticeSum):
                value = self.values[grid.of.value]
                rows, self.places[grid] = with_place(grid.of, value, rows, self.writer, self.lists)
        self.cells: dict[tuple[Expr, ...], str] = {}
        for cell in (each for each in plan.parts if isinstance(each, InCell)):
            if cell.alternatives not in self.cells:
                whens = [f"WHEN {self.values[each]} THEN {number}" for number, each in enumerate(cell.alternatives, 1)]
                rows, self.cells[cell.alternatives] = self._with(rows, f"CASE {' '.join(whens)} ELSE 0 END", "w")
        return rows

    def _with(self, rows: Rows, text: str, letter: str) -> tuple[Rows, str]:
        name = self.names.fresh(letter)
        return replace(rows, text=self.writer.select(f"*, {text} AS {name}", rows.text)), name

    def _hashed_parts(self) -> list[Hashed]:
        return [self._hashed(each) for each in contributed(self.plan)]

    def _hashed(self, reading: Reading) -> Hashed:
        of = reading.of
        if isinstance(of, LatticeSum):
            return self.steps[of], Type.INTEGER, reading.limbs
        if isinstance(of, Edges | GroupKey | Leading):
            place = next(name for grid, name in self.places.items() if grid.of == of)
            return place, Type.INTEGER, reading.limbs
        return self.values[of], of.type, reading.limbs

    # What is added up.

    def _summed(self, rows: Rows) -> Rows:
        """The rows with a column for each product and share."""
        self.moments: dict[LatticeProduct | LatticeShare, str] = {}
        for each in self.plan.parts:
            part = each.of if isinstance(each, InCell) else each
            if isinstance(part, LatticeProduct | LatticeShare) and part not in self.moments:
                first, second = self.steps[part.first], self.steps[part.second]
                if isinstance(part, LatticeProduct):
                    made = product_text(part, first, second, self.dialect)
                else:
                    made = share_text(part, first, second)
                text = f"CASE WHEN {first} IS NOT NULL AND {second} IS NOT NULL THEN {made} END"
                rows, self.moments[part] = self._with(rows, text, "m")
        return rows

    def _sum_of_rows(self, part: Part, conditions: Sequence[str]) -> str:
        """A part of rows, over those that meet the conditions."""
        if isinstance(part, InCell):
            of_all = of_values(part, self.values)
            if of_all is not None and not conditions:
                return of_all if isinstance(of_all, str) else self._sum_of_rows(of_all, conditions)
            return self._sum_of_rows(part.of, [*conditions, f"{self.cells[part.alternatives]} = {part.number}"])
        where = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
        if isinstance(part, CountRows):
            counted = "*" if part.present is None else self.values[part.present]
            return f"COUNT({counted}){where}"
        if isinstance(part, CountDistinct):
            rows = Rows("", {}, values={part.value: self.values[part.value]})
            return f"COUNT(DISTINCT {self.sources.key_text(part.value, rows)}){where}"
        if isinstance(part, LatticeSum):
            value, most = self.bare.get(part), max(abs(part.least), abs(part.most))
            if value is None or not part.origin or not self.shifted:
                return f"COALESCE({self.dialect.total(self.steps[part], most, where)}, 0)"
            # What is taken from each is taken from the sum.
            origin = f"CAST({int(part.origin)} AS {self.dialect.wide}) * COUNT({value}){where}"
            total = self.dialect.total(value, most + abs(int(part.origin)), where)
            return f"COALESCE({total} - {origin}, 0)"
        if isinstance(part, LatticeProduct | LatticeShare):
            most = part.most if isinstance(part, LatticeProduct) else SHARE_STEPS
            return f"COALESCE({self.dialect.total(self.moments[part], most, where)}, 0)"
        raise Lacking(type(part).__name__)

    def _sections(self, rows: Rows, keys: Sequence[str], by_row: str | None) -> Statement:
        plan = self.plan
        of_rows = tuple(place for place, part in enumerate(plan.parts) if not of_units(part))
        of_all = tuple(place for place, part in enumerate(plan.parts) if isinstance(part, AllUnits))
        of_unit = tuple(place for place, part in enumerate(plan.parts) if of_units(part) and place not in of_all)
        sections = [Section(of_rows), *([Section(of_unit)] if of_unit else [])]
        sections += [Section((place,), of_all=True) for place in of_all]
        sections += [Section(grid=number) for number in range(len(plan.grids))]
        source = rows.text if len(sections) == 1 else "kept"
        conditions = [by_row] if by_row is not None else []
        texts = [self._of_rows(source, keys, of_rows, conditions)]
        if of_unit:
            texts.append(self._of_units(source, keys, of_unit, rows.unit))
        texts += [self._of_all_units(source, keys, rows.unit) for _ in of_all]
        texts += [self._of_grid(source, keys, grid, conditions) for grid in plan.grids]
        named = self.sources.named | ({} if source != "kept" else {"kept": f"SELECT * FROM {rows.text}"})
        return self._statement(texts, keys, tuple(sections), named)

    def _statement(
        self,
        texts: Sequence[tuple[str, int]],
        keys: Sequence[str],
        sections: tuple[Section, ...],
        named: Mapping[str, str],
    ) -> Statement:
        text = f"{self.dialect.head(named)}{self._below_one_another(texts, keys)}"
        return Statement(text, sections, dict(self.lists.found), named)

    def _below_one_another(self, texts: Sequence[tuple[str, int]], keys: Sequence[str]) -> str:
        """Sections, each with how many numbers it has, as one SELECT."""
        width = max(size for _, size in texts)
        selects = []
        for number, (text, size) in enumerate(texts):
            numbers = [f"CAST(n{place} AS {self.dialect.wide})" if place < size else "NULL" for place in range(width)]
            heads = [f"{number} AS section", *keys, *(f"{each} AS n{place}" for place, each in enumerate(numbers))]
            selects.append(f"SELECT {', '.join(heads)} FROM ({text}) AS section{number}")
        return " UNION ALL ".join(selects)

    def _of_rows(
        self, source: str, keys: Sequence[str], parts: Sequence[int], conditions: Sequence[str]
    ) -> tuple[str, int]:
        sums = [self._sum_of_rows(self.plan.parts[part], conditions) for part in parts]
        listed = [*keys, *(f"{text} AS n{place}" for place, text in enumerate(sums))]
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join(listed) or 'COUNT(*) AS n0'} FROM {source}{by}", len(sums)

    def _of_units(self, source: str, keys: Sequence[str], parts: Sequence[int], unit: str | None) -> tuple[str, int]:
        """One number of each unit in each group, and their sums."""
        if unit is None:
            raise Lacking("units of public rows")
        each = [number_of(self.plan.parts[part], self.values, self.steps, unit, self.dialect) for part in parts]
        sums = [
            self.dialect.total(f"y{place}", most_of_unit(self.plan.parts[part])) for place, part in enumerate(parts)
        ]
        inner = ", ".join([*keys, *(f"{text} AS y{place}" for place, text in enumerate(each))])
        outer = ", ".join([*keys, *(f"COALESCE({text}, 0) AS n{place}" for place, text in enumerate(sums))])
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        grouped = f"SELECT {inner} FROM {source} GROUP BY {', '.join([*keys, unit])}"
        return f"SELECT {outer} FROM ({grouped}) AS of_units{by}", len(each)

    def _of_all_units(self, source: str, keys: Sequence[str], unit: str | None) -> tuple[str, int]:
        """How many units there are in any group."""
        if unit is None:
            raise Lacking("units of public rows")
        nulls = "".join(f"NULL AS {name}, " for name in keys)
        return f"SELECT {nulls}COUNT(DISTINCT {unit}) AS n0 FROM {source}", 1

    def _of_grid(
        self, source: str, keys: Sequence[str], grid: GridCounts, conditions: Sequence[str]
    ) -> tuple[str, int]:
        point = self.places.get(grid)
        if isinstance(grid.of, LatticeSum):
            point = f"({self.steps[grid.of]} - {big(grid.of.least)})"
        where = " AND ".join([f"{point} IS NOT NULL", *conditions])
        listed = ", ".join([*keys, f"{point} AS n0", "COUNT(*) AS n1"])
        by = ", ".join([*keys, str(point)])
        return f"SELECT {listed} FROM {source} WHERE {where} GROUP BY {by}", 2


def _is_power(expr: Expr) -> bool:
    """Of whole exponents, too, two libraries may differ in the last bit."""
    return isinstance(expr, Call) and expr.function.name in INEXACT


def _as_held(kind: Type) -> Type:
    """Dates and times of groups are numbers already."""
    return Type.INTEGER if kind in (Type.DATE, Type.TIMESTAMP) else kind

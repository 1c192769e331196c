"""Selection of the kept rows of a privacy unit, as windows over keyed hashes of the rows' contributions.

The steps are the same on every engine: first limit the groups of each unit, keeping the least group hashes; then the
rows in each group and of the unit, keeping the least row hashes. Hashes depend only on a unit's own rows and the key.
Rows of equal hashes are ordered by their contributions, NULL first, so that any row order gives the same integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.core.exact import ExactPlan, of_units
from dpsql.executors.keyed_hash import (
    NULL_LIMB,
    PRIME,
    REAL_ENDS,
    REAL_LIMIT,
    REAL_WINDOW,
    REAL_WINDOWS,
    UNIT_LIMBS,
    Form,
    HashKey,
    Lane,
    Limbs,
    limbs_of,
)
from dpsql.executors.sql.dialect import Dialect
from dpsql.executors.sql.limit_excess import Limits
from dpsql.executors.sql.row_values import big, real
from dpsql.executors.sql.rows import Rows, Writer
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

Hashed = tuple[str, Type, Limbs]
"""A column, its type (INTEGER for whole numbers), and its limbs."""
_LOW = (1 << 30) - 1


@dataclass(frozen=True)
class KeptRows:
    """The rows of the kept groups; the column `by_row` is TRUE for rows that also count in parts of rows."""

    rows: Rows
    by_row: str | None


@dataclass(frozen=True, repr=False)
class ContributingRows:
    """Rows of units with the columns used later, and the hashed columns: of the keys of groups, and of other
    contributions. named: the named SELECTs of the statement."""

    rows: Rows
    columns: tuple[str, ...]
    keys: tuple[Hashed, ...]
    parts: tuple[Hashed, ...]
    named: dict[str, str]


def kept_rows(plan: ExactPlan, given: ContributingRows, writer: Writer, key: HashKey) -> KeptRows:
    """Bound the contribution of each unit."""
    limits = Limits.of(plan)
    if not limits.any:
        return KeptRows(given.rows, None)
    if not writer.dialect.counts_first:
        return _limited(plan, limits, given, writer, key)
    names, rows = writer.names, given.rows
    every, above, of = names.fresh("every"), names.fresh("above"), names.fresh("u")
    unit = str(rows.unit)
    given.named[every] = f"SELECT {', '.join(given.columns)} FROM {rows.text}"
    of_units = limits.above(every, unit, [name for name, _, _ in given.keys], names)
    given.named[above] = f"SELECT {unit} AS {of} FROM ({of_units}) AS {names.fresh('q')}"
    many = writer.select("*", f"{every} SEMI JOIN {above} ON {unit} = {of}")
    kept = _limited(plan, limits, replace(given, rows=replace(rows, text=many)), writer, key)
    listed = ", ".join(given.columns)
    both = f"SELECT {listed}{'' if kept.by_row is None else f', {kept.by_row}'} FROM {kept.rows.text}"
    few = f"SELECT {listed}{'' if kept.by_row is None else ', TRUE'} FROM {every} ANTI JOIN {above} ON {unit} = {of}"
    return KeptRows(replace(rows, text=f"({both} UNION ALL {few}) AS {names.fresh('q')}"), kept.by_row)


def _limited(plan: ExactPlan, limits: Limits, given: ContributingRows, writer: Writer, key: HashKey) -> KeptRows:
    """Hash each row, and keep the least of each unit."""
    limiter = Limiter(given.rows, (given.keys, given.parts), writer, key)
    if limits.of_units is not None:
        limiter.keep(limiter.least_groups(limits.of_units))
    choose = limiter.mark if any(map(of_units, plan.parts)) else limiter.keep
    if limits.groups is not None:
        choose(limiter.least_groups(limits.groups))
    if limits.per_group is not None:
        choose(limiter.least_rows(limits.per_group, by_group=True))
    if limits.rows is not None:
        choose(limiter.least_rows(limits.rows, by_group=False))
    return KeptRows(limiter.rows, limiter.marked)


class Limiter:
    """Rows with hashes of their groups and of themselves. `marked`: the column of kept rows, if dropped rows stay."""

    def __init__(
        self, rows: Rows, hashed: tuple[Sequence[Hashed], Sequence[Hashed]], writer: Writer, key: HashKey
    ) -> None:
        keys, parts = hashed
        self.writer = writer
        self.names = writer.names
        self.key = key
        self.keys = [name for name, _, _ in keys]
        self.parts = [name for name, _, _ in parts]
        self.marked: str | None = None
        assert rows.unit is not None  # without units there are no limits
        self.unit = rows.unit
        kind = rows.unit_kind
        first: list[Hashed] = []
        if kind is Type.TEXT:
            first = [(rows.unit, kind, limbs_of(kind))]
        elif kind is not None:
            unit, text = self.names.fresh("i"), self.names.fresh("t")
            rows = replace(rows, text=writer.select(f"*, TRY_CAST({rows.unit} AS BIGINT) AS {unit}", rows.text))
            as_text = f"CAST({rows.unit} AS {writer.dialect.type_name(Type.TEXT)})"
            other = f"CASE WHEN {unit} IS NULL THEN {as_text} END AS {text}"
            rows = replace(rows, text=writer.select(f"*, {other}", rows.text))
            first = [(unit, Type.INTEGER, UNIT_LIMBS), (text, Type.TEXT, Limbs(Form.TEXT))]
        rows, lanes = self._hashed(rows, [f"{lane.start}" for lane in key.lanes], [*first, *keys])
        rows, group = self._number(rows, lanes, key.of_groups)
        rows, lanes = self._hashed(rows, lanes, parts)
        rows, own = self._number(rows, lanes, key.lanes)
        self.rows, self.group, self.own = rows, group, own

    def _hashed(self, rows: Rows, lanes: Sequence[str], values: Sequence[Hashed]) -> tuple[Rows, list[str]]:
        texts: list[str] = []
        for value in values:
            name, scaled = value[0], value[0]
            if value[2].form is Form.REAL:  # a column, since it occurs many times
                scaled = self.names.fresh("r")
                rows = replace(rows, text=self.writer.select(f"*, {_in_window(name)} AS {scaled}", rows.text))
            texts += limb_texts(value, self.key.text, self.writer.dialect, scaled)
        if not texts:
            return rows, list(lanes)
        named = [self.names.fresh("l") for _ in texts]
        listed = ", ".join(f"{text} AS {name}" for text, name in zip(texts, named, strict=True))
        rows = replace(rows, text=self.writer.select(f"*, {listed}", rows.text))
        ends = []
        for text, lane in zip(lanes, self.key.lanes, strict=True):
            found = f"CAST({text} AS BIGINT)"
            for name in named:
                found = f"(({found} * {lane.factor} + {name}) % {PRIME})"
            ends.append(found)
        heads = [self.names.fresh("h") for _ in ends]
        listed = ", ".join(f"{text} AS {name}" for text, name in zip(ends, heads, strict=True))
        return replace(rows, text=self.writer.select(f"*, {listed}", rows.text)), heads

    def _number(self, rows: Rows, lanes: Sequence[str], keys: Sequence[Lane]) -> tuple[Rows, str]:
        shifted = [self.names.fresh("s") for _ in lanes]
        listed = ", ".join(
            f"(CAST({text} AS BIGINT) + {key.shift}) % {PRIME} AS {name}"
            for text, key, name in zip(lanes, keys, shifted, strict=True)
        )
        rows = replace(rows, text=self.writer.select(f"*, {listed}", rows.text))
        cubics = [
            f"(((({x} * {x}) % {PRIME}) * {x} + {x} * {key.linear} + {key.constant}) % {PRIME})"
            for x, key in zip(shifted, keys, strict=True)
        ]
        number = self.names.fresh("n")
        text = f"{cubics[0]} * {PRIME + 1} + {cubics[1]}"
        return replace(rows, text=self.writer.select(f"*, {text} AS {number}", rows.text)), number

    def least_groups(self, most: int) -> str:
        order = self._order(self.group, self.keys)
        return f"DENSE_RANK() OVER (PARTITION BY {self._among([self.unit])} ORDER BY {order}) <= {most}"

    def least_rows(self, most: int, *, by_group: bool) -> str:
        by = [self.unit, *(self.keys if by_group else [])]
        order = self._order(self.own, [*self.keys, *self.parts])
        return f"ROW_NUMBER() OVER (PARTITION BY {self._among(by)} ORDER BY {order}) <= {most}"

    def _among(self, names: Sequence[str]) -> str:
        return ", ".join([*([self.marked] if self.marked is not None else []), *names])

    def _order(self, first: str, names: Sequence[str]) -> str:
        return ", ".join([first, *(f"{name} NULLS FIRST" for name in names)])

    def keep(self, condition: str) -> None:
        """Drop the rows that do not satisfy the condition."""
        name = self.names.fresh("b")
        made = self.writer.select(f"*, {condition} AS {name}", self.rows.text)
        self.rows = replace(self.rows, text=self.writer.select("*", made, f" WHERE {name}"))

    def mark(self, condition: str) -> None:
        """Restrict the marks to rows that satisfy the condition."""
        name = self.names.fresh("b")
        marked = condition if self.marked is None else f"{self.marked} AND {condition}"
        self.rows = replace(self.rows, text=self.writer.select(f"*, {marked} AS {name}", self.rows.text))
        self.marked = name


def _by_window(name: str, texts: Sequence[str]) -> str:
    """Select one text for each window; the most common window comes first."""
    size, middle = f"ABS({name})", -REAL_WINDOWS[0]
    inside = f"({size} >= {real(REAL_ENDS[middle - 1])} AND {size} < {real(REAL_ENDS[middle])}) OR {size} = 0"
    others = " ".join(f"WHEN {size} < {real(end)} THEN {text}" for end, text in zip(REAL_ENDS, texts, strict=False))
    return f"CASE WHEN {inside} THEN {texts[middle]} {others} ELSE {texts[-1]} END"


def _in_window(name: str) -> str:
    """Scale a real to its window by two powers of two: a single one may not be a double."""
    texts = []
    for window in REAL_WINDOWS:
        first = -REAL_WINDOW * window // 2
        second = -REAL_WINDOW * window - first
        texts.append(f"ABS({name}) * {real(2.0**first)} * {real(2.0**second)}" if window else f"ABS({name})")
    return _by_window(name, texts)


def limb_texts(value: Hashed, text_key: str, dialect: Dialect, scaled: str = "") -> list[str]:
    """Return the limbs of a column (see `keyed_hash.Limbs`). scaled: for reals, the value scaled to its window."""
    name, kind, limbs = value
    if limbs.form is Form.PRESENCE:
        return [f"CASE WHEN {name} IS NULL THEN {NULL_LIMB} ELSE 0 END"]
    if limbs.form is Form.TEXT:
        texts = list(dialect.text_limbs(text_key, name))
    elif limbs.form is Form.REAL:
        limit = real(REAL_LIMIT)
        within = f"LEAST({scaled}, {limit})"
        whole = f"CAST(FLOOR({within}) AS BIGINT)"
        window = _by_window(name, [str(place) for place, _ in enumerate(REAL_WINDOWS)])
        window = f"({window} + CASE WHEN {name} < 0 THEN {len(REAL_WINDOWS)} ELSE 0 END)"
        rest = f"(({within} - FLOOR({within})) * 1073741824e0)"
        texts = [
            window,
            f"({whole} & {_LOW})",
            f"({whole} >> 30)",
            f"CAST(FLOOR({rest}) AS BIGINT)",
            f"CAST(FLOOR(({rest} - FLOOR({rest})) * 1073741824e0) AS BIGINT)",
        ]
        texts = [f"CASE WHEN {name} IS NOT NULL THEN {each} END" for each in texts]  # LEAST and GREATEST skip NULL
    else:
        whole = dialect.whole(name, kind)
        moved = whole if limbs.offset == 0 else f"({whole} - {big(limbs.offset)})"
        if limbs.count == 1:
            texts = [moved]
        elif limbs.count == 2:
            texts = [f"({moved} & {_LOW})", f"({moved} >> 30)"]
        else:
            texts = [f"({moved} & {_LOW})", f"(({moved} >> 30) & {_LOW})", f"(({moved} >> 60) & 15)"]
    return [f"COALESCE({each}, {NULL_LIMB if place == 0 else 0})" for place, each in enumerate(texts)]

"""Contributions of each row, as columns: places in public lists, lattice steps, places between edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.core.exact import SHARE_STEPS, Edges, LatticeProduct, LatticeShare, LatticeSum, LeadingDigits
from dpsql.executors.sql.dialect import Dialect
from dpsql.executors.sql.rows import Rows, Writer
from dpsql.plan.query import GroupKey
from dpsql.schema.columns import Key, Type
from dpsql.schema.intervals import INT64, Interval

MOST_CASES = 4
"""Most public values that are compared by CASE; longer lists are joined."""
MOST_HALVED = 64
"""Most edges that are searched by bisection; of more edges, the greatest below a value is joined."""
_SHARE_BITS = SHARE_STEPS.bit_length() - 1


def real(value: float) -> str:
    """Return a DOUBLE, exact to the last bit."""
    text = repr(float(value))
    if text.lstrip("-") in ("inf", "nan"):
        return f"CAST('{text}' AS DOUBLE)"
    return f"({text}{'' if 'e' in text else 'e0'})"


def steps_text(part: LatticeSum, value: str, dialect: Dialect, ends: Interval | None = None) -> str:
    """Return the integer that a row adds to a lattice, for a value that is a column; NULL for NULL.

    With `whole`, clip(clip(v, lower, upper) - origin, least, most) is v - origin clipped to the images of the two ends;
    one CASE does both clips, and nothing overflows. For reals the product is clipped to {least..most} before rounding,
    with the same result, since both limits are integers. ends: known limits of all values."""
    if part.whole:
        low, high = (min(max(int(end) - int(part.origin), part.least), part.most) for end in (part.lower, part.upper))
        whole = dialect.whole(value, part.value.type)
        origin = int(part.origin)
        inside = whole if origin == 0 else f"{whole} - {big(origin)}"
        below, above = big(low + origin), big(high + origin)
        return (
            f"CASE WHEN {whole} BETWEEN {below} AND {above} THEN {inside} WHEN {whole} < {below} THEN {big(low)} "
            f"WHEN {whole} > {above} THEN {big(high)} END"
        )
    kind = part.value.type
    number = number_text(value, kind, dialect)
    if kind is Type.REAL and ends is not None and part.lower <= ends.lower and ends.upper <= part.upper:
        return f"({number} - {real(part.origin)}) * {real(part.steps_per_unit)}"
    lower, upper = real(part.lower), real(part.upper)
    clipped = (
        f"CASE WHEN {number} BETWEEN {lower} AND {upper} THEN {number} WHEN {number} < {lower} THEN {lower} "
        f"WHEN {number} > {upper} THEN {upper} END"
    )
    return f"({clipped} - {real(part.origin)}) * {real(part.steps_per_unit)}"


def bare_steps(part: LatticeSum, ends: tuple[int, int] | None) -> bool:
    """Return whether an integer column within these ends has its values minus the origin as steps, without clipping."""
    if not part.whole or ends is None:
        return False
    low, high = ends
    inside = part.lower <= low and high <= part.upper
    return bool(inside and part.least <= low - int(part.origin) and high - int(part.origin) <= part.most)


def rounded_text(part: LatticeSum, product: str, dialect: Dialect) -> str:
    """Return the rounded step of a product of `steps_text`, which is a column; 0 if it is not finite. Differences and
    products of doubles keep the order, so the images of both ends bound all values between them."""
    low, high = ((float(end) - float(part.origin)) * float(part.steps_per_unit) for end in (part.lower, part.upper))
    if part.least <= low and high <= part.most:
        return dialect.rounded(product)
    infinite = f"WHEN ABS({product}) = CAST('inf' AS DOUBLE) THEN {big(min(max(0, part.least), part.most))} "
    least, most = real(part.least), real(part.most)
    return (
        f"CASE WHEN {product} BETWEEN {least} AND {most} THEN {dialect.rounded(product)} {infinite}"
        f"WHEN {product} < {least} THEN {big(part.least)} WHEN {product} > {most} THEN {big(part.most)} END"
    )


def big(value: int) -> str:
    """Return a BIGINT, or a HUGEINT if needed."""
    if value in INT64:
        return f"CAST({value} AS BIGINT)"
    return f"CAST({value} AS HUGEINT)"


def product_text(part: LatticeProduct, first: str, second: str, dialect: Dialect) -> str:
    """Return the integer that a row adds to a product, from two step columns."""
    if part.whole:
        return f"(2 * {first} - {big(part.first.most)}) * (2 * {second} - {big(part.second.most)})"
    one, other = (
        f"(CAST({steps} AS DOUBLE) * {real(2 / each.most)} - 1e0)"
        for steps, each in ((first, part.first), (second, part.second))
    )
    made = f"{one} * {other} * {real(part.most)}"
    return f"LEAST(GREATEST({dialect.rounded(f'({made})')}, {big(-part.most)}), {big(part.most)})"


def share_text(part: LatticeShare, first: str, second: str) -> str:
    """Return the integer that a row adds to a share, from two step columns."""
    own = _shares(first, part.degrees[0])[part.index[0]]
    if part.degrees[1] == 0:
        return own
    weights = _shares(second, part.degrees[1])[:-1]
    shares = [f"(({own} * {weight}) >> {_SHARE_BITS})" for weight in weights]
    if part.index[1] < len(shares):
        return shares[part.index[1]]
    return f"({own} - {' - '.join(shares)})"


def _shares(steps: str, degree: int) -> list[str]:
    left = f"({big(SHARE_STEPS)} - {steps})"
    if degree == 0:
        return [f"({big(SHARE_STEPS)} + 0 * {steps})"]
    if degree == 1:
        return [left, steps]
    least, most = f"(({left} * {left}) >> {_SHARE_BITS})", f"(({steps} * {steps}) >> {_SHARE_BITS})"
    return [least, f"({big(SHARE_STEPS)} - {least} - {most})", most]


def number_text(value: str, kind: Type, dialect: Dialect) -> str:
    """Return a value of an ordered type as a DOUBLE."""
    return value if kind is Type.REAL else f"CAST({dialect.whole(value, kind)} AS DOUBLE)"


def edges_text(of: Edges, value: str, dialect: Dialect) -> str:
    """Return how many edges are less than a value, by bisection."""
    number = number_text(value, of.value.type, dialect)

    def between(first: int, last: int) -> str:
        """Return the count, known to be in first..last."""
        if first == last:
            return str(first)
        middle = (first + last) // 2
        edge = real(of.edges[middle])
        return f"CASE WHEN {number} > {edge} THEN {between(middle + 1, last)} ELSE {between(first, middle)} END"

    return f"CASE WHEN {value} IS NULL THEN NULL ELSE CAST({between(0, len(of.edges))} AS BIGINT) END"


_NORMAL = real(2.0**-1022)
"""The least normal double."""


def leading_text(of: LeadingDigits, value: str, dialect: Dialect) -> str:
    """Return the place of a value by its leading digits. The power of two is the largest that is at most the size: a
    logarithm finds this one or a neighbour. All else is exact: the number divided by the power, minus 1, times the
    number of places. All numbers below the least normal double share one power."""
    number, steps, two = number_text(value, of.value.type, dialect), 2**of.digits, real(2)
    size = f"ABS({number})"
    near = f"LEAST(GREATEST(FLOOR(LOG2({size})), {real(-1022)}), {real(1023)})"
    power = (
        f"({near} - CASE WHEN {size} < POW({two}, {near}) THEN 1 ELSE 0 END"
        f" + CASE WHEN {size} / {two} >= POW({two}, {near}) THEN 1 ELSE 0 END)"
    )
    digits = f"({power} + {real(1023)}) * {steps} + FLOOR(({size} / POW({two}, {power}) - {real(1)}) * {steps})"
    away = (
        f"CAST(CASE WHEN {size} < {_NORMAL} THEN FLOOR({size} / {_NORMAL} * {steps}) "
        f"WHEN {size} < {real(float('inf'))} THEN {digits} ELSE {2047 * steps} END AS BIGINT)"
    )
    placed = f"CASE WHEN {number} < {real(0)} THEN {big(of.middle - 1)} - {away} ELSE {big(of.middle)} + {away} END"
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE {placed} END"


def code_text(key: GroupKey, value: str, dialect: Dialect) -> str | None:
    """Return the place of a value, a column, in a public list, NULL for none; None if the list has to be joined."""
    values = key.values or ()
    null = values.index(None) if None in values else None
    outside = null if key.listed and null is not None else None
    kind = key.expr.type
    of_null = "NULL" if null is None else big(null)
    if kind.discrete and kind is not Type.BOOLEAN and not key.listed and is_consecutive(values):
        present = [each for each in values if each is not None]
        low, whole = int(present[0]), dialect.whole(value, kind)
        inside = f"{whole} BETWEEN {big(low)} AND {big(low + len(present) - 1)}"
        null_code = "NULL" if values[-1] is not None else big(len(present))
        return f"CASE WHEN {value} IS NULL THEN {null_code} WHEN {inside} THEN {whole} - {big(low)} END"
    if len(values) > MOST_CASES:
        return None
    cases = [
        f"WHEN {value} = {dialect.literal(each, kind)} THEN {big(place)}"
        for place, each in enumerate(values)
        if each is not None
    ]
    otherwise = "" if outside is None else f" ELSE {big(outside)}"
    return f"CASE WHEN {value} IS NULL THEN {of_null} {' '.join(cases)}{otherwise} END"


def is_consecutive(values: Sequence[Key]) -> bool:
    present = values[:-1] if values and values[-1] is None else values
    ends = bool(present) and isinstance(present[0], int) and isinstance(present[-1], int)
    return ends and present[-1] - present[0] == len(present) - 1  # type: ignore[operator]


class Lists:
    """Public lists that a statement joins: name -> type and values."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[Type, tuple[Key, ...]]] = {}
        self.few = False
        """True if groups are looked up instead of rows."""

    def named(self, name: str, kind: Type, values: tuple[Key, ...]) -> str:
        self.found[name] = (kind, values)
        return name


def with_code(key: GroupKey, rows: Rows, writer: Writer, lists: Lists) -> tuple[Rows, str]:
    """Return the rows with the place of a key in its public list as a column."""
    rows, (value,) = writer.with_values(rows, [key.expr])
    return with_code_of(key, value, rows, writer, lists)


def with_code_of(key: GroupKey, value: str, rows: Rows, writer: Writer, lists: Lists) -> tuple[Rows, str]:
    """As `with_code`, for a value that is already a column."""
    dialect = writer.dialect
    code = writer.names.fresh("g")
    text = code_text(key, value, dialect)
    if text is not None:
        return replace(rows, text=writer.select(f"*, {text} AS {code}", rows.text)), code
    values = key.values or ()
    null = values.index(None) if None in values else None
    present = tuple(each for each in values if each is not None)
    place = writer.names.fresh("p")
    places = "p" if null is None or null == len(present) else f"p + CAST(p >= {null} AS BIGINT)"
    looked = dialect.place_in(present, key.expr.type, value) if lists.few else None
    if looked is not None:
        text = writer.select(f"*, {looked} AS p", rows.text)
        join, extra = writer.select(f"{dialect.all_but(['p'])}, {places} AS {place}", text), [place]
    else:
        name, listed = writer.names.fresh("list"), writer.names.fresh("v")
        lists.named(name, key.expr.type, present)
        of_list = writer.select(f"v AS {listed}, {places} AS {place}", name)
        join, extra = f"{rows.text} LEFT JOIN {of_list} ON {value} = {listed}", [listed, place]
    outside = f"{big(null)}" if key.listed and null is not None else "NULL"
    of_null = "NULL" if null is None else big(null)
    made = f"CASE WHEN {value} IS NULL THEN {of_null} ELSE COALESCE({place}, {outside}) END"
    return replace(rows, text=writer.select(f"{dialect.all_but(extra)}, {made} AS {code}", join)), code


def with_place(of: Edges | LeadingDigits, value: str, rows: Rows, writer: Writer, lists: Lists) -> tuple[Rows, str]:
    """Return the rows with the place of a value, a column, by leading digits or by the number of lesser edges."""
    place = writer.names.fresh("p")
    if isinstance(of, LeadingDigits):
        text = f"{leading_text(of, value, writer.dialect)} AS {place}"
        return replace(rows, text=writer.select(f"*, {text}", rows.text)), place
    if len(of.edges) <= MOST_HALVED:
        text = f"{edges_text(of, value, writer.dialect)} AS {place}"
        return replace(rows, text=writer.select(f"*, {text}", rows.text)), place
    number = number_text(value, of.value.type, writer.dialect)
    below = writer.dialect.edges_below(of.edges, number)
    if below is not None:
        text = f"CASE WHEN {value} IS NOT NULL THEN CAST({below} AS BIGINT) END AS {place}"
        return replace(rows, text=writer.select(f"*, {text}", rows.text)), place
    name, edge, last, number = (writer.names.fresh(letter) for letter in ("list", "v", "p", "d"))
    lists.named(name, Type.REAL, of.edges)
    edges = writer.select(f"v AS {edge}, MAX(p) AS {last}", name, " GROUP BY v")
    asked = writer.select(f"*, {number_text(value, of.value.type, writer.dialect)} AS {number}", rows.text)
    text = f"CASE WHEN {number} IS NOT NULL THEN COALESCE({last} + 1, 0) END AS {place}"
    joined = writer.dialect.greatest_below(asked, edges, number, edge)
    return replace(rows, text=writer.select(f"{writer.dialect.all_but([edge, last, number])}, {text}", joined)), place

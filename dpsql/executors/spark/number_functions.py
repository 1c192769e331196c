"""Functions of numbers in Spark's SQL, where its own or DuckDB's text differs from the kernels.

A template is a format string of written arguments, or makes one from a call. None can fail: casts only receive values
that fit, nothing is divided by zero, and no array is read beyond its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dpsql.executors.spark.literals import literal
from dpsql.executors.sql.dialect import MissingFeature
from dpsql.plan.expressions import Array, Call, Expr, Literal
from dpsql.plan.functions.casts import WIDTHS, whole_decimals
from dpsql.plan.functions.rounding import EXACT_POWERS, MOST_DIGITS, POWERS, SPLITTER, halves_of
from dpsql.plan.functions.rules import in_result_type, sql_between
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INT64, Interval

Template = str | Callable[[Call], str]

_WHOLE_FROM = "4503599627370496e0"
"""2^52: larger doubles have no fraction."""
_INFINITE = "CAST('inf' AS DOUBLE)"


def _by_result(template: str) -> Template:
    """Return a template with integers as doubles if the result is a double."""
    rule = in_result_type(template)
    return lambda call: rule([each.type for each in call.args], call.type)


def constant(expr: Expr) -> Literal:
    """Return an argument that must be a constant. Raises MissingFeature."""
    if not isinstance(expr, Literal):
        raise MissingFeature("function of a value where it takes constants only")
    return expr


# Rounding of doubles to whole numbers; the sign of a zero stays, since its text shows it.


def _kept(text: str, value: str) -> str:
    """Return the result for a double with a fraction; others are whole and stay."""
    return f"(CASE WHEN {value} = 0e0 OR ABS({value}) >= {_WHOLE_FROM} THEN {value} ELSE {text} END)"


def floor_text(value: str) -> str:
    return _kept(f"CAST(FLOOR({value}) AS DOUBLE)", value)


def ceil_text(value: str) -> str:
    return _kept(f"- CAST(FLOOR(- {value}) AS DOUBLE)", value)


def trunc_text(value: str) -> str:
    down, up = f"CAST(FLOOR({value}) AS DOUBLE)", f"- CAST(FLOOR(- {value}) AS DOUBLE)"
    return _kept(f"CASE WHEN {value} < 0e0 THEN {up} ELSE {down} END", value)


def away_text(value: str) -> str:
    """Round to the nearest, halves away from zero; the difference to the whole part is exact. A zero keeps its sign."""
    whole = trunc_text(value)
    step = f"CASE WHEN ABS({value} - {whole}) >= 5e-1 THEN {whole} + SIGN({value}) ELSE {whole} END"
    return f"(CASE WHEN ABS({value}) >= {_WHOLE_FROM} THEN {value} ELSE {step} END)"


_ROUNDINGS: Mapping[str, Callable[[str], str]] = {
    "floor": floor_text,
    "ceil": ceil_text,
    "trunc": trunc_text,
    "round": away_text,
}


def _rounding(call: Call) -> str:
    if len(call.args) == 2:
        return _to_digits(call)
    if call.args[0].type is Type.INTEGER:
        return "{0}"
    text = _ROUNDINGS[call.function.name]("{0}")
    return f"CAST({text} AS BIGINT)" if call.type is Type.INTEGER else text


def _to_digits(call: Call) -> str:
    """Round as `dpsql.plan.functions.rounding`, operation by operation."""
    name = call.function.name
    if call.type is Type.INTEGER:
        return _integers_to_digits(half=name == "round")
    digits = call.args[1]
    if isinstance(digits, Literal) and digits.value is not None:
        number = min(max(int(digits.value), -MOST_DIGITS), MOST_DIGITS)
        power = literal(float(POWERS[abs(number)]), Type.REAL)
        halves = [literal(float(each[number]), Type.REAL) for each in _HALVES if 0 <= number <= EXACT_POWERS]
        text = _after_point(name, power, halves) if number >= 0 else _before(name, power)
    else:
        place = f"CAST(LEAST(ABS(GREATEST({{1}}, -{MOST_DIGITS})), {MOST_DIGITS}) AS INT)"
        power = f"(CASE {place}{_ODD_POWERS} ELSE CAST(CONCAT('1e', {place}) AS DOUBLE) END)"
        halves = [f"element_at(array({_listed(each)}), LEAST({place}, {EXACT_POWERS}) + 1)" for each in _HALVES]
        text = (
            f"CASE WHEN {{1}} > {EXACT_POWERS} THEN {_after_point(name, power, [])} "
            f"WHEN {{1}} >= 0 THEN {_after_point(name, power, halves)} ELSE {_before(name, power)} END"
        )
    return f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {text} END"


_HALVES = halves_of(POWERS[: EXACT_POWERS + 1])
_ODD_POWERS = "".join(
    f" WHEN {number} THEN {literal(float(power), Type.REAL)}"
    for number, power in enumerate(POWERS[:-1])
    if power != float(f"1e{number}")
)
"""The powers of ten that DuckDB's math library does not round to the nearest float."""


def _listed(powers: Array) -> str:
    return ", ".join(literal(float(each), Type.REAL) for each in powers)


def _or_itself(scaled: str, otherwise: str = "{0}") -> str:
    """Return the computed value, or the original if it is not finite."""
    finite = f"ABS({scaled}) < {_INFINITE} AND NOT isnan({scaled})"
    return f"(CASE WHEN {finite} THEN {scaled} ELSE {otherwise} END)"


def _after_point(name: str, power: str, halves: Sequence[str]) -> str:
    """Round after the point. Halves of an exact power of ten keep a product just below a half from being rounded up."""
    scaled = f"({{0}} * {power})"
    rounded = _ROUNDINGS[name](scaled)
    if name == "round" and halves:
        large = f"({{0}} * {SPLITTER!r}D)"
        high = f"({large} - ({large} - {{0}}))"
        low, (high_power, low_power) = f"({{0}} - {high})", halves
        error = f"(({high} * {high_power} - {scaled}) + {high} * {low_power} + {low} * {high_power})"
        error = f"SIGN({error} + {low} * {low_power})"
        whole = trunc_text(scaled)
        rounded = (
            f"(CASE WHEN ABS({scaled} - {whole}) = 5e-1 AND {error} = - SIGN({{0}}) THEN {whole} ELSE {rounded} END)"
        )
    return _or_itself(f"({rounded} / {power})")


def _before(name: str, power: str) -> str:
    scaled = f"({_ROUNDINGS[name](f'({{0}} / {power})')} * {power})"
    zero = f"CASE WHEN ABS({power}) = {_INFINITE} AND ABS({{0}}) < {_INFINITE} THEN 0e0 ELSE {{0}} END"
    return _or_itself(scaled, zero if name == "round" else "{0}")


def _integers_to_digits(*, half: bool) -> str:
    """Round integers. The remainder has the sign of the number. Beyond 64 bits the result is NULL; for 10^19, which
    they cannot hold, everything is remainder."""
    listed = ", ".join(f"CAST({10**power} AS BIGINT)" for power in range(19))
    left = "LEAST(GREATEST(- GREATEST({1}, -99), 0), 18)"
    power = f"element_at(array({listed}), CAST({left} AS INT) + 1)"
    rest = f"({{0}} % {power})"
    whole = f"({{0}} - {rest})"
    zero = "CAST(0 AS BIGINT)"
    of_all = zero
    if half:
        up = f"CASE WHEN {rest} > 0 AND {rest} >= {power} - {rest} THEN {power} ELSE {zero} END"
        down = f"CASE WHEN {rest} < 0 AND {rest} <= - {power} - {rest} THEN {power} ELSE {zero} END"
        whole = f"try_subtract(try_add({whole}, {up}), {down})"
        middle = f"{5 * 10**18}"
        of_all = f"CASE WHEN {{1}} = -19 AND ({{0}} >= {middle} OR {{0}} <= -{middle}) THEN NULL ELSE {zero} END"
    return (
        f"CASE WHEN {{1}} < -18 THEN CASE WHEN {{0}} IS NOT NULL THEN {of_all} END "
        f"WHEN {{1}} IS NOT NULL THEN {whole} END"
    )


# Casts of numbers.


def _whole_within(text: str, ends: Interval) -> str:
    """Return a BIGINT, NULL outside the ends; ends of BIGINT itself are not compared."""
    lower, upper = int(ends.lower), int(ends.upper)
    if upper == INT64.upper:
        return text if lower == INT64.lower else f"NULLIF(GREATEST({text}, CAST({lower - 1} AS BIGINT)), {lower - 1})"
    return sql_between(text, lower, upper)


def _to_integer(word: str) -> Template:
    width = WIDTHS[word]
    least, most = int(width.lower), int(width.upper)

    def template(call: Call) -> str:
        kind = call.args[0].type
        if kind is Type.BOOLEAN:
            return "CAST({0} AS BIGINT)"
        if kind is Type.INTEGER:
            return _whole_within("{0}", width)
        # As a double, the largest integer rounds to one too many.
        sign = "<" if width.upper == INT64.upper else "<="
        inside = f"rint({{0}}) >= {literal(float(least), Type.REAL)}"
        inside += f" AND rint({{0}}) {sign} {literal(float(most), Type.REAL)}"
        return f"CASE WHEN {inside} THEN CAST(rint({{0}}) AS BIGINT) END"

    return template


def float_text(value: str) -> str:
    """Round to 32 bits; infinity stays, but no number becomes infinite."""
    narrow = f"CAST(CAST({value} AS FLOAT) AS DOUBLE)"
    return f"CASE WHEN ABS({narrow}) < {_INFINITE} OR ABS({value}) >= {_INFINITE} THEN {narrow} END"


def _to_float(call: Call) -> str:
    """Cast to FLOAT, for integers by their digits: Spark merges casts to FLOAT and then DOUBLE into one to DOUBLE."""
    kind = call.args[0].type
    if kind is Type.INTEGER:
        return "CAST(CAST(CAST({0} AS STRING) AS FLOAT) AS DOUBLE)"
    return "CAST({0} AS DOUBLE)" if kind is Type.BOOLEAN else float_text("{0}")


def decimal_digits(call: Call) -> tuple[int, int]:
    """Return the digits of a DECIMAL, in total and after the point."""
    digits, scale = (constant(each).value for each in call.args[1:])
    return int(digits or 0), int(scale or 0)


def _to_decimal(call: Call) -> str:
    """Scale the value, round it, check its digits and scale it back, like the kernel."""
    digits, scale = decimal_digits(call)
    if scale > EXACT_POWERS and call.args[0].type is Type.REAL:
        raise MissingFeature(f"DECIMAL of more than {EXACT_POWERS} digits after the point")
    if call.args[0].type is not Type.REAL:
        return f"CAST({_whole_within('CAST({0} AS BIGINT)', whole_decimals(digits, scale))} AS DOUBLE)"
    power, limit = (literal(float(f"1e{each}"), Type.REAL) for each in (scale, digits))
    scaled = f"({away_text(f'({{0}} * {power})')} + 0e0)"
    return f"CASE WHEN ABS({scaled}) < {limit} THEN {scaled} / {power} END"


def _power(base: str, exponent: str) -> str:
    """Return a power: every power of 1 is 1, and so is every infinite one of -1, unlike in Java."""
    of_one = f"WHEN {base} = 1 THEN 1e0 WHEN {base} = -1 AND ABS({exponent}) = {_INFINITE} THEN 1e0"
    power = f"WHEN {base} <> 0 OR {exponent} >= 0 THEN POWER({base}, {exponent})"
    return f"CASE WHEN {base} IS NULL OR {exponent} IS NULL THEN NULL {of_one} {power} END"


def _sql_extreme(name: str) -> Template:
    def template(call: Call) -> str:
        kinds = [each.type for each in call.args]
        text = in_result_type(f"{name}({{args}})" if len(kinds) > 1 else "{0}")(kinds, call.type)
        return f"{text} + 0e0" if call.type is Type.REAL else text

    return template


_NEGATED = "try_subtract(CAST(0 AS BIGINT), {0})"


def _opposite(real: str, whole: str) -> Template:
    return lambda call: whole if call.type is Type.INTEGER else real


def _int_divide(call: Call) -> str:
    if call.type is Type.INTEGER:  # only -1 can make it overflow
        return f"CASE WHEN {{1}} = -1 THEN {_NEGATED} ELSE {{0}} DIV NULLIF(NULLIF({{1}}, 0), -1) END"
    x, y = (f"CAST({{{place}}} AS DOUBLE)" for place in range(2))
    return trunc_text(f"({x} / NULLIF({y}, 0e0))")


_CLAMP = "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL THEN LEAST(GREATEST({0}, {1}), {2}) END"


def _clamp(call: Call) -> str:
    text = in_result_type(_CLAMP)([each.type for each in call.args], call.type)
    return f"{text} + 0e0" if call.type is Type.REAL else text


NUMBERS: Mapping[str, Template] = {
    "int_divide": _int_divide,
    "negate": _opposite("- {0}", _NEGATED),
    "abs": _opposite("ABS({0})", f"CASE WHEN {{0}} < 0 THEN {_NEGATED} ELSE {{0}} END"),
    **dict.fromkeys(_ROUNDINGS, _rounding),
    **{f"to_{word.lower()}": _to_integer(word) for word in WIDTHS},
    "to_float": _to_float,
    "to_decimal": _to_decimal,
    "sqrt": _by_result("CASE WHEN {0} >= 0 THEN SQRT({0}) END"),
    "power": _by_result(_power("{0}", "{1}")),
    "degrees": _by_result("{0} * 57.29577951308232e0"),
    "radians": _by_result("{0} * 1.7453292519943295e-2"),
    "least": _sql_extreme("LEAST"),
    "greatest": _sql_extreme("GREATEST"),
    "clamp": _clamp,
    "integer_to_text": "CAST({0} AS STRING)",
    "boolean_to_text": "CAST({0} AS STRING)",
}

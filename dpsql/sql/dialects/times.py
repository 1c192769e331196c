"""Times: their parts, units and differences."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.dialects.reading import DialectText, called, number

_DAYS_OF_WEEK = {"DAYOFWEEK", "DOW", "WEEKDAY"}
_WEEKS = {"WEEK", "WEEKOFYEAR"}
_ISO_PARTS = {"ISOWEEK": "WEEK", "WEEKISO": "WEEK", "WEEK_ISO": "WEEK", "ISO_WEEK": "WEEK", "DAYOFWEEK_ISO": "ISODOW"}
_PARTS = {
    "YEAR", "QUARTER", "MONTH", "DAY", "DAYOFYEAR", "DOY", "HOUR", "MINUTE", "ISODOW", "ISOYEAR", "EPOCH",
}  # fmt: skip
"""Parts that mean the same everywhere. SECOND has a fraction only on some engines."""
_UNITS = {
    **dict.fromkeys(("YEAR", "YEARS", "YYYY", "YY", "SYYYY"), "YEAR"),
    **dict.fromkeys(("QUARTER", "QUARTERS", "Q"), "QUARTER"),
    **dict.fromkeys(("MONTH", "MONTHS", "MM", "MON"), "MONTH"),
    **dict.fromkeys(("WEEK", "WEEKS"), "WEEK"),
    **dict.fromkeys(("ISOWEEK", "WEEK_ISO", "IW"), "ISOWEEK"),
    **dict.fromkeys(("DAY", "DAYS", "DD", "DDD", "J"), "DAY"),
    **dict.fromkeys(("HOUR", "HOURS", "HH", "HH24"), "HOUR"),
    **dict.fromkeys(("MINUTE", "MINUTES", "MI"), "MINUTE"),
    **dict.fromkeys(("SECOND", "SECONDS", "SS"), "SECOND"),
}
_ISO = {"%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"}


def part(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    word = node.this.name.upper()
    if word in _DAYS_OF_WEEK:
        return day_of_week(node.expression, node, reading)
    if word in _WEEKS and not reading.habits.iso_weeks:
        raise reading.uncertain(node, "WEEK", "Write ISOWEEK, the week of ISO 8601.")
    word = _ISO_PARTS.get(word, "WEEK" if word in _WEEKS else word)
    if word not in _PARTS | {"WEEK"} and not (word == "SECOND" and reading.habits.whole_seconds):
        raise reading.refused(node, f"EXTRACT of {word[:40]} is not read from {reading.habits.name}.")
    return exp.Extract(this=exp.Var(this=word), expression=node.expression)


def day_of_week(time: exp.Expr, node: exp.Expr, reading: DialectText) -> exp.Expr:
    sunday = reading.habits.sunday
    if sunday is None:
        raise reading.uncertain(node, "the number of a day in its week", "")
    if sunday == 7:
        return called("ISODOW", time)
    day = called("DAYOFWEEK", time)
    return day if sunday == 0 else exp.Paren(this=exp.Add(this=day, expression=number(sunday)))


def iso_day(node: exp.Expr, _: DialectText) -> exp.Expr | None:
    return called("ISODOW", node.this)


def week(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    always = isinstance(node, exp.WeekOfYear)  # always ISO 8601
    if node.args.get("mode") is not None or not (always or reading.habits.iso_weeks):
        raise reading.uncertain(node, "WEEK", "Write WEEKOFYEAR or ISOWEEK where the dialect has it.")
    return called("WEEK", node.this)


def cut(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate DATE_TRUNC; sqlglot writes weeks that begin on Sunday."""
    unit = node.args.get("unit")
    if isinstance(unit, exp.WeekStart):
        if unit.name.upper() != "SUNDAY":
            raise reading.refused(node, f"a week that begins on {unit.name} is not read.")
        return None
    word = _UNITS.get(unit.name.upper() if unit is not None else "")
    if word is None or node.args.get("zone") is not None:
        raise reading.refused(node, "this unit of DATE_TRUNC is not read.")
    if word == "WEEK" and not reading.habits.monday_weeks:
        raise reading.uncertain(node, "DATE_TRUNC to a week", "Write ISOWEEK where the dialect has it.")
    return called("DATE_TRUNC", exp.Literal.string(word.removeprefix("ISO").lower()), node.this)


def apart(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate the time from the second argument to the first, sqlglot's order."""
    unit, later, earlier = node.args.get("unit"), node.this, node.expression
    if isinstance(unit, exp.WeekStart):
        return None  # sqlglot writes it
    word = _UNITS.get(unit.name.upper()) if unit is not None else "DAY"
    if word is None:
        raise reading.refused(node, "this unit of a difference of times is not read.")
    moments = isinstance(node, exp.TimestampDiff) and reading.habits.name == "bigquery"  # unlike its DATE_DIFF
    whole = unit is not None and (reading.habits.whole_units or moments)
    if word == "ISOWEEK":
        word = "WEEK"
    elif word == "WEEK" and not whole and not reading.habits.monday_borders:
        raise reading.uncertain(node, "a difference in weeks", "Take the days, and divide them by 7.")
    return called("DATE_SUB" if whole else "DATE_DIFF", exp.Literal.string(word.lower()), earlier, later)


def read(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate a constant read with a format: a cast reads ISO 8601 too."""
    pattern = node.args.get("format")
    if not (isinstance(node.this, exp.Literal) and isinstance(pattern, exp.Literal) and pattern.name in _ISO):
        raise reading.refused(
            node, "a text is read as a time by no format here.", "CAST(x AS DATE) reads texts such as 2024-02-29."
        )
    return exp.Cast(this=node.this, to=exp.DataType.build("DATE" if isinstance(node, exp.StrToDate) else "TIMESTAMP"))


def as_text(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate TO_CHAR, whose format follows PostgreSQL."""
    pattern = node.args.get("format")
    if not isinstance(pattern, exp.Literal):
        raise reading.refused(node, "TO_CHAR without a constant format is not read.", "Write CAST(x AS VARCHAR).")
    return called("TO_CHAR", node.this, pattern)

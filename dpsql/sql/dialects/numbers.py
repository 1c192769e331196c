"""Numbers: quotients, casts, sums of dates and of texts."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.dialects.kinds import Kind
from dpsql.sql.dialects.reading import TIMES, DialectText


def division(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate /, which drops the remainder of integers."""
    if not node.args.get("typed"):
        return None
    kinds = {reading.kinds.of(node.this), reading.kinds.of(node.expression)}
    if kinds == {Kind.WHOLE}:
        return exp.IntDiv(this=node.this, expression=node.expression)
    if None in kinds and Kind.REAL not in kinds:
        raise reading.refused(
            node,
            f"/ drops the remainder of whole numbers in {reading.habits.name}, and whether both are is not known here.",
            "Write CAST(x AS DOUBLE PRECISION) / y for the quotient, or CAST both to an integer type.",
        )
    return None


def rounded(node: exp.Expr, _: DialectText) -> exp.Expr | None:
    if node.args.get("truncate") is None:
        return None
    return exp.Trunc(this=node.this, decimals=node.args.get("decimals"))


def logarithm(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    if node.expression is None or reading.habits.name not in ("presto", "athena"):
        return None
    return exp.Log(this=node.expression, expression=node.this)  # sqlglot confuses base and number


def cast(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    assert isinstance(node, exp.Cast)
    to, kind, habits = node.to, reading.kinds.of(node.this), reading.habits
    if to.is_type(*exp.DataType.TEXT_TYPES) and to.expressions:
        raise reading.refused(
            node, f"a cast to {to.sql()} may cut the text.", "Leave the length out, and write LEFT(x, 10) to cut it."
        )
    if to.is_type(exp.DType.FLOAT):
        return type(node)(this=node.this, to=exp.DataType.build("DOUBLE"))
    if to.is_type(exp.DType.DECIMAL, exp.DType.BIGDECIMAL) and not to.expressions:
        if not habits.real_decimals:
            raise reading.refused(
                node, f"{to.sql()} without a size is not the same in all engines.", "Write DECIMAL(18, 2), or DOUBLE."
            )
        return type(node)(this=node.this, to=exp.DataType.build("DOUBLE"))
    if not to.is_type(*exp.DataType.INTEGER_TYPES) or kind not in (None, Kind.REAL):
        return None
    if habits.casts_cut is None or (habits.casts_cut and kind is None):
        raise reading.uncertain(node, "the cast to an integer", "Write ROUND(x), FLOOR(x) or TRUNC(x) in it.")
    inner = exp.Trunc(this=node.this) if habits.casts_cut else node.this
    return type(node)(this=inner, to=to.copy())


def converted(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    if node.args.get("style") is not None:
        raise reading.refused(node, "CONVERT with a style is not supported.", "Write FORMAT(x, 'yyyy-MM-dd').")
    made = exp.Cast(this=node.expression, to=node.this)
    return cast(made, reading) or made


def added(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate + and -: for dates only if a date and days make a date; + of texts joins them."""
    kinds = {reading.kinds.of(node.this), reading.kinds.of(node.expression)}
    if isinstance(node, exp.Add) and Kind.TEXT in kinds and reading.habits.name == "tsql":
        return exp.DPipe(this=node.this, expression=node.expression, safe=True)
    if kinds & TIMES and not reading.habits.days_are_numbers and not node.find(exp.Interval):
        raise reading.refused(
            node, f"+ and - of dates are not read from {reading.habits.name}.", "Write DATEDIFF or DATE_ADD."
        )
    return None


def extreme(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate GREATEST and LEAST, which sqlglot makes NULL for any NULL if the node requires it."""
    if reading.habits.skips_nulls is None:
        raise reading.uncertain(node, "GREATEST beside a NULL", "Write CASE WHEN a > b THEN a ELSE b END.")
    node.set("ignore_nulls", reading.habits.skips_nulls)
    return None


def spread(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    """Translate STDDEV and VARIANCE, of a sample or a population."""
    samples, standard = reading.habits.samples, isinstance(node, exp.Stddev)
    if samples is None:
        raise reading.uncertain(node, "STDDEV or VARIANCE", "Write STDDEV_SAMP, STDDEV_POP, VAR_SAMP or VAR_POP.")
    if samples:
        return None
    return (exp.StddevPop if standard else exp.VariancePop)(this=node.this)

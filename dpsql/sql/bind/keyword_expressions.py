"""Expressions with keywords: CASE, CAST, EXTRACT, DATE_TRUNC, INTERVAL, LIKE, TRIM, LOG."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, TypeMismatch, UnsupportedSQL, did_you_mean
from dpsql.plan.expressions import Expr, Literal
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.functions.casts import cast_name
from dpsql.plan.functions.dates import NODES, PARTS, UNITS
from dpsql.schema.columns import Type
from dpsql.sql.bind.scalars import RULES, Bind, ScalarBinder
from dpsql.sql.bind.wide_numbers import as_text
from dpsql.sql.rewrite.time_formats import FORMATS, format_date
from dpsql.sql.rewrite.time_spans import bucket, compared, is_age, is_between, part_of
from dpsql.sql.syntax.source_text import no_time, own_word
from dpsql.sql.syntax.syntax_errors import IN_UTC

_NOTHING = Literal(None, Type.INTEGER)
_INTERVAL = "Write d + INTERVAL 3 DAY, and add another for other units."


def _case(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind CASE WHEN c THEN v ... and CASE x WHEN y THEN v ...; a missing ELSE is NULL."""
    subject = None if node.this is None else bind(node.this)
    args: list[Expr] = []
    for arm in node.args["ifs"]:
        condition = bind(arm.this)
        args += [
            condition if subject is None else binder.apply("eq", arm, [subject, condition]),
            bind(arm.args["true"]),
        ]
    default = node.args.get("default")
    return binder.apply("case", node, [*args, _NOTHING if default is None else bind(default)])


def _if(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    otherwise = node.args.get("false")
    args = [bind(node.this), bind(node.args.get("true")), _NOTHING if otherwise is None else bind(otherwise)]
    return binder.apply("case", node, args)


def _cast(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    value, to = bind(node.this), node.args["to"]
    target = to.this.name if isinstance(to.this, exp.DType) else ""
    sizes = [each.this for each in to.expressions]
    if isinstance(value, Literal) and value.value is None:
        value = Literal(None, Type.TEXT)
    name = cast_name(value.type, target)
    if name is None or (sizes and target != "DECIMAL"):
        wanted = own_word(to.sql("duckdb"), to, binder.sql)
        zoned = target in {"TIMESTAMPTZ", "TIMESTAMPLTZ"}
        what = f"CAST of {value.type} to {wanted} is not supported."
        raise UnsupportedSQL(what, span=binder.span(node), hint=IN_UTC if zoned else "")
    if name == "":
        return as_text(binder, node, value)
    digits = _digits(binder, node, sizes) if target == "DECIMAL" else []
    result = binder.apply(name, node, [value, *digits])
    written_as_time = isinstance(node.this, exp.Literal) and result.type.temporal
    if written_as_time and isinstance(result, Literal) and result.value is None:  # DATE '2020-13-01'
        raise no_time(value, result.type, binder.span(node))
    return result


def _digits(binder: ScalarBinder, node: exp.Expr, sizes: list[exp.Expr]) -> list[Expr]:
    """Return p and s of a CAST to DECIMAL(p, s): (18, 3) by default, and s is 0 if only p is given."""
    written = [str(size.this) for size in sizes] or ["18", "3"]
    digits = [*written, "0"] if len(written) == 1 else written
    known = len(digits) == 2 and all(each.isdecimal() for each in digits)
    if not known or not int(digits[1]) <= int(digits[0]) <= 38:
        raise SQLSyntaxError("DECIMAL(p, s) wants 0 <= s <= p <= 38.", span=binder.span(node))
    return [Literal(int(each), Type.INTEGER) for each in digits]


def _word(binder: ScalarBinder, node: exp.Expr | None, known: dict[str, str], what: str, clause: exp.Expr) -> str:
    """Return a unit or part written as a word or as text."""
    text = "" if node is None or not isinstance(node, exp.Var | exp.Literal) else str(node.this)
    name = known.get(text.upper()) or known.get(text.lower())
    if name is None:
        near = did_you_mean(text, known)
        raise SQLSyntaxError(
            f"{text[:40] or 'that'} is no {what} of time.{near}",
            span=binder.span(node or clause) or binder.span(clause),
            hint="Known: year, quarter, month, week, day, hour, minute, second.",
        )
    return name


def _on_time(binder: ScalarBinder, name: str, node: exp.Expr, args: list[Expr]) -> Expr:
    """Bind a function of timestamps, or its date variant if one exists and all arguments are dates."""
    kinds = {arg.type for arg in args if arg.type.temporal}
    if kinds == {Type.DATE} and f"{name}_of_date" in FUNCTIONS:
        name, wanted = f"{name}_of_date", Type.DATE
    else:
        wanted = Type.TIMESTAMP
    if kinds:  # a text constant with it is a time too
        args = [binder.as_time(node, arg, wanted) for arg in args]
    return binder.apply(name, node, args)


def _part(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    return _part_of(binder, node, _word(binder, node.this, dict(PARTS), "part", node), (node.expression, bind))


def _part_of(binder: ScalarBinder, node: exp.Expr, part: str, operand: tuple[exp.Expr, Bind]) -> Expr:
    written, bind = operand
    if is_age(written.unnest()):
        from dpsql.sql.rewrite.completed_units import part_of_age  # imported only when needed

        return part_of_age(binder, part, written.unnest(), bind)
    value = bind(written)
    found = part_of(binder, part, node, value) if is_between(value) else None
    return _on_time(binder, f"extract_{part}", node, [value]) if found is None else found


def _part_function(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    return _part_of(binder, node, NODES[type(node).__name__], (node.this, bind))


def _date_part(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    if len(node.expressions) != 2:
        raise SQLSyntaxError("DATE_PART takes 2 arguments, a part and a time.", span=binder.span(node))
    part = _word(binder, node.expressions[0], dict(PARTS), "part", node)
    return _part_of(binder, node, part, (node.expressions[1], bind))


def _truncate(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    unit = _word(binder, node.args.get("unit"), dict(UNITS), "unit", node)
    return _on_time(binder, f"trunc_{unit}", node, [bind(node.this)])


def _difference(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    unit = _word(binder, node.args.get("unit"), dict(UNITS), "unit", node)
    return _on_time(binder, f"diff_{unit}", node, [bind(node.expression), bind(node.this)])


def _shifted(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind x + INTERVAL n unit, x - INTERVAL n unit and DATE_ADD; other sums are plain ones."""
    left, right = node.this, node.expression
    if isinstance(left, exp.Interval) and isinstance(node, exp.Add):
        left, right = right, left
    if not isinstance(right, exp.Interval):
        if isinstance(node, exp.DateAdd):
            raise SQLSyntaxError("DATE_ADD takes a time and an INTERVAL.", span=binder.span(node))
        return binder.apply("add" if isinstance(node, exp.Add) else "subtract", node, [bind(left), bind(right)])
    if right.args.get("unit") is None or isinstance(right.args["unit"], exp.IntervalSpan):
        raise SQLSyntaxError("an INTERVAL is a whole number of one unit.", span=binder.span(node), hint=_INTERVAL)
    unit = _word(binder, right.args.get("unit"), dict(UNITS), "unit", node)
    amount = _amount(binder, right, bind)
    if isinstance(node, exp.Sub):
        amount = binder.apply("negate", right, [amount])
    value = bind(left)
    if isinstance(value, Literal) and value.value is None:
        value = Literal(None, Type.TIMESTAMP)
    if not value.type.temporal:
        raise TypeMismatch(
            f"an INTERVAL is added to dates and timestamps, not to {value.type}.", span=binder.span(node)
        )
    return binder.apply(f"add_{unit}", node, [binder.as_time(node, value, Type.TIMESTAMP), amount])


def _amount(binder: ScalarBinder, interval: exp.Expr, bind: Bind) -> Expr:
    """Bind the integer of INTERVAL 3 DAY, INTERVAL '3' DAY or INTERVAL (x) DAY."""
    written = interval.this
    if isinstance(written, exp.Literal) and written.args.get("is_string"):
        text = str(written.this).strip()
        if not text.removeprefix("-").isdecimal() or len(text) > 18:
            raise SQLSyntaxError("an INTERVAL is a whole number of one unit.", span=binder.span(interval))
        return Literal(int(text), Type.INTEGER)
    return bind(written)


def _alone(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    span = compared(binder, node, bind)
    if span is not None:
        return span
    raise UnsupportedSQL(
        "an INTERVAL stands only beside + or - and a time, and compared with one timestamp less another.",
        span=binder.span(node),
        hint="Write d + INTERVAL 1 DAY, or DATE_SUB('day', a, b) for the whole days between two times.",
    )


def _like(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind LIKE and ILIKE, with ESCAPE around them and NOT inside."""
    escape = [bind(node.expression)] if isinstance(node, exp.Escape) else []
    inner = node.this if isinstance(node, exp.Escape) else node
    if not isinstance(inner, exp.Like | exp.ILike):
        raise SQLSyntaxError("ESCAPE belongs to LIKE.", span=binder.span(node))
    name = "like" if isinstance(inner, exp.Like) else "ilike"
    held = binder.apply(name, inner, [bind(inner.this), bind(inner.expression), *escape])
    return binder.apply("not", inner, [held]) if inner.args.get("negate") else held


def _trim(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    return binder.apply(name, node, [bind(each) for each in (node.this, node.args.get("expression")) if each])


def _pad(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    parts = [each for each in (node.this, node.expression, node.args.get("fill_pattern")) if each]
    return binder.apply("lpad" if node.args.get("is_left") else "rpad", node, [bind(each) for each in parts])


def _logarithm(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind LOG(x), to base 10, and LOG(b, x) with base b."""
    if node.args.get("expression") is None:
        return binder.apply("log10", node, [bind(node.this)])
    return binder.apply("log_base", node, [bind(node.this), bind(node.expression)])


def _regular(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    from dpsql.sql.bind.regular_expressions import bound  # imported only when needed

    return bound(binder, node, bind)


_named = RULES[exp.Anonymous]


def _anonymous(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    if str(node.this).upper() in ("DATE_PART", "DATEPART"):
        return _date_part(binder, node, bind)
    if str(node.this).upper() in ("DATE_SUB", "DATESUB") or is_age(node):
        from dpsql.sql.rewrite.completed_units import compared_age, date_sub  # imported only when needed

        return compared_age(binder, node, bind) if is_age(node) else date_sub(binder, node, bind)
    if str(node.this).upper() in FORMATS:
        return format_date(binder, node, bind)
    if str(node.this).upper() == "REGEXP_CONTAINS":
        return _regular(binder, node, bind)
    return _named(binder, node, bind)


RULES.update(
    {
        exp.Anonymous: _anonymous,
        exp.Case: _case,
        exp.If: _if,
        exp.Cast: _cast,
        exp.TryCast: _cast,
        exp.Extract: _part,
        **{getattr(exp, name): _part_function for name in NODES},
        exp.TimestampTrunc: _truncate,
        exp.DateTrunc: _truncate,
        exp.DateDiff: _difference,
        exp.DateBin: bucket,
        exp.Add: _shifted,
        exp.Sub: _shifted,
        exp.DateAdd: _shifted,
        exp.Interval: _alone,
        exp.Like: _like,
        exp.ILike: _like,
        exp.Escape: _like,
        exp.Trim: _trim,
        exp.RegexpLike: _regular,
        exp.RegexpFullMatch: _regular,
        exp.SimilarTo: _regular,
        exp.RegexpExtract: _regular,
        exp.RegexpReplace: _regular,
        exp.Pad: _pad,
        exp.Log: _logarithm,
    }
)

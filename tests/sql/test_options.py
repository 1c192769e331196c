"""Options of the DIFFERENTIAL_PRIVACY clause and named arguments: each rule, each refusal, and where it points."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dpsql.errors import DPSQLError, InvalidPrivacyParameter, SQLSyntaxError, UnsupportedSQL
from dpsql.plan.options import AggregateOptions, GroupSelection, Options, ReportFormat
from dpsql.schema.intervals import Interval
from dpsql.sql.syntax.dialect import PrivacyDialect
from dpsql.sql.syntax.nodes import NamedArguments
from dpsql.sql.syntax.options import checked_aggregate_options, checked_options, read_aggregate_options, read_options

OPTIONS = (
    "The options are epsilon, delta, privacy_unit_column, max_groups_contributed, max_rows_contributed, "
    "group_selection_strategy, min_privacy_units_per_group, group_selection_epsilon."
)
ARGUMENTS = (
    "The named arguments are contribution_bounds_per_row, contribution_bounds_per_group, epsilon, report_format."
)


def in_clause(given: str) -> str:
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({given})\n COUNT(*) FROM t"


def in_call(given: str) -> str:
    return f"SELECT AVG(x, {given})\n FROM t"


def options(given: str) -> Options:
    sql = in_clause(given)
    return read_options(PrivacyDialect().parse(sql)[0].args["privacy"], sql)


def arguments(given: str) -> AggregateOptions:
    sql = in_call(given)
    node = PrivacyDialect().parse(sql)[0].expressions[0]
    assert isinstance(node, NamedArguments)
    return read_aggregate_options(node, sql)


def place(error: DPSQLError) -> str:
    """The part of the text that an error points at."""
    assert error.span is not None
    return error.span.sql[error.span.start : error.span.end + 1]


# What is read


def test_all_options_at_once():
    read = options(
        "epsilon = 1, delta = 1e-6, privacy_unit_column = pid, max_groups_contributed = 3, max_rows_contributed = 10, "
        "group_selection_strategy = LAPLACE_THRESHOLD, min_privacy_units_per_group = 5, group_selection_epsilon = 0.1"
    )
    assert read == Options(
        epsilon=Fraction(1),
        delta=Fraction(1, 10**6),
        privacy_unit_column="pid",
        max_groups_contributed=3,
        max_rows_contributed=10,
        group_selection_strategy=GroupSelection.LAPLACE_THRESHOLD,
        min_privacy_units_per_group=5,
        group_selection_epsilon=Fraction(1, 10),
    )
    assert hash(read) == hash(options(read_back(read)))


def read_back(read: Options) -> str:
    return ", ".join(f"{name} = {span.sql[span.start : span.end + 1]}" for name, span in read.places.items())


def test_silence_is_none():
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM t"
    assert read_options(PrivacyDialect().parse(sql)[0].args["privacy"], sql) == Options()
    assert all(value is None for name, value in vars(Options()).items() if name != "places")
    assert options("epsilon = 1") == Options(epsilon=Fraction(1))
    assert arguments("epsilon => 1") == AggregateOptions(epsilon=Fraction(1))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", Fraction(1)),
        ("0.1", Fraction(1, 10)),
        (".1", Fraction(1, 10)),
        ("1e-1", Fraction(1, 10)),
        ("1.5E+1", Fraction(15)),
        ("2.", Fraction(2)),
        ("1_000", Fraction(1000)),
        ("0.1000000000000000000000000000000000001", Fraction(10**36 + 1, 10**37)),
        ("1e-9", Fraction(1, 10**9)),
        ("1e9", Fraction(10**9)),
    ],
)
def test_epsilon_is_exactly_its_decimals(text: str, number: Fraction):
    assert options(f"epsilon = {text}").epsilon == number
    assert options(f"group_selection_epsilon = {text}").group_selection_epsilon == number
    assert arguments(f"epsilon => {text}").epsilon == number


@pytest.mark.parametrize(
    ("text", "number"), [("0", Fraction(0)), ("1e-6", Fraction(1, 10**6)), ("0.5", Fraction(1, 2))]
)
def test_delta(text: str, number: Fraction):
    assert options(f"delta = {text}").delta == number


@pytest.mark.parametrize("name", ["max_groups_contributed", "max_rows_contributed", "min_privacy_units_per_group"])
def test_limits(name: str):
    assert getattr(options(f"{name} = 1"), name) == 1
    assert getattr(options(f"{name} = {10**18 - 1}"), name) == 10**18 - 1


@pytest.mark.parametrize(
    ("text", "name"), [("pid", "pid"), ("PID", "PID"), ('"user id"', "user id"), ("user", "user"), ("date", "date")]
)
def test_unit_column(text: str, name: str):
    assert options(f"privacy_unit_column = {text}").privacy_unit_column == name


@pytest.mark.parametrize("word", list(GroupSelection))
def test_strategies(word: GroupSelection):
    for text in (word, word.lower(), f"'{word}'", f"'{word.lower()}'", f'"{word}"'):
        assert options(f"group_selection_strategy = {text}").group_selection_strategy is word


def test_names_of_options_have_no_case():
    assert options("EPSILON = 1, Delta = 0") == options("epsilon = 1, delta = 0")
    assert arguments("Report_Format => 'json'").report_format is ReportFormat.JSON


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("(0, 10)", Interval(0, 10)),
        ("(-10, -5)", Interval(-10, -5)),
        ("(5, 5)", Interval(5, 5)),
        ("(-1.5, 1e3)", Interval(-1.5, 1000.0)),
        ("(0.1, 0.3)", Interval(0.1, 0.3)),
        (f"({-(2**62)}, {2**62})", Interval(-(2**62), 2**62)),
    ],
)
def test_bounds(text: str, bounds: Interval):
    for name in ("contribution_bounds_per_row", "contribution_bounds_per_group"):
        read = getattr(arguments(f"{name} => {text}"), name)
        assert read == bounds
        assert [type(read.lower), type(read.upper)] == [type(bounds.lower), type(bounds.upper)]


def test_bounds_have_no_negative_zero():
    assert str(arguments("contribution_bounds_per_row => (-0.0, 1)").contribution_bounds_per_row) == "[0.0, 1]"


def test_all_arguments_at_once():
    read = arguments("contribution_bounds_per_group => (17, 90), epsilon => 0.5, report_format => 'JSON'")
    assert read == AggregateOptions(
        contribution_bounds_per_group=Interval(17, 90), epsilon=Fraction(1, 2), report_format=ReportFormat.JSON
    )


def test_places_are_those_of_the_values():
    read = options('epsilon = 0.1, privacy_unit_column = "my id", max_rows_contributed=7')
    assert read_back(read) == 'epsilon = 0.1, privacy_unit_column = "my id", max_rows_contributed = 7'
    call = arguments("contribution_bounds_per_row => ( -1, 2 ), epsilon=>1")
    span = call.places["contribution_bounds_per_row"]
    assert span.sql[span.start : span.end + 1] == "( -1, 2 )"


def test_places_are_no_part_of_what_is_compared():
    assert options("epsilon = 1") == options("epsilon   =   1.0")
    assert options("epsilon = 1") != options("epsilon = 2")


# What is refused in the text: the words, and the part of the text that is pointed at

SHAPES = [
    (
        "epsilon",
        "a number",
        ["'1'", "one", '"1"', "TRUE", "NULL", ":e", "1 + 1", "(1)", "(1, 2)", "- -1", "f(1)", "inf"],
    ),
    ("delta", "a number", ["'1e-6'", "x", "1 / 2", "t.x"]),
    ("group_selection_epsilon", "a number", ["'1'", "CAST(1 AS REAL)", "1::REAL"]),
    ("max_groups_contributed", "a whole number", ["'3'", "3.0", "3e0", "x", "NULL", "2 + 1", ":n", "(3)"]),
    ("max_rows_contributed", "a whole number", ["1.5", "-1.5"]),
    ("min_privacy_units_per_group", "a whole number", ["'3'", "1e1"]),
    ("privacy_unit_column", "a column's name", ["'pid'", "1", "t.pid", "upper(pid)", "(pid)", "NULL", ":c"]),
    ("group_selection_strategy", "a word", ["1", "NULL", "TRUE", ":s", "a.b", "a || b"]),
]
CALL_SHAPES = [
    (
        "contribution_bounds_per_row",
        "a pair of numbers",
        [
            "5",
            "(5)",
            "(1, 2, 3)",
            "[1, 2]",
            "NULL",
            "('1', 2)",
            "(1, NULL)",
            "(0, x)",
            "(:a, :b)",
            "(1, 1 + 1)",
            "f(1, 2)",
        ],
    ),
    ("contribution_bounds_per_group", "a pair of numbers", ["'(1, 2)'", "x", "((1, 2))"]),
    ("epsilon", "a number", ["'1'", "NULL", ":e"]),
    ("report_format", "a word", ["1", "NULL", "a.b", ":f", "('JSON')"]),
]


@pytest.mark.parametrize(("name", "wanted", "texts"), SHAPES)
def test_a_value_of_another_shape(name: str, wanted: str, texts: list[str]):
    for text in texts:
        with pytest.raises(SQLSyntaxError) as caught:
            options(f"{name} = {text}")
        error = caught.value
        assert error.message.startswith(f"{name} takes {wanted}, got ")
        assert place(error) == text
        example, *_, listed = error.hint.split("\n")
        assert options(example.removeprefix("Write ").removesuffix("."))
        assert listed == OPTIONS


@pytest.mark.parametrize(("name", "wanted", "texts"), CALL_SHAPES)
def test_an_argument_of_another_shape(name: str, wanted: str, texts: list[str]):
    for text in texts:
        with pytest.raises(SQLSyntaxError) as caught:
            arguments(f"{name} => {text}")
        error = caught.value
        assert error.message.startswith(f"{name} takes {wanted}, got ")
        assert place(error) == text
        example, *_, listed = error.hint.split("\n")
        assert arguments(example.removeprefix("Write ").removesuffix("."))
        assert listed == ARGUMENTS


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("'1'", "text in quotes"),
        ("one", "a name"),
        ("TRUE", "TRUE or FALSE"),
        ("NULL", "NULL"),
        (":e", "a parameter"),
        ("$e", "a parameter"),
        ("t.x", "a name with its table's"),
        ("(1, 2)", "a list"),
        ("1 + 1", "an expression"),
        ("9" * 41, "a number too long to be meant"),
        ("1e9999999999999999999", "1e9999999999999999999"),
        ("-1e9999999999999999999", "-1e9999999999999999999"),
    ],
)
def test_what_stands_there_instead(text: str, what: str):
    with pytest.raises(SQLSyntaxError) as caught:
        options(f"epsilon = {text}")
    assert caught.value.message == f"epsilon takes a number, got {what}."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("epsilom = 1", 'no option "epsilom". Did you mean "epsilon"?'),
        ("delta = 0, kappa = 1", 'no option "kappa".'),
        ("Max_Row_Contributed = 1", 'no option "Max_Row_Contributed". Did you mean "max_rows_contributed"?'),
        ("report_format = 'JSON'", 'no option "report_format".'),
        (f"{'x' * 50} = 1", f'no option "{"x" * 37}...".'),
    ],
)
def test_unknown_options(given: str, message: str):
    with pytest.raises(SQLSyntaxError) as caught:
        options(given)
    assert caught.value.message == message
    assert caught.value.hint == OPTIONS
    assert place(caught.value) == given.rsplit(", ", maxsplit=1)[-1].split(" ", maxsplit=1)[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("epsilom => 1", 'no named argument "epsilom". Did you mean "epsilon"?'),
        ("contribution_bounds => (0, 1)", 'no named argument "contribution_bounds".'),
        ("delta => 0", 'no named argument "delta".'),
    ],
)
def test_unknown_arguments(given: str, message: str):
    with pytest.raises(SQLSyntaxError) as caught:
        arguments(given)
    assert caught.value.message.startswith(message)
    assert caught.value.hint == ARGUMENTS
    assert place(caught.value) == given.split(" ", maxsplit=1)[0]


def test_what_is_given_twice():
    with pytest.raises(SQLSyntaxError, match="^epsilon is given twice.") as caught:
        options("epsilon = 1, delta = 0, EPSILON = 1")
    assert (place(caught.value), caught.value.hint) == ("EPSILON", OPTIONS)
    with pytest.raises(SQLSyntaxError, match="^report_format is given twice.") as caught:
        arguments("report_format => 'JSON', report_format => 'JSON'")
    assert (place(caught.value), caught.value.hint) == ("report_format", ARGUMENTS)
    assert caught.value.span is not None
    assert caught.value.span.start > 35  # the second one


@pytest.mark.parametrize(
    ("given", "message", "at"),
    [
        ("epsilon = 0", "epsilon must be a finite number > 0, got 0.", "0"),
        ("delta = 0, epsilon = -0.1", "epsilon must be a finite number > 0, got -0.1.", "-0.1"),
        ("epsilon = 1e-10", "epsilon must lie between 1e-9 and 1e9, got 1E-10.", "1e-10"),
        ("epsilon = 1e10", "epsilon must lie between 1e-9 and 1e9, got 1E+10.", "1e10"),
        ("epsilon = 1e5000", "epsilon must be of a reasonable size, got 1E+5000.", "1e5000"),
        ("delta = 1", "delta must be at least 0 and below 1, got 1.", "1"),
        ("delta = -1e-6", "delta must be at least 0 and below 1, got -0.000001.", "-1e-6"),
        ("delta = 1e-101", "delta must be 0 or at least 1e-100, got 1E-101.", "1e-101"),
        ("group_selection_epsilon = 0", "group_selection_epsilon must be a finite number > 0, got 0.", "0"),
        (
            "group_selection_epsilon = 0.2, epsilon = 0.1",
            "group_selection_epsilon is a part of epsilon, so it cannot be more than 0.1.",
            "0.2",
        ),
    ],
)
def test_no_privacy_parameter(given: str, message: str, at: str):
    with pytest.raises(InvalidPrivacyParameter) as caught:
        options(given)
    assert caught.value.message == message
    assert place(caught.value) == at


def test_the_whole_epsilon_may_select_groups():
    assert options("epsilon = 0.1, group_selection_epsilon = 1e-1").group_selection_epsilon == Fraction(1, 10)


def test_no_epsilon_of_an_aggregate():
    with pytest.raises(InvalidPrivacyParameter, match="epsilon must be a finite number > 0, got -1") as caught:
        arguments("epsilon => -1")
    assert place(caught.value) == "-1"


@pytest.mark.parametrize("name", ["max_groups_contributed", "max_rows_contributed", "min_privacy_units_per_group"])
@pytest.mark.parametrize("text", ["0", "-1", str(10**18), "-0"])
def test_limits_out_of_range(name: str, text: str):
    with pytest.raises(SQLSyntaxError) as caught:
        options(f"{name} = {text}")
    assert caught.value.message == f"{name} must be a whole number from 1 to 10^18 - 1."
    assert place(caught.value) == text


def test_unknown_words():
    with pytest.raises(SQLSyntaxError) as caught:
        options("group_selection_strategy = LAPLACE_TRESHOLD")
    error = caught.value
    assert error.message == ('no group_selection_strategy "LAPLACE_TRESHOLD". Did you mean "LAPLACE_THRESHOLD"?')
    assert error.hint == "There is PUBLIC_GROUPS, LAPLACE_THRESHOLD, GAUSSIAN_THRESHOLD, TRUNCATED_GEOMETRIC."
    assert place(error) == "LAPLACE_TRESHOLD"
    with pytest.raises(SQLSyntaxError) as caught:
        arguments(f"report_format => '{'y' * 99}'")
    assert caught.value.message == f'no report_format "{"y" * 37}...".'
    assert caught.value.hint == "There is JSON."


@pytest.mark.parametrize("text", ["'PROTO'", "'proto'", "PROTO"])
def test_proto_is_refused_by_name(text: str):
    with pytest.raises(UnsupportedSQL, match="report_format 'PROTO' is not supported") as caught:
        arguments(f"report_format => {text}")
    assert place(caught.value) == text
    assert arguments(caught.value.hint.removeprefix("Write ").split(",")[0]).report_format is ReportFormat.JSON


@pytest.mark.parametrize("name", ["min_privacy_units_per_group", "group_selection_epsilon"])
def test_public_groups_are_not_selected(name: str):
    with pytest.raises(SQLSyntaxError, match=f"^{name} has no meaning with PUBLIC_GROUPS") as caught:
        options(f"{name} = 77, group_selection_strategy = public_groups")
    assert place(caught.value) == "77"
    for strategy in set(GroupSelection) - {GroupSelection.PUBLIC_GROUPS}:
        assert options(f"group_selection_strategy = {strategy}, {name} = 77")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(1, 0)", "contribution_bounds_per_row: the lower bound is above the upper one."),
        ("(0.2, 0.1)", "contribution_bounds_per_row: the lower bound is above the upper one."),
        ("(1, -1)", "contribution_bounds_per_row: the lower bound is above the upper one."),
        ("(0, 1e999)", "contribution_bounds_per_row must be two numbers within +/-2^62."),
        ("(-1e30, 0)", "contribution_bounds_per_row must be two numbers within +/-2^62."),
        (f"(0, {2**62 + 1})", "contribution_bounds_per_row must be two numbers within +/-2^62."),
    ],
)
def test_bounds_that_are_none(text: str, message: str):
    with pytest.raises(SQLSyntaxError) as caught:
        arguments(f"contribution_bounds_per_row => {text}")
    assert caught.value.message == message
    assert place(caught.value) == text


@pytest.mark.parametrize("first", ["row", "group"])
def test_one_kind_of_bounds_only(first: str):
    second = {"row": "group", "group": "row"}[first]
    with pytest.raises(SQLSyntaxError, match="cannot hold at once") as caught:
        arguments(f"contribution_bounds_per_{first} => (0, 1), contribution_bounds_per_{second} => (0, 2)")
    assert place(caught.value) == "(0, 2)"


def test_messages_quote_little_of_the_text():
    long = "z" * 500
    refused = 0
    for given in (f"{long} = 1", f"group_selection_strategy = {long}", f"epsilon = '{long}'", f"epsilon = {'9' * 500}"):
        with pytest.raises(DPSQLError) as caught:
            options(given)
        assert "z" * 41 not in caught.value.message + caught.value.hint
        assert "9" * 41 not in caught.value.message + caught.value.hint
        refused += 1
    assert refused == 4


# The values by themselves


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"epsilon": 0}, InvalidPrivacyParameter),
        ({"epsilon": "1"}, InvalidPrivacyParameter),
        ({"epsilon": float("inf")}, InvalidPrivacyParameter),
        ({"delta": 1}, InvalidPrivacyParameter),
        ({"delta": -1}, InvalidPrivacyParameter),
        ({"group_selection_epsilon": 0}, InvalidPrivacyParameter),
        ({"epsilon": 1, "group_selection_epsilon": 2}, InvalidPrivacyParameter),
        ({"max_groups_contributed": 0}, SQLSyntaxError),
        ({"max_rows_contributed": 1.0}, SQLSyntaxError),
        ({"max_rows_contributed": True}, SQLSyntaxError),
        ({"min_privacy_units_per_group": "1"}, SQLSyntaxError),
        ({"privacy_unit_column": ""}, SQLSyntaxError),
        ({"privacy_unit_column": 1}, SQLSyntaxError),
        ({"group_selection_strategy": "any"}, SQLSyntaxError),
        ({"group_selection_strategy": "PUBLIC_GROUPS", "min_privacy_units_per_group": 1}, SQLSyntaxError),
    ],
)
def test_options_check_themselves(given: dict[str, Any], error: type[DPSQLError]):
    with pytest.raises(error) as caught:
        checked_options(given)
    assert caught.value.span is None


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"epsilon": 0}, InvalidPrivacyParameter),
        ({"contribution_bounds_per_row": (0, 1)}, SQLSyntaxError),
        ({"contribution_bounds_per_group": Interval(0, float("inf"))}, SQLSyntaxError),
        ({"report_format": "XML"}, SQLSyntaxError),
        ({"report_format": "PROTO"}, UnsupportedSQL),
        (
            {"contribution_bounds_per_row": Interval(0, 1), "contribution_bounds_per_group": Interval(0, 1)},
            SQLSyntaxError,
        ),
    ],
)
def test_aggregate_options_check_themselves(given: dict[str, Any], error: type[DPSQLError]):
    with pytest.raises(error) as caught:
        checked_aggregate_options(given)
    assert caught.value.span is None


def test_values_are_held_exactly_and_for_good():
    made = checked_options({"epsilon": Decimal("0.1"), "delta": 0.25, "group_selection_strategy": "public_groups"})
    assert (made.epsilon, made.delta) == (Fraction(1, 10), Fraction(1, 4))
    assert isinstance(made.epsilon, Fraction)
    assert made.group_selection_strategy is GroupSelection.PUBLIC_GROUPS
    with pytest.raises(FrozenInstanceError):
        made.epsilon = Fraction(2)  # type: ignore[misc]

"""Lines are read as strictly by the fast way as by writing them again."""

import json
import random
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.cost import FREE, Cost, total_of
from dpsql.core.events import ApproximateStep, Concentrated, Gaussian, Laplace, Pure
from dpsql.core.ledger import lines as ledger_lines
from dpsql.core.ledger import reading
from dpsql.core.ledger.account import Account, Part
from dpsql.core.ledger.lines import (
    Answer,
    BudgetRenewal,
    Claim,
    DroppedClaim,
    Entry,
    FormatChange,
    Line,
    Note,
    Process,
    UnitOf,
    UnknownLine,
)
from dpsql.core.ledger.reading import Charge
from dpsql.core.ledger.store import UNREADABLE
from dpsql.core.ledger.units import Place, TableUnit, UnitKind

SALT = "0123456789abcdef" * 4
TIME = "2026-11-22T18:00:00.000001Z"
COST = Cost(Fraction(1, 3), Fraction(1, 10**9), Fraction(1, 18), Fraction(1, 10**10))
EVENTS = (Pure(0.5), ApproximateStep(0, 1e-9), Laplace(2, 3, 4), Gaussian(5), Concentrated(Fraction(1, 7)))
PART = Part("people", "state#0123456789abcdef", 'text:é"\\\n')
LINES: dict[str, Line] = {
    "a charge": Entry(TIME, None, "SELECT 1", Cost.of(Fraction(1, 10))),
    "a charge by rho": Entry(TIME, "ann", "", Cost(None, rho=Fraction(1, 7)), EVENTS, (PART, PART)),
    "an odd charge": Entry(TIME, 'Zoë"\\', "a\0\b\f\n\r\t\x1f\x7f\x80\ud800\U0001f600 /", COST, EVENTS),
    "an answer": Answer(TIME, "k" * 64, "d" * 64, 12),
    "an answer of an earlier charge": Answer(TIME, "2:é", "d" * 64, None, 3),
    "a note": Note(TIME, "the clock is right"),
    "rows": UnitOf(TIME, TableUnit("people", UnitKind.ROW)),
    "public": UnitOf(TIME, TableUnit("countries", UnitKind.PUBLIC)),
    "a column": UnitOf(TIME, TableUnit("people", UnitKind.COLUMN, (Place("people", "id", "integer"),))),
    "a path": UnitOf(TIME, TableUnit("a", UnitKind.PATH, tuple(Place(t, "x", "text") for t in ("a", "b", "b")))),
    "a claim": Claim(TIME, "2:k", Process("machine", 77, "12345")),
    "an odd claim": Claim(TIME, 'k"}', Process('m"},{"', 0, "")),
    "a claim given up": DroppedClaim(TIME, 77),
    "a new total": BudgetRenewal(TIME, Fraction(5), Fraction(1, 10**6), 'the board\'s word: "more"'),
}


@pytest.mark.parametrize("name", LINES)
def test_what_is_written_is_read(name: str):
    text = ledger_lines.write(LINES[name], SALT)
    assert _seen(reading.read_line, text) == _seen(ledger_lines.read, text) == LINES[name]
    assert list(json.loads(text))[:3] == ["kind", "salt", "time"]


@pytest.mark.parametrize("name", [name for name, line in LINES.items() if isinstance(line, Entry | Note | Answer)])
def test_what_format_1_wrote_is_read(name: str):
    text = ledger_lines.write_1(LINES[name])
    found = _seen(reading.read_line_1, text)
    assert found == _seen(ledger_lines.read_1, text)
    assert ledger_lines.write_1(found) == text


def _seen(read: object, text: str) -> object:
    """What is read of a text: a line, or that it was refused."""
    try:
        line = read(text)  # type: ignore[operator]
    except UNREADABLE:
        return None
    return line.entry(0) if isinstance(line, Charge) else line


def _changed(text: str, chance: random.Random) -> Iterator[str]:
    """The text with a little of it changed: what an edit may leave."""
    words = ['"', "\\", ",", ":", "{", "}", "[", "]", "0", "1", "-", "/", " ", "null", "\\u0041", "\\u00e9", "\n", "é"]
    for _ in range(400):
        start, more = chance.randrange(len(text)), chance.randrange(3)
        yield text[:start] + chance.choice(["", chance.choice(words), text[start : start + 9]]) + text[start + more :]
    said = json.loads(text)
    for word in said:
        yield ledger_lines.dumps({key: value for key, value in said.items() if key != word})
        yield ledger_lines.dumps({**said, word: None})
        yield ledger_lines.dumps({**said, word: 7})
        yield ledger_lines.dumps({**said, word: "0"})
        yield ledger_lines.dumps({word: said[word], **said})
    yield ledger_lines.dumps({**said, "more": 1})
    yield text + " "
    yield json.dumps(said)


@pytest.mark.parametrize("name", LINES)
def test_both_ways_to_read_take_the_same(name: str):
    chance = random.Random(name)
    taken = 0
    for text in _changed(ledger_lines.write(LINES[name], SALT), chance):
        fast, strict = _seen(reading.read_line, text), _seen(ledger_lines.read, text)
        assert fast == strict, text
        taken += fast is not None
    assert taken < 300


@pytest.mark.parametrize("name", ["a charge", "an odd charge", "a note", "an answer"])
def test_both_ways_to_read_format_1_take_the_same(name: str):
    for text in _changed(ledger_lines.write_1(LINES[name]), random.Random(name)):
        assert _seen(reading.read_line_1, text) == _seen(ledger_lines.read_1, text), text


@pytest.mark.parametrize(
    "text",
    [
        f'{{"kind":"lease","salt":"{SALT}","time":"{TIME}","analyst":"ann","epsilon":"1"}}',
        f'{{"kind":"new total","salt":"{SALT}","time":"{TIME}"}}',
        f'{{"kind":"\\u001b[31m","salt":"{SALT}","time":"{TIME}"}}',
        f'{{"kind":7,"salt":"{SALT}","time":"{TIME}"}}',
        ledger_lines.write(FormatChange(TIME, 3), SALT),
    ],
)
def test_what_a_later_version_wrote_is_refused_as_that(text: str):
    with pytest.raises(UnknownLine) as caught:
        reading.read_line(text)
    assert "this version of dpsql" in str(caught.value)
    assert str(caught.value).isprintable()


FRACTIONS = st.fractions(min_value=0, max_value=9, max_denominator=10**30)
COSTS = st.builds(
    lambda epsilon, delta, rho: Cost(epsilon, delta, rho, delta / 2), st.none() | FRACTIONS, FRACTIONS, FRACTIONS
)


@given(COSTS, st.lists(COSTS, max_size=4), st.lists(st.integers(0, 3), max_size=40))
def test_sums_of_many_are_sums_one_by_one(start: Cost, different: list[Cost], order: list[int]):
    costs = [different[place] for place in order if place < len(different)]
    one_by_one = start
    for cost in costs:
        one_by_one = one_by_one + cost
    assert total_of(start, costs) == one_by_one


def test_sums_that_are_rounded_are_rounded_alike():
    """rhos with long denominators, whose sums are rounded up on the way."""
    costs = [Cost(None, rho=Fraction(1, 3**k + 2)) for k in range(120, 300, 7)] * 3
    one_by_one = FREE
    for cost in costs:
        one_by_one = one_by_one + cost
    assert one_by_one.rho > sum((cost.rho for cost in costs), Fraction(0))
    assert total_of(FREE, costs) == one_by_one


@given(st.lists(st.tuples(COSTS, st.lists(st.integers(0, 5), max_size=3, unique=True)), max_size=30), st.booleans())
def test_steps_of_parts_entered_together(steps: list[tuple[Cost, list[int]]], moves: bool):
    named = [(cost, tuple(Part("t", f"c{k % 2}", f"v{k}") for k in parts if k % 2 == 0)) for cost, parts in steps]
    together, alone = Account(moves=moves), Account(moves=moves)
    together.add_all(named)
    for cost, parts in named:
        alone.add(cost, parts)
    for probe in ((), (Part("t", "c0", "v2"),), (Part("t", "c0", "v4"), Part("t", "c0", "new"))):
        assert list(together.concerned(FREE, probe)) == list(alone.concerned(FREE, probe))
        assert together.at_most(FREE, probe) == alone.at_most(FREE, probe)

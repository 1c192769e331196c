"""Whoever writes to the file from outside is noticed, at the latest at the next opening."""

import hashlib
import os
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import open_ledger
from dpsql.errors import DPSQLError, InvalidArgument, LedgerError
from tests.core.ledger import checks
from tests.core.ledger.checks import COUNT, EDITS, cost, edit, raw, rehash, rules, session, written


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_between_sessions(tmp_path: Path, name: str):
    checks.check_edits(tmp_path, name)


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_while_a_session_is_open(tmp_path: Path, name: str):
    checks.check_edits_while_open(tmp_path, name)


def test_a_line_of_another_ledger(tmp_path: Path):
    checks.check_lines_of_another(tmp_path)


def test_every_character_of_a_line_counts(tmp_path: Path):
    """One character of any column changed: by each way to change it."""
    chance = random.Random(8)
    path = written(tmp_path / "a.ledger")
    with raw(path) as connection:
        held = connection.execute("SELECT number, text, hash FROM lines").fetchall()
        for number, text, digest in held:
            for column, value in (("text", text), ("hash", digest)):
                for _ in range(8):
                    place = chance.randrange(len(value))
                    changed = value[:place] + chr(ord(value[place]) ^ 1) + value[place + chance.randrange(2) :]
                    connection.execute(f"UPDATE lines SET {column} = ? WHERE number = ?", (changed, number))
                    with pytest.raises(LedgerError):
                        open_ledger(path)
                    connection.execute(f"UPDATE lines SET {column} = ? WHERE number = ?", (value, number))
    assert len(open_ledger(path).entries) == 6


REHASHED = {
    "a zero below": "replace(text, '1/10', '1/0')",
    "less than nothing": "replace(text, '\"1/10\"', '\"-1\"')",
    "not a number": "replace(text, '\"1/10\"', '\"nan\"')",
    "infinity": "replace(text, '\"1/10\"', '\"inf\"')",
    "a decimal": "replace(text, '\"1/10\"', '\"0.1\"')",
    "a number": "replace(text, '\"1/10\"', '0')",
    "no epsilon": "replace(text, '\"epsilon\"', '\"epsilom\"')",
    "two epsilons": 'replace(text, \'"delta"\', \'"epsilon":"0","delta"\')',
    "one word more": 'replace(text, \',"time"\', \',"more":1,"time"\')',
    "no salt": 'json_remove(text, "$.salt")',
    "a short salt": 'json_set(text, "$.salt", "00")',
    "a salt in capitals": 'json_set(text, "$.salt", upper(json_extract(text, "$.salt")) || "A")',
    "a letter written as a number": "replace(text, 'SELECT', '\\u0053ELECT')",
    "a line end as a number": "replace(text, 'SELECT', '\\u000aSELECT')",
    "a slash that is escaped": "replace(text, 'SELECT', '\\/SELECT')",
    "an analyst's number": "replace(text, '\"ann\"', '7')",
    "a time's number": 'replace(text, \'"query":\', \'"time":7,"query":\')',
    "a word again": 'replace(text, \'"delta"\', \'"epsilon":"1/10","delta"\')',
    "a blank": "replace(text, ':', ': ')",
    "a list": "'[]'",
    "a word": "'1'",
    "nothing": "''",
    "not JSON": "'{'",
    "deep": "printf('%.*c', 200000, '[')",
    "an unknown event": 'replace(text, \'"events":[]\', \'"events":[{"event":"x","count":"1"}]\')',
    "infinitely often": """replace(text, '"events":[]', '"events":[{"event":"pure","count":Infinity}]')""",
    "parts of numbers": "replace(text, '\"parts\":[]', '\"parts\":[1]')",
    "parts of four": 'replace(text, \'"parts":[]\', \'"parts":[["a","b","c","d"]]\')',
    "another kind": "replace(text, '\"query\"', '\"note\"')",
}


@pytest.mark.parametrize("name", REHASHED)
def test_a_line_that_nothing_writes_with_a_right_hash(tmp_path: Path, name: str):
    """Hashes can be made by anybody; what is read then is refused, and by no other error."""
    path = written(tmp_path / "a.ledger")
    edit(path, f"UPDATE lines SET text = {REHASHED[name]} WHERE number = 1")
    rehash(path)
    with pytest.raises(LedgerError) as caught:
        open_ledger(path)
    assert "line 1" in str(caught.value)


FORGED = {
    "a note at no time": '"kind":"note","salt":"SALT","time":7,"text":"x"',
    "a note at a list of times": '"kind":"note","salt":"SALT","time":[],"text":"x"',
    "a note of a list": '"kind":"note","salt":"SALT","time":"t","text":[]',
    "an answer to a list": '"kind":"answer","salt":"SALT","time":"t","key":[],"charge":1,"slot":0,"sha256":"x"',
    "an answer to a number": '"kind":"answer","salt":"SALT","time":"t","key":7,"charge":1,"slot":0,"sha256":"x"',
    "an answer of a number": '"kind":"answer","salt":"SALT","time":"t","key":"k","charge":1,"slot":0,"sha256":7',
    "an answer for half": '"kind":"answer","salt":"SALT","time":"t","key":"k","charge":1.5,"slot":0,"sha256":"x"',
    "an answer for a truth": '"kind":"answer","salt":"SALT","time":"t","key":"k","charge":true,"slot":0,"sha256":"x"',
    "a unit of a number": '"kind":"unit","salt":"SALT","time":"t","table":7,"unit":"row","path":[]',
    "a unit of a list": '"kind":"unit","salt":"SALT","time":"t","table":[7],"unit":"row","path":[]',
    "a unit at no time": '"kind":"unit","salt":"SALT","time":null,"table":"t","unit":"row","path":[]',
    "a claim to a list": (
        '"kind":"claim","salt":"SALT","time":"t","key":[],"process":{"machine":"m","number":1,"started":"s"}'
    ),
    "a claim at no time": (
        '"kind":"claim","salt":"SALT","time":null,"key":"k","process":{"machine":"m","number":1,"started":"s"}'
    ),
    "a claim of a process below zero": (
        '"kind":"claim","salt":"SALT","time":"t","key":"k","process":{"machine":"m","number":-1,"started":"s"}'
    ),
    "a drop at no time": '"kind":"dropped","salt":"SALT","time":null,"claim":1',
    "a drop of a list": '"kind":"dropped","salt":"SALT","time":"t","claim":[1]',
    "a format at no time": '"kind":"format","salt":"SALT","time":{},"format":2',
    "a charge of format 1": (
        '"time":"t","analyst":null,"query":"q","epsilon":"0","delta":"0","rho":"0","hidden":"0","events":[],"parts":[]'
    ),
    "a note of format 1": '"time":"t","note":"n"',
}


@pytest.mark.parametrize("name", FORGED)
def test_a_last_line_that_nothing_writes_with_a_right_hash(tmp_path: Path, name: str):
    """Of all kinds, with values of other types."""
    path = written(tmp_path / "a.ledger")
    with raw(path) as connection:
        (number,) = connection.execute("SELECT MAX(number) + 1 FROM lines").fetchone()
        text = f"{{{FORGED[name].replace('SALT', 'a' * 64)}}}"
        connection.execute("INSERT INTO lines VALUES (?, ?, '')", (number, text))
    rehash(path)
    with pytest.raises(LedgerError, match=f"line {number} of the ledger cannot be read"):
        open_ledger(path)


@pytest.mark.parametrize("text", ['{"time":7,"note":"n"}', '{"time":[],"note":"n"}', '{"time":"t","note":[]}'])
def test_a_last_line_of_format_1_that_nothing_writes(tmp_path: Path, text: str):
    path = tmp_path / "a.ledger"
    shutil.copy(Path(__file__).parent / "golden" / "format1_plain.ledger", path)
    with raw(path) as connection:
        (number,) = connection.execute("SELECT MAX(number) + 1 FROM lines").fetchone()
        connection.execute("INSERT INTO lines VALUES (?, ?, '')", (number, text))
    rehash(path)
    with pytest.raises(LedgerError, match=f"line {number} of the ledger cannot be read"):
        open_ledger(path)


RULES = {
    "a zero below": "replace(text, '1/1000000', '1/0')",
    "less than nothing": "replace(text, '\"10\"', '\"-10\"')",
    "a huge exponent": "replace(text, '\"10\"', '\"1e999999999\"')",
    "analysts of a list": "replace(text, '{}', '[]')",
    "an accountant more": "replace(text, 'auto', 'best')",
    "deep": "printf('%.*c', 200000, '[')",
    "bytes": "CAST(text AS BLOB)",
    "bad bytes": "CAST(X'ff00ff' AS TEXT)",
}


@pytest.mark.parametrize("name", RULES)
def test_rules_that_nothing_writes(tmp_path: Path, name: str):
    path = tmp_path / "a.ledger"
    open_ledger(path, rules(10, 1e-6, "auto")).close()
    edit(path, f"UPDATE rules SET text = {RULES[name]}")
    with pytest.raises(LedgerError) as caught:
        open_ledger(path)
    assert caught.value.hint


def test_rules_of_an_empty_ledger_edited_well(tmp_path: Path):
    """Nothing was spent yet; a session that says its budget notices all the same."""
    path = tmp_path / "a.ledger"
    open_ledger(path, rules(1)).close()
    edit(path, 'UPDATE rules SET text = replace(text, \'"epsilon":"1"\', \'"epsilon":"99"\')')
    with pytest.raises(LedgerError, match="other rules"):
        open_ledger(path, rules(1))


def test_a_whole_ledger_written_anew_is_noticed_by_an_anchor(tmp_path: Path):
    """What somebody can do who makes all hashes anew: unseen without an anchor, as the manual says."""
    path = written(tmp_path / "a.ledger")
    ledger = open_ledger(path)
    anchor = ledger.anchor
    edit(path, "UPDATE lines SET text = replace(text, '\"1/10\"', '\"1/90\"') WHERE number = 1")
    edit(path, 'UPDATE lines SET text = replace(text, \'"rho":"1/200"\', \'"rho":"1/16200"\') WHERE number = 1')
    rehash(path)
    with pytest.raises(LedgerError):
        ledger.charge(cost(1), "an open session notices")
    open_ledger(path).close()
    with pytest.raises(LedgerError, match="anchor"):
        open_ledger(path, anchor=anchor)


def _copy(path: Path) -> Path:
    return Path(shutil.copy(path, path.with_suffix(".copy")))


def test_the_last_line_deleted(tmp_path: Path):
    path = written(tmp_path / "a.ledger")
    ledger = open_ledger(path)
    anchor = ledger.anchor
    edit(path, "DELETE FROM lines WHERE number = 8")
    for run in (lambda: ledger.spent, lambda: ledger.charge(cost(1), "q"), lambda: ledger.recall("x"), ledger.to_json):
        with pytest.raises(LedgerError, match="rolled back"):
            run()
    with pytest.raises(LedgerError, match="anchor"):
        open_ledger(path, anchor=anchor)
    assert len(open_ledger(path).entries) == 5  # unseen without an anchor


def test_rolled_back_to_a_copy(tmp_path: Path):
    path = tmp_path / "a.ledger"
    with session(path) as asked:
        asked.query(COUNT, epsilon=1)
        early = asked.ledger_anchor
        old = _copy(path)
        asked.query(COUNT, epsilon=2)
        late, whole = asked.ledger_anchor, path.read_bytes()
        path.write_bytes(old.read_bytes())  # the same file, older content
        with pytest.raises(LedgerError):
            asked.query(COUNT, epsilon=3)
    with pytest.raises(LedgerError, match="anchor"):
        session(path, anchor=late)
    with session(path, anchor=early) as asked:
        assert asked.spent.epsilon == 1
    path.write_bytes(whole)
    for anchor in (early, late):
        with session(path, anchor=anchor) as asked:
            assert len(asked.ledger()) == 2


def test_rolled_back_and_gone_on(tmp_path: Path):
    """An older copy that grew as long as the true one, or longer, has other hashes."""
    path = written(tmp_path / "a.ledger")
    old = _copy(path)
    ledger = open_ledger(path)
    ledger.charge(cost(1), "true")
    anchor = ledger.anchor
    path.write_bytes(old.read_bytes())
    open_ledger(path).charge(cost(0), "other")
    for _ in range(3):
        open_ledger(path).charge(cost(0), "other")
        with pytest.raises(LedgerError):
            ledger.charge(cost(1), "q")
        with pytest.raises(LedgerError, match="anchor"):
            open_ledger(path, anchor=anchor)


@pytest.mark.parametrize("how", ["replaced", "deleted", "moved", "emptied", "shortened", "a folder", "another ledger"])
def test_the_file_put_away_while_a_session_is_open(tmp_path: Path, how: str):
    path = tmp_path / "a.ledger"
    with session(path) as asked:
        asked.query(COUNT, epsilon=1)
        anchor, whole, old = asked.ledger_anchor, path.read_bytes(), _copy(path)
        if how == "replaced":
            old.replace(path)
        elif how == "moved":
            path.rename(tmp_path / "b.ledger")
        elif how == "emptied":
            path.write_bytes(b"")
        elif how == "shortened":
            path.write_bytes(whole[:4096])
        else:
            path.unlink()
        if how == "a folder":
            path.mkdir()
        elif how == "another ledger":
            session(path).close()
        for _ in range(3):
            with pytest.raises(LedgerError) as caught:
                asked.query(COUNT, epsilon=2)
            assert caught.value.hint
    if how in ("deleted", "moved"):
        with pytest.raises(LedgerError, match="there was one"):
            session(path, anchor=anchor)
    elif how != "replaced":
        with pytest.raises(LedgerError):
            session(path, anchor=anchor)
    if how == "a folder":
        path.rmdir()
    path.write_bytes(whole)
    with session(path, anchor=anchor) as asked:
        asked.query(COUNT, epsilon=2)
        assert asked.spent.epsilon == 3 or len(asked.ledger()) == 2


OTHER_FILES = {
    "empty": b"",
    "a letter": b"x",
    "a head": b"SQLite format 3\0",
    "zeros": b"\0" * 5000,
    "noise": os.urandom(9000),
}


@pytest.mark.parametrize("content", OTHER_FILES.values(), ids=OTHER_FILES)
def test_a_file_that_is_no_ledger(tmp_path: Path, content: bytes):
    path = tmp_path / "a.ledger"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="not a ledger") as caught:
        session(path)
    assert caught.value.hint
    assert path.read_bytes() == content


def test_shortened_at_every_length(tmp_path: Path):
    path = written(tmp_path / "a.ledger")
    whole, cut = path.read_bytes(), tmp_path / "cut.ledger"
    for size in [*range(0, len(whole), 512), len(whole) - 1]:
        cut.write_bytes(whole[:size])
        with pytest.raises(LedgerError):
            _seen(cut)


def test_another_programs_file_is_left_as_it_is(tmp_path: Path):
    for mode in ("delete", "wal"):
        path = tmp_path / f"{mode}.db"
        edit(path, f"PRAGMA journal_mode = {mode}", "CREATE TABLE mine (x)", "INSERT INTO mine VALUES (1)")
        before = path.read_bytes()
        with pytest.raises(LedgerError, match="not a ledger"):
            session(path)
        assert path.read_bytes() == before


def test_a_write_ahead_log_switched_on_by_another_program(tmp_path: Path):
    """Nothing is lost, and either session says what happened."""
    path = tmp_path / "a.ledger"
    ledger = open_ledger(path, rules())
    ledger.charge(cost(1), "first")
    other = sqlite3.connect(path, isolation_level=None)
    assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    other.execute("SELECT * FROM lines").fetchall()
    with pytest.raises(LedgerError) as caught:
        ledger.charge(cost(1), "second")
    assert caught.value.hint
    ledger.close()
    other.close()
    again = open_ledger(path)
    again.charge(cost(1), "third")
    assert [entry.label for entry in again.entries] == ["first", "third"]
    assert [each.name for each in tmp_path.iterdir()] == ["a.ledger"]


def test_answers_changed(tmp_path: Path):
    checks.check_changed_answers(tmp_path)


def test_an_answer_that_is_no_answer(tmp_path: Path):
    """Payload, digest and hashes made anew: what cannot be read is refused, and nothing in it is run."""
    path = tmp_path / "a.ledger"
    with session(path) as asked:
        asked.query("SELECT city, COUNT(*) FROM people GROUP BY city", epsilon=1)
    with raw(path) as connection:
        (honest,) = connection.execute("SELECT payload FROM answers").fetchone()
    texts = [
        b"", b"{}", b"[]", b"1", b"null", b"\xff", b"[" * 200000, b'{"keys":[],"groups":1e999,"values":[]}',
        b'{"keys":[],"groups":-1,"values":[]}', b'{"keys":[],"groups":999999999999999999999,"values":[[1]]}',
        honest.replace(b'"|O"', b'"<M8"'), honest.replace(b'"groups": 2', b'"groups": 3'),
        honest.replace(b"[[", b"[[[1],"),
        honest.replace(b'"valid": null', b'"valid": 7'), honest.replace(b'"a"', b"[1]"),
    ]  # fmt: skip
    assert honest not in texts
    written = path.read_bytes()
    for payload in texts:
        path.write_bytes(written)
        with raw(path) as connection:
            connection.execute("UPDATE answers SET payload = ?", (payload,))
            connection.execute(
                "UPDATE lines SET text = json_set(text, '$.sha256', ?) WHERE text LIKE '{\"kind\":\"answer\"%'",
                (hashlib.sha256(payload).hexdigest(),),
            )
        rehash(path)
        with session(path) as asked:
            with pytest.raises(LedgerError, match="answer"):
                asked.query("SELECT city, COUNT(*) FROM people GROUP BY city", epsilon=1)
            assert len(asked.ledger()) == 1
            asked.query("SELECT COUNT(*) FROM people", epsilon=1)


def _seen(path: Path) -> object:
    ledger = open_ledger(path)
    try:
        return ledger.rules, ledger.entries, ledger.spent, ledger.remaining, ledger.recall("k" * 64), ledger.anchor
    finally:
        ledger.close()


def _flip(path: Path, times: int, seed: int) -> int:
    """Random bits flipped: noticed, or nothing that counts is changed. Returns how often it was noticed."""
    honest = _seen(path)
    whole, chance, noticed = path.read_bytes(), random.Random(seed), 0
    flipped = path.with_suffix(".flipped")
    for _ in range(times):
        content = bytearray(whole)
        place, bit = chance.randrange(len(whole)), chance.randrange(8)
        content[place] ^= 1 << bit
        flipped.write_bytes(content)
        try:
            found = _seen(flipped)
        except LedgerError:
            noticed += 1
        else:
            assert found == honest, f"byte {place}, bit {bit}"
            ledger = open_ledger(flipped)
            try:
                ledger.charge(cost(1), "and it goes on")
            except LedgerError:
                noticed += 1
                continue
            finally:
                ledger.close()
            assert len(open_ledger(flipped).entries) == 7
    return noticed


@pytest.mark.parametrize("place", range(5, 10))
def test_a_name_that_is_no_text(tmp_path: Path, place: int):
    """A flipped bit in the words that describe the tables."""
    path = written(tmp_path / "a.ledger")
    name = b"tablelineslines"
    content = path.read_bytes()
    assert content.count(name) == 1
    damaged = bytearray(name)
    damaged[place] ^= 128
    path.write_bytes(content.replace(name, damaged))
    with pytest.raises(LedgerError):
        open_ledger(path)


def test_flipped_bits(tmp_path: Path):
    assert _flip(written(tmp_path / "a.ledger"), 300, 1) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_flipped_bits_of_many(tmp_path: Path, seed: int):
    _flip(written(tmp_path / "a.ledger"), 3000, seed)


@pytest.mark.parametrize(
    "anchor",
    [
        5,
        "",
        "x",
        "1",
        "1:",
        "1:abc",
        f"-1:{'a' * 64}",
        f"9999999999999999999999:{'a' * 64}",
        "9" * 5000 + ":" + "a" * 64,
    ],
)
def test_a_bad_anchor(tmp_path: Path, anchor: object):
    path = written(tmp_path / "a.ledger")
    with pytest.raises((LedgerError, InvalidArgument)):
        open_ledger(path, anchor=anchor)  # type: ignore[arg-type]
    assert len(open_ledger(path).entries) == 6


def test_anchors_of_every_line(tmp_path: Path):
    """From the first, before anything was charged, on."""
    path = tmp_path / "a.ledger"
    ledger = open_ledger(path, rules())
    anchors = [ledger.anchor]
    for number in range(4):
        ledger.charge(cost(1), f"{number}")
        anchors.append(ledger.anchor)
    assert len(set(anchors)) == 5
    for anchor in anchors:
        open_ledger(path, anchor=anchor).close()
        number, digest = anchor.split(":")
        for wrong in (f"{int(number) + 1}:{digest}", f"{number}:{digest[::-1]}"):
            with pytest.raises(LedgerError):
                open_ledger(path, anchor=wrong)


def test_two_sessions_with_different_rules(tmp_path: Path):
    path = tmp_path / "a.ledger"
    with session(path, accountant="auto", neighbours="unbounded") as asked:
        asked.query(COUNT, epsilon=1)
        for more in (
            {"budget": Budget(11, 1e-6)},
            {"budget": Budget(9, 1e-6)},
            {"budget": Budget(10, 1e-7)},
            {"budget": Budget(10, 1e-6, conversion_delta=1e-7)},
            {"budget": Budget(10, 1e-6, analysts={"ann": Budget(10, 1e-6)}), "analyst": "ann"},
            {"accountant": "basic"},
            {"accountant": "zcdp"},
            {"neighbours": "bounded"},
        ):
            with pytest.raises(LedgerError, match="other rules") as caught:
                session(path, **more)
            assert caught.value.hint
        asked.query("SELECT COUNT(*) FROM people WHERE age > 3", epsilon=1)
    with session(path) as asked:
        assert len(asked.ledger()) == 2
    with pytest.raises(DPSQLError):
        session(tmp_path / "b.ledger", budget=None, accountant="best")
    assert not (tmp_path / "b.ledger").exists()

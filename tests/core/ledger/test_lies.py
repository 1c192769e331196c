"""Lies planted in the ledger, each caught by a check that the honest one passes."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsql.core import parallel
from dpsql.core.cost import Cost
from dpsql.core.ledger import book as ledger_book
from dpsql.core.ledger import claims as ledger_claims
from dpsql.core.ledger import filters, ledger
from dpsql.core.ledger import state as ledger_state
from dpsql.core.ledger import text as ledger_text
from dpsql.core.ledger.account import Account, Part
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import FileStore
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.lines import FORMAT, FormatChange, Note, UnknownLine
from dpsql.core.ledger.reading import read_line
from dpsql.core.ledger.units import TableUnit, UnitKind
from dpsql.core.mechanisms.noise import CubeLaplace
from dpsql.errors import BudgetExceeded, LedgerError
from dpsql.plan.expressions import Function, Literal
from dpsql.schema.columns import TableSchema
from dpsql.session import session
from dpsql.session.cache import cached_answers as replay
from dpsql.session.cache import canonical_forms, canonical_text
from dpsql.session.cache import question_key as canonical
from dpsql.session.tables import table_units
from tests.core.ledger import checks, test_at_once, test_formats, test_keys, test_partitions, test_units
from tests.core.ledger.checks import needs_fork
from tests.core.ledger.checks import session as session_of

pytestmark = needs_fork

Patch = pytest.MonkeyPatch
Lie = Callable[[Patch], None]
Check = Callable[[Path], object]


# Durability and order


def charge_after_the_run(patch: Patch) -> None:
    waiting: list[Any] = []
    charge, run = Ledger.charge, session.run

    def later(self: Ledger, *args: Any, **more: Any) -> None:
        waiting.append(lambda: charge(self, *args, **more))

    def ran(*args: Any) -> Any:
        found = run(*args)
        waiting.pop()()
        return found

    patch.setattr(Ledger, "charge", later)
    patch.setattr(session, "run", ran)


def commit_every_third_charge(patch: Patch) -> None:
    honest, count = FileStore.commit, [0]

    def commit(self: FileStore) -> None:
        count[0] += 1
        if count[0] % 3 == 0:
            honest(self)

    def begin(self: FileStore) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    patch.setattr(FileStore, "commit", commit)
    patch.setattr(FileStore, "begin", begin)


def _after_connecting(patch: Patch, statement: str) -> None:
    honest = FileStore.__init__

    def init(self: FileStore, file: Path) -> None:
        honest(self, file)
        self._connection.execute(statement)

    patch.setattr(FileStore, "__init__", init)


def let_the_system_sync_when_it_likes(patch: Patch) -> None:
    _after_connecting(patch, "PRAGMA synchronous = OFF")


def sync_less(patch: Patch) -> None:
    _after_connecting(patch, "PRAGMA synchronous = NORMAL")


def keep_the_journal_in_memory(patch: Patch) -> None:
    _after_connecting(patch, "PRAGMA journal_mode = MEMORY")


def lock_when_writing_only(patch: Patch) -> None:
    """Look first, lock later: two processes may look at the same moment."""
    append = FileStore.append
    patch.setattr(FileStore, "begin", lambda _self: None)

    def late(self: FileStore, *args: Any) -> None:
        time.sleep(0.003)
        self._connection.execute("BEGIN IMMEDIATE")
        (number,) = self._connection.execute("SELECT COALESCE(MAX(number), 0) + 1 FROM lines").fetchone()
        before = list(self.since(number - 1)) if number > 1 else []
        digest = before[0][2] if before else ledger_text.first_hash(self.rules.text)
        append(self, number, args[1], ledger_text.next_hash(digest, number, args[1]))

    patch.setattr(FileStore, "append", late)


def read_the_file_once(patch: Patch) -> None:
    """Other processes' lines are not looked at."""
    honest = Ledger._catch_up

    def catch_up(self: Ledger) -> None:
        if self._number == 0 and not getattr(self, "seen", False):
            honest(self)
            self.seen = True  # type: ignore[attr-defined]

    patch.setattr(Ledger, "_catch_up", catch_up)


# Sums and limits


def add_up_in_floats(patch: Patch) -> None:
    patch.setattr(filters.Filter, "_basic", lambda self, total: float(total.epsilon) <= float(self.budget.epsilon))


def be_generous(patch: Patch) -> None:
    patch.setattr(filters.Filter, "_basic", lambda self, total: total.epsilon < self.budget.epsilon + 1)


def forget_the_shares(patch: Patch) -> None:
    honest = Ledger.__init__

    def init(self: Ledger, *args: Any, **more: Any) -> None:
        honest(self, *args, **more)
        del self._state.watches[1:]

    patch.setattr(Ledger, "__init__", init)


def forget_the_whole(patch: Patch) -> None:
    honest = Ledger.__init__

    def init(self: Ledger, *args: Any, **more: Any) -> None:
        honest(self, *args, **more)
        self._state.watches[0].filter = Budget(10**6).filter("basic")

    patch.setattr(Ledger, "__init__", init)


def write_refusals_down(patch: Patch) -> None:
    charge = Ledger.charge

    def entered(self: Ledger, cost: Any, label: str, **more: Any) -> Any:
        try:
            return charge(self, cost, label, **more)
        except BudgetExceeded:
            self.accept_clock()
            raise

    patch.setattr(Ledger, "charge", entered)


# Hashes


def trust_every_hash(patch: Patch) -> None:
    class Anything(str):
        __hash__ = str.__hash__

        def __eq__(self, _: object) -> bool:
            return True

        def __ne__(self, _: object) -> bool:
            return False

    honest = FileStore.since

    def since(self: FileStore, number: int) -> Iterator[tuple[int, str, str]]:
        yield from ((n, text, Anything(held)) for n, text, held in honest(self, number))

    patch.setattr(FileStore, "since", since)


def leave_the_text_out_of_the_hash(patch: Patch) -> None:
    honest = ledger_text.next_hash
    patch.setattr(ledger_text, "next_hash", lambda before, number, _text: honest(before, number, ""))


def leave_the_line_before_out_of_the_hash(patch: Patch) -> None:
    honest = ledger_text.next_hash
    patch.setattr(ledger_text, "next_hash", lambda _before, number, text: honest("", number, text))


def leave_the_rules_out_of_the_hash(patch: Patch) -> None:
    honest = ledger_text.first_hash
    patch.setattr(ledger_text, "first_hash", lambda _rules: honest(""))


def take_any_tables(patch: Patch) -> None:
    patch.setattr(FileStore, "_check_tables", lambda _self: None)


def believe_that_lines_are_written(patch: Patch) -> None:
    """No look at tables once the file is open, nor at what an insertion did."""
    honest, opened = FileStore.begin, FileStore._check_tables

    def begin(self: FileStore) -> None:
        patch.setattr(FileStore, "_check_tables", lambda _self: None)
        try:
            honest(self)
        finally:
            patch.setattr(FileStore, "_check_tables", opened)

    @contextmanager
    def writing(self: Ledger) -> Iterator[None]:
        with self._lock:
            self._store.begin()
            try:
                self._catch_up()
                yield
                self._store.commit()
            except BaseException:
                self._store.abandon()
                raise
            self._catch_up()

    patch.setattr(FileStore, "begin", begin)
    patch.setattr(FileStore, "_insert", lambda self, sql, row: self._connection.execute(sql, row))
    patch.setattr(Ledger, "_writing", writing)


def believe_kept_answers(patch: Patch) -> None:
    def recall(self: Ledger, key: str) -> bytes | None:
        with self._current():
            number, _ = self._state.answers.get(key, (0, ""))
            return self._store.payload(number) if number else None

    patch.setattr(Ledger, "recall", recall)


def let_children_have_the_session(patch: Patch) -> None:
    patch.setattr(Ledger, "check_process", lambda _self: None)


# Replay


def _without(patch: Patch, *words: str) -> None:
    """Questions that are told apart by less."""
    honest = canonical._measured

    def fewer(release: Any) -> tuple[object, ...]:
        pairs = honest(release)
        return tuple(
            each
            for word, said in zip(pairs[::2], pairs[1::2], strict=True)
            if word not in words
            for each in (word, said)
        )

    patch.setattr(canonical, "_measured", fewer)


def forget_the_loss(patch: Patch) -> None:
    _without(patch, "cost", "noise", "coordinates", "exact", "values")


def forget_constants(patch: Patch) -> None:
    honest = canonical_text.Writer._bytes

    def written(self: Any, value: Any) -> bytes:
        return b"constant" if isinstance(value, Literal) else honest(self, value)

    patch.setattr(canonical_text.Writer, "_bytes", written)


def round_constants(patch: Patch) -> None:
    honest = canonical_text.Writer._bytes

    def written(self: Any, value: Any) -> bytes:
        return f"{value:.9g}".encode() if isinstance(value, float) else honest(self, value)

    patch.setattr(canonical_text.Writer, "_bytes", written)


def write_names_of_classes(patch: Patch) -> None:
    honest = canonical_text.Writer._bytes

    def written(self: Any, value: Any) -> bytes:
        return type(value).__name__.encode() + honest(self, value)

    patch.setattr(canonical_text.Writer, "_bytes", written)


def write_pieces_without_their_ends(patch: Patch) -> None:
    honest = canonical_text.Writer._bytes

    def written(self: Any, value: Any) -> bytes:
        return b"".join(honest(self, each) for each in value) if isinstance(value, tuple) else honest(self, value)

    patch.setattr(canonical_text.Writer, "_bytes", written)


def pass_over_what_has_no_form(patch: Patch) -> None:
    honest = canonical_text.Writer._bytes

    def written(self: Any, value: Any) -> bytes:
        try:
            return honest(self, value)
        except canonical_text.NoCanonicalForm:
            return b"something"

    patch.setattr(canonical_text.Writer, "_bytes", written)


def take_functions_by_name(patch: Patch) -> None:
    patch.setitem(canonical_forms.FORMS, Function, canonical_text.form("function", "name", enough=True))


def _forgetting(kind: type, *words: str) -> Lie:
    def forget(patch: Patch) -> None:
        held = canonical_forms.FORMS[kind]
        left = {word: read for word, read in held.words.items() if word not in words}
        patch.setitem(canonical_forms.FORMS, kind, replace(held, words=left))

    forget.__name__ = f"forget_{'_and_'.join(words)}_of_{kind.__name__}"
    return forget


def forget_the_analyst(patch: Patch) -> None:
    honest = canonical.canonical
    patch.setattr(replay, "canonical", lambda release, _analyst, *more: honest(release, None, *more))


def forget_the_session(patch: Patch) -> None:
    patch.setattr(replay, "fresh_key", lambda: b"")
    honest = replay.Replay.question

    def question(self: replay.Replay, *given: Any) -> Any:
        found = honest(self, *given)
        return None if found is None else replace(found, lasting=True)

    patch.setattr(replay.Replay, "question", question)


# Parts


def forget_parts(patch: Patch) -> None:
    """Only the first constant counts."""
    honest = parallel._confined

    def confined(*args: Any) -> Any:
        found = honest(*args)
        return found if found is None else found[:1]

    patch.setattr(parallel, "_confined", confined)


def take_one_arm_of_an_or(patch: Patch) -> None:
    honest = parallel._confined

    def confined(term: Any, *more: Any) -> Any:
        if getattr(getattr(term, "function", None), "name", "") == "or":
            return next((found for arg in term.args if (found := confined(arg, *more)) is not None), None)
        return honest(term, *more)

    patch.setattr(parallel, "_confined", confined)


def write_constants_as_they_stand(patch: Patch) -> None:
    """1 and 1.0 are two parts, 0.0 and -0.0 too."""
    patch.setattr(parallel, "_text", lambda expr, _kind, **_: repr(getattr(expr, "value", None)))


def compare_large_numbers_as_they_are_written(patch: Patch) -> None:
    honest = parallel._text
    patch.setattr(parallel, "_text", lambda expr, kind, **_: honest(expr, kind, as_reals=False))


def take_another_columns_filter(patch: Patch) -> None:
    patch.setattr(parallel, "_is", lambda expr, *_: type(expr).__name__ == "Column")


def take_filters_of_the_missing_side(patch: Patch) -> None:
    honest = parallel.filters_of

    def every(source: Any) -> tuple[Any, ...]:
        if type(source).__name__ == "Union":
            return tuple(each for branch in source.branches for each in every(branch.input))
        return honest(source)

    patch.setattr(parallel, "filters_of", every)
    patch.setattr(parallel, "scans_of", lambda source: list(_first_scan(source)))


def _first_scan(source: Any) -> Sequence[Any]:
    from dpsql.plan.nodes import scans_of

    return [next(scan for scan in scans_of(source) if not scan.table.public)]


def take_a_change_for_a_removal(patch: Patch) -> None:
    honest = Account.__init__

    def init(self: Account, **_moves: bool) -> None:
        honest(self)

    patch.setattr(Account, "__init__", init)


def give_every_question_a_part_of_its_own(patch: Patch) -> None:
    honest = parallel.parts_of
    count = [0]

    def parts_of(*args: Any) -> tuple[Part, ...]:
        count[0] += 1
        return tuple(replace(part, value=f"{part.value}{count[0]}") for part in honest(*args))

    patch.setattr(parallel, "parts_of", parts_of)


def constants_of(name: str) -> Check:
    kind = next(each for each in test_partitions.KINDS if each.name == name)

    def check(_: Path) -> None:
        test_partitions.check_constants(kind)

    check.__name__ = f"constants_of_{name.replace(' ', '_')}"
    return check


def places(_: Path) -> None:
    test_partitions.check_places()


def places_of_changed_rows(_: Path) -> None:
    test_partitions.check_places(bounded=True)


def edits(*names: str) -> Check:
    def check(folder: Path) -> None:
        checks.check_edits(folder, *names)

    check.__name__ = f"edits_of_{'_'.join(names).replace(' ', '_')}"
    return check


def edits_while_open(*names: str) -> Check:
    def check(folder: Path) -> None:
        checks.check_edits_while_open(folder, *names)

    check.__name__ = f"edits_while_open_of_{'_'.join(names).replace(' ', '_')}"
    return check


def other_questions_pay(folder: Path) -> None:
    from tests.core.ledger import test_replay

    names = ("more epsilon", "another value", "a constant of a bit more")
    for number, more in enumerate(test_replay.OTHER[name] for name in names):
        path = folder / f"other{number}.ledger"
        with test_replay.asker(path) as asked:
            test_replay.ask(asked)
            test_replay.ask(asked, **more)
            assert test_replay.charges(asked) == 2, f"taken for the question before: {more}"


def analysts_are_kept_apart(folder: Path) -> None:
    from tests.core.ledger import test_charging

    test_charging.test_what_one_analyst_was_told_is_new_to_another(folder)


def versions_are_asked_for(folder: Path) -> None:
    from tests.core.ledger import test_replay

    test_replay.test_without_a_version_only_within_a_session(folder)


# Units and formats


def forget_the_units(patch: Patch) -> None:
    for each in (ledger, ledger_state):
        patch.setattr(each, "check_units", lambda *_: None)


def look_at_units_when_opened_alone(patch: Patch) -> None:
    honest = Ledger.charge

    def charge(self: Ledger, *args: Any, units: object = None, **more: Any) -> Any:
        del units
        return honest(self, *args, **more)

    patch.setattr(Ledger, "charge", charge)


def hold_limits_with_the_unit(patch: Patch) -> None:
    honest = table_units._unit_of

    def unit_of(name: str, tables: Any) -> TableUnit:
        found = honest(name, tables)
        return replace(found, path=tuple(replace(at, type=f"{at.type}{tables[name].limits}") for at in found.path))

    patch.setattr(table_units, "_unit_of", unit_of)


def take_a_row_for_a_unit_of_one_row(patch: Patch) -> None:
    honest = table_units._unit_of

    def unit_of(name: str, tables: Any) -> TableUnit:
        found = honest(name, tables)
        return TableUnit(name, UnitKind.ROW) if tables[name].limits.rows == 1 else found

    patch.setattr(table_units, "_unit_of", unit_of)


def forget_types(patch: Patch) -> None:
    honest = table_units._place
    patch.setattr(table_units, "_place", lambda *args: replace(honest(*args), type="any"))


def forget_the_keys_on_the_way(patch: Patch) -> None:
    honest = table_units._unit_of

    def unit_of(name: str, tables: Any) -> TableUnit:
        found = honest(name, tables)
        return found if len(found.path) < 2 else TableUnit(name, UnitKind.COLUMN, found.path[:1])

    patch.setattr(table_units, "_unit_of", unit_of)


def leave_out_tables_on_the_way(patch: Patch) -> None:
    honest = table_units.units_of

    def units_of(tables: Any, names: Any = None) -> tuple[TableUnit, ...]:
        found = honest(tables, names)
        return found if names is None else tuple(unit for unit in found if unit.table in names)

    patch.setattr(table_units, "units_of", units_of)


def leave_out_what_became_a_constant(patch: Patch) -> None:
    honest = session.units_read
    patch.setattr(session, "units_read", lambda query, held: honest(replace(query, computed_from=frozenset()), held))


def write_no_random_bytes(patch: Patch) -> None:
    patch.setattr(ledger_book, "fresh_key", lambda: bytes(32))


def begin_format_2_without_a_word(patch: Patch) -> None:
    honest = Ledger._append

    def append(self: Ledger, line: Any) -> int:
        self._next = self._next._replace(format=FORMAT)
        return 0 if isinstance(line, FormatChange) else honest(self, line)

    patch.setattr(Ledger, "_append", append)


def read_what_looks_right(patch: Patch) -> None:
    """A line with an unknown tag, taken for a remark."""
    patch.setattr(ledger_state, "read_line", _leniently)


def _leniently(text: str) -> Any:
    try:
        return read_line(text)
    except UnknownLine:
        return Note("", "")


def a_column_and_others(folder: Path) -> None:
    for number, other in enumerate(name for name in test_units.DECLARED if name != "a column"):
        (folder / f"{number}").mkdir(exist_ok=True)
        test_units.test_a_session_that_declares_another_unit_is_refused(folder / f"{number}", "a column", other)


def a_path_and_others(folder: Path) -> None:
    for number, other in enumerate(name for name in test_units.DECLARED if name != "a path to houses"):
        (folder / f"{number}").mkdir(exist_ok=True)
        test_units.test_a_session_that_declares_another_unit_is_refused(folder / f"{number}", "a path to houses", other)


def open_both(folder: Path) -> None:
    test_units.test_sessions_that_are_open_both(folder, "a column", "rows")


def other_limits_are_admitted(folder: Path) -> None:
    with _nothing_refused():
        test_units.test_limits_versions_and_all_else_may_differ(folder)


def a_file_of_format_1_goes_on(folder: Path) -> None:
    with _nothing_refused():
        test_formats.test_a_file_of_format_1_goes_on(folder, "format1_plain")


@contextmanager
def _nothing_refused() -> Iterator[None]:
    """Here an error of the ledger is the failure of the check."""
    try:
        yield
    except LedgerError as error:
        raise AssertionError(error.message) from None


# Questions that are asked at once


def let_everybody_ask(patch: Patch) -> None:
    patch.setattr(replay.Replay, "turn", lambda *_: nullcontext())
    patch.setattr(Ledger, "claim", lambda self, _key, *args, **more: Ledger.charge(self, *args, **more))


def let_sessions_ask_beside_each_other(patch: Patch) -> None:
    patch.setattr(Ledger, "claim", lambda self, _key, *args, **more: Ledger.charge(self, *args, **more))


def take_every_claim_over(patch: Patch) -> None:
    patch.setattr(ledger_claims, "gone", lambda *_: True)


def show_every_draw(patch: Patch) -> None:
    honest = Ledger.keep

    def keep(self: Ledger, key: str, payload: bytes, charge: Any = None, **_more: Any) -> bool:
        return honest(self, key, payload)

    patch.setattr(Ledger, "keep", keep)


def hold_on_to_a_claim_that_failed(patch: Patch) -> None:
    patch.setattr(Ledger, "drop", lambda *_: None)
    patch.setattr(Ledger, "give_up", lambda *_: None)


def forget_a_claim_that_was_interrupted(patch: Patch) -> None:
    patch.setattr(ledger_claims, "end", lambda _: None)
    patch.setattr(ledger_claims, "LONGEST", 0.5)


def a_charge_has_one_answer(folder: Path) -> None:
    test_at_once.test_one_charge_has_one_answer(folder)


def a_failure_is_written_down(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, session_of(folder / "failed.ledger") as asked:
        patch.setattr(session, "run", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            asked.query(checks.COUNT, epsilon=1)
        assert [line["kind"] for line in checks.texts(folder / "failed.ledger")][-1] == "dropped"


LIES: list[tuple[Lie, Check]] = [
    (let_everybody_ask, test_at_once.check_threads),
    (let_everybody_ask, test_at_once.check_sessions),
    (let_sessions_ask_beside_each_other, test_at_once.check_sessions),
    (let_sessions_ask_beside_each_other, test_at_once.check_processes),
    (take_every_claim_over, test_at_once.check_sessions),
    (take_every_claim_over, test_at_once.check_processes),
    (show_every_draw, test_at_once.check_taken_over_from_the_living),
    (show_every_draw, a_charge_has_one_answer),
    (hold_on_to_a_claim_that_failed, a_failure_is_written_down),
    (forget_a_claim_that_was_interrupted, test_at_once.check_interrupted_charges),
    (forget_the_units, a_column_and_others),
    (forget_the_units, open_both),
    (look_at_units_when_opened_alone, open_both),
    (hold_limits_with_the_unit, other_limits_are_admitted),
    (take_a_row_for_a_unit_of_one_row, test_units.test_rows_and_a_unit_of_one_row_each_are_different),
    (forget_types, a_column_and_others),
    (forget_types, a_path_and_others),
    (forget_the_keys_on_the_way, a_path_and_others),
    (leave_out_tables_on_the_way, test_units.test_a_table_on_the_way_to_a_unit_is_held_too),
    (leave_out_what_became_a_constant, test_units.check_public_tables_are_held),
    (write_no_random_bytes, test_formats.test_hashes_of_lines_cannot_be_guessed),
    (begin_format_2_without_a_word, a_file_of_format_1_goes_on),
    (read_what_looks_right, test_formats.test_a_line_of_a_later_version_is_refused_as_that),
    (charge_after_the_run, checks.check_charged_before_rows),
    (commit_every_third_charge, checks.check_kills_of_chargers),
    (commit_every_third_charge, checks.check_charged_before_rows),
    (let_the_system_sync_when_it_likes, checks.check_durable),
    (sync_less, checks.check_durable),
    (keep_the_journal_in_memory, checks.check_durable),
    (lock_when_writing_only, checks.check_race),
    (read_the_file_once, checks.check_race),
    (add_up_in_floats, checks.check_last_digit),
    (be_generous, checks.check_last_digit),
    (be_generous, checks.check_race),
    (forget_the_shares, checks.check_shares),
    (forget_the_whole, checks.check_shares),
    (write_refusals_down, checks.check_refusals_are_free),
    (trust_every_hash, edits("text of the first line")),
    (leave_the_text_out_of_the_hash, edits("text of the first line")),
    (leave_the_line_before_out_of_the_hash, checks.check_lines_of_another),
    (leave_the_rules_out_of_the_hash, edits("budget enlarged")),
    (take_any_tables, edits("a trigger that eats lines")),
    (take_any_tables, edits("a view more")),
    (believe_that_lines_are_written, edits_while_open("a trigger that eats lines")),
    (believe_kept_answers, checks.check_changed_answers),
    (let_children_have_the_session, checks.check_forks),
    (forget_the_loss, other_questions_pay),
    (write_names_of_classes, test_keys.check_golden_keys),
    (write_names_of_classes, test_keys.check_renamed_classes),
    (write_pieces_without_their_ends, test_keys.check_pieces_are_told_apart),
    (pass_over_what_has_no_form, test_keys.check_unknown_kinds_have_no_key),
    (take_functions_by_name, test_keys.check_a_name_is_one_function),
    (_forgetting(Literal, "value"), test_keys.check_every_fact_counts),
    (_forgetting(TableSchema, "version"), test_keys.check_every_fact_counts),
    (_forgetting(CubeLaplace, "scale"), test_keys.check_every_fact_counts),
    (_forgetting(Cost, "delta"), test_keys.check_every_fact_counts),
    (forget_constants, other_questions_pay),
    (round_constants, other_questions_pay),
    (forget_the_analyst, analysts_are_kept_apart),
    (forget_the_session, versions_are_asked_for),
    (forget_parts, constants_of("text")),
    (take_one_arm_of_an_or, constants_of("integer")),
    (write_constants_as_they_stand, constants_of("integer")),
    (write_constants_as_they_stand, constants_of("real")),
    (compare_large_numbers_as_they_are_written, constants_of("integer")),
    (take_another_columns_filter, places),
    (take_filters_of_the_missing_side, places),
    (take_a_change_for_a_removal, places_of_changed_rows),
    (give_every_question_a_part_of_its_own, constants_of("boolean")),
]


@pytest.mark.parametrize(("lie", "check"), LIES, ids=lambda each: each.__name__)
def test_a_lie_is_caught(lie: Lie, check: Check, tmp_path: Path, monkeypatch: Patch):
    lie(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(tmp_path)


HONEST = {each.__name__: each for _, each in LIES}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", HONEST)
def test_the_honest_ledger_passes(name: str, tmp_path: Path):
    HONEST[name](tmp_path)

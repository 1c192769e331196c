"""Execution of a statement: checks that the answer can be shown, runs the query, shows the answer and its cost."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from dpsql.answer.base import BaseResult
from dpsql.errors import DPSQLError, InvalidArgument
from dpsql.session.advice import Place, reworded
from dpsql.shell.output.colours import dim
from dpsql.shell.output.folding import folded
from dpsql.shell.output.listing import listing_of
from dpsql.shell.output.modes import BOX, FOR_PEOPLE, PARQUET, Shown, checked_mode, written
from dpsql.shell.output.streams import FileFailed, say, say_bytes
from dpsql.shell.output.target import Target
from dpsql.shell.prompt.asker import Asker
from dpsql.shell.prompt.pager import Pager

MOST_ROWS = 60
_WITHHELD = "how long an answer takes may depend on the rows, so it is not told"


@dataclass
class Shell:
    """Runs statements, and shows answers in a mode on the screen or in a file.

    interactive: the cost of an answer is shown below it, otherwise on standard error. most_rows: of an interactive box,
    None for all. dry_run: statements are explained and not run. timer: the time of loading and planning is shown. last:
    the last output. unpaid: the reason why nothing is spent, shown instead of the budget.
    """

    asker: Asker
    mode: str = BOX
    interactive: bool = False
    most_rows: int | None = None
    dry_run: bool = False
    timer: bool = False
    loading: float = 0.0
    last: Shown | None = None
    unpaid: str = ""
    pager: Pager = field(default_factory=Pager)
    _output: Target | None = None
    _once: Target | None = None
    _answers: int = 0

    def answer(self, sql: str, *, fresh: bool = False) -> None:
        """Run a statement and show its answer. Raises errors of the session, InvalidArgument if the answer could not be
        written, FileFailed if writing failed, after showing the answer on the screen, and BrokenPipeError."""
        try:
            self._check_output()
            if self.timer:
                self._tell_planning(sql)
            self.last = self._asked(sql, fresh=fresh)
            self.show(self.last)
        finally:
            self._let_go_of_once()

    def _asked(self, sql: str, *, fresh: bool) -> Shown:
        listing = listing_of(sql, self.asker.session)
        if listing is not None:
            return listing
        return self.asker.explain(sql) if self.dry_run else self.asker.ask(sql, fresh=fresh)

    def explain(self, sql: str) -> None:
        """Show the steps and the cost of a query; free."""
        try:
            self.show(self.asker.explain(sql))
        finally:
            self._let_go_of_once()

    def show_last(self) -> None:
        """Show the last output again, for free, possibly in another mode or place. Raises InvalidArgument."""
        if self.last is None:
            raise InvalidArgument("there is no answer yet.")
        try:
            self._check_output()
            self.show(self.last)
        finally:
            self._let_go_of_once()

    def show(self, shown: Shown) -> None:
        """Write an answer in the current mode to the target, and its cost below it or on standard error."""
        place = Place.PROMPT if self.interactive else Place.COMMAND_LINE
        notes = "\n".join(reworded(each, place) for each in shown.notes) if isinstance(shown, BaseResult) else ""
        target = self._once or self._output
        if target is not None:
            self._write_to(target, shown)
        elif self.interactive and self.mode in FOR_PEOPLE:
            body = written(shown, self.mode, most_rows=self.most_rows).decode().removesuffix("\n")
            self.pager.show(body, dim(folded(notes, sys.stdout), sys.stdout))
            return
        else:
            say_bytes(written(shown, self.mode, first=not self._answers))
            self._answers += 1
        if notes:
            say(dim(folded(notes, sys.stderr), sys.stderr), sys.stderr)

    def _write_to(self, target: Target, shown: Shown) -> None:
        try:
            target.write(written(shown, self.mode, first=not target.answers))
        except FileFailed:  # the answer is paid for
            say(written(shown, BOX).decode().removesuffix("\n"))
            raise

    def set_mode(self, word: str) -> None:
        """Set the output mode. Raises InvalidArgument."""
        self.mode = checked_mode(word)

    def write_to(self, path: str | Path | None) -> None:
        """Send answers to a file from now on, or back to the screen. Raises InvalidArgument."""
        target = None if path is None else Target(path)
        if self._output is not None:
            self._output.close()
        self._output = target

    def write_once_to(self, path: str | Path) -> None:
        """Send the next answer to a file. Raises InvalidArgument."""
        target = Target(path)
        self._let_go_of_once()
        self._once = target

    @property
    def target(self) -> str | None:
        """The output file."""
        return None if self._output is None else str(self._output.path)

    def close(self) -> None:
        """Close the output files."""
        self._let_go_of_once()
        self.write_to(None)

    def _let_go_of_once(self) -> None:
        if self._once is not None:
            self._once.close()
        self._once = None

    def _check_output(self) -> None:
        """Refuse an answer that could not be written, before it is paid for."""
        target = self._once or self._output
        if self.mode != PARQUET:
            return
        if target is None and (self.interactive or sys.stdout.isatty()):
            raise InvalidArgument("a Parquet file is no text for a screen.", hint="Send it to a file: .once FILE.")
        if (self._answers if target is None else target.answers) > 0:
            raise InvalidArgument("a Parquet file holds one answer.", hint="Name another file for the next.")

    def _tell_planning(self, sql: str) -> None:
        """Show the planning time: it depends only on the text and on declared facts."""
        start = time.perf_counter()
        with contextlib.suppress(DPSQLError):  # raised again when the query is run
            self.asker.explain(sql)
            say(dim(f"planned in {time.perf_counter() - start:.3f} s ({_WITHHELD})", sys.stderr), sys.stderr)

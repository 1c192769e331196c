"""All errors of dpsql, as one tree.

    DPSQLError
    ├── QueryRefused              the query cannot be answered as written
    │   ├── SQLSyntaxError        malformed text, wrong arity, a bad ordinal, an aggregate in WHERE
    │   ├── UnsupportedSQL        valid SQL that dpsql has no rule for
    │   ├── UnknownTable
    │   ├── UnknownColumn
    │   ├── AmbiguousColumn
    │   ├── TypeMismatch
    │   ├── RawColumn             a column in SELECT that would return people's own values
    │   ├── InvalidParameter      a :name without a value, or with a value of unknown type
    │   ├── MissingBounds         a sum over values without bounds
    │   └── UnknownGroups         GROUP BY a column whose values are themselves private
    ├── BudgetExceeded
    ├── ConfirmationRequired      a large spend without confirmation
    ├── InvalidPrivacyParameter   epsilon, delta
    ├── InvalidSchema             bounds, keys, types and the names of columns
    ├── InvalidArgument           an unknown strategy, mechanism, engine ...
    │   └── UnknownArgument       an argument name that the function does not have; also a TypeError
    ├── LedgerError
    ├── AccessDenied              a server rejects the token, or has stopped the analyst
    ├── ServerUnavailable         a server does not answer now
    └── InternalError             a violated invariant of dpsql

A message states the problem, its place, the reason, and the remedy. It depends only on the SQL text, the parameters and
declared facts: it never contains a data value, a row number or a count of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import TracebackType
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the SQL text: characters `start` to `end`, both included."""

    sql: str
    start: int
    end: int

    def caret(self) -> str:
        """Return the line of the text that contains the place, with carets under it."""
        first = self.sql.rfind("\n", 0, self.start) + 1
        last = self.sql.find("\n", self.start)
        line = self.sql[first : last if last >= 0 else len(self.sql)]
        number = self.sql.count("\n", 0, self.start) + 1
        head = f"LINE {number}: "
        column = self.start - first
        width = max(1, min(self.end, first + len(line) - 1) - self.start + 1)
        if len(line) > _WIDEST_LINE:
            cut = max(0, column - _WIDEST_LINE // 2)
            line, column = line[cut : cut + _WIDEST_LINE], column - cut
            width = min(width, len(line) - column)
        return f"{head}{line.replace(chr(9), ' ')}\n{' ' * (len(head) + column)}{'^' * width}"


_WIDEST_LINE = 160


class DPSQLError(Exception):
    """An error: its `message`, its place in the text (`span`), and a remedy (`hint`). `about`: facts by name, for
    decisions and other hints of callers; the texts are for people."""

    remedy: ClassVar[str] = "Catch this one for all of them; the error's own hint says more."
    """The remedy for errors of this class, for manuals; the hint of each error is specific."""

    def __init__(
        self, message: str, *, span: Span | None = None, hint: str = "", about: Mapping[str, str] | None = None
    ) -> None:
        self.message = message
        self.span = span
        self.hint = hint
        self.about: dict[str, str] = dict(about or {})
        super().__init__(message)

    def __str__(self) -> str:
        return self.told(self.hint)

    def told(self, hint: str) -> str:
        """Return the whole text, with the caller's hint."""
        lines = [self.message]
        if self.span is not None:
            lines += self.span.caret().split("\n")
        lines += hint.split("\n") if hint else []
        return "\n  ".join(lines)

    def _render_traceback_(self) -> list[str]:
        """Return the lines that a notebook shows (IPython's hook): the text, and the calling line of the user, without
        frames of dpsql; for an InternalError, which is to be reported, all of them."""
        import traceback  # only needed for errors

        if isinstance(self, InternalError):
            return traceback.format_exception(self)
        return [*f"{type(self).__name__}: {self}".split("\n"), *_asked_at(self.__traceback__)]

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.span, self.hint, self.about)


def _asked_at(trace: TracebackType | None) -> list[str]:
    """Return the line of the user's program that called dpsql, if known."""
    from linecache import getline

    place = ("", 0)
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] == __name__.partition(".")[0]:
            break
        place = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    text = getline(*place).strip()
    return [f"  at line {place[1]}: {text}"] if text else []


def as_written(value: object) -> str:
    """Return a value as written in Python, or only its class if `repr` fails, as for too deeply nested lists."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - a class's own __repr__ can raise anything
        return f"a {type(value).__name__}"


def _rebuild(
    kind: type[DPSQLError], message: str, span: Span | None, hint: str, about: Mapping[str, str]
) -> DPSQLError:
    return kind(message, span=span, hint=hint, about=about)


class QueryRefused(DPSQLError):
    """The query cannot be answered as written; nothing was read and nothing was charged."""

    remedy = "Change the text as the error says; a refusal costs nothing."


class SQLSyntaxError(QueryRefused):
    """The text is not a query."""

    remedy = "Mend the text at the caret."


class UnsupportedSQL(QueryRefused):
    """The text is SQL, but no rule here determines its effect on neighbouring tables."""

    remedy = "Write it as the error says, or another way: docs/sql lists what there is."


class UnknownTable(QueryRefused):
    """No table of that name."""

    remedy = "Use a name that SHOW TABLES lists, or add the table to the session."


class UnknownColumn(QueryRefused):
    """No column of that name."""

    remedy = "Use a name that DESCRIBE lists; one with a hyphen or a blank stands in double quotes."


class AmbiguousColumn(QueryRefused):
    """The name could mean two columns."""

    remedy = "Write the table's name or alias before the column: people.age."


class TypeMismatch(QueryRefused):
    """An operation that has no meaning for the type of its values."""

    remedy = "CAST the value, declare the type of the column, or use a function that takes it."


class RawColumn(QueryRefused):
    """A column outside an aggregate: the answer would contain people's own values."""

    remedy = "Put the column into an aggregate, or into GROUP BY."


class InvalidParameter(QueryRefused):
    """A `:name` of the text without a value, or a value that is not a scalar."""

    remedy = "Give each :name of the text a number, text, date, moment or truth value, and no other."


class MissingBounds(QueryRefused):
    """A sum over values without bounds: one person could change it without limit."""

    remedy = (
        'Declare bounds from what is known beforehand, write CLAMP(x, low, high), or let "auto" choose some privately.'
    )


class UnknownGroups(QueryRefused):
    """The values of a GROUP BY column are private, and no delta was given to hide the rare ones."""

    remedy = "Declare the keys of the column, or give a delta that hides rare groups."


class BudgetExceeded(DPSQLError):
    """The query costs more than the remaining budget; nothing was run and nothing was charged."""

    remedy = "Ask with less epsilon or delta, use an answer that was paid for, or ask the owner for more."


class ConfirmationRequired(DPSQLError):
    """A large spend without confirmation; nothing was run and nothing was charged."""

    remedy = "Say that it is meant (--yes, --yes-up-to, y at the prompt), or ask for less."


class InvalidPrivacyParameter(DPSQLError):
    """An invalid epsilon or delta."""

    remedy = "Give a finite number above 0 (a delta below 1), no more than one query may spend here."


class InvalidSchema(DPSQLError):
    """A declaration that contradicts itself or the table."""

    remedy = "Mend the declaration or the owner's file; dpsql check tells all of its mistakes at once."


class InvalidArgument(DPSQLError):
    """An argument that has none of the allowed values."""

    remedy = "Use one of the words that the error lists; for a file, look at its path and rights."


class UnknownArgument(InvalidArgument, TypeError):
    """An argument name that the function does not have."""

    remedy = "Use one of the names that the error lists."


class LedgerError(DPSQLError):
    """The ledger cannot guarantee what was spent; no answer was released."""

    remedy = "Look at the file and its folder: rights, room, other programs; of a damaged one take the last good copy."


class PostprocessFailed(DPSQLError):
    """The post-processing SQL of a query failed on its released answers. They are paid for: `answers` holds each."""

    remedy = (
        "Change the SQL over the answers and ask again: they are paid for, and given again free (`answers` has them)."
    )

    answers: tuple[object, ...] = ()

    def with_answers(self, answers: tuple[object, ...], hint: str) -> PostprocessFailed:
        """Return the same failure, with the paid answers."""
        error = type(self)(self.message, span=self.span, hint=hint)
        error.answers = answers
        return error

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.span, self.hint, self.about), {"answers": self.answers}


class AccessDenied(DPSQLError):
    """A server rejects the token, or has stopped running queries of its analyst."""

    remedy = "Ask the data owner for a token, or whether yours has ended; an owner looks at dpsql access list."


class ServerUnavailable(DPSQLError):
    """A server cannot be reached or cannot answer now; paid queries are not paid again."""

    remedy = "See that the address is right and the server is up, and ask again."


class InternalError(DPSQLError):
    """An invariant of dpsql was violated. Please report it."""

    remedy = "Please report it, with the query and what is declared, without data. What was charged stays spent."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ' Did you mean "age"?' for a near miss (similarity >= 0.75, ignoring case), else ''."""
    folded = {each.casefold(): each for each in known}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.75)
    return f' Did you mean "{folded[near[0]]}"?' if near else ""

"""Process that holds the tables and answers one message after another. Its replies may be shown to the analyst who
asked, or state that nothing may be shown."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from dpsql.answer.result import Result
from dpsql.core.ledger.sharing import Request
from dpsql.errors import DPSQLError, InvalidSchema, UnsupportedSQL
from dpsql.executors.base import engine_of
from dpsql.executors.duckdb.engine import DUCKDB
from dpsql.owner.rehearsal import HEADING, rehearse
from dpsql.remote.server import encoding
from dpsql.remote.server import preload as loaded  # noqa: F401 - what a first question needs, where the process that this one comes from did not load it
from dpsql.remote.server.answer_cache import AnswerCache, SerializedAnswer, answer, answer_of
from dpsql.remote.server.messages import (
    CHANGED,
    FAILED,
    HIDDEN,
    MOST_LISTED,
    OK,
    UNAVAILABLE,
    Config,
    Message,
    Reply,
)
from dpsql.remote.server.outcomes import outcome_of
from dpsql.schema.memoization import remembered_for
from dpsql.session.costs import Quote
from dpsql.session.owner_file import Schema
from dpsql.session.served import ServedSession
from dpsql.session.tables.declared_tables import all_tables
from dpsql.session.tables.table import Table
from dpsql.session.vocabulary import as_identifier, words
from dpsql.sources.stored import Origin, files_in, stamps_of

_MOST_SESSIONS = 32


class Work:
    """The tables, and a session for each analyst."""

    def __init__(self, config: Config) -> None:
        self._schema, self._run = Schema.from_toml(config.schema), config.run
        self._words = config.words or self._schema.server
        self._tables = all_tables({}, self._schema, ())
        self.stamps = {name: _stamps(table, as_read=True) for name, table in self._tables.items()}
        """State of each table's files when they were read or, for files read with each query, when this process
        started."""
        self._sessions: OrderedDict[tuple[str, tuple[str, ...]], ServedSession] = OrderedDict()
        self._told: dict[tuple[str, tuple[str, ...]], AnswerCache] = {}
        engines = {
            self._schema.engine,
            *(engine.name for each in self._tables.values() if (engine := engine_of(each.frame))),
        }
        if DUCKDB.name in engines:
            from dpsql.executors.duckdb.binding import ready  # optional dependency

            ready()

    @property
    def changed(self) -> bool:
        """True if a file has changed since this process started."""
        try:
            return {name: _stamps(table, as_read=False) for name, table in self._tables.items()} != self.stamps
        except InvalidSchema:  # a file is gone
            return True

    def session(self, message: Message) -> ServedSession:
        """Return the analyst's session over the analyst's tables."""
        key = _key(message)
        session = self._sessions.pop(key, None)
        if session is None:
            tables = {name: table for name, table in self._tables.items() if name in key[1]}
            session = ServedSession(
                tables,
                self._schema,
                key[0],
                run=self._run,
                words=self._words,
            )
            if len(self._sessions) >= _MOST_SESSIONS:
                oldest, ended = self._sessions.popitem(last=False)
                ended.close()
                self._told.pop(oldest, None)
        self._sessions[key] = session
        session.may_ask()
        session.plan = b""
        return session

    def plan(self, message: Message) -> Reply:
        """Plan a query without running it: return its refusal, or its cached answer if that may be seen, or else its
        plan and the keys of the queries to run. Charge it if that is possible at once."""
        session, terms = self.session(message), dict(message["terms"])
        with (
            session.at_one_moment(),
            session.not_seen_yet(frozenset(message["hidden"])),
            session.asked_under(_request(message)) as answered,
        ):
            terms["fresh"] = (terms.get("fresh", False) or session.charged) and not answered
            quote = session.quote(**terms)
            if quote.cost.free and not quote.questions:
                raise _asked_elsewhere()
            if quote.replayed:
                return self._given_again(session, terms, quote, self._told.setdefault(_key(message), AnswerCache()))
            shared = self._of_others(session, terms) if self._words.share_answers and not session.charged else None
            if shared is not None:
                return shared
            questions = [quote.questions[place].key for place in quote.due]
            before, at_work = session.before(quote), set(questions) & set(message["hidden"])
            plan, reach = session.planned(**terms), session.reach(**terms)
            charged = not at_work and bool(message.get("charge"))
            if not at_work and not charged:
                session.check_charge(**terms)
        if charged:
            self.charge({**message, "request": (*message["request"][:3], before)})
        reply = {"plan": plan, "reach": reach, "delayed": session.delayed, "charged": charged}
        return {"outcome": HIDDEN, "questions": questions, "before": before, **reply}

    def given(self, message: Message) -> Reply:
        """Return the cached answer that was given for free under a key, if the tables are known to be unchanged.
        Otherwise do nothing under the name of that server run, whose rows may have differed."""
        session, terms = self.session(message), dict(message["terms"])
        with (
            session.at_one_moment(),
            session.not_seen_yet(frozenset(message["hidden"])),
            session.asked_under(_request(message)),
        ):
            quote = session.quote(**terms)
            if not quote.replayed:
                return {"outcome": HIDDEN, "questions": []}
            return self._given_again(session, terms, quote, self._told.setdefault(_key(message), AnswerCache()))

    def _given_again(self, session: ServedSession, terms: Mapping[str, Any], quote: Quote, told: AnswerCache) -> Reply:
        place = session.given_before(quote, **terms)
        known = None if place is None else told.find(place)
        if place is not None and known is not None:
            return answer(session, known.again(session.footer_again(place[0])), place[0].cost, replayed=True)
        result = session.query(**terms)
        if place is not None and type(result) is Result:
            told.keep(place, SerializedAnswer.of(encoding.result_in_json(result)))
        return answer_of(session, result)

    def _of_others(self, session: ServedSession, terms: Mapping[str, Any]) -> Reply | None:
        """Return the answer to all parts of the query if other analysts have paid for it."""
        with session.with_answers_of_others():
            return answer_of(session, session.query(**terms)) if session.quote(**terms).replayed else None

    def charge(self, message: Message) -> Reply:
        """Charge a query before it waits to be run: the time of the charge reveals nothing about other runs, and
        answers given meanwhile change nothing."""
        session = self.session(message)
        with session.asked_under(_request(message)) as answered:
            if not answered:
                session.charge(**message["terms"])
        return {"outcome": OK}

    def query(self, message: Message) -> Reply:
        """Run a charged query by the charged plan, draw and store its answer, and return it."""
        session, terms = self.session(message), dict(message["terms"])
        with session.asked_under(_request(message)) as answered, ExitStack() as looking:
            if session.charged:  # so that no lock is waited for
                looking.enter_context(session.at_one_moment())
                session.plan = message.get("plan", b"")
            terms["fresh"] = (terms.get("fresh", False) or session.charged) and not answered
            return answer_of(session, session.query(**terms))

    def explain(self, message: Message) -> Reply:
        explanation = self.session(message).explain(**_without_fresh(message["terms"]))
        return {"outcome": OK, "body": encoding.explanation_in_json(explanation)}

    def prices(self, message: Message) -> Reply:
        """Return the cost of each query, independently or one after another."""
        session, (queries, in_turn) = self.session(message), message["batch"]
        with session.not_seen_yet(frozenset(message["hidden"])):
            quotes = list(session.quotes_in_turn(queries)) if in_turn else [session.quote(**each) for each in queries]
        return {"outcome": OK, "body": {"prices": [encoding.quote_in_json(each) for each in quotes]}}

    def remaining(self, message: Message) -> Reply:
        most = self.session(message).remaining_queries(**_without_fresh(message["terms"]))
        return {"outcome": OK, "body": {"queries": None if most == float("inf") else int(most)}}

    def rehearse(self, message: Message) -> Reply:
        """Return an answer over synthetic rows of the analyst's tables; free."""
        self.session(message)
        entries = {name: entry for name, entry in self._schema.tables.items() if name in message["tables"]}
        terms = {**_without_fresh(message["terms"]), "fresh": True}
        with rehearse(_schema_of(self._schema, entries)) as rehearsal:
            result: object = rehearsal.query(**terms)
            if not isinstance(result, Result):
                raise _asked_elsewhere()
            body = encoding.result_in_json(result)
        return {"outcome": OK, "body": {**body, "heading": HEADING}}

    def tables(self, message: Message) -> Reply:
        tables = self.session(message).catalog.tables.values()
        return {"outcome": OK, "body": {"tables": [encoding.table_in_json(each) for each in tables]}}

    def budget(self, message: Message) -> Reply:
        """Return the analyst's own share, and nothing about other analysts."""
        session = self.session(message)
        share = session.share
        body = {
            "analyst": str(message["analyst"]),
            "epsilon": str(share.epsilon),
            "delta": str(share.delta),
            "accountant": session.accountant,
            "neighbours": str(session.neighbours),
            "spent": encoding.spent_in_json(session.spent),
            "remaining": encoding.remaining_in_json(session.remaining),
        }
        return {"outcome": OK, "body": body}

    def answers(self, message: Message) -> Reply:
        """Return a page of the analyst's paid queries, the newest last, and where the next page begins, if any."""
        after, limit = message.get("page", (0, MOST_LISTED))
        entries = self.session(message).own_entries
        answers = [encoding.entry_in_json(each) for each in entries[after : after + limit]]
        more = after + limit if after + limit < len(entries) else None
        return {"outcome": OK, "body": {"answers": answers, "next": more}}

    def history(self, message: Message) -> Reply:
        """As `answers`, with line numbers, which reveal other analysts' activity: for the server only."""
        entries = self.session(message).own_entries
        answers = [{**encoding.entry_in_json(each), "number": each.number} for each in entries]
        return {"outcome": OK, "body": {"answers": answers}}

    def vocabulary(self, message: Message) -> Reply:
        """Return the completions of a query: declared names as identifiers, and keywords."""
        tables = [
            {**_named(table.name), "columns": [_named(column.name) for column in table.columns]}
            for table in self.session(message).catalog.tables.values()
        ]
        return {"outcome": OK, "body": {"tables": tables, "words": words()}}


def _key(message: Message) -> tuple[str, tuple[str, ...]]:
    """Return the analyst and the tables of a message."""
    return str(message["analyst"]), tuple(message["tables"])


def _named(name: str) -> dict[str, Any]:
    return {"name": name, "text": as_identifier(name)}


def _asked_elsewhere() -> UnsupportedSQL:
    return UnsupportedSQL("EXPLAIN PRIVACY is asked elsewhere.", hint="POST /v1/explanations", about={"ask": "explain"})


def _request(message: Message) -> Request:
    return Request(*message["request"])


def _without_fresh(terms: Mapping[str, Any]) -> dict[str, Any]:
    return {word: value for word, value in terms.items() if word != "fresh"}


def _schema_of(schema: Schema, entries: Mapping[str, Any]) -> Schema:
    return replace(schema, tables=entries, ledger=None, file=None)


def _stamps(table: Table, *, as_read: bool) -> list[tuple[object, ...]]:
    """Return the files of a table and their current state; as_read: for files read once, the state when they were read.
    Raises InvalidSchema if a file is gone."""
    origin = table.origin
    if origin is None:
        return []
    once = isinstance(origin, Origin)
    files = origin.files if once else files_in(origin)
    stamps = origin.stamps if once and as_read else stamps_of(files)
    return [(str(file), *stamp) for file, stamp in zip(files, stamps, strict=True)]


OPERATIONS: dict[str, Callable[[Work, Message], Reply]] = {
    "plan": Work.plan,
    "given": Work.given,
    "charge": Work.charge,
    "query": Work.query,
    "explain": Work.explain,
    "prices": Work.prices,
    "remaining": Work.remaining,
    "rehearse": Work.rehearse,
    "tables": Work.tables,
    "budget": Work.budget,
    "answers": Work.answers,
    "history": Work.history,
    "vocabulary": Work.vocabulary,
}


def answered(work: Work, message: Message) -> Reply:
    """Return the reply to a message; failures are replies, too."""
    try:
        if work.changed:
            return {"outcome": CHANGED}
        with remembered_for(str(message["analyst"])):
            return OPERATIONS[message["operation"]](work, message)
    except Exception as error:  # noqa: BLE001 - only the class is reported if the error is not about the query
        return outcome_of(error)


def main(connection: Connection, config: Config) -> None:
    """Run a worker until the connection ends, which it does with the server."""
    with suppress(EOFError, OSError):
        try:
            work = Work(config)
        except DPSQLError as error:
            connection.send({"outcome": UNAVAILABLE, "error": error})
            return
        except Exception as error:  # noqa: BLE001 - its message may contain cells of a file
            connection.send({"outcome": FAILED, "class": type(error).__name__})
            return
        gc.collect()
        gc.freeze()  # as in `preload`
        connection.send({"outcome": OK, "stamps": work.stamps})
        while True:
            connection.send(answered(work, connection.recv()))

"""A process that holds the tables and answers one message after another. What it sends back is ready to be shown to the
analyst who asked, or says that nothing may be shown."""

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
        """What the files of each table were like when they were read or, of those that are read with each question,
        when this began."""
        self._sessions: OrderedDict[tuple[str, tuple[str, ...]], ServedSession] = OrderedDict()
        self._told: dict[tuple[str, tuple[str, ...]], AnswerCache] = {}
        engines = {
            self._schema.engine,
            *(engine.name for each in self._tables.values() if (engine := engine_of(each.frame))),
        }
        if DUCKDB.name in engines:
            from dpsql.executors.duckdb.binding import ready  # where it is installed

            ready()

    @property
    def changed(self) -> bool:
        """Whether a file is not as it was when this began."""
        try:
            return {name: _stamps(table, as_read=False) for name, table in self._tables.items()} != self.stamps
        except InvalidSchema:  # one is gone
            return True

    def session(self, message: Message) -> ServedSession:
        """The analyst's session over his tables."""
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
        """Whether a query would be charged: its refusal; its answer, where it was answered before and that may be seen;
        else the questions that it is, to be run, and its plan. Where it may be charged at once, it is."""
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
        """The answer that was given under a key for nothing, where the tables are those of then by all that is known of
        them; else nothing is done under the name of that run of the server, whose rows may have been others."""
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
        """The answer that somebody else has paid for, to all that is asked."""
        with session.with_answers_of_others():
            return answer_of(session, session.query(**terms)) if session.quote(**terms).replayed else None

    def charge(self, message: Message) -> Reply:
        """Charge a query that is to be run, before it waits for that: when it was charged tells nothing of other
        runs, and what was answered meanwhile changes nothing."""
        session = self.session(message)
        with session.asked_under(_request(message)) as answered:
            if not answered:
                session.charge(**message["terms"])
        return {"outcome": OK}

    def query(self, message: Message) -> Reply:
        """Go on under the charge, by the plan that was charged, draw, keep: then the answer."""
        session, terms = self.session(message), dict(message["terms"])
        with session.asked_under(_request(message)) as answered, ExitStack() as looking:
            if session.charged:  # so that no claim is waited for
                looking.enter_context(session.at_one_moment())
                session.plan = message.get("plan", b"")
            terms["fresh"] = (terms.get("fresh", False) or session.charged) and not answered
            return answer_of(session, session.query(**terms))

    def explain(self, message: Message) -> Reply:
        explanation = self.session(message).explain(**_without_fresh(message["terms"]))
        return {"outcome": OK, "body": encoding.explanation_in_json(explanation)}

    def prices(self, message: Message) -> Reply:
        """Each query as if it were the next one, or one after another."""
        session, (queries, in_turn) = self.session(message), message["batch"]
        with session.not_seen_yet(frozenset(message["hidden"])):
            quotes = list(session.quotes_in_turn(queries)) if in_turn else [session.quote(**each) for each in queries]
        return {"outcome": OK, "body": {"prices": [encoding.quote_in_json(each) for each in quotes]}}

    def remaining(self, message: Message) -> Reply:
        most = self.session(message).remaining_queries(**_without_fresh(message["terms"]))
        return {"outcome": OK, "body": {"queries": None if most == float("inf") else int(most)}}

    def rehearse(self, message: Message) -> Reply:
        """An answer over made-up rows of the analyst's tables; free."""
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
        """The analyst's own share: nothing of others."""
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
        """A part of what the analyst has paid for, the newest last, and where the next part begins (None: nowhere)."""
        after, limit = message.get("page", (0, MOST_LISTED))
        entries = self.session(message).own_entries
        answers = [encoding.entry_in_json(each) for each in entries[after : after + limit]]
        more = after + limit if after + limit < len(entries) else None
        return {"outcome": OK, "body": {"answers": answers, "next": more}}

    def history(self, message: Message) -> Reply:
        """As `answers`, with the numbers of lines, which tell of others' questions: for the server alone."""
        entries = self.session(message).own_entries
        answers = [{**encoding.entry_in_json(each), "number": each.number} for each in entries]
        return {"outcome": OK, "body": {"answers": answers}}

    def vocabulary(self, message: Message) -> Reply:
        """What completes a query: names that are declared, as they are written, and words of the language."""
        tables = [
            {**_named(table.name), "columns": [_named(column.name) for column in table.columns]}
            for table in self.session(message).catalog.tables.values()
        ]
        return {"outcome": OK, "body": {"tables": tables, "words": words()}}


def _key(message: Message) -> tuple[str, tuple[str, ...]]:
    """Whose session a message is for, over which tables."""
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
    """The files of a table and what they are like now. as_read: of files that were read once, what they were like then.
    Raises InvalidSchema where one is gone."""
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
    """The reply to a message; whatever goes wrong is one too."""
    try:
        if work.changed:
            return {"outcome": CHANGED}
        with remembered_for(str(message["analyst"])):
            return OPERATIONS[message["operation"]](work, message)
    except Exception as error:  # noqa: BLE001 - of one that is not about the text, its class is said
        return outcome_of(error)


def main(connection: Connection, config: Config) -> None:
    """The life of a worker: until the connection ends, which it does with the server."""
    with suppress(EOFError, OSError):
        try:
            work = Work(config)
        except DPSQLError as error:
            connection.send({"outcome": UNAVAILABLE, "error": error})
            return
        except Exception as error:  # noqa: BLE001 - it may hold cells of a file
            connection.send({"outcome": FAILED, "class": type(error).__name__})
            return
        gc.collect()
        gc.freeze()  # as where it comes from
        connection.send({"outcome": OK, "stamps": work.stamps})
        while True:
            connection.send(answered(work, connection.recv()))

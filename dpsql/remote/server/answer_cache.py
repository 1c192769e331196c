"""Answers as they travel, kept by a process that gives them again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from dpsql.answer.result import Result
from dpsql.core.cost import Cost
from dpsql.remote.server import encoding
from dpsql.remote.server.messages import OK, Reply, in_bytes
from dpsql.schema.frozen import dataclass
from dpsql.session.prepared_query import PreparedQuery
from dpsql.session.served import ServedSession

_MOST, _MOST_BYTES = 256, 16 * 2**20  # as many as there are plans that are remembered


@dataclass(frozen=True)
class SerializedAnswer:
    """An answer as it travels, in bytes, that may be given again: but for the line below it, which says what is left
    now."""

    content: bytes
    notes: tuple[str, ...]
    """Those above that line."""

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> SerializedAnswer:
        rest = {word: value for word, value in said.items() if word not in ("notes", "footer", "replayed")}
        return cls(in_bytes(rest), tuple(said["notes"][:-1]))

    def again(self, footer: str) -> bytes:
        """As it is given again now."""
        now = in_bytes({"notes": [*self.notes, footer], "footer": footer, "replayed": True})
        return now[:-1] + b"," + self.content[1:]


class AnswerCache:
    """Answers of one analyst as they travel, by statement and line of the ledger, so that one which is given again and
    again is written out once. None is shown by being here: each time it is looked up who may ask, and what is due."""

    def __init__(self) -> None:
        self._written: OrderedDict[tuple[int, int], tuple[PreparedQuery, SerializedAnswer]] = OrderedDict()
        self._bytes = 0

    def find(self, place: tuple[PreparedQuery, int]) -> SerializedAnswer | None:
        """The answer to this statement in that line."""
        key = (id(place[0]), place[1])
        if key not in self._written:  # whose value holds the statement, so that nothing else has its id
            return None
        self._written.move_to_end(key)
        return self._written[key][1]

    def keep(self, place: tuple[PreparedQuery, int], written: SerializedAnswer) -> None:
        """Keep it; the oldest are let go of where there are too many."""
        self._written[id(place[0]), place[1]] = (place[0], written)
        self._bytes += len(written.content)
        while self._written and (len(self._written) > _MOST or self._bytes > _MOST_BYTES):
            _, (_, oldest) = self._written.popitem(last=False)
            self._bytes -= len(oldest.content)


def answer_of(session: ServedSession, result: Result) -> Reply:
    """An answer as it is sent, ready for whoever asked: the server adds to it, and reads none of it."""
    content = in_bytes(encoding.result_in_json(result))
    return answer(session, content, result.loss, replayed=result.replayed)


def answer(session: ServedSession, content: bytes, loss: Cost, *, replayed: bool) -> Reply:
    """The reply with an answer that is written out, and with what came of its charge."""
    said = {"loss": encoding.cost_in_json(loss), "replayed": replayed, "end": session.end}
    return {"outcome": OK, "content": content, **said}

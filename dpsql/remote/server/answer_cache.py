"""Serialized answers, kept by a process that returns them again."""

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

_MOST, _MOST_BYTES = 256, 16 * 2**20  # as many as cached plans


@dataclass(frozen=True)
class SerializedAnswer:
    """A serialized answer without its footer, which states the current remaining budget."""

    content: bytes
    notes: tuple[str, ...]
    """The notes above the footer."""

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> SerializedAnswer:
        rest = {word: value for word, value in said.items() if word not in ("notes", "footer", "replayed")}
        return cls(in_bytes(rest), tuple(said["notes"][:-1]))

    def again(self, footer: str) -> bytes:
        """Return the answer as a cached one, with the current footer."""
        now = in_bytes({"notes": [*self.notes, footer], "footer": footer, "replayed": True})
        return now[:-1] + b"," + self.content[1:]


class AnswerCache:
    """Serialized answers of one analyst, by statement and line of the ledger, so that a repeated answer is serialized
    once. Being here shows none of them: permission and due queries are checked at each look-up."""

    def __init__(self) -> None:
        self._written: OrderedDict[tuple[int, int], tuple[PreparedQuery, SerializedAnswer]] = OrderedDict()
        self._bytes = 0

    def find(self, place: tuple[PreparedQuery, int]) -> SerializedAnswer | None:
        """Return the answer to this statement in this line of the ledger."""
        key = (id(place[0]), place[1])
        if key not in self._written:  # the value keeps the statement alive, so that its id is not reused
            return None
        self._written.move_to_end(key)
        return self._written[key][1]

    def keep(self, place: tuple[PreparedQuery, int], written: SerializedAnswer) -> None:
        """Store an answer, and drop the oldest ones beyond the limits."""
        self._written[id(place[0]), place[1]] = (place[0], written)
        self._bytes += len(written.content)
        while self._written and (len(self._written) > _MOST or self._bytes > _MOST_BYTES):
            _, (_, oldest) = self._written.popitem(last=False)
            self._bytes -= len(oldest.content)


def answer_of(session: ServedSession, result: Result) -> Reply:
    """Return the reply with a result in serialized form, to which the server adds without reading it."""
    content = in_bytes(encoding.result_in_json(result))
    return answer(session, content, result.loss, replayed=result.replayed)


def answer(session: ServedSession, content: bytes, loss: Cost, *, replayed: bool) -> Reply:
    """Return the reply with a serialized answer, and with the result of its charge."""
    said = {"loss": encoding.cost_in_json(loss), "replayed": replayed, "end": session.end}
    return {"outcome": OK, "content": content, **said}

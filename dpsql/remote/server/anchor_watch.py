"""Check of the ledger checkpoints that analysts send along: if the ledger lacks one, serving halts."""

from __future__ import annotations

from starlette.requests import Request

from dpsql.core.ledger.ledger import Ledger
from dpsql.errors import InvalidArgument
from dpsql.owner.access import Grant
from dpsql.owner.anchors import Anchors
from dpsql.remote.server.log import Journal
from dpsql.remote.server.problems import Problem
from dpsql.remote.wire import ANCHOR, MISSED, UNKNOWN

WENT_BACK = "An answer that was given is not in the ledger. Nothing is served until the data owner has looked."


class Watch:
    """Checks the checkpoints of requests. Raises InvalidArgument if one was missed before and is still missing."""

    def __init__(self, anchors: Anchors, ledger: Ledger, journal: Journal) -> None:
        self._anchors, self._ledger, self._journal = anchors, ledger, journal
        self.missed = False
        before = anchors.missed
        if before is not None:
            if not ledger.holds_outcome(*before):
                raise InvalidArgument(
                    f"the ledger does not hold an answer that analyst {before[0]!r} was given: it went back, or was "
                    "rewritten.",
                    hint="Put the newest ledger in its place; else charge what may have been spent since:\n"
                    "dpsql ledger restore FILE --schema TOML",
                )
            anchors.found()

    def look(self, request: Request, grant: Grant) -> dict[str, str]:
        """Return response headers that state whether the checkpoint is known. If its ledger line is missing, set
        `missed`; ignore one that was not made here. Reads the ledger, so call it in a thread."""
        sent = request.headers.getlist(ANCHOR)
        place = self._anchors.read(grant.analyst, sent[0]) if len(sent) == 1 else None
        if place is not None and not self._ledger.holds_outcome(grant.analyst, *place):
            self.missed = True
            self._anchors.miss(grant.analyst, *place)
            self._journal.event("ledger_went_back", analyst=grant.analyst, charge=place[0])
        return {ANCHOR: UNKNOWN} if sent and place is None else {}

    def hold(self) -> None:
        """Raise Problem if the ledger was rolled back."""
        if self.missed:
            raise Problem(503, detail=WENT_BACK, hint="Tell the data owner.", headers={ANCHOR: MISSED})

"""A serialized plan, sent from the server process that made and charged it to the one that runs it.

Values are rebuilt there by their own constructors, so that each checks itself as usual. Of derived values, only the
digest used to look up the question is sent, so that the answer is stored under it. The process that runs a release
checks again that it is paid for, and compares it with its charge. Both processes belong to one server: bytes from any
other source are not read.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from dataclasses import fields
from typing import Any

from dpsql.schema.memoization import remembered
from dpsql.session.cache.question_key import digest_of, take_digest
from dpsql.session.prepared_query import PreparedQuery
from dpsql.sql.names.catalog import Catalog

MOST = 2**18
"""Maximal bytes of a serialized plan. Larger plans, and those that cannot be pickled, are made where they are run."""


def in_bytes(prepared: PreparedQuery, catalog: Catalog) -> bytes:
    """Return a plan over the catalog's tables as bytes; empty if it is not sent."""
    written = _PlanUnpickler()
    try:
        digests = [digest_of(each) for each in prepared.releases]
        _Pickler(written, protocol=5).dump((_declared(catalog), prepared, digests))
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError, _TooLargeError):
        return b""
    return written.getvalue() if written.tell() <= MOST else b""


def from_bytes(content: bytes, catalog: Catalog) -> PreparedQuery | None:
    """Return the plan; None if there is none, or if its tables were declared differently."""
    if not content:
        return None
    declared, prepared, digests = pickle.loads(content)
    if declared != _declared(catalog):
        return None
    known: PreparedQuery = prepared
    for release, digest in zip(known.releases, digests, strict=True):
        take_digest(release, digest)
    return known


def _declared(catalog: Catalog) -> tuple[str, ...]:
    return tuple(each.fingerprint for each in catalog.tables.values())


class _TooLargeError(Exception):
    pass


class _PlanUnpickler(io.BytesIO):
    def write(self, part: Any) -> int:
        if self.tell() + len(part) > MOST:
            raise _TooLargeError
        return super().write(part)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        names = _constructed_by(type(value))
        return NotImplemented if names is None else (type(value), tuple(getattr(value, name) for name in names))


@remembered(1024)
def _constructed_by(kind: type) -> tuple[str, ...] | None:
    """Return the constructor's fields of a frozen dataclass, in order; None for other values, and for those with their
    own pickling."""
    known = getattr(kind, "__dataclass_params__", None)
    said = kind in copyreg.dispatch_table or any("__reduce__" in vars(each) for each in kind.__mro__[:-1])
    if known is None or not known.frozen or said:
        return None
    return tuple(each.name for each in fields(kind) if each.init)

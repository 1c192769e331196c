"""A plan on its way from the process of a server that made it, and charged it, to the one that runs it.

Values are made anew there, by their own constructors, so that each checks itself as ever; and of what was derived from
them comes along by what its question was looked for alone, so that the answer is kept under that. Whoever runs a
release sees again that it is paid for, and it is held against its charge. The two processes are one server's: bytes of
anybody else are not read.
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
"""Bytes of a plan that is handed on; a larger one is made where it is run, as is one that cannot travel."""


def in_bytes(prepared: PreparedQuery, catalog: Catalog) -> bytes:
    """A plan about the tables of a catalog; none where it is not handed on."""
    written = _PlanUnpickler()
    try:
        digests = [digest_of(each) for each in prepared.releases]
        _Pickler(written, protocol=5).dump((_declared(catalog), prepared, digests))
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError, _TooLargeError):
        return b""
    return written.getvalue() if written.tell() <= MOST else b""


def from_bytes(content: bytes, catalog: Catalog) -> PreparedQuery | None:
    """The plan; None where there is none, or where it is about tables of which something else is declared."""
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
    """The fields that a frozen value is made of, in the order of its constructor; None for whatever is no such value,
    or says itself how it is made."""
    known = getattr(kind, "__dataclass_params__", None)
    said = kind in copyreg.dispatch_table or any("__reduce__" in vars(each) for each in kind.__mro__[:-1])
    if known is None or not known.frozen or said:
        return None
    return tuple(each.name for each in fields(kind) if each.init)

"""A plan on its way from the process of a server that made it, and charged it, to the one that runs it.

Values are made anew there, by their own constructors, so that each checks itself as ever; and nothing that was derived
from them comes along, so that whoever runs a release sees again that it is paid for. It is held against its charge
besides, and its question against the key under which its answer is kept. The two processes are one server's: bytes of
anybody else are not read.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from dataclasses import fields
from typing import Any

from dpsql.schema.remembered import remembered
from dpsql.session.prepare import Prepared
from dpsql.session.program import PreparedProgram
from dpsql.sql.catalog import Catalog

MOST = 2**18
"""Bytes of a plan that is handed on; a larger one is made where it is run, as is one that cannot travel."""


def in_bytes(prepared: Prepared | PreparedProgram, catalog: Catalog) -> bytes:
    """A plan about the tables of a catalog; none where it is not handed on."""
    written = _Limited()
    try:
        _Pickler(written, protocol=5).dump((_declared(catalog), prepared))
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError, _TooLargeError):
        return b""
    return written.getvalue() if written.tell() <= MOST else b""


def from_bytes(content: bytes, catalog: Catalog) -> Prepared | PreparedProgram | None:
    """The plan; None where there is none, or where it is about tables of which something else is declared."""
    if not content:
        return None
    declared, prepared = pickle.loads(content)
    return prepared if declared == _declared(catalog) else None


def _declared(catalog: Catalog) -> tuple[str, ...]:
    return tuple(each.fingerprint for each in catalog.tables.values())


class _TooLargeError(Exception):
    pass


class _Limited(io.BytesIO):
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

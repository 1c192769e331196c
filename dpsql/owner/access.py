"""Access to a server: a file of token hashes beside the ledger, and shares as lines of the ledger.

For each analyst the file holds the hash of the token, the readable tables, and the expiry. It is read again at each
request, and readable by its owner only. Shares and their revocation are in the ledger.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dpsql.core.ledger.clock import now, text_of
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.sharing import ShareReport
from dpsql.core.loss import PrivacyLoss, as_delta, as_epsilon
from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.errors import InvalidArgument, InvalidSchema, did_you_mean
from dpsql.owner.secret_files import put_in_place
from dpsql.schema.frozen import dataclass
from dpsql.session.ledger_setup import LedgerSettings, Place, opened
from dpsql.session.owner_file import Schema

FORMAT = 1
LONGEST_NAME = 64
PREFIX = "dpsql-"


@dataclass(frozen=True)
class Grant:
    """The permissions of an analyst: the hash of the token, the names of the tables, and the expiry."""

    analyst: str
    token: str
    tables: tuple[str, ...]
    expires: str


def token_hash(token: str) -> str:
    """Return the hash that is stored of a token: tokens have 256 random bits, so a plain hash reveals nothing."""
    return hashlib.sha256(f"dpsql token\n{token}".encode("utf-8", "surrogatepass")).hexdigest()


def access_file(schema: Schema) -> Path:
    """Return the path beside the ledger. Raises InvalidSchema for a schema without a ledger."""
    kept = schema.ledger or schema.default_ledger
    if schema.budget is None or kept is None:
        raise InvalidSchema(
            "a schema without a [budget] and a ledger is not served.", hint="Add [budget] with epsilon = 3.0."
        )
    return kept.with_name(f"{kept.name}.access")


def read_grants(file: Path) -> dict[str, Grant]:
    """Return the grants by analyst. Raises InvalidArgument for a file that others can read, or an invalid one."""
    try:
        with file.open("rb") as stream:
            if os.name == "posix" and os.fstat(stream.fileno()).st_mode & 0o077:
                raise InvalidArgument(f"{file.name} can be read by others.", hint=f"chmod 600 {file.name}")
            content = stream.read()
    except FileNotFoundError:
        return {}
    except OSError:
        raise InvalidArgument(f"{file.name} cannot be read.") from None
    try:
        said = json.loads(content)
        known = {FORMAT: said["analysts"]}[said["format"]]
        return {name: _grant(name, each) for name, each in known.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InvalidArgument(f"{file.name} is not what dpsql access writes.") from None


def _grant(name: str, said: Mapping[str, Any]) -> Grant:
    texts = (said["token"], said["expires"], *said["tables"])
    if not all(isinstance(each, str) for each in texts) or not isinstance(said["tables"], list):
        raise TypeError("not texts")
    return Grant(name, said["token"], tuple(said["tables"]), said["expires"])


def add(schema: Schema, name: str, *, epsilon: object, delta: object, tables: Iterable[str], days: float) -> str:
    """Give an analyst a share and a token, which is returned once and not stored. Raises InvalidSchema,
    InvalidArgument, InvalidPrivacyParameter, LedgerError."""
    named, ends = readable_tables(schema, tables), _end(days)
    loss = PrivacyLoss(as_epsilon(epsilon), as_delta(delta))
    with _changing(schema) as grants, closing(ledger_of(schema)) as ledger:
        ledger.give_share(_name(name), loss, anew=True)
        return _give_token(grants, Grant(name, "", named, ends))


def share(schema: Schema, name: str, *, epsilon: object) -> None:
    """Change the epsilon of an analyst's share; its spent budget and its delta remain. Raises as `add`."""
    with closing(ledger_of(schema)) as ledger:
        before = ledger.holding(name)
        delta = before.loss.delta if before is not None else as_delta(0)
        ledger.give_share(name, PrivacyLoss(as_epsilon(epsilon), delta), anew=False)


def rotate(schema: Schema, name: str, *, tables: Iterable[str] | None = None, days: float | None = None) -> str:
    """Replace a token, which ends now, and optionally its tables or expiry. Raises as `add`."""
    with _changing(schema) as grants, closing(ledger_of(schema)) as ledger:
        before, holding = grants.get(name), ledger.holding(name)
        if holding is None or not holding.current:
            raise InvalidArgument(f'analyst "{name}" has no share.', hint=f"dpsql access add {name} ...")
        if before is None and (tables is None or days is None):
            raise InvalidArgument(f'analyst "{name}" has no token yet.', hint="Say --tables and --days.")
        named = before.tables if tables is None and before else readable_tables(schema, tables or ())
        ends = before.expires if days is None and before else _end(days or 0)
        if before is not None:
            ledger.end_token(name, before.token)
        return _give_token(grants, Grant(name, "", named, ends))


def revoke(schema: Schema, name: str) -> None:
    """Revoke an analyst's token and share, until a share is given again. Raises as `add`."""
    with _changing(schema) as grants, closing(ledger_of(schema)) as ledger:
        ledger.revoke_share(name)
        gone = grants.pop(name, None)
        if gone is not None:
            ledger.end_token(name, gone.token)


def allow(schema: Schema, name: str) -> None:
    """Readmit an analyst who was stopped after too many failed runs. Raises as `add`."""
    with closing(ledger_of(schema)) as ledger:
        ledger.allow(name)


def listed(schema: Schema) -> list[tuple[str, ShareReport, Grant | None]]:
    """Return all analysts who ever had a share, with its spent and remaining budget, and their grants. Raises as
    `add`."""
    grants = read_grants(access_file(schema))
    with closing(ledger_of(schema)) as ledger:
        return [(name, report, grants.get(name)) for name, report in ledger.shares().items()]


def ledger_of(schema: Schema) -> Ledger:
    """Return the schema's ledger, opened for its owner; created if missing, and readable by nobody else (0600). Raises
    LedgerError, InvalidSchema, InvalidArgument."""
    file = access_file(schema)
    if schema.budget is not None and schema.budget.analysts:
        raise InvalidSchema(
            "the schema has [budget.analysts]: shares that overlap, for sessions. A server has shares of its own.",
            hint="Take [budget.analysts] out, begin a new ledger, and give shares by dpsql access add.",
        )
    mask = os.umask(0o077)  # a new ledger is private from its first byte
    try:
        ledger = opened(LedgerSettings(), schema, Place.of(None, schema))
    finally:
        os.umask(mask)
    ledger.overlap = schema.server.overlap
    try:
        _close_to_others(file.with_name(file.name.removesuffix(".access")))
    except BaseException:
        ledger.close()
        raise
    return ledger


def _close_to_others(file: Path) -> None:
    """Set a served ledger, which holds all analysts' queries and answers, to mode 0600. Raises InvalidArgument."""
    try:
        if os.name == "posix" and file.stat().st_mode & 0o077:
            file.chmod(0o600)
    except OSError:
        raise InvalidArgument(f"{file.name} can be read by others.", hint=f"chmod 600 {file.name}") from None


def readable_tables(schema: Schema, tables: Iterable[str]) -> tuple[str, ...]:
    """Return the tables by the schema's names. Tables on the path to the privacy unit must be among them, since
    explanations contain their names. Raises InvalidArgument."""
    known = {name.casefold(): name for name in schema.tables}
    named = []
    for each in tables:
        name = known.get(each.strip().casefold())
        if name is None:
            raise InvalidArgument(
                f'the schema has no table "{each.strip()}".{did_you_mean(each.strip(), schema.tables)}'
            )
        named.append(name)
    if not named:
        raise InvalidArgument("which tables may be read?", hint="--tables orders,customers")
    for name in named:
        unit = schema.tables[name].declaration.table.unit
        target = known.get(unit.table.casefold()) if unit is not None and unit.table else None
        if target is not None and target not in named:
            raise InvalidArgument(
                f"rows of {name} belong to people through {target}, so {target} has to be among the tables.",
                hint=f"--tables {','.join([*named, target])}",
            )
    return tuple(dict.fromkeys(named))


def _name(name: str) -> str:
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip() or name == "*":
        raise InvalidArgument(f"a name has 1 to {LONGEST_NAME} printable characters, and is not *.")
    return name


def _end(days: float) -> str:
    if not 0 < days <= 3650:
        raise InvalidArgument("a token is for more than 0 and at most 3650 days.")
    return text_of(now() + timedelta(days=days))


def has_ended(grant: Grant, latest: str) -> bool:
    """Return whether a token has expired, by the later of the clock and the ledger's last line."""
    return max(text_of(datetime.now(UTC)), latest) >= grant.expires


def _give_token(grants: dict[str, Grant], grant: Grant) -> str:
    token = f"{PREFIX}{fresh_key().hex()}"
    grants[grant.analyst] = replace(grant, token=token_hash(token))
    return token


@contextmanager
def _changing(schema: Schema) -> Iterator[dict[str, Grant]]:
    """Yield the grants, and write them on success; one process at a time where the system has file locks."""
    file = access_file(schema)
    with os.fdopen(os.open(file.with_name(f".{file.name}.lock"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as lock:
        with suppress(ImportError):
            import fcntl  # not on all platforms

            fcntl.flock(lock, fcntl.LOCK_EX)
        grants = read_grants(file)
        yield grants
        _write(file, grants)


def _write(file: Path, grants: Mapping[str, Grant]) -> None:
    """Replace the file, entirely or not at all."""
    content = {
        name: {"token": each.token, "tables": list(each.tables), "expires": each.expires}
        for name, each in grants.items()
    }
    put_in_place(file, json.dumps({"format": FORMAT, "analysts": content}, indent=1).encode())

"""Backup and restoration of ledgers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from pathlib import Path

from dpsql.core.ledger.clock import now, text_of
from dpsql.core.ledger.errors import told
from dpsql.core.ledger.file import copied, open_ledger, rules_of
from dpsql.core.ledger.shares import Loss
from dpsql.core.loss import as_delta, as_epsilon
from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.errors import InvalidArgument, LedgerError
from dpsql.owner import access, anchors
from dpsql.session.owner_file import Schema


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Allow one server for each ledger, where the system has file locks: two would both run a pending query. file: of
    tokens. Raises InvalidArgument."""
    number = os.open(file.with_name(f".{file.name}.serving"), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        with suppress(ImportError):
            import fcntl  # not on all platforms

            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InvalidArgument("another server serves this ledger.", hint="Stop it first.") from None
        yield
    finally:
        os.close(number)


def backup(schema: Schema, file: Path) -> str:
    """Copy a schema's ledger as of one moment, even while it is written; the copy is readable by its owner only.
    Returns the copy's checkpoint. Raises InvalidArgument if there is no ledger or the file already exists,
    InvalidSchema, LedgerError."""
    source = _ledger_file(schema)
    if not source.exists():
        raise InvalidArgument(f"there is no ledger {source} yet: nothing has been spent.")
    with _draft_of(file) as draft:
        copied(source, draft)
        anchor = _anchor_of(draft)
        try:
            os.link(draft, file)
        except FileExistsError:
            raise InvalidArgument(f"{file} is there already.", hint="Name a new file for each copy.") from None
        except OSError as error:
            raise InvalidArgument(f"{file} cannot be written ({error.strerror}).") from None
    return anchor


def restore(schema: Schema, file: Path, *, spent_since: Mapping[str, Loss] | None = None) -> dict[str, Loss]:
    """Replace a schema's ledger with a copy, and charge what may have been spent since: everything left of every share
    and, to no analyst, what others may have been given; or what the owner states for each analyst ("": for a ledger
    without shares). Returns the charges by analyst. The replaced ledger is kept beside it, under another name.

    The ledger is unchanged until the copy takes its place. Earlier checkpoints become void: analysts who send one are
    notified. Raises InvalidArgument (if a server serves it), InvalidSchema, LedgerError (also for a copy from before
    `dpsql ledger renew`)."""
    target = _ledger_file(schema)
    with alone(access.access_file(schema)), _draft_of(target) as draft:
        with closing(open_ledger(file, owner=True)):
            pass
        copied(file, draft)
        _check_total(schema, draft)
        moment = text_of(now())
        with closing(open_ledger(draft, owner=True)) as ledger:
            charged = ledger.restored(f"put back from a copy on {moment[:10]}", spent_since)
        draft.chmod(0o600)
        if target.exists():
            os.link(target, target.with_name(f"{target.name}.before-{moment[:19].replace(':', '')}Z"))
        anchors.renew(schema)
        draft.replace(target)
    with closing(access.ledger_of(schema)):  # check that a server can open it
        return charged


def _check_total(schema: Schema, copy: Path) -> None:
    """Reject a copy whose total differs from the schema's: it predates a renewal. Raises LedgerError."""
    rules, declared = rules_of(copy), schema.budget
    if rules is None or declared is None or rules.budget.loss == declared.loss:
        return
    own, name = rules.budget.loss, schema.file.name if schema.file is not None else "SCHEMA"
    pairs = (("epsilon", own.epsilon, declared.loss.epsilon), ("delta", own.delta, declared.loss.delta))
    words = [f"{word} = {float(old)!r}" for word, old, new in pairs if old != new]
    options = [f"--{word} {float(new)!r}" for word, old, new in pairs if old != new or word == "epsilon"]
    raise LedgerError(
        f"the copy has the total {own}, and {name} has {declared.loss}: the total was set anew after the copy. "
        "The ledger was not changed.",
        hint=f"Write {' and '.join(words)} in [budget] of {name}, restore the copy, then run\n"
        f"dpsql ledger renew {name} {' '.join(options)} --reason TEXT",
    )


def losses_of(words: list[str]) -> dict[str, Loss]:
    """Parse the budget spent since, from the command line: NAME=EPSILON, NAME=EPSILON:DELTA, or without a name for a
    ledger without shares. Raises InvalidArgument, InvalidPrivacyParameter."""
    stated: dict[str, Loss] = {}
    for each in words:
        name, _, loss = each.rpartition("=")
        epsilon, _, delta = loss.partition(":")
        try:
            numbers = Fraction(epsilon), Fraction(delta or 0)
        except (ValueError, ZeroDivisionError):
            raise InvalidArgument(f'"{each}" is no loss.', hint="--spent-since alice=0.5:1e-7") from None
        spent = as_epsilon(numbers[0]) if numbers[0] else Fraction(0)
        if name in stated:
            raise InvalidArgument(f'"{name}" is said twice.')
        stated[name] = (spent, as_delta(numbers[1]))
    return stated


def _ledger_file(schema: Schema) -> Path:
    file = access.access_file(schema)
    return file.with_name(file.name.removesuffix(".access"))


def _anchor_of(file: Path) -> str:
    with closing(open_ledger(file, owner=True)) as ledger:
        return ledger.anchor


@contextmanager
def _draft_of(file: Path) -> Iterator[Path]:
    """Yield a temporary file beside the target, and remove it afterwards."""
    draft = file.with_name(f".{file.name}.{fresh_key().hex()[:16]}")
    try:
        with told(file):
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield draft
    finally:
        for each in (draft, draft.with_name(f"{draft.name}-journal")):
            each.unlink(missing_ok=True)

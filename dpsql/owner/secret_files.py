"""Files that are their owner's alone, put in place whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from dpsql.core.mechanisms.samplers import fresh_key


def put_in_place(file: Path, content: bytes) -> None:
    """Another file in the place of this one, with mode 0600; what was there stays where that fails. Raises OSError."""
    draft = file.with_name(f".{file.name}.{fresh_key().hex()[:16]}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise

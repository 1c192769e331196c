"""Files readable by their owner only, replaced atomically."""

from __future__ import annotations

import os
from pathlib import Path

from dpsql.core.mechanisms.samplers import fresh_key


def put_in_place(file: Path, content: bytes) -> None:
    """Replace a file atomically, with mode 0600; on failure the old one stays. Raises OSError."""
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

"""Output file for answers: opened before anything is paid for, and unchanged until there is an answer."""

from __future__ import annotations

import stat
from pathlib import Path

from dpsql.errors import InvalidArgument
from dpsql.shell.output.streams import FileFailed


class Target:
    """A file to overwrite. Raises InvalidArgument if it cannot be written."""

    def __init__(self, path: str | Path) -> None:
        if str(path).endswith("/"):  # a Path would drop it, and write a file of the folder's name
            raise InvalidArgument(f"{path} cannot be written: it names a folder.")
        self.path = Path(path).expanduser()
        self.answers = 0
        try:
            self._was_there = self.path.exists()
            self._stream = self.path.open("ab", buffering=0)
        except OSError as error:
            raise InvalidArgument(f"{self.path} cannot be written: {error.strerror}.") from None

    def write(self, content: bytes) -> None:
        """Write another answer; the first replaces the file's content. Raises FileFailed."""
        try:
            if not self.answers and stat.S_ISREG(self.path.stat().st_mode):
                self._stream.truncate(0)
            view = memoryview(content)
            while view:
                view = view[self._stream.write(view) :]
        except OSError as error:
            raise FileFailed(f"{self.path} cannot be written: {error.strerror}.") from None
        self.answers += 1

    def close(self) -> None:
        """Close the file; remove it if it is new and got no answer."""
        self._stream.close()
        if not self.answers and not self._was_there:
            self.path.unlink(missing_ok=True)

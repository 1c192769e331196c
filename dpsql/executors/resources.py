"""The resources that an engine may use, as configured by the owner."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dpsql.errors import InvalidArgument, as_written
from dpsql.schema.frozen import dataclass

AUTO = "auto"
"""Selects the default engine of the kind of source."""
_UNITS = {"B": 1, **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}}
_UNITS |= {f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)}
LEAST_MEMORY, MOST_MEMORY = 100 * 1000**2, 1000**5
MOST_THREADS = 1024


@dataclass(frozen=True)
class Resources:
    """memory: bytes; threads: how many run at once; spill: the folder for data that exceeds memory. None: the engine's
    default, and nothing is written to disk."""

    memory: int | None = None
    threads: int | None = None
    spill: Path | None = None

    @classmethod
    def of(cls, memory: object = None, threads: object = None, spill: object = None) -> Resources:
        """Parse the settings `memory` ("4GB"), `threads` and `spill` (a folder). Raises InvalidArgument."""
        return cls(_memory(memory), _threads(threads), _spill(spill))

    @property
    def words(self) -> list[str]:
        """The names of the settings that are present."""
        return [name for name in ("memory", "threads", "spill") if getattr(self, name) is not None]

    def over(self, others: Resources) -> Resources:
        """Return these settings, with missing ones taken from `others`."""
        return Resources(
            others.memory if self.memory is None else self.memory,
            others.threads if self.threads is None else self.threads,
            others.spill if self.spill is None else self.spill,
        )


ITSELF = Resources()


class NotEnoughMemory(Exception):
    """A run exceeded its memory limit. The engine's message may quote cells, so it is never passed on."""


def remedy(engine: str) -> str:
    """Return the hint for a run of this engine that exceeded its memory limit."""
    if engine != "duckdb":
        return 'Write the tables as Parquet files: engine="duckdb" reads them where they lie, and keeps to memory=.'
    return (
        'Give it more, memory="8GB", or a folder for what memory has no room for, spill="/scratch".\n'
        'In the owner\'s file: memory = "8GB", spill = "/scratch"; on the command line: --memory 8GB, --spill /scratch.'
    )


def _memory(word: object) -> int | None:
    if word is None:
        return None
    text = word.strip().upper() if isinstance(word, str) else ""
    read = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?B)", text)
    size = int(float(read[1]) * _UNITS[read[2]]) if read and read[2] in _UNITS else 0
    if not LEAST_MEMORY <= size <= MOST_MEMORY:
        raise InvalidArgument(f'memory must be a size such as "4GB", from 100MB to 1000TB, got {as_written(word)}.')
    return size


def _threads(word: object) -> int | None:
    if word is None:
        return None
    if not isinstance(word, int) or isinstance(word, bool) or not 1 <= word <= MOST_THREADS:
        raise InvalidArgument(f"threads must be a whole number from 1 to {MOST_THREADS}, got {as_written(word)}.")
    return word


def _spill(word: object) -> Path | None:
    if word is None:
        return None
    if not isinstance(word, str | os.PathLike) or not str(word):
        raise InvalidArgument(f"spill must be a folder, got {as_written(word)}.")
    folder = Path(word).absolute()
    if not folder.is_dir():
        raise InvalidArgument(f"spill must be a folder that is there, and {folder} is none.", hint="Make it first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidArgument(f"nothing can be written to the folder {folder} of spill.")
    return folder

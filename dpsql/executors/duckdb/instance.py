"""An instance of DuckDB of our own: nothing of a user's connections, settings or files reaches it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.executors.resources import ITSELF, Resources

if TYPE_CHECKING:
    import duckdb

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "preserve_insertion_order": "false",
    "pandas_analyze_sample": "0",
}
_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET enable_progress_bar = false",
    "SET disabled_optimizers = 'expression_rewriter,statistics_propagation,in_clause,regex_range'",
    "SET lock_configuration = true",
)
"""Of what an optimiser may rewrite we leave out what has changed answers, or would choose by the rows of others."""


def opened(*, files: bool = False, resources: Resources = ITSELF, folder: str = "") -> duckdb.DuckDBPyConnection:
    """A new instance in memory, before it is locked. files: whether some are still to be allowed; folder: where it may
    put what memory has no room for, encrypted: by the wheel's own library, whose keys are of a generator that DuckDB
    does not call secure, so that it asks for a word more. Without it nothing can be written at all."""
    import duckdb

    config = {**_CONFIG, "enable_external_access": "true" if files or folder else "false"}
    if resources.memory is not None:
        config["memory_limit"] = f"{resources.memory}B"
    if resources.threads is not None:
        config["threads"] = str(resources.threads)
    if folder:
        config |= {"temp_directory": folder, "temp_file_encryption": "true", "force_mbedtls_unsafe": "true"}
    connection = duckdb.connect(":memory:", config=config)
    if folder and not files:
        connection.execute("SET enable_external_access = false")  # after the folder, which can be set before it only
    return connection


@contextmanager
def folder_in(spill: Path | None) -> Iterator[str]:
    """A folder of our own for what memory has no room for, which nobody else may look into and which is removed
    afterwards; nothing where there is to be none."""
    if spill is None:
        yield ""
        return
    folder = tempfile.mkdtemp(prefix="dpsql-", dir=spill)  # 0700
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def memory_of(connection: duckdb.DuckDBPyConnection) -> int:
    """How many bytes the instance may use."""
    ((value,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    number, unit = str(value).split()
    return int(float(number) * 1024 ** ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit))


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Nothing can be set from here on."""
    for setting in _SETTINGS:
        connection.execute(setting)

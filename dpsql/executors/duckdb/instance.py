"""A separate DuckDB instance: a user's connections, settings and files do not affect it."""

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
"""Excludes optimizer rewrites that have changed answers, or whose choices would depend on other people's rows."""


def opened(*, files: bool = False, resources: Resources = ITSELF, folder: str = "") -> duckdb.DuckDBPyConnection:
    """Return a new instance in memory, not yet locked. files: whether files are to be allowed later; folder: for data
    that exceeds memory, encrypted by the wheel's own library. DuckDB does not call its key generator secure, so an
    extra setting is needed. Without a folder nothing can be written."""
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
        connection.execute("SET enable_external_access = false")  # after the folder, which must be set first
    return connection


@contextmanager
def folder_in(spill: Path | None) -> Iterator[str]:
    """Yield a private folder for data that exceeds memory, removed afterwards; an empty name without `spill`."""
    if spill is None:
        yield ""
        return
    folder = tempfile.mkdtemp(prefix="dpsql-", dir=spill)  # mode 0700
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def memory_of(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the instance's memory limit in bytes."""
    ((value,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    number, unit = str(value).split()
    return int(float(number) * 1024 ** ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit))


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Lock all settings."""
    for setting in _SETTINGS:
        connection.execute(setting)

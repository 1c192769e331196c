"""A separate Spark session: next to the owner's, over the same cluster, with its own settings.

It does not see the owner's settings, names or registrations (time zone, ANSI mode, case of names, functions that
replace Spark's, temporary views), and the owner does not see its settings.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dpsql.errors import InvalidSchema

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.groupByAliases": "true",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates,"
    "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughUnion",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""All other settings of Spark's SQL have their default values. Without ANSI mode no cast and no division raises; sums
are written so that none can overflow. A condition pushed below the columns that it reads repeats their texts for each
mention. An EXISTS pushed into the branches of a union is no longer found there, and the statement fails."""
_OF_WORK = (
    *(
        "spark.sql.shuffle.",
        "spark.sql.adaptive.",
        "spark.sql.autoBroadcastJoinThreshold",
        "spark.sql.broadcastTimeout",
    ),
    *("spark.sql.files.maxPartitionBytes", "spark.sql.codegen.wholeStage"),
)
"""The owner's settings of how work is done are kept."""
_OF_DATA = ("spark.sql.catalog.", "spark.sql.hive.", "spark.sql.artifact.", "spark.sql.redaction.")
"""Cluster settings of data locations, artifacts, and redaction in logs are kept."""

_own = weakref.WeakKeyDictionary[Any, Any]()
_turn = threading.RLock()
_opened: list[weakref.ref[Any]] = []
"""The session of the last opened table."""


def is_connect(session: Any) -> bool:
    """Return whether a session is a Spark Connect client."""
    return not hasattr(session, "_jsparkSession")


def same_session(one: Any, other: Any) -> bool:
    """Return whether two objects are the same session, which may have several objects."""
    if is_connect(one) or is_connect(other):
        return is_connect(one) and is_connect(other) and bool(one.session_id == other.session_id)
    return bool(one._jsparkSession.equals(other._jsparkSession))


@contextmanager
def borrowed(session: Any) -> Iterator[Any]:
    """Yield a separate session with SETTINGS for a statement. A client's lives only for the statement, so that its
    server can release it. Raises InvalidSchema if a client cannot create one."""
    with no_errors_logged():
        if not is_connect(session):
            yield own_session(session)
            return
        own = _new_client(session)
        active = type(own)._active_session  # of this thread; pyspark gives all checkpoints to it
        before = getattr(active, "session", None)
        active.session = own
        try:
            _settle(own, session)
            yield own
        finally:
            active.session = before
            with suppress(Exception):  # the server is gone, and the session with it
                own.client.release_session()
                own.client.close()  # not `own.stop()`, which also stops a local server


def own_session(session: Any) -> Any:
    """Return the session next to another one, created once."""
    with _turn:
        own = _own.get(session)
        if own is None:
            own = _own[session] = session.newSession()
        _settle(own, session)
        return own


def _new_client(session: Any) -> Any:
    try:
        return session.newSession()
    except Exception as error:  # noqa: BLE001 - of older clients, which say that they have not got it
        failed = type(error).__name__
    raise InvalidSchema(
        f"this client of Spark Connect makes no session of its own ({failed}).",
        hint='pip install --upgrade "pyspark[connect]>=4.3"',
    )


def _settle(own: Any, owners: Any) -> None:
    """Apply a separate session's settings: of the owner's and the cluster's for Spark SQL only those of work and
    data."""
    work = {name: value for name, value in owners.conf.getAll.items() if name.startswith(_OF_WORK)}
    wanted = {**work, **SETTINGS}
    settings = own.conf.getAll
    for name in settings:
        stays = name in wanted or name.startswith(_OF_DATA) or not name.startswith("spark.sql.")
        if not stays and own.conf.isModifiable(name):
            own.conf.unset(name)
    for name, value in wanted.items():
        if settings.get(name) != value:
            own.conf.set(name, value)


# Logging of pyspark.


class _Silence(logging.Filter, threading.local):
    """Filter that drops all records of threads that run a statement."""

    depth = 0

    def __init__(self) -> None:
        super().__init__()

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002
        return not self.depth


_silence = _Silence()
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")


@contextmanager
def no_errors_logged() -> Iterator[None]:
    """Suppress pyspark's log of errors, which quote cells and are logged when created, even if they are caught."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_silence)
    _silence.depth += 1
    try:
        yield
    finally:
        _silence.depth -= 1


# Existing sessions.


def opened(session: Any) -> Any:
    """Remember a session as that of the last opened table, and return it."""
    _opened[:] = [weakref.ref(session)]
    return session


def session_of_trials() -> Any:
    """Return a session for checking whether Spark accepts a statement, or None."""
    held = _opened[0]() if _opened else None
    sql = sys.modules.get("pyspark.sql")
    return held if held is not None or sql is None else sql.SparkSession.getActiveSession()


def some_session() -> Any:
    """Return the active session, or create a local one. Raises InvalidSchema if Spark or Java is missing."""
    check_installed()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder.appName("dpsql").config("spark.ui.enabled", "false")
    if "SPARK_REMOTE" not in os.environ and "MASTER" not in os.environ:
        builder = builder.master("local[*]")
    try:
        return builder.getOrCreate()
    except Exception as error:  # noqa: BLE001 - of many kinds, all of the machine
        name = type(error).__name__
    raise InvalidSchema(f"Spark did not start ({name}).", hint="Make a SparkSession first, and see what it says.")


def check_installed() -> None:
    """Raise InvalidSchema if the extra or Java is missing."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise InvalidSchema("Spark is not installed.", hint='pip install "dpsql[spark]"') from None
    home = os.environ.get("JAVA_HOME")
    of_home = home is not None and shutil.which("java", path=os.path.join(home, "bin")) is not None  # noqa: PTH118
    if not (of_home or shutil.which("java") or "SPARK_REMOTE" in os.environ):
        raise InvalidSchema(
            "Spark needs Java 17, and there is no java here.",
            hint="apt-get install openjdk-17-jre-headless, or set JAVA_HOME.",
        )

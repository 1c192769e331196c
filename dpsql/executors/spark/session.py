"""A session of Spark of our own: beside the owner's, over the same cluster, with settings of its own.

What an owner has set, named or registered (time zone, ANSI mode, case of names, functions that take the place of
Spark's, temporary views) is not seen there, and what is set there is not seen by the owner.
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
"""Every other setting of Spark's SQL has the value that Spark gives it where nobody says anything. Without ANSI mode no
cast and no division raises; sums are made so that none can overflow. A condition that is pushed below the columns that
it reads has their texts in place of their names, however often it names them. An EXISTS that
is pushed into the branches of a union is not found there any more, and the statement fails."""
_OF_WORK = (
    *(
        "spark.sql.shuffle.",
        "spark.sql.adaptive.",
        "spark.sql.autoBroadcastJoinThreshold",
        "spark.sql.broadcastTimeout",
    ),
    *("spark.sql.files.maxPartitionBytes", "spark.sql.codegen.wholeStage"),
)
"""What an owner has set about how work is done stays as it is."""
_OF_DATA = ("spark.sql.catalog.", "spark.sql.hive.", "spark.sql.artifact.", "spark.sql.redaction.")
"""What a cluster says about where data lie, whose programs run, and what is hidden in its logs."""

_own = weakref.WeakKeyDictionary[Any, Any]()
_turn = threading.RLock()
_opened: list[weakref.ref[Any]] = []
"""The session of the table that was opened last."""


def is_connect(session: Any) -> bool:
    """Whether it is a client's, of Spark Connect."""
    return not hasattr(session, "_jsparkSession")


def same_session(one: Any, other: Any) -> bool:
    """Whether two objects are of one session: there may be several of one."""
    if is_connect(one) or is_connect(other):
        return is_connect(one) and is_connect(other) and bool(one.session_id == other.session_id)
    return bool(one._jsparkSession.equals(other._jsparkSession))


@contextmanager
def borrowed(session: Any) -> Iterator[Any]:
    """A session of our own for a statement, with SETTINGS. A client's lives for the statement: its server may forget it
    afterwards. Raises InvalidSchema for a client that can make none."""
    with no_errors_logged():
        if not is_connect(session):
            yield own_session(session)
            return
        own = _new_client(session)
        active = type(own)._active_session  # of this thread; pyspark gives checkpoints to it, whosever they are
        before = getattr(active, "session", None)
        active.session = own
        try:
            _settle(own, session)
            yield own
        finally:
            active.session = before
            with suppress(Exception):  # the server is gone, and the session with it
                own.client.release_session()
                own.client.close()  # not `own.stop()`, which ends a local server too


def own_session(session: Any) -> Any:
    """A session beside another one, which is made once."""
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
    """Gives a session of our own its settings: none of those that the owner or the cluster has made, but of work."""
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


# What pyspark logs.


class _Silence(logging.Filter, threading.local):
    """Lets no record through of a thread that runs a statement."""

    depth = 0

    def __init__(self) -> None:
        super().__init__()

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002
        return not self.depth


_silence = _Silence()
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")


@contextmanager
def no_errors_logged() -> Iterator[None]:
    """Errors of Spark quote cells, and pyspark writes them to the log as they are made, whoever catches them."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_silence)
    _silence.depth += 1
    try:
        yield
    finally:
        _silence.depth -= 1


# Which session there is.


def opened(session: Any) -> Any:
    """Remembers a session as that of the table that was opened last, and gives it back."""
    _opened[:] = [weakref.ref(session)]
    return session


def session_of_trials() -> Any:
    """A session to ask whether Spark understands a statement; None where there is none."""
    held = _opened[0]() if _opened else None
    sql = sys.modules.get("pyspark.sql")
    return held if held is not None or sql is None else sql.SparkSession.getActiveSession()


def some_session() -> Any:
    """The session that is active, or a local one that is made. Raises InvalidSchema where Spark or Java is missing."""
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
    """Raises InvalidSchema where the extra or Java is missing."""
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

"""A session of Spark of our own: beside the owner's, over the same cluster, with settings of its own.

What an owner has set, named or registered (time zone, ANSI mode, case of names, functions that take the place of
Spark's, temporary views) is not seen there, and what is set there is not seen by the owner.
"""

from __future__ import annotations

import os
import shutil
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpsql.errors import InvalidSchema

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
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
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""Without ANSI mode no cast and no division raises; sums are made so that none can overflow. A condition that is pushed
below the columns that it reads has their texts in place of their names, however often it names them. An EXISTS that is
pushed into the branches of a union is not found there any more, and the statement fails."""
_OF_WORK = (
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.enabled",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.files.maxPartitionBytes",
)
"""What an owner has set about how work is done stays as it is."""


_own = weakref.WeakKeyDictionary[Any, Any]()
_turn = threading.RLock()


@contextmanager
def borrowed(session: Any) -> Iterator[Any]:
    """A session with SETTINGS for a statement: one of our own beside the owner's. A client of Spark Connect can make
    none; there the owner's is used, one statement at a time, and is set back after it."""
    if hasattr(session, "_jsparkSession"):
        yield own_session(session)
        return
    with _turn:
        explicit = {row[0]: row[1] for row in session.sql("SET").collect()}
        changed = {name: value for name, value in SETTINGS.items() if _setting(session, name) != value}
        try:
            for name, value in changed.items():
                session.conf.set(name, value)
            yield session
        finally:
            for name in changed:
                if name in explicit:
                    session.conf.set(name, explicit[name])
                else:
                    session.conf.unset(name)


def _setting(session: Any, name: str) -> str | None:
    try:
        value: str | None = session.conf.get(name)
    except Exception:  # noqa: BLE001 - an older Spark does not know it
        return None
    return value


def taken_names(session: Any) -> list[str]:
    """Functions of Spark's in whose place the owner has registered others, where statements run in his session."""
    if hasattr(session, "_jsparkSession"):
        return []
    owners, own = (
        {row[0].rpartition(".")[2].casefold() for row in session.sql(f"SHOW {kind} FUNCTIONS").collect()}
        for kind in ("USER", "SYSTEM")
    )
    return sorted(owners & own)


def own_session(session: Any) -> Any:
    """A session beside another one, which is made once."""
    with _turn:
        own = _own.get(session)
        if own is None:
            own = _own[session] = session.newSession()
            for name, value in SETTINGS.items():
                own.conf.set(name, value)
    for name in _OF_WORK:
        value = session.conf.get(name, None)
        if value is not None:
            own.conf.set(name, value)
    return own


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

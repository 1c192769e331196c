"""Worker processes seen from the server: one plans, some run queries; each is restarted when it ends."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from dpsql.errors import DPSQLError, InvalidSchema, LedgerError
from dpsql.remote.server.fair_queue import Turns
from dpsql.remote.server.fork_server import context, start, work
from dpsql.remote.server.messages import CHANGED, OK, UNAVAILABLE, Config, Message, Reply

PLANNING = 5.0
"""Seconds that planning, which reads no row, may take."""
_STARTING = 600.0
_PATIENCE = 30.0
"""Seconds that a request waits for processes that are still loading the tables."""
FATAL, UNSENT = ("died", "deadline"), "unsent"
"""Reasons why a worker ended while it handled a message; and the reason if it never received the message."""
LOOK = 0.05
"""Seconds between checks of a busy worker's memory."""


class WorkerEnded(Exception):
    """A worker ended during a message: `reason` is "died", "deadline" or UNSENT."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WorkerTooLarge(WorkerEnded):
    """The worker was ended because it exceeded its memory limit; reported as its death."""


class ServingHalted(Exception):
    """The data files have changed since serving began."""


class Files:
    """State of the data files when serving began."""

    def __init__(self) -> None:
        self._stamps: Any = None
        self.changed = False

    def check(self, stamps: Any) -> None:
        """Raise ServingHalted if files have changed since, now and from then on."""
        if self._stamps is None:
            self._stamps = stamps
        if self.changed or stamps != self._stamps:
            self.halt()

    def halt(self) -> NoReturn:
        """Raise ServingHalted, now and from then on."""
        self.changed = True
        raise ServingHalted


class Worker:
    """A worker process, and a thread that communicates with it."""

    def __init__(self, config: Config, files: Files) -> None:
        self._config, self._files = config, files
        self.ended: Counter[str] = Counter()
        """Number of times that the process ended or had to be ended during a message, by reason."""
        self._thread = ThreadPoolExecutor(1)
        self._process: Any = None
        self._connection: Any = None

    async def start(self) -> None:
        """Start the process. Raises DPSQLError if the tables cannot be read."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._started)

    async def call(self, message: Message, deadline: float) -> Reply:
        """Return the reply. Raises WorkerEnded, ServingHalted."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._exchange, message, deadline)

    def stop(self) -> None:
        process = self._process
        if process is not None:
            process.kill()  # releases the thread, whatever it waits for
        self._thread.submit(self._kill).result()
        self._thread.shutdown()

    def _started(self) -> None:
        if self._process is not None and self._process.is_alive():
            return
        ours = context()
        here, there = ours.Pipe()
        process = ours.Process(target=work, args=(there, self._config), daemon=True)
        try:
            start(process)
        except (OSError, EOFError):  # the fork server ended at that moment
            raise WorkerEnded(UNSENT) from None
        there.close()
        self._process, self._connection = process, here
        try:
            ready = self._received(_STARTING)
        except WorkerTooLarge:
            raise InvalidSchema(
                "a worker needs more memory for the tables than it may have.", hint="Raise [server] worker_memory."
            ) from None
        if ready["outcome"] == UNAVAILABLE and isinstance(ready.get("error"), DPSQLError):
            raise ready["error"]
        if ready["outcome"] != OK:
            raise InvalidSchema(f"the tables cannot be loaded ({ready['class']}).")
        self._files.check(ready["stamps"])

    def _exchange(self, message: Message, deadline: float) -> Reply:
        try:
            self._started()
        except (DPSQLError, WorkerEnded):  # in any case, it did not receive the message
            raise WorkerEnded(UNSENT) from None
        try:
            self._connection.send(message)
        except OSError:
            self._kill()
            raise WorkerEnded(UNSENT) from None
        reply = self._received(deadline)
        if reply["outcome"] == CHANGED:
            self._files.halt()
        return reply

    def _received(self, deadline: float) -> Reply:
        try:
            if not self._waited(deadline):
                self._end("deadline")
                raise WorkerEnded("deadline")
            reply: Reply = self._connection.recv()
        except (EOFError, OSError):
            self._end("died")
            raise WorkerEnded("died") from None
        return reply

    def _waited(self, deadline: float) -> bool:
        """Return whether a reply arrives in time. Raises WorkerTooLarge."""
        most = None if self._config.words is None else self._config.words.worker_memory
        if most is None:
            return bool(self._connection.poll(deadline))
        end = time.monotonic() + deadline
        while not self._connection.poll(min(LOOK, max(0, end - time.monotonic()))):
            if (self.memory or 0) > most:
                self._end("memory")
                raise WorkerTooLarge("died")
            if time.monotonic() >= end:
                return False
        return True

    def _end(self, reason: str) -> None:
        self.ended[reason] += 1
        self._kill()

    @property
    def memory(self) -> int | None:
        """Bytes of memory of the process; None if unknown."""
        process = self._process
        try:
            pages = int(Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1])
        except (OSError, ValueError, IndexError, AttributeError):
            return None
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join()
        with suppress(OSError, AttributeError):
            self._connection.close()


class Crew:
    """A planner, which serves analysts in turn, and runners, which serve in order of arrival."""

    def __init__(self, config: Config, *, runners: int, deadline: float) -> None:
        self.files = Files()
        self._planner = Worker(config, self.files)
        self._runners = [Worker(config, self.files) for _ in range(runners)]
        self._idle: list[Worker] = []
        self._planning, self._running = Turns(1), Turns(runners)
        self._deadline = deadline
        self._begun, self.ready = asyncio.Event(), False

    async def start(self) -> None:
        """Load the tables; requests wait meanwhile. Raises DPSQLError."""
        try:
            await asyncio.gather(*(each.start() for each in [self._planner, *self._runners]))
            self._idle += self._runners
            self.ready = True
        except WorkerEnded:
            raise LedgerError("a worker ended while it was loading the tables.") from None
        finally:
            self._begun.set()

    async def plan(self, message: Message, now: Callable[[], Message] = dict) -> Reply:
        """Handle a message that needs no rows. now: returns what is to be added when planning starts, rather than when
        the message begins to wait. Raises WorkerEnded, ServingHalted."""
        await self._loaded()
        async with self._planning.of(message["analyst"]):
            self._check_files()
            return await self._planner.call({**message, **now()}, PLANNING)

    async def run(self, message: Message) -> Reply:
        """Run a paid query. Raises WorkerEnded, ServingHalted."""
        await self._loaded()
        async with self._running.of(""):  # in order of arrival: then the runs ahead are known (`RunQueue`)
            self._check_files()
            worker = self._idle.pop()
            try:
                return await worker.call(message, self._deadline)
            finally:
                self._idle.append(worker)

    async def _loaded(self) -> None:
        """Wait for the tables. Raises WorkerEnded if they are not loaded in time."""
        if not self._begun.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._begun.wait(), _PATIENCE)
        if not self.ready:
            raise WorkerEnded(UNSENT)

    @property
    def places(self) -> int:
        """The number of concurrent runs."""
        return len(self._runners)

    def _check_files(self) -> None:
        if self.files.changed:
            raise ServingHalted

    @property
    def ended(self) -> Counter[str]:
        """Number of processes that ended or had to be ended during a message, by reason."""
        return sum((each.ended for each in self._runners), self._planner.ended)

    def memory(self) -> dict[str, int]:
        """Return the bytes of memory of each process, where known."""
        named = {"planner": self._planner, **{f"runner {place}": each for place, each in enumerate(self._runners, 1)}}
        return {name: size for name, each in named.items() if (size := each.memory) is not None}

    def stop(self) -> None:
        for each in [self._planner, *self._runners]:
            each.stop()

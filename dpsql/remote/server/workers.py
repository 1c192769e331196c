"""The server's side of its workers: one process that plans, some that run; each is started anew where it ends."""

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
"""Seconds that a request waits for processes that still load the tables."""
FATAL, UNSENT = ("died", "deadline"), "unsent"
"""Why a worker ended over a message; and why where it never had it, so that nothing of it has run."""
LOOK = 0.05
"""Seconds between two looks at how much memory a worker has that is at work."""


class WorkerEnded(Exception):
    """A worker ended over a message: `reason` is "died", "deadline" or UNSENT."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WorkerTooLarge(WorkerEnded):
    """It was ended since it took more memory than it may have, which is told as its death."""


class ServingHalted(Exception):
    """Data files are not those that serving began with."""


class Files:
    """What the data files were like when serving began."""

    def __init__(self) -> None:
        self._stamps: Any = None
        self.changed = False

    def check(self, stamps: Any) -> None:
        """Raises Halted where files have changed since, now and from then on."""
        if self._stamps is None:
            self._stamps = stamps
        if self.changed or stamps != self._stamps:
            self.halt()

    def halt(self) -> NoReturn:
        """Raises Halted, now and from then on."""
        self.changed = True
        raise ServingHalted


class Worker:
    """One process, and a thread that talks to it."""

    def __init__(self, config: Config, files: Files) -> None:
        self._config, self._files = config, files
        self.ended: Counter[str] = Counter()
        """How often it ended over a message or had to be, by the reason."""
        self._thread = ThreadPoolExecutor(1)
        self._process: Any = None
        self._connection: Any = None

    async def start(self) -> None:
        """Raises DPSQLError where the tables cannot be read."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._started)

    async def call(self, message: Message, deadline: float) -> Reply:
        """The reply. Raises Ended, Halted."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._exchange, message, deadline)

    def stop(self) -> None:
        process = self._process
        if process is not None:
            process.kill()  # whatever its thread waits for
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
        except (OSError, EOFError):  # what it would come from ended at that moment
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
        except (DPSQLError, WorkerEnded):  # whatever befell it, it did not have the message
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
        """Whether there is a reply in time. Raises TooLarge."""
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
        """Bytes of memory that the process has; None where that cannot be seen."""
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
    """A planner, which analysts have in turn, and runners, which serve who came first."""

    def __init__(self, config: Config, *, runners: int, deadline: float) -> None:
        self.files = Files()
        self._planner = Worker(config, self.files)
        self._runners = [Worker(config, self.files) for _ in range(runners)]
        self._idle: list[Worker] = []
        self._planning, self._running = Turns(1), Turns(runners)
        self._deadline = deadline
        self._begun, self.ready = asyncio.Event(), False

    async def start(self) -> None:
        """Load the tables; what is asked meanwhile waits. Raises DPSQLError."""
        try:
            await asyncio.gather(*(each.start() for each in [self._planner, *self._runners]))
            self._idle += self._runners
            self.ready = True
        except WorkerEnded:
            raise LedgerError("a worker ended while it was loading the tables.") from None
        finally:
            self._begun.set()

    async def plan(self, message: Message, now: Callable[[], Message] = dict) -> Reply:
        """What needs no row. now: what is to be said of the moment at which it is planned, which is not that at which
        it begins to wait for that. Raises Ended, Halted."""
        await self._loaded()
        async with self._planning.of(message["analyst"]):
            self._check_files()
            return await self._planner.call({**message, **now()}, PLANNING)

    async def run(self, message: Message) -> Reply:
        """What is paid for. Raises Ended, Halted."""
        await self._loaded()
        async with self._running.of(""):  # first come, first served: who was there before is known (`RunQueue`)
            self._check_files()
            worker = self._idle.pop()
            try:
                return await worker.call(message, self._deadline)
            finally:
                self._idle.append(worker)

    async def _loaded(self) -> None:
        """Raises Ended where the tables are not there in time."""
        if not self._begun.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._begun.wait(), _PATIENCE)
        if not self.ready:
            raise WorkerEnded(UNSENT)

    @property
    def places(self) -> int:
        """Runs at a time."""
        return len(self._runners)

    def _check_files(self) -> None:
        if self.files.changed:
            raise ServingHalted

    @property
    def ended(self) -> Counter[str]:
        """How many processes ended over a message or had to be, by the reason."""
        return sum((each.ended for each in self._runners), self._planner.ended)

    def memory(self) -> dict[str, int]:
        """Bytes of memory that each process has, as far as that can be seen."""
        named = {"planner": self._planner, **{f"runner {place}": each for place, each in enumerate(self._runners, 1)}}
        return {name: size for name, each in named.items() if (size := each.memory) is not None}

    def stop(self) -> None:
        for each in [self._planner, *self._runners]:
            each.stop()

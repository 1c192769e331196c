"""Process that renders answers as plots and files. It holds released values only, and does not block other
requests."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any

from dpsql.errors import InvalidArgument
from dpsql.remote.server.fork_server import context, end_with_the_server
from dpsql.remote.server.problems import Problem

if TYPE_CHECKING:
    from dpsql.remote.answers import RemoteResult  # loads pandas, which the server itself loads after its start

MOST_PANELS = 6
PATIENCE = 30.0
FORMS = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}
SVG = "image/svg+xml"


def answer_of(said: Mapping[str, Any]) -> RemoteResult:
    """Return a serialized answer as a result; its explanation is not available here."""
    from dpsql.remote.answers import RemoteResult

    def nowhere() -> Any:
        raise InvalidArgument("how it was made is asked of the planner.")

    return RemoteResult(said, nowhere)


def written(content: bytes, form: str) -> bytes:
    """Return the answer in a format, as the library writes it. Raises InvalidArgument if a library is missing."""
    answer = answer_of(json.loads(content))
    if form == "svg":
        from dpsql.answer.plot import caption_of, drawing, svg_of

        keys, panels = answer._plot_parts(0.95)
        panels = panels[:MOST_PANELS]
        return svg_of(drawing(keys, panels, caption_of(panels, 0.95, answer._cost_text), answer._heading))
    if form == "csv":
        return answer.to_csv().encode(errors="backslashreplace")
    if form == "json":
        return answer.to_json().encode(errors="backslashreplace")  # JSON reads the escape as the same surrogate
    stream = io.BytesIO()
    if form == "parquet":
        answer.to_parquet(stream)
        return stream.getvalue()
    table = answer.to_arrow(intervals=True)
    from dpsql.answer.export_formats import library

    ipc = library("pyarrow.ipc", "an Arrow stream")
    with ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


class PlotProcess:
    """The process, started when it is first needed, and restarted when it ended."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    async def written(self, content: bytes, form: str) -> bytes:
        """As the function `written`. Raises InvalidArgument, and Problem on failure."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=context(), initializer=end_with_the_server)
        try:
            running = asyncio.get_running_loop().run_in_executor(self._pool, written, content, form)
            return await asyncio.wait_for(running, PATIENCE)
        except InvalidArgument:
            raise
        except (BrokenProcessPool, TimeoutError):
            self.stop()
            raise Problem(503, detail="This form of the answer could not be made now.", hint="Ask again.") from None

    def stop(self) -> None:
        """Kill the process."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)

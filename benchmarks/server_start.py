"""How long `dpsql serve` takes from its start to the page in which a token is asked for, and to its first answer.

python benchmarks/server_start.py [RUNS]     # 5 if left out; the best and the median are printed

Seconds on the clock, and of the processor: of the server's own process at the page, of all its processes at the answer.
The data are the shop of the examples, with an empty ledger each time. Nothing is asserted.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from serve_shop import DPSQL, prepared, token_of

QUERY = {"sql": "SELECT COUNT(*) AS n FROM orders", "epsilon": 0.1}
TICKS = os.sysconf("SC_CLK_TCK")


def processor(pid: int) -> float:
    """Seconds that a process has used so far, with those of its children that ended."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / TICKS


def below(pid: int) -> list[int]:
    """A process, and those that come from it."""
    children = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [pid, *(each for child in children for each in below(child))]


def fetched(url: str, body: object = None, **headers: str) -> str:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as response:
        assert response.status == 200
        return str(response.read().decode())


def started(schema: Path, token: str) -> tuple[float, float, float, float]:
    """Seconds to the page on the clock and of the processor; the same to the first answer."""
    begin = time.perf_counter()
    with subprocess.Popen([*DPSQL, "serve", str(schema), "--port", "0"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = json.loads(process.stderr.readline())["address"]
            assert "token" in fetched(f"{address}/", Accept="text/html")
            page, own = time.perf_counter() - begin, processor(process.pid)
            headers = {
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
                "Idempotency-Key": "first",
                "Prefer": "wait=60",
            }
            assert "columns" in fetched(f"{address}/v1/queries", QUERY, **headers)
            answer, whole = time.perf_counter() - begin, sum(map(processor, below(process.pid)))
        finally:
            process.terminate()
    return page, own, answer, whole


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    taken = []
    with tempfile.TemporaryDirectory() as name:
        schema = prepared(Path(name))
        token = token_of(schema, "alice")
        ledger = schema.with_suffix(".ledger")
        shutil.copy(ledger, ledger.with_suffix(".empty"))
        for _ in range(runs + 1):  # the first writes bytecode
            shutil.copy(ledger.with_suffix(".empty"), ledger)
            taken.append(started(schema, token))
    print(f"{runs} starts, load {os.getloadavg()[0]:.1f}; seconds: best, median")
    words = ("the page, clock", "the page, processor", "an answer, clock", "an answer, processor")
    for word, column in zip(words, zip(*taken[1:], strict=True), strict=True):
        print(f"{word:<21} {min(column):6.2f} {statistics.median(column):6.2f}")


if __name__ == "__main__":
    main()

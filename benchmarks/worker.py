"""One engine in a process of its own: builds, changes, saves, and answers rounds of queries."""

import gc
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.children import findable
from benchmarks.corpus import Record
from benchmarks.engines import ENGINES, Engine

LIMIT = 10
CHANGES = 1_000
MEMORY_QUERIES = 200
_PATIENCE = 120.0  # seconds of single changes that are worth waiting for

Figures = dict[str, float | None]


def memory_mb() -> float:
    """Return this process's resident memory in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def percentile(values: list[float], percent: int) -> float:
    """Return a percentile of at least two values."""
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def timed(calls: list[Callable[[], object]], patience: float = _PATIENCE) -> list[float]:
    """Return the seconds that each call took, stopping when patience ends."""
    seconds: list[float] = []
    for call in calls:
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > patience:
            break
    return seconds


def _read_records(path: Path) -> list[Record]:
    with path.open(encoding="utf-8") as file:
        return [Record(*line.rstrip("\n").split("\t")) for line in file]


def _build(engine: Engine, corpus: Path) -> tuple[list[str], Figures]:
    """Index the corpus; return the ids to remove later, and the figures."""
    records = _read_records(corpus)
    before = memory_mb()
    seconds = timed([lambda: engine.build(records)])[0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    ids = [record.id for record in records[:: max(1, len(records) // CHANGES)]][:CHANGES]
    return ids, {"build_s": seconds, "build_peak_mb": peak - before}


def prepare(engine: Engine, corpus: Path, more: list[Record]) -> Figures:
    """Build, then make the single additions and removals, then save."""
    ids, figures = _build(engine, corpus)
    gc.collect()
    if engine.incremental:
        adds = timed([lambda record=record: engine.add(record) for record in more])  # type: ignore[misc]
        newest = more[len(adds) - 1]
        if newest.id not in dict(engine.search(newest.text, 50)):
            raise AssertionError("an added record is not found by its own text")
        removals = timed([lambda id=id: engine.remove(id) for id in ids])  # type: ignore[misc]
        figures |= {
            "adds": len(adds),
            "add_p50_us": percentile(adds, 50) * 1e6,
            "add_p99_us": percentile(adds, 99) * 1e6,
            "add_max_us": max(adds) * 1e6,
            "removals": len(removals),
            "remove_p50_us": percentile(removals, 50) * 1e6,
        }
        engine.settle()
    if engine.persistent:
        figures["save_s"] = timed([engine.save])[0]
    return figures


def serve(name: str, folder: str, connection: Connection) -> None:
    """Answer the parent: build once, then any number of rounds."""
    engine = ENGINES[name](Path(folder))
    connection.send(prepare(engine, *connection.recv()))
    while (queries := connection.recv()) is not None:
        rows: list[tuple[float, float, int]] = []
        for query in queries:
            start, used = time.perf_counter(), time.process_time()
            count = len(engine.search(query, LIMIT))
            rows.append((time.perf_counter() - start, time.process_time() - used, count))
        connection.send(rows)


def reopen(name: str, folder: str, connection: Connection) -> None:
    """Open what was saved in this fresh process, and report the time and the memory it takes."""
    queries: list[str] = connection.recv()
    empty = memory_mb()
    engine = ENGINES[name](Path(folder))
    imported = memory_mb()
    seconds = timed([engine.open])[0]
    first = timed([lambda: engine.search(queries[0], LIMIT)])[0]
    for query in queries:
        engine.search(query, LIMIT)
    gc.collect()
    connection.send(
        {
            "open_s": seconds,
            "first_query_ms": first * 1e3,
            "memory_mb": memory_mb() - empty,
            "import_mb": imported - empty,
        }
    )


class Worker:
    """The parent's end of a process."""

    def __init__(
        self, target: Callable[[str, str, Connection], None], name: str, folder: Path
    ) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(
            target=target, args=(name, str(folder), theirs), daemon=True
        )
        with findable():
            self._process.start()
        theirs.close()

    def ask(self, message: Any) -> Any:
        """Send a message and return the answer.

        Raises:
            EOFError: the process died.
        """
        self.connection.send(message)
        return self.connection.recv()

    def close(self) -> None:
        """End the process."""
        with suppress(BrokenPipeError):  # it died before: whoever asked it has been told
            self.connection.send(None)
        self._process.join(10)
        if self._process.is_alive():
            self._process.terminate()
        self.connection.close()

"""Session search beside its peers: import, search, what is appended, a command from cold.

Every engine stores and indexes the same items in a process of its own; rounds of the same questions
alternate between them. Beside the time on the clock stands that of the processor, which a busy
machine disturbs less. The command is timed from the start of its process to the end, beside the
import of numpy and pydantic alone.

Run: python -m benchmarks.sessions --size 200000 --json sessions.json
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.session_corpus import Generated, Turn, from_path, questions
from benchmarks.session_engines import DEFAULT, ENGINES
from benchmarks.speed import save_rows
from benchmarks.worker import Worker, percentile

ROUNDS, PER_ROUND = 8, 25
WARM = 50
"""Questions before the first round: imports and caches warm up; few for a slow engine."""
SLOW_ROUNDS = 2
"""Rounds of an engine whose queries take a second and more."""
APPENDS = 60
COLD = 9
_SLOW = {"fts5", "memsheaf-sqlite"}
_YARDSTICK = "import numpy; from pydantic import BaseModel"

Row = dict[str, Any]


def spool(turns: Iterator[Turn], path: Path) -> int:
    """Write items into a file, one a line; return the bytes of their texts."""
    size = 0
    with path.open("w", encoding="utf-8") as file:
        for turn in turns:
            text = " ".join(turn.text.split())
            size += len(text.encode())
            file.write("\t".join((*turn[:3], text)) + "\n")
    return size


def unspool(path: Path) -> Iterator[Turn]:
    """Yield the items of a file."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield Turn(*line.rstrip("\n").split("\t"))


def serve(name: str, folder: str, connection: Connection) -> None:
    """Answer the parent: build, then rounds of questions, then what is appended."""
    engine = ENGINES[name](Path(folder))
    corpus: Path = connection.recv()
    start = time.perf_counter()
    engine.build(unspool(corpus))
    connection.send(time.perf_counter() - start)
    while (request := connection.recv()) is not None:
        kind, texts = request
        if kind == "search":
            calls: list[Callable[[], object]] = [lambda t=t: engine.search(t) for t in texts]  # type: ignore[misc]
        else:
            calls = [lambda n=n, t=t: _visible(engine, n, t) for n, t in enumerate(texts)]  # type: ignore[misc]
        connection.send([_clocked(call) for call in calls])
    engine.close()
    connection.send(None)


def _clocked(call: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of a call: on the clock, and of the processor in this thread."""
    start, used = time.perf_counter(), time.thread_time()
    call()
    return time.perf_counter() - start, time.thread_time() - used


def _visible(engine: Any, number: int, text: str) -> None:
    """Append an item and find it."""
    engine.append(number, text)
    if text not in engine.search(text.split()[0]):
        raise AssertionError("what was appended is not found")


def measure(size: int, names: list[str], data: Path | None) -> list[Row]:
    """Return one row of figures per engine, and one of the command from cold."""
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory(prefix="memsheaf-sessions-") as folder:
        home = Path(folder)
        corpus = home / "corpus.tsv"
        megabytes = spool(from_path(data, size) if data else Generated().turns(size), corpus) / 1e6
        asked = questions(unspool(corpus), WARM + ROUNDS * PER_ROUND, size)
        print(f"{size:,} items, {megabytes:,.0f} MB of text, {len(asked)} questions", flush=True)
        workers: dict[str, Worker] = {}
        try:
            for name in names:
                (home / name).mkdir()
                workers[name] = Worker(serve, name, home / name)
                seconds = workers[name].ask(corpus)
                rows[name] = {
                    "engine": name,
                    "size": size,
                    "build_s": seconds,
                    "items_per_s": size / seconds,
                    "mb_per_s": megabytes / seconds,
                }
                print(f"{name}: built in {seconds:.1f} s", flush=True)
            for name, figures in _rounds(workers, asked).items():
                rows[name] |= figures
            for name, worker in workers.items():
                new = [f"unheard{name[0]}{n} {asked[n % len(asked)]}" for n in range(APPENDS)]
                took = worker.ask(("append", new))
                rows[name]["append_p50_ms"] = median(wall for wall, _ in took) * 1e3
                worker.ask(None)
        finally:
            for worker in workers.values():
                worker.close()
        if "memsheaf" in names:
            rows["memsheaf"] |= cold(home / "memsheaf", asked)
    return list(rows.values())


def _rounds(workers: dict[str, Worker], asked: list[str]) -> dict[str, Row]:
    """Return the latencies; the engines take turns, in a turning order."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in workers}
    order = list(workers)
    for name in order:
        workers[name].ask(("search", asked[: 3 if name in _SLOW else WARM]))
    rest = iter(asked[WARM:])
    for turn in range(ROUNDS):
        batch = list(islice(rest, PER_ROUND))
        for name in order if batch else ():
            if name not in _SLOW or turn < SLOW_ROUNDS:
                seconds[name] += workers[name].ask(("search", batch))
        order = [*order[1:], order[0]]
    return {
        name: {
            "p50_ms": percentile([wall for wall, _ in took], 50) * 1e3,
            "p95_ms": percentile([wall for wall, _ in took], 95) * 1e3,
            "cpu_p50_ms": percentile([used for _, used in took], 50) * 1e3,
            "cpu_p95_ms": percentile([used for _, used in took], 95) * 1e3,
            "queries": len(took),
        }
        for name, took in seconds.items()
    }


def cold(folder: Path, asked: list[str]) -> Row:
    """Time the command `memsheaf sessions search` from the start of its process to the end.

    The first run, which compiles modules where they are not compiled yet, does not count.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "memsheaf.interfaces", "sessions", "search"]
    took, plain = [], []
    for text in asked[: COLD + 1]:
        plain.append(_seconds([sys.executable, "-c", _YARDSTICK], environment))
        home = {"MEMSHEAF_HOME": str(folder)}
        took.append(_seconds([*command, text, "--everyone"], environment | home))
    took, plain = took[1:], plain[1:]
    return {
        "cold_s": median(took),
        "imports_s": median(plain),
        "cold_ratio": median(a / b for a, b in zip(took, plain, strict=True)),
    }


def _seconds(command: list[str], environment: Any) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=dict(environment), cwd="/", check=True, capture_output=True)
    return time.perf_counter() - start


def report(rows: list[Row]) -> None:
    """Print the figures, and Memsheaf's as a share of each peer's."""
    titles = {
        "mb_per_s": "MB/s",
        "items_per_s": "items/s",
        "p50_ms": "p50 ms",
        "p95_ms": "p95 ms",
        "cpu_p50_ms": "cpu p50 ms",
        "cpu_p95_ms": "cpu p95 ms",
        "append_p50_ms": "append ms",
    }
    print(f"\n{'':18}" + "".join(f"{title:>14}" for title in titles.values()))
    for row in rows:
        cells = "".join(f"{row[column]:>14,.3f}" for column in titles)
        print(f"{row['engine']:18}{cells}")
    ours = next((row for row in rows if row["engine"] == "memsheaf"), None)
    for row in rows if ours else []:
        if ours is not None and row is not ours:
            print(
                f"memsheaf / {row['engine']}: p50 {ours['p50_ms'] / row['p50_ms']:.4f}, "
                f"p95 {ours['p95_ms'] / row['p95_ms']:.4f}, "
                f"cpu p50 {ours['cpu_p50_ms'] / row['cpu_p50_ms']:.4f}, "
                f"p95 {ours['cpu_p95_ms'] / row['cpu_p95_ms']:.4f}"
            )
    if ours is not None and "cold_s" in ours:
        print(
            f"command from cold {ours['cold_s']:.3f} s, numpy and pydantic alone "
            f"{ours['imports_s']:.3f} s, ratio {ours['cold_ratio']:.2f}"
        )


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description=__doc__)
    parser.add_argument("--size", default="20000", help="items; several with commas")
    parser.add_argument("--engines", default=",".join(DEFAULT), help="which, with commas")
    parser.add_argument("--data", type=Path, help="JSON lines: conversation, type, role, text")
    parser.add_argument("--json", type=Path, help="file for the rows")
    options = parser.parse_args(arguments)
    names = options.engines.split(",")
    if unknown := set(names) - set(ENGINES):
        parser.error(f"unknown engines: {', '.join(sorted(unknown))}; there are {list(ENGINES)}")
    for size in map(int, options.size.split(",")):
        rows = measure(size, names, options.data)
        report(rows)
        if options.json:
            save_rows(rows, options.json, ("engine", "size"))


if __name__ == "__main__":
    main()

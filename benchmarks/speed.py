"""Search, build, change and memory figures of Memsheaf and its peers, all in one run.

Each engine lives in its own process; rounds of queries alternate between them. After the build come
1,000 single adds and 1,000 removals, and no merge is forced. Latency is wall time; beside it stands
the processor time of the same searches, which other programs on the machine disturb less.

Run: python -m benchmarks.speed --size 10000,100000 --engines memsheaf,tantivy --json speed.json
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.corpus import RealText, Record, Zipf
from benchmarks.engines import ENGINES
from benchmarks.worker import CHANGES, MEMORY_QUERIES, Worker, percentile, reopen, serve

Row = dict[str, Any]

LARGEST = {"rank-bm25": 200_000}
"""Sizes above which an engine takes minutes a round and is left out."""

_COLUMNS = {
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "cpu_p50_ms": "cpu p50 ms",
    "cpu_p95_ms": "cpu p95 ms",
    "build_s": "build s",
    "add_p50_us": "add p50 us",
    "add_p99_us": "add p99 us",
    "remove_p50_us": "remove p50 us",
    "open_s": "open s",
    "memory_mb": "memory MB",
    "build_peak_mb": "build peak MB",
}


def _write(records: Iterator[Record], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for record in records:
            file.write("\t".join(" ".join(part.split()) for part in record) + "\n")


def measure(
    size: int, engines: list[str], source: Zipf | RealText, *, rounds: int, queries_per_round: int
) -> list[Row]:
    """Return one row of figures per engine."""
    name = "zipf" if isinstance(source, Zipf) else "text"
    queries = source.queries(rounds * queries_per_round)
    more = list(source.records(CHANGES, first=size))
    rows: list[Row] = []
    workers: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory(prefix="memsheaf-speed-") as folder:
        corpus = Path(folder) / "corpus.tsv"
        _write(source.records(size), corpus)
        homes = {engine: Path(folder) / engine for engine in engines}
        try:
            for engine in engines:
                homes[engine].mkdir()
                workers[engine] = Worker(serve, engine, homes[engine])
                figures = workers[engine].ask((corpus, more))
                rows.append({"engine": engine, "size": size, "corpus": name, **figures})
                print(f"{engine}: built {size:,} records in {figures['build_s']:.1f} s", flush=True)
            for row, figures in zip(
                rows, _rounds(workers, queries, queries_per_round), strict=True
            ):
                row.update(figures)
        finally:
            for worker in workers.values():
                worker.close()
        for row in rows:
            if "save_s" in row:
                fresh = Worker(reopen, row["engine"], homes[row["engine"]])
                row.update(fresh.ask(queries[:MEMORY_QUERIES]))
                fresh.close()
    return rows


def _rounds(workers: dict[str, Worker], queries: list[str], per_round: int) -> list[Row]:
    """Return the latencies over all rounds; the engines take turns, in a turning order."""
    asked: dict[str, list[tuple[float, float, int]]] = {engine: [] for engine in workers}
    medians: dict[str, list[float]] = {engine: [] for engine in workers}
    order = list(workers)
    for engine in order:
        workers[engine].ask(queries[:3])  # not counted: imports, compilers and caches warm up
    rest = iter(queries)
    while batch := list(islice(rest, per_round)):
        for engine in order:
            answered = workers[engine].ask(batch)
            asked[engine] += answered
            medians[engine].append(median(row[0] for row in answered))
        order = [*order[1:], order[0]]
    rows: list[Row] = []
    for engine in workers:
        seconds, used, found = (list(column) for column in zip(*asked[engine], strict=True))
        rows.append(
            {
                "p50_ms": percentile(seconds, 50) * 1e3,
                "p95_ms": percentile(seconds, 95) * 1e3,
                "cpu_p50_ms": percentile(used, 50) * 1e3,
                "cpu_p95_ms": percentile(used, 95) * 1e3,
                "best_round_ms": min(medians[engine]) * 1e3,
                "queries": len(seconds),
                "mean_hits": sum(found) / len(found),
            }
        )
    return rows


def report(rows: list[Row]) -> None:
    """Print the figures, and Memsheaf's as a share of each peer's."""
    print(f"\n{'':18}" + "".join(f"{title:>15}" for title in _COLUMNS.values()))
    for row in rows:
        cells = [row.get(column) for column in _COLUMNS]
        texts = ["-" if cell is None else f"{cell:,.3f}" for cell in cells]
        print(f"{row['engine']:18}" + "".join(f"{text:>15}" for text in texts))
    ours = next((row for row in rows if row["engine"] == "memsheaf"), None)
    for row in rows if ours else []:
        if row is ours or ours is None:
            continue
        ratios = [
            f"{title} {ours[column] / row[column]:.4f}"
            for column, title in _COLUMNS.items()
            if ours.get(column) and row.get(column)
        ]
        print(f"memsheaf / {row['engine']}: " + ", ".join(ratios))


def save_rows(
    rows: list[Row], path: Path, key: tuple[str, ...] = ("engine", "size", "corpus")
) -> None:
    """Write rows to a JSON file; rows of the same engine, size and corpus are replaced."""
    old: list[Row] = json.loads(path.read_text()) if path.exists() else []
    new = {tuple(row.get(part) for part in key) for row in rows}
    kept = [row for row in old if tuple(row.get(part) for part in key) not in new]
    path.write_text(json.dumps([*kept, *rows], indent=1) + "\n")


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--size", default="10000", help="records; several with commas")
    parser.add_argument("--engines", default=",".join(ENGINES), help="which, with commas")
    parser.add_argument("--data", type=Path, help="file or folder of real text instead of Zipf")
    parser.add_argument("--json", type=Path, help="file for the rows")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--queries", type=int, default=40, help="queries a round")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    wanted = options.engines.split(",")
    if unknown := set(wanted) - set(ENGINES):
        parser.error(
            f"unknown engines: {', '.join(sorted(unknown))}; there are {', '.join(ENGINES)}"
        )
    source = RealText(options.data, options.seed) if options.data else Zipf(options.seed)
    for size in map(int, options.size.split(",")):
        engines = [engine for engine in wanted if size <= LARGEST.get(engine, size)]
        for engine in wanted:
            if engine not in engines:
                print(f"{engine}: left out above {LARGEST[engine]:,} records")
        rows = measure(
            size, engines, source, rounds=options.rounds, queries_per_round=options.queries
        )
        report(rows)
        if options.json:
            save_rows(rows, options.json)


if __name__ == "__main__":
    main()

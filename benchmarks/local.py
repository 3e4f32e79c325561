"""What the local store costs: durable writes, many users in one folder, and opening a large one.

Each figure stands beside its peer, measured in turns in the same process: a write beside a bare
diskcache `set` of the same bytes through the same Disk, one user's search beside a store that holds
only that user. Opening happens in a fresh process after a clean close.

Run: python -m benchmarks.local --json local.json
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.corpus import Zipf
from benchmarks.worker import percentile
from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryRecord, Scope
from memsheaf.stack.disk import SETTINGS, SharedCache

Figures = dict[str, float]

BLOCK = 50
LIMIT = 10

_OPEN = """
import sys, time
from memsheaf.providers.local import LocalStore
from memsheaf.stack import Scope
start = time.perf_counter()
store = LocalStore(sys.argv[1])
store.check()
opened = time.perf_counter()
store.search(sys.argv[2], Scope(user_id="mira"), 10, None)
print(opened - start, time.perf_counter() - opened)
store.close()
"""


def _took(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _records(count: int, user: str = "mira", *, first: int = 0) -> list[MemoryRecord]:
    scope = Scope(user_id=user)
    texts = Zipf().records(count, first=first)
    return [MemoryRecord(id=record.id, content=record.text, scope=scope) for record in texts]


def _fill(store: LocalStore, records: list[MemoryRecord]) -> None:
    refused = [error for error in store.store_many(records) if error is not None]
    if refused:
        raise SystemExit(f"not stored: {refused[0]}")


def storing(folder: Path, writes: int) -> Figures:
    """Time single writes and bare `set` calls of the same bytes, in turns of some dozens."""
    records = _records(writes)
    bare = SharedCache(str(folder / "bare"), 5.0, **SETTINGS)
    ours: list[float] = []
    theirs: list[float] = []
    with LocalStore(folder / "ours") as store:
        store.check()

        def write(some: list[MemoryRecord]) -> None:
            ours.extend(_took(lambda r=record: store.store(r)) for record in some)  # type: ignore[misc]

        def put(some: list[MemoryRecord]) -> None:
            rows = [(f"log-{record.id:0>15}", record.to_json(), record.id) for record in some]
            theirs.extend(_took(lambda r=row: bare.set(r[0], r[1], tag=r[2])) for row in rows)  # type: ignore[misc]

        for number, start in enumerate(range(0, writes, BLOCK)):
            for turn in (write, put) if number % 2 else (put, write):
                turn(records[start : start + BLOCK])
    bare.close()
    return {
        "store_p50_us": median(ours) * 1e6,
        "store_p99_us": percentile(ours, 99) * 1e6,
        "bare_set_p50_us": median(theirs) * 1e6,
        "ratio": median(ours) / median(theirs),
    }


def searching(folder: Path, users: int, each: int, queries: int) -> Figures:
    """Time one user's search among many users, and in a store that holds only that user."""
    chosen = f"user{users // 2}"
    with LocalStore(folder / "many") as many, LocalStore(folder / "one") as one:
        for user in range(users):
            records = _records(each, f"user{user}", first=user * each)
            _fill(many, records)
            if f"user{user}" == chosen:
                _fill(one, records)
        scope = Scope(user_id=chosen)
        seconds: dict[str, list[float]] = {"many": [], "one": []}
        for store in (many, one):
            store.search("nothing yet", scope, LIMIT, None)
        for number, text in enumerate(Zipf().queries(queries)):
            found = []
            turns = [("many", many), ("one", one)]
            for name, store in turns if number % 2 else turns[::-1]:
                hits = store.search(text, scope, LIMIT, None)  # records come out of the file
                seconds[name].append(
                    _took(lambda s=store, t=text: s.search(t, scope, LIMIT, None))  # type: ignore[misc]
                )
                found.append([(hit.id, hit.score) for hit in hits])
            if [id for id, _ in found[0]] != [id for id, _ in found[1]]:
                raise SystemExit(f"the two stores disagree about {text!r}")
    return {
        "many_p50_ms": median(seconds["many"]) * 1e3,
        "many_p95_ms": percentile(seconds["many"], 95) * 1e3,
        "one_p50_ms": median(seconds["one"]) * 1e3,
        "ratio": median(seconds["many"]) / median(seconds["one"]),
    }


def opening(folder: Path, records: int, times: int) -> Figures:
    """Time opening after a clean close, each time in a fresh process."""
    with LocalStore(folder / "large") as store:
        for start in range(0, records, 20_000):
            _fill(store, _records(min(20_000, records - start), first=start))
        building = _took(store.check)
        store.search("anything", Scope(user_id="mira"), LIMIT, None)
    query = Zipf().queries(1)[0]
    command = [sys.executable, "-c", _OPEN, str(folder / "large"), query]
    opened, first = [], []
    for _ in range(times):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
        one, two = map(float, done.stdout.split())
        opened.append(one)
        first.append(two)
    return {
        "open_s": median(opened),
        "first_search_s": median(first),
        "rest_of_the_index_s": building,
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local", description=__doc__)
    parser.add_argument("--writes", type=int, default=2_000)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--each", type=int, default=1_000, help="records of a user")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--records", type=int, default=1_000_000, help="records to open")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    figures: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="memsheaf-local-") as folder:
        home = Path(folder)
        row = figures["storing"] = storing(home, options.writes)
        print(
            f"store: p50 {row['store_p50_us']:.0f} us, p99 {row['store_p99_us']:.0f} us, bare set "
            f"{row['bare_set_p50_us']:.0f} us, ratio {row['ratio']:.2f}, bound 1.5",
            flush=True,
        )
        row = figures["searching"] = searching(home, options.users, options.each, options.queries)
        print(
            f"one of {options.users:,} users: p50 {row['many_p50_ms']:.3f} ms, alone "
            f"{row['one_p50_ms']:.3f} ms, ratio {row['ratio']:.2f}, bound 1.3",
            flush=True,
        )
        row = figures["opening"] = opening(home, options.records, 3)
        print(
            f"open with {options.records:,} records: {row['open_s']:.3f} s, bound 1 s; "
            f"first search {row['first_search_s']:.3f} s"
        )
    if options.json:
        sizes = {key: value for key, value in vars(options).items() if key != "json"}
        options.json.write_text(json.dumps({"sizes": sizes, **figures}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

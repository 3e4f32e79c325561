"""What the stack costs over its providers, and what a slow or hanging one costs the rest.

Run: python -m benchmarks.overhead --json overhead.json
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.corpus import Zipf
from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryRecord, MemoryStack, Mount, Scope
from memsheaf.stack.doubles import HangingProvider, SlowProvider

SCOPE = Scope(user_id="mira")
LIMIT = 10
ASKED = 30
"""What a stack with the defaults asks of each provider for ten hits."""

REPEATS = 6
"""How often each query is timed, in turning order; its median counts."""

_EXITS = """
import time
from memsheaf.stack import MemoryStack, Mount, Scope
from memsheaf.stack.doubles import HangingProvider, InMemoryStore
providers = [InMemoryStore(), Mount(HangingProvider(), timeout=0.2)]
with MemoryStack(providers, scope=Scope(user_id="mira")) as stack:
    assert stack.search("anything").partial
print(time.time(), flush=True)
"""


def _milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def _pair(
    first: Callable[[], object], second: Callable[[], object], *, turned: bool
) -> tuple[float, float]:
    """Milliseconds of two calls, the second of them made first where turned."""
    if turned:
        late = _milliseconds(second)
        return _milliseconds(first), late
    return _milliseconds(first), _milliseconds(second)


def _stored(texts: list[str]) -> LocalStore:
    store = LocalStore()
    records = [MemoryRecord(content=text, scope=SCOPE) for text in texts]
    with_errors = [entry for entry in store.store_many(records) if entry is not None]
    if with_errors:
        raise SystemExit(f"not stored: {with_errors[0]}")
    return store


def beside_the_sum(records: int, queries: int, *, shared: bool) -> dict[str, float]:
    """Time a stack of two stores and the two alone, in turning order.

    Args:
        records: Records of each store.
        queries: Queries to time.
        shared: Whether both hold the same texts, or each its own.
    """
    zipf = Zipf()
    texts = [record.text for record in zipf.records(records)]
    others = texts if shared else [r.text for r in zipf.records(records, first=records)]
    first, second = _stored(texts), _stored(others)
    alone, together = [], []
    with MemoryStack([Mount(first, "first"), Mount(second, "second")], scope=SCOPE) as stack:

        def both(text: str) -> Callable[[], object]:
            return lambda: (
                first.search(text, SCOPE, ASKED, None),
                second.search(text, SCOPE, ASKED, None),
            )

        def stacked(text: str) -> Callable[[], object]:
            return lambda: stack.search(text, limit=LIMIT)

        for text in zipf.queries(queries):
            both(text)(), stacked(text)()  # records come out of the cache for either
            pairs = [_pair(both(text), stacked(text), turned=n % 2 == 1) for n in range(REPEATS)]
            alone.append(median(first for first, _ in pairs))
            together.append(median(second for _, second in pairs))
    return {
        "alone_ms": median(alone),
        "stack_ms": median(together),
        "difference_ms": median(together) - median(alone),
        "paired_ms": median(b - a for a, b in zip(alone, together, strict=True)),
    }


def beside_a_slow_one(calls: int) -> float:
    """Return the median milliseconds beside a provider that sleeps 50 ms."""
    fast = _stored(["Mira plays the cello"])
    with MemoryStack([fast, SlowProvider(0.05)], scope=SCOPE) as stack:
        stack.search("cello")
        return median(_milliseconds(lambda: stack.search("cello")) for _ in range(calls))


def beside_a_hanging_one(calls: int, many: int) -> dict[str, float]:
    """Return the median milliseconds at a timeout of 200 ms, and the threads after many calls.

    No breaker opens, so that every call waits; the many calls wait 5 ms each.
    """
    medians, threads = [], []
    for timeout, count in ((0.2, calls), (0.005, many)):
        hanging = HangingProvider()
        providers = [_stored(["Mira plays the cello"]), Mount(hanging, timeout=timeout)]
        with MemoryStack(providers, scope=SCOPE, breaker_failures=100_000) as stack:
            for _ in range(20):
                stack.search("cello")  # every worker of the provider hangs from here on
            before = threading.active_count()
            medians.append(
                median(_milliseconds(lambda: stack.search("cello")) for _ in range(count))
            )
            threads.append(threading.active_count() - before)
            hanging.release()
    return {"median_ms": medians[0], "threads_grown": threads[1]}


def exit_while_hanging() -> float:
    """Return the milliseconds from a process's last line to its end while a provider hangs."""
    done = subprocess.run(
        [sys.executable, "-c", _EXITS], capture_output=True, text=True, timeout=60, check=True
    )
    return (time.time() - float(done.stdout)) * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what the stack costs.")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--calls", type=int, default=1_000, help="calls beside a hanging provider")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()

    same = beside_the_sum(options.records, options.queries, shared=True)
    own = beside_the_sum(options.records, options.queries, shared=False)
    slow = beside_a_slow_one(40)
    hanging = beside_a_hanging_one(20, options.calls)
    left = exit_while_hanging()
    for name, row in (("the same texts", same), ("texts of their own", own)):
        print(
            f"two stores with {name}: alone {row['alone_ms']:.3f} ms, stack {row['stack_ms']:.3f} "
            f"ms, difference {row['difference_ms']:+.3f} ms (query by query "
            f"{row['paired_ms']:+.3f}), bound +0.3 ms"
        )
    print(f"beside one that sleeps 50 ms: {slow:.1f} ms, bound 53 ms")
    print(f"beside one that hangs, timeout 200 ms: {hanging['median_ms']:.1f} ms, bound 210 ms")
    print(
        f"threads grown over {options.calls:,} calls, all workers hanging: "
        f"{hanging['threads_grown']:.0f}, bound 0"
    )
    print(f"exit while one hangs: {left:.0f} ms after the last line, bound 500 ms")
    if options.json:
        figures = {
            "same_texts": same,
            "own_texts": own,
            "slow_ms": slow,
            "hanging": hanging,
            "exit_ms": left,
        }
        options.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

"""Exact vector search against one numpy matrix product over the same data.

Run: python -m benchmarks.vectors --size 100000 --dimensions 384 --json vectors.json
"""

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks.speed import Row, save_rows
from benchmarks.worker import percentile
from memsheaf.index import VectorIndex
from memsheaf.index.vectors import Storage

STORAGES: tuple[Storage, ...] = ("float32", "float16", "int8")


def measure(size: int, dimensions: int, storage: Storage, queries: int = 60) -> Row:
    """Return the latency of top-10 searches and of the bare product, taken in turns."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((size, dimensions), dtype=np.float32)
    index = VectorIndex("benchmark", dimensions, storage=storage)
    start = time.perf_counter()
    index.add_many([f"v{row:08}" for row in range(size)], matrix)
    built = time.perf_counter() - start
    for row in range(min(1_000, size)):
        index.add(f"new{row}", matrix[row])
        index.remove(f"v{row * 7 % size:08}")
    search: list[float] = []
    product: list[float] = []
    for query in rng.standard_normal((queries, dimensions), dtype=np.float32):
        start = time.perf_counter()
        matrix @ query
        middle = time.perf_counter()
        index.search(query, 10)
        search.append(time.perf_counter() - middle)
        product.append(middle - start)
    p50, bare = percentile(search, 50) * 1e3, percentile(product, 50) * 1e3
    return {
        "engine": f"vectors-{storage}",
        "size": size,
        "corpus": f"normal-{dimensions}",
        "p50_ms": p50,
        "p95_ms": percentile(search, 95) * 1e3,
        "product_p50_ms": bare,
        "ratio": p50 / bare,
        "build_s": built,
    }


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vectors", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--json", type=Path, help="file for the rows")
    options = parser.parse_args(arguments)
    rows = [measure(options.size, options.dimensions, storage) for storage in STORAGES]
    for row in rows:
        print(
            f"{row['engine']:16} p50 {row['p50_ms']:.2f} ms, p95 {row['p95_ms']:.2f} ms, "
            f"one product {row['product_p50_ms']:.2f} ms, ratio {row['ratio']:.2f}"
        )
    if options.json:
        save_rows(rows, options.json)


if __name__ == "__main__":
    main()

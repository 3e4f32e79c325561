"""Draw the growth curves from the rows of `benchmarks.speed`.

Run: python -m benchmarks.plot speed.json docs/speed.png
"""

import argparse
import json
from importlib import import_module
from pathlib import Path

from benchmarks.speed import Row

_PANELS = {
    "p50_ms": "search, p50 (ms)",
    "p95_ms": "search, p95 (ms)",
    "build_s": "build (s)",
    "memory_mb": "memory after opening (MB)",
}


def draw(rows: list[Row], target: Path) -> None:
    """Draw a log-log panel per measure with a curve per engine, as a PNG."""
    import_module("matplotlib").use("Agg")
    pyplot = import_module("matplotlib.pyplot")

    engines = list(dict.fromkeys(row["engine"] for row in rows))
    figure, grid = pyplot.subplots(2, 2, figsize=(10, 7), sharex=True)
    for axes, (column, title) in zip(grid.flat, _PANELS.items(), strict=True):
        for engine in engines:
            points = sorted(
                (row["size"], row[column])
                for row in rows
                if row["engine"] == engine and row.get(column)
            )
            if points:
                width = 2.5 if engine == "memsheaf" else 1.2
                axes.plot(*zip(*points, strict=True), marker="o", label=engine, linewidth=width)
        axes.set(xscale="log", yscale="log", title=title)
        axes.grid(alpha=0.3, which="both")
    for axes in grid[-1]:
        axes.set_xlabel("records")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(target, dpi=140)
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Draw from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plot", description=__doc__)
    parser.add_argument("rows", type=Path, help="file that --json wrote")
    parser.add_argument("target", type=Path, help="PNG to write")
    parser.add_argument("--corpus", default="zipf", help="zipf or text")
    options = parser.parse_args(arguments)
    rows = json.loads(options.rows.read_text())
    draw([row for row in rows if row["corpus"] == options.corpus], options.target)


if __name__ == "__main__":
    main()

"""The speed benchmark runs from the command line and writes its rows."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_rows_and_ratios_of_a_small_run(tmp_path: Path) -> None:
    target = tmp_path / "speed.json"
    text = tmp_path / "text.txt"
    text.write_text("".join(f"line {n} speaks of the pre-commit hook\n" for n in range(30)))
    common = ("benchmarks.speed", "--engines", "memsheaf,fts5", "--rounds", "1", "--queries", "4")
    printed = run(*common, "--size", "60,200", "--json", str(target))
    run(*common, "--size", "60", "--json", str(target), "--data", str(text))
    rows = json.loads(target.read_text())
    found = {(row["engine"], row["size"], row["corpus"]) for row in rows}
    engines = ("memsheaf", "fts5")
    assert found == {
        (e, n, c) for e in engines for n, c in ((60, "zipf"), (200, "zipf"), (60, "text"))
    }
    assert "memsheaf / fts5: p50 ms" in printed
    for row in rows:
        assert row["adds"] == 1000
        assert row["mean_hits"] > 5
        assert 0 < row["p50_ms"] <= row["p95_ms"]
        assert row["open_s"] > 0

"""The speed benchmark runs from the command line and writes its rows."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_the_curves_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [
        {"engine": engine, "size": size, "corpus": "zipf", "p50_ms": size / 1e5, "build_s": 1.0}
        for engine in ("memsheaf", "fts5")
        for size in (1_000, 10_000)
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    run("benchmarks.plot", str(tmp_path / "rows.json"), str(tmp_path / "speed.png"))
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_names_engines_and_options_that_exist() -> None:
    page = (ROOT / "docs" / "benchmarks-speed.md").read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z]+", page))
    known = set(re.findall(r"--[a-z]+", run("benchmarks.speed", "--help")))
    assert options
    assert options <= known
    rows = re.findall(r"^\| ([a-z0-9-]+) \|", page, re.MULTILINE)
    assert {"memsheaf", "tantivy", "fts5"} <= set(rows)

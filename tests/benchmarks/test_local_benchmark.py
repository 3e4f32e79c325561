"""The benchmark of the local store runs at small sizes and states its ratios."""

import json
from pathlib import Path

import pytest
from benchmarks import local


def test_figures_of_a_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "local.json"
    sizes = ["--writes", "100", "--users", "3", "--each", "20", "--queries", "8", "--records", "60"]
    local.main([*sizes, "--json", str(target)])
    figures = json.loads(target.read_text())
    assert figures["sizes"]["users"] == 3
    storing, searching = figures["storing"], figures["searching"]
    assert storing["ratio"] == pytest.approx(storing["store_p50_us"] / storing["bare_set_p50_us"])
    assert searching["ratio"] == pytest.approx(searching["many_p50_ms"] / searching["one_p50_ms"])
    assert figures["opening"]["open_s"] > 0
    assert capsys.readouterr().out.count("bound") == 3

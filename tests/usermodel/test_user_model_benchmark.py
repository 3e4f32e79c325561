"""A small run of the benchmark keeps its promises, and its check can fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import usermodel

from memsheaf.usermodel import UserModel

SMALL = usermodel.Load(users=6, items=60, kills=2, processes=1, workers=4, batch=5, delay=0.01)


def test_nothing_is_lost_repeated_or_out_of_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "figures.json"
    options = [
        "--users",
        "6",
        "--items",
        "90",
        "--kills",
        "3",
        "--processes",
        "1",
        "--workers",
        "4",
    ]
    assert usermodel.main([*options, "--json", str(target)]) == 0
    found = json.loads(target.read_text())
    assert json.loads(capsys.readouterr().out) == found
    assert (found["items"], found["kills"]) == (90, 3)
    assert found["missing"] == found["twice"] == found["users_out_of_order"] == 0
    assert found["batches"] >= 6


def test_the_check_sees_what_is_missing_or_out_of_order(folder: Path, echo_deriver: Any) -> None:
    with UserModel(folder, deriver=echo_deriver(), background=False) as model:
        for number in reversed(range(SMALL.items - 6)):
            user, item = SMALL.said(number)
            model.observe(item, user_id=user)
        model.flush()
    found = usermodel.verify(str(folder), SMALL)
    assert (found["missing"], found["twice"], found["users_out_of_order"]) == (6, 0, 6)

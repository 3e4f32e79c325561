"""Documents in which anything may stand anywhere: no importer of documents raises."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsheaf.sessionsearch.importers import ImportOptions, Source, load_importers

PAGES = Path(__file__).parents[3] / "docs" / "importing"
JSON_FORMATS = ("chatgpt", "claude-ai", "langchain", "openai-chat")
TEXT_FORMATS = ("aider", "markdown")
ODD: list[Any] = [
    None, True, 0, -1, 1e308, 10**30, "", " ", "x", "\x00\ud800", "a\nb", [], [[]], [None], ["x"],
    [{}], {}, {"": None}, {"type": "text", "text": None}, {"type": ["x"]}, "2026-01-05", [1, "x"],
]  # fmt: skip
OPTIONS = [ImportOptions(), ImportOptions(branches="all", include_thinking=False)]


def sample(name: str) -> str:
    found = re.search(
        r"## Sample\n\n```\w+\n(.*?)```\n", (PAGES / f"{name}.md").read_text(), re.DOTALL
    )
    assert found is not None
    return found[1]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each container with each of its keys."""
    found: list[tuple[Any, Any]] = []
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in list(inner):
        found.append((value, key))
        if isinstance(each, dict | list):
            found += places(each)
    return found


@pytest.mark.parametrize("name", JSON_FORMATS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_odd_values_anywhere_in_a_document(
    data: st.DataObject, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    value = copy.deepcopy(json.loads(sample(name)))
    for _ in range(data.draw(st.integers(1, 4))):
        holder, key = data.draw(st.sampled_from(places(value)))
        if isinstance(holder, list) and key >= len(holder):
            continue
        holder[key] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
    path = tmp_path_factory.mktemp("odd") / "a.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    importer = load_importers().named(name)
    source = Source(path)
    assert 0 <= importer.detect(source) <= 1
    for event in importer.read(source, data.draw(st.sampled_from(OPTIONS))):
        assert "None" not in str(getattr(getattr(event, "item", None), "text", ""))


@pytest.mark.parametrize("name", [*JSON_FORMATS, *TEXT_FORMATS])
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damage_anywhere_in_a_document(
    data: st.DataObject, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    damaged = bytearray(sample(name).encode())
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=6))
    path = tmp_path_factory.mktemp("damaged") / "a.data"
    path.write_bytes(bytes(damaged))
    importer = load_importers().named(name)
    source = Source(path)
    assert 0 <= importer.detect(source) <= 1
    list(importer.read(source, ImportOptions()))

"""JSON out of replies: where it may stand, what is refused, what hostile text costs."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.models import BadReply, JsonNotFound, extract_json

FOUND: list[tuple[str, Any]] = [
    ('{"a": 1}', {"a": 1}),
    ("  [1, 2]\n", [1, 2]),
    ("\ufeff{}", {}),
    ('```json\n{"a": 1}\n```', {"a": 1}),
    ("Here:\n```\n[]\n```\nand more", []),
    ("~~~json\n[3]\n~~~", [3]),
    ("```python\nprint({1})\n```\n```json\n[4]\n```", [4]),
    ('Sure! {"a": "}{"} Bye {"b": 2}', {"a": "}{"}),
    ('It said "{ not this" and then {"a": "\\"]"}', {"a": '"]'}),
    ("f(x) = {x} is code, [[1], {}] is JSON", [[1], {}]),
    ('He said "hi [' + ' then {"a": [1]}', {"a": [1]}),
    ('<think>maybe {"a": 0}?</think>\n{"a": 1}', {"a": 1}),
    ('```json\n{"a": "```"}\n```', {"a": "```"}),
    ('{"a": 1} {"b": 2}', {"a": 1}),
]


@pytest.mark.parametrize(("text", "value"), FOUND)
def test_found(text: str, value: Any) -> None:
    assert extract_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "7",
        '"{}"',
        "null",
        "{'a': 1}",
        '```json\n{"a": 1',
        "{",
        '{"a": NaN}',
        "[Infinity]",
    ],
)
def test_not_found(text: str) -> None:
    with pytest.raises(JsonNotFound, match="holds no JSON object or array") as info:
        extract_json(text)
    assert isinstance(info.value, BadReply)
    assert isinstance(info.value, ValueError)


def test_wanted_kind() -> None:
    text = 'As said in [1]: {"ops": [{"id": 3}]}'
    assert extract_json(text) == [1]
    assert extract_json(text, want="object") == {"ops": [{"id": 3}]}
    assert extract_json('{"a": 1} [2]', want="array") == [2]
    assert extract_json('```\n{"a": 1}\n```\n```\n[2]\n```', want="array") == [2]
    with pytest.raises(JsonNotFound, match="no JSON array"):
        extract_json('{"a": 1}', want="array")


def test_errors_do_not_show_the_text() -> None:
    with pytest.raises(JsonNotFound) as info:
        extract_json("Zanzibar {")
    assert "Zanzibar" not in str(info.value)
    assert info.value.__cause__ is None


HOSTILE = {
    "objects": "{" * 200_000,
    "arrays": "[" * 200_000,
    "keys": '{"a":' * 40_000,
    "strings": '["' * 100_000,
    "escaped": '["' + '\\"[' * 100_000,
    "lists": "[1,1,1,1,1,1,1,1," * 20_000,
    "flat": ("[" + "1," * 50) * 3_000,
    "numbers": "[" + "1" * 5_000 + "] " + ("[" + "9" * 5_000 + "]") * 40,
    "fences": "```\n~~~\n" * 40_000 + "```json\n[",
    "half fences": "```a`\n" * 60_000,
    "spaces": "```\n" + " \t" * 150_000,
    "think": "<think>" * 50_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_costs_a_bounded_number_of_steps(text: str) -> None:
    steps = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        with pytest.raises(JsonNotFound):
            extract_json(text)
    finally:
        sys.setprofile(None)
    assert steps < 2 * len(text) + 20_000


def test_json_after_very_many_places_that_look_like_it_is_not_looked_for() -> None:
    assert extract_json('["a" ' * 999 + "[7]") == [7]
    with pytest.raises(JsonNotFound):
        extract_json('["a" ' * 1000 + "[7]")


def test_too_long_is_refused() -> None:
    with pytest.raises(JsonNotFound, match="longer than"):
        extract_json(" " * 4_000_001)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
PROSE = st.text(alphabet=st.characters(exclude_characters="{[`~<"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(
    value=st.lists(VALUES, max_size=3) | st.dictionaries(st.text(max_size=4), VALUES, max_size=3),
    before=PROSE,
    after=st.text(max_size=20),
)
def test_round_trip_in_prose(value: Any, before: str, after: str) -> None:
    assert extract_json(before + json.dumps(value) + " " + after) == value or "```" in after


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet='{}[]",:\\`~ \n1a', max_size=60))
def test_any_text_gives_json_or_our_error(text: str) -> None:
    with suppress(JsonNotFound):
        assert isinstance(extract_json(text), dict | list)

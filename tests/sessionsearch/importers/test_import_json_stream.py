"""One huge JSON file in pieces: the same values as json.loads, whatever the chunks, and flaws."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.sessionsearch.importers import json_stream
from memsheaf.sessionsearch.importers.json_stream import JsonPart, json_parts

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(['"', "\\", '\\"', "{"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Dribble(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__()
        self.data = io.BytesIO(data)
        self.step = step

    def read(self, size: int = -1) -> bytes:
        return self.data.read(self.step)


def parts(text: str | bytes, *into: str, step: int | None = None, **limits: int) -> list[JsonPart]:
    data = text.encode() if isinstance(text, str) else text
    stream: Any = io.BytesIO(data) if step is None else Dribble(data, step)
    return list(json_parts(stream, into, **limits))


def values(found: list[JsonPart]) -> list[Any]:
    assert [part.flaw for part in found if part.flaw] == []
    return [part.value for part in found]


@settings(max_examples=80, deadline=None)
@given(st.lists(JSON, max_size=6), st.integers(1, 9), st.sampled_from([None, 1]), st.booleans())
def test_an_array_gives_what_json_gives(
    array: list[Any], step: int, indent: int | None, ascii_: bool
) -> None:
    text = json.dumps(array, indent=indent, ensure_ascii=ascii_).encode("utf-8", "surrogatepass")
    try:
        wanted = json.loads(text.decode())
    except UnicodeDecodeError:
        return
    found = parts(text, step=step)
    assert values(found) == wanted
    assert [part.index for part in found] == list(range(len(array)))
    for part in found:
        assert part.line == 1 + text[: part.offset].count(b"\n")
        decoded, _ = json.JSONDecoder().raw_decode(text[part.offset :].decode())
        assert decoded == part.value


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(["id", "messages", 'a"b', ""]), JSON), st.integers(1, 9))
def test_an_object_gives_its_members_and_the_elements_of_those_named(
    value: dict[str, Any], step: int
) -> None:
    text = json.dumps(value)
    wanted: list[tuple[str, int | None, Any]] = []
    for key, member in value.items():
        if key == "messages" and isinstance(member, list):
            wanted.extend((key, place, element) for place, element in enumerate(member))
        else:
            wanted.append((key, None, member))
    found = parts(text, "messages", step=step)
    assert [(p.key, p.index, p.value) for p in found] == wanted


def test_a_bad_element_costs_only_itself_and_is_told_with_its_place() -> None:
    found = parts('[{"a": 1},\n {"a": nil},\n {"a": NaN}, "\\x", 2]')
    assert [part.value for part in found] == [{"a": 1}, None, {"a": None}, None, 2]
    flaw = found[1]
    assert (flaw.line, flaw.offset, flaw.index) == (2, 12, 1)
    assert flaw.flaw == "not JSON (from byte 12)"
    assert found[3].line == 3


def test_bad_utf_8_is_replaced_and_a_mark_at_the_start_dropped() -> None:
    found = parts(b'\xef\xbb\xbf["a", "\xff\xfe", "\xe2\x80\xa8"]')
    assert [part.value for part in found] == ["a", "\ufffd\ufffd", "\u2028"]


@pytest.mark.parametrize(
    ("text", "good", "reason"),
    [
        (b"", 0, "empty"),
        (b" \n ", 0, "empty"),
        (b"\xff\xfe[\x00", 0, "UTF-16"),
        (b"hello", 0, "neither an array nor an object"),
        (b"[1, 2", 2, "ends too early"),
        (b"[1, 2,", 2, "ends too early"),
        (b'[1, {"a": "b', 1, "cut off (from byte 4)"),
        (b'[1, "a\\', 1, "cut off"),
        (b"[1 2]", 2, "a comma is missing (at byte 3)"),
        (b"[1}, 2]", 2, "a comma is missing"),
        (b"[1]\n[2]", 1, "more follows after the end"),
        (b'{"a": 1, b: 2, "c": 3}', 2, "a member's name"),
    ],
)
@pytest.mark.parametrize("step", [1, 1000])
def test_what_is_no_json_file_is_told(text: bytes, good: int, reason: str, step: int) -> None:
    found = parts(text, step=step)
    assert sum(part.flaw is None for part in found) == good
    assert reason in "\n".join(part.flaw or "" for part in found)


def test_garbage_without_an_end_is_given_up() -> None:
    found = parts("[" + ":" * 100_000)
    assert len(found) < 500
    assert "the rest is not read" in (found[-1].flaw or "")


@pytest.mark.parametrize("bracket", ["[", '{"a":'])
def test_hostile_nesting_costs_its_element(bracket: str) -> None:
    deep = bracket * 100_000 + "1" + ("]" if bracket == "[" else "}") * 100_000
    found = parts(f"[1, {deep}, 2]")
    assert [part.value for part in found] == [1, None, 2]
    assert "nested deeper than 200 levels" in (found[1].flaw or "")


def test_a_number_of_a_million_digits_costs_its_element() -> None:
    found = parts("[1, " + "9" * 1_000_000 + ", 2]")
    assert [part.value for part in found] == [1, None, 2]


@pytest.mark.parametrize("body", ["x", "\\\\", '\\"', "{[", "é"])
def test_what_is_too_large_is_passed_over_and_told(body: str) -> None:
    long = body * (300_000 // len(body.encode()))
    found = parts(f'["a", "{long}", ["{long}"], "b"]', step=4096, max_bytes=200_000)
    assert [part.value for part in found] == ["a", None, None, "b"]
    assert "larger than 200000 bytes" in (found[1].flaw or "")
    assert values(parts(f'["a", "{long}"]', step=4096))[1] == json.loads(f'"{long}"')


def test_memory_is_bounded_by_the_largest_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", 1 << 14)
    element = json.dumps({"text": "lantern " * 1000}).encode()

    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            super().__init__()
            self.chunks: Iterator[bytes] = iter([b"[", *[element + b","] * 2000, b"1]"])

        def read(self, size: int = -1) -> bytes:
            return next(self.chunks, b"")

    tracemalloc.start()
    count = sum(part.flaw is None for part in json_parts(Endless()))  # type: ignore[arg-type]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 2001
    assert peak < 1_000_000  # of 16 MB

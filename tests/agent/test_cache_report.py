"""Where two requests part."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.agent import cache_report
from memsheaf.stack import UsageError

SYSTEM = {"role": "system", "content": "Be brief."}
ASKED = {"role": "user", "content": "Who plays the cello?"}


def size(*messages: Any) -> int:
    return sum(
        len(json.dumps(m, ensure_ascii=False, separators=(",", ":")).encode()) + 1 for m in messages
    )


def test_equal_requests() -> None:
    report = cache_report([SYSTEM, ASKED], [dict(SYSTEM), MappingProxyType(ASKED)])
    assert (report.path, report.message, report.extended, report.share) == (None, None, True, 1)
    assert report.byte == report.before_bytes == report.after_bytes == size(SYSTEM, ASKED)
    assert str(report) == f"equal: {report.byte} bytes"
    assert cache_report([], []).share == 1


def test_a_longer_request_extends_the_shorter() -> None:
    report = cache_report([SYSTEM], [SYSTEM, ASKED])
    assert (report.byte, report.message, report.path) == (size(SYSTEM), 1, "messages[1]")
    assert report.extended
    back = cache_report([SYSTEM, ASKED], [SYSTEM])
    assert (back.byte, back.path, back.extended) == (size(SYSTEM), "messages[1]", False)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"content": "Who plays the viola?"}, "messages[1].content"),
        ({"role": "assistant"}, "messages[1].role"),
        ({"content": [{"type": "text", "text": "Who"}]}, "messages[1].content"),
        ({"name": "mira"}, "messages[1]"),
    ],
)
def test_the_place_is_named(change: dict[str, Any], path: str) -> None:
    report = cache_report([SYSTEM, ASKED], [SYSTEM, {**ASKED, **change}, ASKED])
    assert (report.message, report.path, report.extended) == (1, path, False)
    assert size(SYSTEM) < report.byte < size(SYSTEM, ASKED)


def test_a_place_inside_parts_is_named() -> None:
    parts: list[Any] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    one = {"role": "user", "content": parts}
    two = {"role": "user", "content": [parts[0], {"type": "text", "text": "c"}]}
    assert cache_report([one], [two]).path == "messages[0].content[1].text"
    longer = {"role": "user", "content": [*parts, parts[0]]}
    assert cache_report([one], [longer]).path == "messages[0].content[2]"


def test_whole_bodies_are_compared_in_the_order_of_the_cache() -> None:
    body = {"model": "m", "messages": [ASKED], "system": "Be brief.", "tools": [{"name": "a"}]}
    assert cache_report(body, {**body, "model": "n", "temperature": 1}).path is None
    other_tool = cache_report(body, {**body, "tools": [{"name": "b"}], "system": "x"})
    assert (other_tool.path, other_tool.message) == ("tools[0].name", None)
    assert other_tool.byte < 12
    clock = cache_report(body, {**body, "system": "Be brief. It is 9:41."})
    assert (clock.path, clock.message) == ("system", None)
    gone = cache_report(body, {**body, "tools": None})
    assert gone.path == "tools[0]"


@settings(max_examples=100, deadline=None)
@given(
    before=st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": st.text()})),
    after=st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": st.text()})),
)
def test_the_byte_is_where_they_part(before: list[Any], after: list[Any]) -> None:
    def encoded(messages: list[Any]) -> bytes:
        lines = [json.dumps(m, ensure_ascii=False, separators=(",", ":")) + "\n" for m in messages]
        return "".join(lines).encode("utf-8", "surrogatepass")

    one, two = encoded(before), encoded(after)
    report = cache_report(before, after)
    assert one[: report.byte] == two[: report.byte]
    assert one[report.byte : report.byte + 1] != two[report.byte : report.byte + 1] or one == two
    assert report.extended == two.startswith(one)
    assert (report.path is None) == (one == two)
    if report.message is not None:
        assert before[: report.message] == after[: report.message]


@pytest.mark.parametrize("wrong", ["text", b"text", 7, None, [object()], [{1, 2}]])
def test_what_is_no_request_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="request"):
        cache_report(wrong, [])
    with pytest.raises(UsageError, match="request"):
        cache_report([], wrong)

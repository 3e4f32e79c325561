"""Blocks that come back are taken out, however they are cut; look-alikes stay."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.agent import Scrubber, strip_blocks, strip_messages, strip_value
from memsheaf.agent.block import NOTICE, build_block
from memsheaf.agent.budget import Sizes
from memsheaf.agent.messages import with_block
from memsheaf.stack import Hit, MemoryRecord, Scope

ID, OTHER = "0123456789abcdef", "fedcba9876543210"
ISSUED = {ID}
MIRA = Scope(user_id="mira")


def block(block_id: str = ID, *texts: str) -> str:
    hits = [Hit(MemoryRecord(content=text, scope=MIRA)) for text in texts or ("plays the cello",)]
    made = build_block(hits, [("profile", "lives in Graz\nis brief")], block_id, Sizes(10_000))
    assert made is not None
    return made.text


BLOCK = block()
LINES = BLOCK.split("\n")
OPEN, CLOSE = f"<memory-context-{ID}>", f"</memory-context-{ID}>"
# (what a model says, what is left of it)
ECHOES = [
    (BLOCK, ""),
    (f"Mira.\n\n{BLOCK}", "Mira."),
    (f"Sure! {BLOCK} Mira does.", "Sure!  Mira does."),
    (f"```\n{BLOCK}\n```\nMira.", "```\n```\nMira."),
    (f"{BLOCK}{BLOCK}\n{BLOCK}Mira.", "Mira."),
    (f"a\n\n\n\n{BLOCK}\n\nb", "a\n\n\n\nb"),
    (" ".join(LINES), ""),  # the model has joined the lines
    ("\r\n".join(LINES) + "\r\nMira.", "\r\nMira."),
    ("\n  ".join(LINES), ""),
    ("\n".join(LINES[:-1]), ""),  # it broke off
    ("Mira.\n\n" + "\n".join(LINES[:3])[:-9], "Mira."),
    ("Mira.\n\n" + "\n".join(LINES[:2])[:-9], "Mira."),
    ("\n".join(LINES[:-1]) + "\n\nMira plays the cello.", "\n\nMira plays the cello."),
    (f"{OPEN}{CLOSE}Mira.", "Mira."),
    (f"{OPEN}\n{NOTICE}\nMira.", "\nMira."),
    # a tag that comes to be by taking a block out of it
    (f"{OPEN[:12]}{BLOCK}{OPEN[12:]}\n{LINES[2]}\n{CLOSE}!", "!"),
    (f"{OPEN[:12]}{OPEN[:5]}{BLOCK}{OPEN[5:]}\n{LINES[2]}\n{CLOSE}{OPEN[12:]}{CLOSE}!", "!"),
]
TEXTS = [
    "",
    "\n\n\n",
    "What is <memory-context-0123456789abcdef>?",
    f"The tag {OPEN} opens it, {CLOSE} closes it.",
    f"It ends with {CLOSE}",
    f"It begins with {OPEN}",
    f"{OPEN} and {OPEN} and more",
    f"{OPEN}\n\nnot a block\n{CLOSE}",
    block(OTHER),
    f"Who?\n\n{block(OTHER)}\n\nSo?",
    f"<memory-context-{OTHER}>\n{LINES[2]}\n{CLOSE}",
    "<memory-context-", "<memory-context-0123>", "<", "\n\n<", "<<memory-context", "a < b",
    f"<memory-context-{ID}0>\n{LINES[2]}\n</memory-context-{ID}0>",
    f"<memory-context-{ID.upper()}>\n{LINES[2]}\n</memory-context-{ID.upper()}>",
    f"< memory-context-{ID}>\n{LINES[2]}\n</memory-context-{ID}>",
    f"\uff1cmemory-context-{ID}\uff1e\n{LINES[2]}",
    "\x00\ud800\u202e",
]  # fmt: skip


@pytest.mark.parametrize(("said", "left"), ECHOES)
def test_a_block_is_taken_out(said: str, left: str) -> None:
    assert strip_blocks(said, ISSUED) == left


@pytest.mark.parametrize("text", TEXTS)
def test_what_only_looks_like_a_block_keeps_its_bytes(text: str) -> None:
    assert strip_blocks(text, ISSUED) == text


@pytest.mark.parametrize("said", [said for said, _ in ECHOES] + TEXTS)
def test_a_stream_is_scrubbed_at_every_split(said: str) -> None:
    left = strip_blocks(said, ISSUED)
    scrubber = Scrubber(ISSUED)
    for place in range(len(said) + 1):
        shown = scrubber.feed(said[:place]) + scrubber.feed(said[place:]) + scrubber.flush()
        assert shown == left, place
    for size in (1, 2, 3, 7):
        chunks = [said[n : n + size] for n in range(0, len(said), size)]
        assert "".join(map(scrubber.feed, chunks)) + scrubber.flush() == left


PIECES = st.lists(
    st.sampled_from(
        [said for said, _ in ECHOES[:6]]
        + [*LINES, OPEN, CLOSE, OPEN[:9], OPEN[9:], "\n", "\n\n", "<", " ", "{", '{"', "Mira."]
        + [block(OTHER), f"<memory-context-{OTHER}>"]
    )
    | st.text(max_size=4),
    max_size=9,
)


@settings(max_examples=300, deadline=None)
@given(pieces=PIECES, cuts=st.lists(st.integers(0, 3_000), max_size=12))
def test_a_stream_is_scrubbed_however_it_is_cut(pieces: list[str], cuts: list[int]) -> None:
    said = "".join(pieces)
    ends = [*sorted(cut % (len(said) + 1) for cut in cuts), len(said)]
    scrubber = Scrubber(ISSUED)
    shown, start = "", 0
    for end in ends:
        shown += scrubber.feed(said[start:end])
        start = end
    assert shown + scrubber.flush() == strip_blocks(said, ISSUED)


@settings(max_examples=200, deadline=None)
@given(
    before=st.text(max_size=30),
    after=st.text(max_size=30).filter(lambda text: text.lstrip()[:1] != "<"),
    memory=st.text(min_size=1, max_size=40).filter(str.strip),
)
def test_words_around_a_block_keep_their_bytes(before: str, after: str, memory: str) -> None:
    hits = [Hit(MemoryRecord(content=memory, scope=MIRA))]
    made = build_block(hits, [], ID, Sizes(10_000))
    assert made is not None
    assert strip_blocks(f"{before}\n\n{made.text}{after}", ISSUED) == before + after


def test_text_is_given_out_as_soon_as_it_can_be_no_tag() -> None:
    scrubber = Scrubber(ISSUED)
    assert scrubber.feed("Mira plays") == "Mira plays"
    assert scrubber.feed(" <") == " "
    assert scrubber.feed("b>the</b> ") == "<b>the</b> "
    assert scrubber.feed("<memory-con") == ""
    assert scrubber.feed("tex") == ""
    assert scrubber.feed("ts") == "<memory-contexts"
    assert scrubber.feed(f"\n\n{OPEN}") == ""
    assert scrubber.feed(" is a tag") == f"\n\n{OPEN} is a tag"
    assert scrubber.feed(f"{BLOCK[:-20]}") == ""
    assert scrubber.feed(BLOCK[-20:] + "cello") == "cello"
    assert scrubber.flush() == ""


def test_a_scrubber_serves_the_next_stream() -> None:
    scrubber = Scrubber(ISSUED)
    assert scrubber.feed(BLOCK[:60]) == ""
    assert scrubber.flush() == ""
    assert scrubber.feed("Mira.") + scrubber.flush() == "Mira."


def test_a_long_stream_is_read_once() -> None:
    scrubber = Scrubber(ISSUED)
    line = '{"memory": "m1"}\n'
    assert scrubber.feed(f"{OPEN}\n") == ""
    assert "".join(scrubber.feed(line) for _ in range(20_000)) == ""
    assert scrubber.feed(f"{CLOSE}Mira.") == "Mira."
    assert strip_blocks("<memory-context-" * 5_000, ISSUED) == "<memory-context-" * 5_000
    assert strip_blocks(f"{OPEN} " * 3_000, ISSUED) == f"{OPEN} " * 3_000


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


PART = {"type": "text", "text": "Who plays?"}
IMAGE = {"type": "image", "source": {"data": "AAAA"}}


@pytest.mark.parametrize(
    "message",
    [
        user("Who plays?"),
        user("Who plays?\n"),
        user([PART]),
        user([PART, IMAGE]),
        user(["bare"]),
        user([{"type": "input_text", "text": "Who?"}, {"type": "input_image", "image_url": "x"}]),
        user([PART, {"type": "tool_result", "tool_use_id": "t1", "content": "42"}]),
    ],
)
def test_what_was_sent_comes_back_as_the_user_said_it(message: dict[str, Any]) -> None:
    sent = [{"role": "system", "content": "Be brief."}, with_block(message, BLOCK)]
    before = copy.deepcopy(sent)
    assert strip_messages(sent, ISSUED) == [sent[0], message]
    assert sent == before
    assert strip_messages(sent, {OTHER}) == sent


@pytest.mark.parametrize(
    ("message", "left"),
    [
        (user(BLOCK), None),
        (user([{"type": "text", "text": BLOCK}]), None),
        ({"role": "assistant", "content": f"Mira.\n\n{BLOCK}"}, "Mira."),
        ({"role": "tool", "tool_call_id": "t1", "content": BLOCK}, ""),
        ({"role": "assistant", "content": BLOCK, "tool_calls": [{"id": "t1"}]}, ""),
        (user([{"type": "tool_result", "tool_use_id": "t1", "content": BLOCK}]), "parts"),
    ],
)
def test_a_message_that_is_only_a_block_is_left_out(message: Any, left: str | None) -> None:
    made = strip_messages([message], ISSUED)
    if left is None:
        assert made == []
    elif left == "parts":
        assert made == [user([{"type": "tool_result", "tool_use_id": "t1", "content": ""}])]
    else:
        assert made == [{**message, "content": left}]


def test_messages_without_a_block_are_passed_on() -> None:
    messages: list[Any] = [user("hi"), user(None), {}, object(), user([PART, None, 7]), "text"]
    made = strip_messages(messages, ISSUED)
    assert all(one is other for one, other in zip(made, messages, strict=True))


def called(arguments: Any) -> dict[str, Any]:
    function = {"name": "memory_remember", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "t1", "function": function}]}


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (json.dumps({"content": f"Mira\n\n{BLOCK}"}), '{"content": "Mira"}'),
        (
            json.dumps({"a": [BLOCK, 7, None, {"b": f"{BLOCK}x"}]}),
            '{"a": ["", 7, null, {"b": "x"}]}',
        ),
        (json.dumps(BLOCK), '""'),
        ({"content": f"Mira\n\n{BLOCK}"}, {"content": "Mira"}),
        (f"{{content: {BLOCK}", "{content: "),  # no JSON
    ],
)
def test_arguments_of_tools_are_looked_through(arguments: Any, left: Any) -> None:
    message = called(arguments)
    before = copy.deepcopy(message)
    assert strip_messages([message], ISSUED) == [called(left)]
    assert message == before
    part = {"type": "tool_use", "id": "t1", "name": "memory_remember", "input": arguments}
    kept = {"role": "assistant", "content": [{**part, "input": left}]}
    assert strip_messages([{"role": "assistant", "content": [part]}], ISSUED) == [kept]


@pytest.mark.parametrize(
    "arguments",
    [
        json.dumps({"content": block(OTHER)}),
        '{ "content":"<memory-context-" }',
        '{"content": "\\u00e9 <b>"}',
        {"content": "x", "tags": ["a"]},
        None,
        7,
    ],
)
def test_arguments_without_a_block_keep_their_bytes(arguments: Any) -> None:
    message = called(arguments)
    assert strip_messages([message], ISSUED)[0] is message
    assert strip_value(arguments, ISSUED) is arguments

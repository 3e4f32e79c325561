"""Every shape of message that the two styles allow is passed on; the right one gets the block."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsheaf.agent import inject, inject_system
from memsheaf.stack import MemoryStack, Scope, hookimpl

MakeStack = Callable[..., MemoryStack]
IMAGE = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "42"}]}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


class Echo:
    """Its context is the query itself."""

    inline = True

    @hookimpl
    def build_user_context(self, scope: Scope, text: str) -> str:
        return f"asked: {text}"


@pytest.mark.parametrize(
    ("content", "query", "kind"),
    [
        ([text("cello?")], "cello?", "text"),
        ([text("one"), IMAGE, text("two")], "one\\ntwo", "text"),
        ([RESULT, text("and now?")], "and now?", "text"),
        ([text("look"), {"type": "text", "text": None}], "look\\n", "text"),
        (
            [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "x"}],
            "see",
            "input_text",
        ),
        (["bare"], "bare", "text"),
        ((text("in a tuple"),), "in a tuple", "text"),
    ],
)
def test_parts_get_one_more_part(
    make_stack: MakeStack, content: Any, query: str, kind: str
) -> None:
    messages = [user(content)]
    before = copy.deepcopy(messages)
    made = inject(messages, make_stack(also=[Echo()]))
    assert messages == before
    assert made.block is not None
    assert f'"asked: {query}"' in made.block
    assert made.messages == [user([*content, {"type": kind, "text": made.block}])]


@pytest.mark.parametrize(
    "later",
    [
        user([RESULT]),
        user([{"type": "tool-result", "result": "42"}]),
        user(None),
        {"role": "user"},
        user(""),
        user([]),
        user([text(" ")]),
        user(7),
        user([None, 7, {"text": "no type"}]),
        {"role": "tool", "tool_call_id": "t1", "content": None},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "tool_calls": [{"id": "t1"}]},
        {"type": "function_call_output", "output": "42"},
        object(),
    ],
)
def test_what_holds_no_words_of_the_user_is_passed_over(make_stack: MakeStack, later: Any) -> None:
    messages = [user("weather?"), later]
    made = inject(messages, make_stack(also=[Echo()]))
    assert made.messages[0]["content"] == f"weather?\n\n{made.block}"
    assert made.messages[1] is later
    alone = inject([later], make_stack(also=[Echo()]))
    assert (alone.messages, alone.block) == ([later], None)


def test_a_picture_alone_has_no_query_but_takes_a_given_one(make_stack: MakeStack) -> None:
    stack = make_stack(also=[Echo()])
    messages = [user("before"), user([IMAGE])]
    assert inject(messages, stack).messages == messages
    made = inject(messages, stack, query="a cello")
    assert made.messages == [messages[0], user([IMAGE, text(made.block or "")])]


def test_missing_and_null_contents_are_accepted(make_stack: MakeStack) -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "w", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        user("weather?"),
        {"role": "assistant", "tool_calls": [call]},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": ""},
        {"role": "tool", "tool_call_id": "t1", "content": None},
        {"role": "developer", "content": "be brief"},
        {"role": "user"},
    ]
    made = inject(messages, make_stack(also=[Echo()]))
    assert made.messages[1:] == messages[1:]
    assert made.block is not None
    assert "None" not in made.block
    assert "null" not in made.block


def test_other_fields_of_the_message_stay(make_stack: MakeStack) -> None:
    message = MappingProxyType({"role": "user", "name": "mira", "content": "cello"})
    made = inject([message], make_stack(also=[Echo()]))
    assert made.messages == [{"role": "user", "name": "mira", "content": f"cello\n\n{made.block}"}]


CONTENTS = st.one_of(
    st.none(),
    st.text(max_size=20),
    st.lists(
        st.one_of(
            st.builds(text, st.text(max_size=20)),
            st.just(IMAGE),
            st.just(RESULT),
            st.just({"type": "text"}),
            st.none(),
        ),
        max_size=3,
    ),
)
MESSAGES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool"])},
            optional={"content": CONTENTS},
        ),
        st.just({}),
    ),
    max_size=6,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(messages=MESSAGES)
def test_any_list_keeps_every_message_but_one(
    make_stack: MakeStack, messages: list[dict[str, Any]]
) -> None:
    before = copy.deepcopy(messages)
    with MemoryStack([Echo()], scope=Scope(user_id="mira")) as stack:
        made = inject(messages, stack, query="cello")
        assert inject_system(messages, stack) == before
    assert messages == before
    assert made.messages is not messages
    changed = [n for n, m in enumerate(made.messages) if m != before[n]]
    assert len(made.messages) == len(before)
    assert len(changed) == (made.block is not None)
    for place in changed:
        was, now = before[place]["content"], made.messages[place]["content"]
        assert now[: len(was)] == was
        assert before[place]["role"] == "user"

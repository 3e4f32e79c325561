"""Messages become items: words, calls and results, and whose words they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import BaseModel

from memsheaf.agent import items_of, messages_of
from memsheaf.sessionsearch import ItemOrigin


def test_openai_messages() -> None:
    items = items_of(
        [
            {"role": "system", "content": "You are a helper."},
            {"role": "user", "content": "Where is the cello?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "find", "arguments": '{"what": "cello"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "in the hall"},
            {"role": "assistant", "content": "In the hall."},
        ],
        response_id="r1",
    )
    assert [(i.type, i.role, i.origin) for i in items] == [
        ("message", "user", ItemOrigin.USER),
        ("tool_call", "assistant", ItemOrigin.AGENT),
        ("tool_result", "tool", ItemOrigin.TOOL),
        ("message", "assistant", ItemOrigin.AGENT),
    ]
    assert [i.response_id for i in items] == [None, "r1", "r1", "r1"]
    assert items[1].text == 'find {"what": "cello"}'
    assert items[1].data["id"] == items[2].data["id"] == "c1"


def test_anthropic_blocks() -> None:
    items = items_of(
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "t", "name": "find", "input": {"what": "cello"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "is_error": True,
                        "content": [{"type": "text", "text": "no such room"}],
                    }
                ],
            },
        ]
    )
    assert [(i.type, i.text) for i in items] == [
        ("message", "Let me look."),
        ("tool_call", 'find {"what": "cello"}'),
        ("tool_result", "no such room"),
    ]
    assert items[2].status == "failed"
    assert items[2].origin == ItemOrigin.TOOL


def test_a_clock_s_words_are_not_the_user_s() -> None:
    said = [{"role": "user", "content": "Summarise my mail."}]
    assert items_of(said, origin="automation")[0].origin == ItemOrigin.AUTOMATION
    assert items_of(said, origin="sub_agent")[0].origin == ItemOrigin.AGENT


def test_pictures_are_counted() -> None:
    parts = [{"type": "image_url", "image_url": {"url": "data:..."}}]
    items = items_of([{"role": "user", "content": parts}])
    assert items[0].text == ""
    assert items[0].metadata == {"attachments": 1}


def test_odd_messages_are_left_out() -> None:
    odd = ["text", None, 7, {}, {"role": "user"}, {"role": "user", "content": None}]
    assert items_of(odd) == []
    calls = {"role": "assistant", "content": "x", "tool_calls": ["a", {"function": 3}]}
    assert [i.type for i in items_of([calls])] == ["message"]


def test_the_words_go_on_where_they_were_left() -> None:
    said = [
        {"role": "user", "content": "Where is the cello?"},
        {"role": "assistant", "content": "In the hall."},
    ]
    assert messages_of(items_of(said)) == said


class Function(BaseModel):
    name: str
    arguments: str


class Call(BaseModel):
    id: str
    type: str = "function"
    function: Function


class Reply(BaseModel):
    role: str = "assistant"
    content: str | list[Any] | None = None
    tool_calls: list[Call] | None = None


class Block(BaseModel):
    type: str = "text"
    text: str


@dataclass
class Part:
    type: str = "text"
    text: str = "from a part"
    extra: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def test_objects_of_clients_are_messages_too() -> None:
    """As in `messages.append(response.choices[0].message)`."""
    calls = [Call(id="1", function=Function(name="find", arguments="{}"))]
    items = items_of(
        [
            {"role": "user", "content": "Where?"},
            Reply(tool_calls=calls),
            {"role": "tool", "tool_call_id": "1", "content": "hall"},
            Reply(content="In the hall."),
            {"role": "assistant", "content": [Block(text="Or the cellar."), Part()]},
        ]
    )
    assert [(i.type, i.text) for i in items] == [
        ("message", "Where?"),
        ("tool_call", "find {}"),
        ("tool_result", "hall"),
        ("message", "In the hall."),
        ("message", "Or the cellar.\nfrom a part"),
    ]


def test_an_answer_in_parts_of_the_newer_kind() -> None:
    parts = [{"type": "output_text", "text": "Hello.", "annotations": []}]
    assert [i.text for i in items_of([{"role": "assistant", "content": parts}])] == ["Hello."]


def test_of_memory_s_own_tools_no_words_are_kept() -> None:
    """Else each search would find the results of the searches before it."""
    call = {"id": "1", "type": "function", "function": {"name": "memory_recall", "arguments": "{}"}}
    use = {"type": "tool_use", "id": "2", "name": "session_search", "input": {}}
    items = items_of(
        [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "Mira plays the cello"},
            {"role": "assistant", "content": [use]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "2", "content": "cello"}],
            },
            {"role": "tool", "tool_call_id": "3", "name": "user_context", "content": "cello"},
        ]
    )
    assert [i.text for i in items if i.type == "tool_result"] == ["", "", ""]
    assert len(items) == 5


def test_what_goes_on_begins_with_the_user() -> None:
    said = [
        {"role": "assistant", "content": "In the hall."},
        {"role": "user", "content": "Why?"},
    ]
    assert messages_of(items_of(said)) == said[1:]
    assert messages_of(items_of(said[:1])) == []


def test_shapes_that_models_really_send() -> None:
    """An assistant without content, with none, or with an empty list of calls."""
    talk = [
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "w", "arguments": "{}"}}
            ],
        },
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": None, "tool_calls": 7},
        {"role": "assistant", "content": ""},
        {"role": "tool", "tool_call_id": "t1", "content": None},
        {"role": "developer", "content": "be brief"},
        {"role": "user"},
    ]
    items = items_of(talk)
    assert [(i.type, i.text) for i in items] == [
        ("message", "weather?"),
        ("tool_call", "w {}"),
        ("tool_result", ""),
    ]

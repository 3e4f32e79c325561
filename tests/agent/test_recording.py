"""Messages become items: words, calls and results, and whose words they are."""

from __future__ import annotations

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

"""The tools: what models send is taken, what they may not do is refused, nothing raises."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.agent import Access, MemoryTools
from memsheaf.agent.definitions import DEFINITIONS
from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryStack, Scope
from memsheaf.stack.doubles import FailingProvider

MIRA = Scope(user_id="mira")


@pytest.fixture
def stack() -> Iterator[MemoryStack]:
    with MemoryStack([LocalStore()], scope=MIRA) as made:
        yield made


@pytest.fixture
def tools(stack: MemoryStack) -> MemoryTools:
    return MemoryTools(stack)


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema of an object inside a schema."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


def test_strict_schemas_hold_what_the_strict_mode_demands() -> None:
    for definition in DEFINITIONS:
        made = definition.to_schema("openai")
        assert made["function"]["strict"] is True
        found = list(objects(made["function"]["parameters"]))
        assert found
        for one in found:
            assert one["additionalProperties"] is False
            assert one["required"] == list(one["properties"])
        text = json.dumps(made)
        for word in ("default", "minLength", "pattern", "format", "minimum"):
            assert f'"{word}":' not in text


def test_optional_arguments_may_be_null_in_the_strict_form_only() -> None:
    recall = next(d for d in DEFINITIONS if d.name == "memory_recall")
    strict = recall.to_schema("openai")["function"]["parameters"]["properties"]
    assert strict["limit"]["type"] == ["integer", "null"]
    assert strict["query"]["type"] == "string"
    plain = recall.to_schema("anthropic")["input_schema"]
    assert plain["required"] == ["query"]
    assert plain["properties"]["limit"]["type"] == "integer"
    assert recall.to_schema("json")["parameters"] == plain


def test_a_nullable_choice_names_null() -> None:
    remember = next(d for d in DEFINITIONS if d.name == "memory_remember")
    kind = remember.to_schema("openai")["function"]["parameters"]["properties"]["kind"]
    assert None in kind["enum"]
    assert "note" in kind["enum"]


def test_what_is_remembered_is_recalled_and_forgotten(tools: MemoryTools) -> None:
    made = tools.call(
        "memory_remember",
        {"content": "Mira plays the cello", "type": "fact", "tags": ["Music"], "importance": 0.8},
    )
    assert made["status"] == "remembered"
    assert made["stored"] is True
    assert (made["type"], made["tags"], made["importance"]) == ("fact", ["music"], 0.8)
    found = tools.call("memory_recall", {"query": "cello"})
    assert found["status"] == "found"
    assert found["count"] == 1
    memory = found["memories"][0]
    assert memory["id"] == made["id"]
    assert memory["content"] == "Mira plays the cello"
    assert 0 < memory["score"] <= 1
    assert memory["created_at"].endswith("+00:00")
    gone = tools.call("memory_forget", {"id": made["id"]})
    assert gone == {"status": "forgotten", "forgotten": True, "id": made["id"]}
    assert tools.call("memory_recall", {"query": "cello"})["memories"] == []


def test_forgotten_is_true_only_where_it_is(tools: MemoryTools) -> None:
    answer = tools.call("memory_forget", {"id": "no-such-memory"})
    assert answer["forgotten"] is False
    assert answer["status"] == "not_found"


def test_another_owner_s_memory_is_not_forgotten(stack: MemoryStack) -> None:
    other = stack.store("Noor is allergic to nuts", scope=Scope(user_id="noor"))
    answer = MemoryTools(stack).call("memory_forget", {"id": other.id})
    assert answer["forgotten"] is False
    assert stack.get(other.id, Scope(user_id="noor")) is not None


def test_the_model_cannot_choose_whose_memory_it_is(stack: MemoryStack) -> None:
    tools = MemoryTools(stack)
    made = tools.call("memory_remember", {"content": "x marks the spot", "user_id": "noor"})
    assert stack.get(made["id"], MIRA) is not None
    assert stack.get(made["id"], Scope(user_id="noor")) is None
    assert any("host" in note for note in made["notes"])


def test_a_recall_counts_as_an_access_and_a_search_does_not(stack: MemoryStack) -> None:
    made = stack.store("Mira plays the cello")
    stack.search("cello")
    tools = MemoryTools(stack)
    tools.call("memory_recall", {"query": "cello"})
    tools.call("memory_recall", {"query": "cello"})
    record = stack.get(made.id)
    assert record is not None
    assert record.access_count == 2


@pytest.mark.parametrize("name", ["query", "q", "text"])
@pytest.mark.parametrize("limit", [{"limit": 2}, {"top_k": "2"}, {"k": 2.0}, {"limit": "2.0"}])
def test_names_and_types_that_models_send(
    tools: MemoryTools, name: str, limit: dict[str, Any]
) -> None:
    for number in range(4):
        tools.call("memory_remember", {"content": f"cello lesson {number}"})
    assert tools.call("memory_recall", {name: "cello", **limit})["count"] == 2


def test_limits_are_clamped_and_said(tools: MemoryTools) -> None:
    answer = tools.call("memory_recall", {"query": "cello", "limit": 9_000})
    assert answer["notes"] == ["limit 9000 was lowered to 50"]
    answer = tools.call("memory_recall", {"query": "cello", "limit": -3})
    assert answer["notes"] == ["limit -3 is not above 0; 5 was used"]
    answer = tools.call("memory_remember", {"content": "a", "importance": "42"})
    assert answer["importance"] == 1.0
    assert answer["notes"] == ["importance 42 was lowered to 1"]


def test_null_is_the_same_as_left_out(tools: MemoryTools) -> None:
    given = {"content": "a b", "kind": None, "tags": None, "importance": None, "evergreen": None}
    answer = tools.call("memory_remember", given)
    assert (answer["type"], answer["tags"], answer["importance"]) == ("note", [], 0.5)
    assert "notes" not in answer


@pytest.mark.parametrize(
    ("tags", "kept"),
    [
        ('["home","garden"]', ["home", "garden"]),
        ("home", ["home"]),
        ("home, garden", ["home", "garden"]),
        (["home", 7], ["home", "7"]),
    ],
)
def test_lists_may_come_as_text(tools: MemoryTools, tags: object, kept: list[str]) -> None:
    assert tools.call("memory_remember", {"content": "a b", "tags": tags})["tags"] == kept


def test_arguments_may_be_encoded_twice(tools: MemoryTools) -> None:
    twice = json.dumps(json.dumps({"content": "Mira plays the cello"}))
    assert tools.call("memory_remember", twice)["content"] == "Mira plays the cello"
    thrice = json.dumps(twice)
    assert tools.call("memory_remember", thrice)["error"] == "invalid_arguments"


def test_guidance_names_the_offered_tools_alone(stack: MemoryStack) -> None:
    guidance = MemoryTools(stack).guidance
    assert guidance is not None
    assert guidance == MemoryTools(stack).guidance
    for name in ("memory_remember", "memory_recall", "memory_forget"):
        assert f"- {name}: " in guidance
    assert "session_search" not in guidance
    assert "memory_forget" not in str(MemoryTools(stack, access="read_only").guidance)
    assert MemoryTools(None).guidance is None


def test_errors_hold_no_text_of_memories(stack: MemoryStack) -> None:
    secret = "the code is 4711"
    theirs = stack.store(secret, scope=Scope(user_id="noor"))
    tools = MemoryTools(stack)
    answers = [
        tools.call("memory_forget", {"id": theirs.id}),
        tools.call("memory_remember", {"content": "x" * 70_000 + secret}),
        tools.call("memory_remember", {"content": secret, "importance": "much"}),
        tools.call("memory_recall", {"query": "code"}),
        tools.call("memory_recall", {"query": "code", "kinds": ["bogus"]}),
    ]
    assert secret not in json.dumps(answers)


def test_a_provider_s_own_words_do_not_reach_the_model() -> None:
    failing = FailingProvider(ValueError("password=4711"))
    with MemoryStack([LocalStore(), failing], scope=MIRA) as stack:
        tools = MemoryTools(stack)
        made = tools.call("memory_remember", {"content": "Mira plays the cello"})
        answers = [
            made,
            tools.call("memory_recall", {"query": "cello"}),
            tools.call("memory_forget", {"id": made["id"]}),
        ]
    assert "4711" not in json.dumps(answers)
    assert all("incomplete" in answer for answer in answers)


def test_a_broken_list_is_told(tools: MemoryTools) -> None:
    answer = tools.call("memory_remember", {"content": "a", "tags": "[broken"})
    assert (answer["status"], answer["error"], answer["field"]) == (
        "error",
        "invalid_arguments",
        "tags",
    )


def test_text_that_looks_like_json_stays_text(tools: MemoryTools) -> None:
    text = '["this is", "really text"]'
    assert tools.call("memory_remember", {"content": text})["content"] == text


def test_metadata_may_come_as_text(stack: MemoryStack) -> None:
    made = MemoryTools(stack).call("memory_remember", {"content": "a", "metadata": '{"k": 1}'})
    record = stack.get(made["id"])
    assert record is not None
    assert record.metadata == {"k": 1}


def test_an_unknown_kind_becomes_a_note_and_is_kept(stack: MemoryStack) -> None:
    made = MemoryTools(stack).call("memory_remember", {"content": "a", "kind": "bogus"})
    assert made["type"] == "note"
    assert made["notes"] == ["unknown kind; it was kept as note"]
    record = stack.get(made["id"])
    assert record is not None
    assert record.metadata["kind"] == "bogus"


def test_kinds_that_are_all_unknown_do_not_widen_a_recall(tools: MemoryTools) -> None:
    tools.call("memory_remember", {"content": "cello"})
    answer = tools.call("memory_recall", {"query": "cello", "kinds": ["bogus"]})
    assert answer["error"] == "invalid_arguments"
    answer = tools.call("memory_recall", {"query": "cello", "kinds": ["bogus", "semantic"]})
    assert answer["count"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        "{broken",
        "[1, 2]",
        "null",
        7,
        {"content": ""},
        {"content": "  "},
        {"content": None},
        {"content": ["a"]},
        {"content": "x" * 70_000},
        {"content": "a", "importance": "much"},
        {"content": "a", "importance": math.nan},
        {"content": "a", "evergreen": "perhaps"},
        {"content": "a", "metadata": "[1"},
        {"content": "a", "metadata": {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1}}}}}}}}},
        {"content": "a", **{f"key{n}": n for n in range(300)}},
        '{"content": "' + "x" * 500_000 + '"}',
        "[" * 50_000,
    ],
)
def test_bad_arguments_are_an_error_object_and_store_nothing(
    stack: MemoryStack, arguments: Any
) -> None:
    answer = MemoryTools(stack).call("memory_remember", arguments)
    assert (answer["status"], answer["error"]) == ("error", "invalid_arguments")
    assert answer["message"]
    assert len(stack.list()) == 0


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from([d.name for d in DEFINITIONS] + ["other", ""]),
    arguments=st.one_of(
        st.none(),
        st.text(),
        st.dictionaries(
            st.sampled_from(["content", "query", "limit", "tags", "id", "kind", "metadata"]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(st.text(max_size=5), inner, max_size=3)
                ),
                max_leaves=6,
            ),
            max_size=5,
        ),
    ),
)
def test_nothing_that_a_model_sends_raises(name: str, arguments: Any) -> None:
    with MemoryStack([LocalStore()], scope=MIRA) as stack:
        answer = MemoryTools(stack).call(name, arguments)
    assert isinstance(answer["status"], str)
    json.dumps(answer)


def test_what_is_not_configured_is_not_offered() -> None:
    tools = MemoryTools(None)
    assert tools.names == ()
    refused = tools.call("memory_recall", {"query": "x"})
    assert (refused["error"], refused["memories"]) == ("memory_not_configured", [])
    assert tools.call("session_search", {"query": "x"})["error"] == "session_search_not_configured"
    assert tools.call("user_context", {})["error"] == "user_model_not_configured"
    assert tools.call("rm_rf", {})["error"] == "unknown_tool"


def test_access_limits_what_a_run_may_do(stack: MemoryStack) -> None:
    stack.store("Mira plays the cello")
    reader = MemoryTools(stack, access=Access.READ_ONLY)
    assert reader.names == ("memory_recall",)
    assert reader.call("memory_remember", {"content": "x"})["error"] == "not_permitted"
    assert reader.call("memory_recall", {"query": "cello"})["count"] == 1
    record = stack.list()[0]
    assert record.access_count == 0
    assert MemoryTools(stack, access="off").schemas() == []


def test_a_failing_provider_is_named() -> None:
    with MemoryStack([LocalStore(), FailingProvider(OSError("down"))], scope=MIRA) as stack:
        tools = MemoryTools(stack)
        made = tools.call("memory_remember", {"content": "Mira plays the cello"})
        assert made["stored"] is True
        assert len(made["incomplete"]) == 1
        found = tools.call("memory_recall", {"query": "cello"})
        assert found["count"] == 1
        assert len(found["incomplete"]) == 1
    with MemoryStack([FailingProvider(OSError("down"))], scope=MIRA) as stack:
        answer = MemoryTools(stack).call("memory_remember", {"content": "x"})
        assert (answer["status"], answer["error"]) == ("error", "store_failed")


def test_schemas_are_the_same_bytes_from_turn_to_turn(stack: MemoryStack) -> None:
    first, second = MemoryTools(stack).schemas(), MemoryTools(stack).schemas()
    assert json.dumps(first) == json.dumps(second)


def test_the_awaitable_face_answers_the_same(tools: MemoryTools) -> None:
    tools.call("memory_remember", {"content": "Mira plays the cello"})
    waited = asyncio.run(tools.acall("memory_recall", {"query": "cello"}))
    assert waited == tools.call("memory_recall", {"query": "cello"})

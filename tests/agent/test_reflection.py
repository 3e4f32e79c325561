"""Reflection: what a model asks for is done one by one, within the scope, and can be taken back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from memsheaf.agent import ReflectionReport, ReflectionSettings, reflect, undo
from memsheaf.models import ChatRequest, ModelUnavailable, ScriptedModel
from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryStack, Scope, ScopeError, UsageError

MIRA = Scope(user_id="mira")
TALK = [
    {"role": "system", "content": "You are a helper."},
    {"role": "user", "content": "I moved from Berlin to Lisbon. My cello is called Otto."},
    {"role": "assistant", "content": "Noted."},
]


@pytest.fixture
def stack() -> Iterator[MemoryStack]:
    with MemoryStack([LocalStore()], scope=MIRA) as made:
        yield made


def run(stack: MemoryStack, reply: Any, **settings: Any) -> ReflectionReport:
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return reflect(
        TALK,
        stack,
        ScriptedModel([text]),
        scope=MIRA,
        settings=ReflectionSettings(**settings),
    )


def contents(stack: MemoryStack) -> set[str]:
    return {record.content for record in stack.list(Scope.EVERYONE)}


def test_a_mixed_reply_leaves_exactly_what_it_says(stack: MemoryStack) -> None:
    home = stack.store("Mira lives in Berlin")
    wrong = stack.store("Mira plays the viola")
    report = run(
        stack,
        [
            {"action": "update", "id": home.id, "content": "Mira lives in Lisbon"},
            {"action": "forget", "id": wrong.id},
            {
                "action": "remember",
                "content": "Mira's cello is called Otto",
                "type": "fact",
                "importance": 9,
                "tags": ["cello"],
            },
        ],
    )
    assert report.error is None
    assert [(o.action, o.done) for o in report.operations] == [
        ("update", True),
        ("forget", True),
        ("remember", True),
    ]
    assert contents(stack) == {"Mira lives in Lisbon", "Mira's cello is called Otto"}
    made = report.operations[2].after
    assert made is not None
    assert (made.kind, made.importance, made.tags, made.origin) == (
        "fact",
        1.0,
        ("cello",),
        "reflection",
    )


def test_a_reflection_can_be_taken_back(stack: MemoryStack) -> None:
    home = stack.store("Mira lives in Berlin", tags=["home"])
    wrong = stack.store("Mira plays the viola")
    report = run(
        stack,
        [
            {"action": "update", "id": home.id, "content": "Mira lives in Lisbon", "tags": []},
            {"action": "forget", "id": wrong.id},
            {"action": "remember", "content": "Otto is a cello"},
        ],
    )
    undone = undo(report, stack)
    assert [(o.action, o.done) for o in undone] == [
        ("remember", True),
        ("forget", True),
        ("update", True),
    ]
    assert contents(stack) == {"Mira lives in Berlin", "Mira plays the viola"}
    again = stack.get(home.id)
    assert again is not None
    assert again.tags == ("home",)


def test_what_changed_since_is_not_taken_back(stack: MemoryStack) -> None:
    home = stack.store("Mira lives in Berlin")
    report = run(stack, [{"action": "update", "id": home.id, "content": "Mira lives in Lisbon"}])
    stack.update(home.id, {"content": "Mira lives in Porto"})
    undone = undo(report, stack)
    assert [o.done for o in undone] == [False]
    assert contents(stack) == {"Mira lives in Porto"}


@pytest.mark.parametrize(
    "reply",
    [
        "nothing to do",
        "[]",
        '{"note": "none"}',
        "[1, null, []]",
        '[{"action": "explode", "id": "x"}]',
        '[{"action": "remember"}, {"action": "remember", "content": "  "}]',
        '[{"action": "remember", "content": ["a"]}]',
        '[{"action": "update", "content": "no id"}, {"action": "forget"}]',
        '[{"action": "forget", "id": {"a": 1}}]',
        "",
        "[" * 100_000,
    ],
)
def test_a_reply_that_cannot_be_used_changes_nothing(stack: MemoryStack, reply: str) -> None:
    stack.store("Mira plays the cello")
    report = run(stack, reply)
    assert not report.changed
    assert contents(stack) == {"Mira plays the cello"}
    assert report.error is not None or all(o.reason for o in report.operations)


@pytest.mark.parametrize(
    "reply",
    [
        '```json\n[{"action": "remember", "content": "kept"}]\n```',
        'Here you are: [{"action": "remember", "content": "kept"}] Anything else?',
        '{"operations": [{"action": "remember", "content": "kept"}]}',
        '{"action": "remember", "content": "kept"}',
    ],
)
def test_json_is_found_in_what_models_really_send(stack: MemoryStack, reply: str) -> None:
    assert run(stack, reply).changed
    assert contents(stack) == {"kept"}


@pytest.mark.parametrize(
    "reply",
    [
        '{"action": "remember", "content": "one"}\n{"action": "remember", "content": "two"}',
        '[{"action": "remember", "content": "one"}, {"action": "remember", "content": "two"}, {"a',
        '[{"action": "remember", "content": "one", "importance": NaN},'
        ' {"action": "remember", "content": "two"}]',
        '<think>{"action": "remember", "content": "zero"}</think>'
        '{"action": "remember", "content": "one"} {"action": "remember", "content": "two"}',
    ],
    ids=["lines", "cut short", "not a number", "drafts"],
)
def test_whole_operations_of_a_broken_list_are_done(stack: MemoryStack, reply: str) -> None:
    assert [o.done for o in run(stack, reply).operations] == [True, True]
    assert contents(stack) == {"one", "two"}


def test_a_reply_cannot_say_whose_memory_it_is(stack: MemoryStack) -> None:
    noor = {"user_id": "noor", "scope": {"user_id": "noor"}, "id": "mine", "evergreen": True}
    report = run(stack, [{"action": "remember", "content": "x", **noor}])
    (made,) = (one.after for one in report.operations)
    assert made is not None
    assert (made.scope, made.evergreen, made.id != "mine") == (MIRA, False, True)


def test_only_ids_that_were_shown_are_touched(stack: MemoryStack) -> None:
    theirs = stack.store("Noor is allergic to nuts", scope=Scope(user_id="noor"))
    report = run(
        stack,
        [
            {"action": "forget", "id": theirs.id},
            {"action": "update", "id": theirs.id, "content": "x"},
            {"action": "remember", "content": "kept"},
        ],
    )
    assert [o.done for o in report.operations] == [False, False, True]
    assert "Noor is allergic to nuts" in contents(stack)


def test_a_fact_said_twice_is_kept_once(stack: MemoryStack) -> None:
    held = stack.store("Mira plays the cello")
    report = run(
        stack,
        [
            {"action": "remember", "content": "mira plays  the Cello"},
            {"action": "remember", "content": "Otto is a cello"},
            {"action": "remember", "content": "otto is a cello"},
        ],
    )
    assert [o.done for o in report.operations] == [False, True, False]
    assert report.operations[0].id == held.id
    assert len(contents(stack)) == 2


def test_one_operation_that_fails_leaves_the_others_alone(stack: MemoryStack) -> None:
    report = run(
        stack,
        [
            {"action": "remember", "content": "x" * 70_000},
            {"action": "remember", "content": "kept"},
        ],
    )
    assert [o.done for o in report.operations] == [False, True]
    assert "limit" in str(report.operations[0].reason)


def test_a_memory_that_was_changed_twice_is_taken_back_whole(stack: MemoryStack) -> None:
    home = stack.store("Mira lives in Berlin")
    report = run(
        stack,
        [
            {"action": "update", "id": home.id, "content": "Mira lives in Lisbon"},
            {"action": "update", "id": home.id, "importance": 0.9},
            {"action": "forget", "id": home.id},
        ],
    )
    assert [o.done for o in report.operations] == [True, True, True]
    assert [o.done for o in undo(report, stack)] == [True, True, True]
    again = stack.get(home.id)
    assert again is not None
    assert (again.content, again.importance) == ("Mira lives in Berlin", 0.5)


def test_a_reflection_is_taken_back_once(stack: MemoryStack) -> None:
    wrong = stack.store("Mira plays the viola")
    report = run(stack, [{"action": "forget", "id": wrong.id}, _REMEMBER])
    undo(report, stack)
    stack.update(wrong.id, {"content": "Mira plays the viola da gamba"})
    assert [o.done for o in undo(report, stack)] == [False, False]
    assert contents(stack) == {"Mira plays the viola da gamba"}


_REMEMBER = {"action": "remember", "content": "Otto is a cello"}


def test_what_is_forgotten_can_be_said_anew(stack: MemoryStack) -> None:
    old = stack.store("Otto is a cello", kind="note")
    report = run(stack, [{"action": "forget", "id": old.id}, {**_REMEMBER, "kind": "fact"}])
    assert [o.done for o in report.operations] == [True, True]
    assert [record.kind for record in stack.list()] == ["fact"]


@pytest.mark.parametrize("meanwhile", ["update", "forget"])
def test_what_changes_while_the_model_thinks_is_left_alone(
    stack: MemoryStack, meanwhile: str
) -> None:
    home = stack.store("Mira lives in Berlin")

    def answer(request: ChatRequest) -> str:
        if meanwhile == "update":
            stack.update(home.id, {"content": "Mira lives in Porto"})
        else:
            stack.forget(home.id)
        change = {"action": "update", "id": home.id, "content": "Mira lives in Lisbon"}
        return json.dumps(
            [
                change,
                {"action": "forget", "id": home.id},
                {"action": "remember", "content": "Mira lives in Berlin"},
            ]
        )

    report = reflect(TALK, stack, ScriptedModel(answer), scope=MIRA)
    assert not report.changed
    assert contents(stack) == ({"Mira lives in Porto"} if meanwhile == "update" else set())


def test_what_memory_s_tools_answered_is_not_learned_again(stack: MemoryStack) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "memory_recall", "arguments": "{}"}}
    other = {"id": "2", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    seen: list[ChatRequest] = []

    def answer(request: ChatRequest) -> str:
        seen.append(request)
        return "[]"

    talk = [
        *TALK,
        {"role": "assistant", "content": None, "tool_calls": [call, other]},
        {"role": "tool", "tool_call_id": "1", "content": "Mira has two parrots"},
        {"role": "tool", "tool_call_id": "2", "content": "in the hall"},
    ]
    reflect(talk, stack, ScriptedModel(answer), scope=MIRA)
    told = str(seen[0].messages[1]["content"])
    assert "parrots" not in told
    assert '"calls": "find {}"' in told
    assert "in the hall" in told


def test_any_exception_of_a_model_is_told_without_its_words(stack: MemoryStack) -> None:
    model = ScriptedModel([ValueError("Mira's secret")])
    report = reflect(TALK, stack, model, scope=MIRA)
    assert report.error is not None
    assert "secret" not in report.error


def test_a_model_that_fails_changes_nothing(stack: MemoryStack) -> None:
    stack.store("Mira plays the cello")
    model = ScriptedModel([ModelUnavailable("no server", model="m")])
    report = reflect(TALK, stack, model, scope=MIRA)
    assert report.error is not None
    assert not report.operations
    assert contents(stack) == {"Mira plays the cello"}


def test_the_model_sees_the_end_of_the_talk_and_the_memories_of_the_scope(
    stack: MemoryStack,
) -> None:
    mine = stack.store("Mira lives in Berlin")
    stack.store("Noor lives in Lisbon", scope=Scope(user_id="noor"))
    seen: list[ChatRequest] = []

    def answer(request: ChatRequest) -> str:
        seen.append(request)
        return "[]"

    many = [{"role": "user", "content": f"message {n}"} for n in range(50)]
    reflect(
        [*many, *TALK, {"role": "tool", "tool_call_id": "1", "content": "y" * 9_000}],
        stack,
        ScriptedModel(answer),
        scope=MIRA,
        settings=ReflectionSettings(max_messages=4, max_tokens=77),
    )
    told = json.loads(str(seen[0].messages[1]["content"]))
    assert [one["role"] for one in told["conversation"]] == ["user", "user", "assistant", "tool"]
    assert len(told["conversation"][-1]["text"]) == 500
    assert [memory["id"] for memory in told["memories"]] == [mine.id]
    assert seen[0].max_tokens == 77
    assert seen[0].temperature == 0.0


def test_a_scope_that_cannot_be_written_is_refused(stack: MemoryStack) -> None:
    with pytest.raises(ScopeError):
        reflect(TALK, stack, ScriptedModel(["[]"]), scope=Scope.EVERYONE)


def test_when_it_is_due() -> None:
    third = ReflectionSettings(every=3)
    assert [third.due(run, 0, failed=False) for run in range(1, 7)] == [False, False, True] * 2
    busy = ReflectionSettings(every=None, min_tool_calls=5)
    assert busy.due(1, 5, failed=False)
    assert not busy.due(1, 4, failed=False)
    assert not busy.due(1, 5, failed=True)
    with pytest.raises(UsageError):
        ReflectionSettings(every=0)

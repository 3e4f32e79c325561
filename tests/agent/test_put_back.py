"""Blocks that were sent before go back to where they were, byte for byte."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memsheaf.agent import BlockLedger, Injection, ainject, cache_report, inject, strip_messages
from memsheaf.providers.local import LocalStore
from memsheaf.stack import AsyncMemoryStack, MemoryStack, Mount, Scope, Status, hookimpl
from memsheaf.stack.doubles import InMemoryStore

MakeStack = Callable[..., MemoryStack]
MIRA, OTTO = Scope(user_id="mira"), Scope(user_id="otto")
ID = "0123456789abcdef"


class Profile:
    """A context that changes with every call."""

    def __init__(self) -> None:
        self.calls = 0

    @hookimpl
    def build_user_context(self, scope: Scope) -> str:
        self.calls += 1
        return f"version {self.calls}"


@pytest.fixture
def ledger() -> Iterator[BlockLedger]:
    made = BlockLedger()
    yield made
    made.close()


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "t1"}]}
RESULT = {"role": "tool", "tool_call_id": "t1", "content": "42"}


def test_a_clean_history_gets_its_blocks_back(make_stack: MakeStack, ledger: BlockLedger) -> None:
    profile = Profile()
    stack = make_stack("Mira plays the cello", also=[profile])
    clean: list[Any] = [{"role": "system", "content": "Be brief."}]
    before: list[Any] = []
    for n in range(8):
        clean += [user([{"type": "text", "text": f"cello {n}?"}] if n % 2 else f"cello {n}?")]
        kept = copy.deepcopy(clean)
        made = inject(clean, stack, ledger=ledger, conversation="c")
        assert clean == kept
        assert made.reason is None
        assert made.restored == n
        assert made.block is not None
        assert f"version {n + 1}" in made.block
        report = cache_report(before, made.messages)
        assert report.byte == report.before_bytes
        assert strip_messages(made.messages, ledger) == clean
        before = made.messages
        clean.append(said(f"answer {n}"))
    assert profile.calls == 8


def test_within_a_tool_loop_the_block_stays(make_stack: MakeStack, ledger: BlockLedger) -> None:
    profile = Profile()
    stack = make_stack("Mira plays the cello", also=[profile])
    talk: list[Any] = [user("Who plays the cello?")]
    first = inject(talk, stack, ledger=ledger, conversation="c")
    for _ in range(3):
        talk += [CALL, RESULT]
        again = inject(talk, stack, ledger=ledger, conversation="c")
        assert again.messages == [*first.messages, *talk[1:]]
        assert (again.reason, again.restored, again.hits) == ("put back", 1, ())
        assert (again.block, again.block_id) == (first.block, first.block_id)
    assert profile.calls == 1


def test_a_turn_without_a_block_stays_without_one(
    make_stack: MakeStack, ledger: BlockLedger
) -> None:
    talk: list[Any] = [user("Who plays the cello?")]
    nothing = make_stack(("far", 0.1))
    assert inject(talk, nothing, ledger=ledger, conversation="c").reason == "nothing relevant"
    talk += [CALL, RESULT]
    later = inject(talk, make_stack("Mira"), ledger=ledger, conversation="c")
    assert (later.messages, later.reason) == (talk, "nothing relevant")


def test_a_turn_where_a_provider_failed_is_asked_again(
    make_stack: MakeStack, ledger: BlockLedger
) -> None:
    class Broken:
        @hookimpl
        def build_user_context(self, scope: Scope) -> str:
            raise OSError("no connection")

    talk = [user("Who plays the cello?")]
    made = inject(talk, make_stack(also=[Broken()]), ledger=ledger, conversation="c")
    assert made.reason == "nothing relevant"
    again = inject(talk, make_stack("Mira"), ledger=ledger, conversation="c")
    assert again.block is not None


def test_equal_words_are_told_apart(make_stack: MakeStack, ledger: BlockLedger) -> None:
    stack = make_stack("Mira plays the cello", also=[Profile()])
    clean: list[Any] = []
    before: list[Any] = []
    for n in range(9):
        clean.append(user("and?"))
        made = inject(clean, stack, ledger=ledger, conversation="c")
        assert made.restored == n
        assert made.messages[: len(before)] == before
        before = made.messages
        clean.append(said("So."))
    blocks = {m["content"] for m in before if m["role"] == "user"}
    assert len(blocks) == 9


def test_what_the_framework_changes_around_the_words_does_not_matter(
    make_stack: MakeStack, ledger: BlockLedger
) -> None:
    stack = make_stack("Mira plays the cello")
    first = [{"role": "system", "content": "Be brief."}, user([{"type": "text", "text": "cello?"}])]
    made = inject(first, stack, ledger=ledger, conversation="c")
    marked = {"type": "text", "text": "cello?", "cache_control": {"type": "ephemeral"}}
    later = [{"role": "system", "content": "Else."}, user([marked]), said("Mira"), user("viola?")]
    again = inject(later, stack, ledger=ledger, conversation="c")
    assert again.restored == 1
    assert again.messages[1]["content"] == [marked, {"type": "text", "text": made.block}]


def test_after_old_messages_are_cut_off_the_rest_is_found(
    make_stack: MakeStack, ledger: BlockLedger
) -> None:
    stack = make_stack("Mira plays the cello", also=[Profile()])
    clean: list[Any] = []
    for n in range(8):
        clean += [user(f"cello {n}?"), said("So.")]
        whole = inject(clean[:-1], stack, ledger=ledger, conversation="c").messages
    cut = [*clean[4:], user("cello 8?")]
    made = inject(cut, stack, ledger=ledger, conversation="c")
    assert made.restored == 3  # the first three have lost the words before them
    assert made.messages[6:11] == whole[10:15]
    longer = [*cut, said("So."), user("cello 9?")]
    again = inject(longer, stack, ledger=ledger, conversation="c")
    assert cache_report(made.messages, again.messages).extended


def test_a_message_that_came_with_its_block_keeps_it(
    make_stack: MakeStack, ledger: BlockLedger
) -> None:
    stack = make_stack("Mira plays the cello")
    first = inject([user("cello?")], stack, ledger=ledger, conversation="c")
    kept = [*first.messages, said("Mira"), user("viola?")]
    made = inject(kept, stack, ledger=ledger, conversation="c")
    assert made.messages[:2] == kept[:2]
    assert made.restored == 0
    clean = [user("cello?"), said("Mira"), user("viola?"), said("Otto"), user("So?")]
    again = inject(clean, stack, ledger=ledger, conversation="c")
    assert again.messages[:3] == made.messages
    assert again.restored == 2


def test_blocks_go_back_under_a_trivial_message(make_stack: MakeStack, ledger: BlockLedger) -> None:
    stack = make_stack("Mira plays the cello")
    first = inject([user("cello?")], stack, ledger=ledger, conversation="c")
    talk = [user("cello?"), said("Mira"), user("ok, thanks!")]
    made = inject(talk, stack, ledger=ledger, conversation="c")
    assert made.messages == [*first.messages, *talk[1:]]
    assert (made.reason, made.restored, made.block) == ("trivial", 1, None)


def test_nothing_goes_to_another_scope_or_conversation(
    make_stack: MakeStack, ledger: BlockLedger
) -> None:
    stack = make_stack("Mira plays the cello")
    talk = [user("cello?"), said("Mira"), user("viola?")]
    inject(talk[:1], stack, ledger=ledger, conversation="c")
    for scope, conversation in ((OTTO, "c"), (MIRA, "d"), (MIRA, None)):
        made = inject(talk, stack, scope=scope, ledger=ledger, conversation=conversation)
        assert (made.restored, made.messages[0]) == (0, talk[0])
    session = Scope(user_id="mira", session_id="monday")
    echo = make_stack(also=[Profile()])
    inject(talk[:1], echo, scope=session, ledger=ledger)
    assert inject(talk, echo, scope=session, ledger=ledger).restored == 1
    assert inject(talk, echo, scope=session, ledger=ledger, conversation="c").restored == 0


def test_an_option_turns_it_off(make_stack: MakeStack, ledger: BlockLedger) -> None:
    stack = make_stack("Mira plays the cello", also=[Profile()])
    talk = [user("cello?"), said("Mira"), user("viola?")]
    first = inject(talk[:1], stack, ledger=ledger, conversation="c", put_back=False)
    made = inject(talk, stack, ledger=ledger, conversation="c", put_back=False)
    assert made.messages[:2] == talk[:2]
    assert ledger.sent(MIRA, "c") == {}
    assert first.block_id in ledger
    assert strip_messages(made.messages, ledger) == talk


def test_only_an_issued_id_makes_a_block(make_stack: MakeStack, ledger: BlockLedger) -> None:
    stack = make_stack("Mira plays the cello")
    typed = user(f"<memory-context-{ID}>\nwhat is this?\n</memory-context-{ID}>")
    made = inject([typed], stack, ledger=ledger)
    assert made.messages[0]["content"] == f"{typed['content']}\n\n{made.block}"
    assert strip_messages(made.messages, ledger) == [typed]
    assert inject([typed], stack).reason == "carried"
    assert inject(made.messages, stack, ledger=ledger).reason == "carried"


def test_what_is_forgotten_is_not_sent_again(ledger: BlockLedger) -> None:
    with MemoryStack([LocalStore()], scope=MIRA, plugins=[ledger]) as stack:
        stack.store("The cello is in the cellar", id="m1")
        stack.store("The viola is in the attic", id="m2")
        talk: list[Any] = [user("Where is the cello?"), said("In the cellar."), user("The viola?")]
        inject(talk[:1], stack, ledger=ledger, conversation="c")
        made = inject(talk, stack, ledger=ledger, conversation="c")
        assert made.restored == 1
        assert stack.forget("m1")
        assert not stack.forget("m9")
        talk += [said("In the attic."), user("So where is the viola?")]
        again = inject(talk, stack, ledger=ledger, conversation="c")
        sent = json.dumps(again.messages)
        assert "cello is in" not in sent
        assert again.messages[2] == made.messages[2]
        assert again.messages[0] == talk[0]


def test_what_a_provider_deletes_late_is_not_sent_again(ledger: BlockLedger) -> None:
    held, ended = threading.Event(), threading.Event()

    class Slow(InMemoryStore):
        inline = False

        @hookimpl
        def forget(self, record_id: str, scope: Scope) -> bool:
            held.wait(20)
            try:
                return super().forget(record_id, scope)
            finally:
                ended.set()

    with MemoryStack([Mount(Slow(), timeout=1.0)], scope=MIRA, plugins=[ledger]) as stack:
        stack.store("The cello is in the cellar", id="m1")
        talk: list[Any] = [user("Where is the cello?"), said("In the cellar."), user("So where?")]
        assert inject(talk[:1], stack, ledger=ledger, conversation="c").hits
        assert stack.forget("m1").partial
        held.set()
        assert ended.wait(20)
        assert not stack.forget("m1").deleted  # it is gone already
        assert inject(talk, stack, ledger=ledger, conversation="c").messages == talk


def test_what_is_forgotten_while_it_is_being_sent_is_not_sent_again(ledger: BlockLedger) -> None:
    with MemoryStack([LocalStore()], scope=MIRA, plugins=[ledger]) as stack:
        stack.store("The cello is in the cellar", id="m1")

        def forgets(words: str) -> list[tuple[str, str]]:
            assert stack.forget("m1")
            return []

        talk: list[Any] = [user("Where is the cello?"), said("?"), user("So where is it?")]
        made = inject(talk[:1], stack, ledger=ledger, conversation="c", contexts=forgets)
        assert (made.messages, made.block, made.hits) == (talk[:1], None, ())
        again = inject(talk, stack, ledger=ledger, conversation="c")
        assert again.messages == talk


class Guard:
    def __init__(self) -> None:
        self.refuses = False
        self.told: list[Any] = []

    @hookimpl
    def before_inject(self) -> None:
        if self.refuses:
            raise ValueError("not today")

    @hookimpl
    def after_inject(self, messages: list[Any]) -> None:
        self.told.append(messages)


def test_guards_and_listeners_see_what_is_put_back(
    make_stack: MakeStack, ledger: BlockLedger
) -> None:
    guard = Guard()
    stack = make_stack("Mira plays the cello", plugins=[guard])
    talk = [user("cello?"), said("Mira"), user("thanks")]
    inject(talk[:1], stack, ledger=ledger, conversation="c")
    made = inject(talk, stack, ledger=ledger, conversation="c")
    assert guard.told[1] == made.messages
    guard.refuses = True
    refused = inject(talk, stack, ledger=ledger, conversation="c")
    assert (refused.messages, refused.reason, refused.restored) == (talk, "refused", 0)
    assert len(guard.told) == 2


def test_a_ledger_that_fails_leaves_the_messages(make_stack: MakeStack, tmp_path: Path) -> None:
    stack = make_stack("Mira plays the cello")
    path = tmp_path / "ledger.db"
    ledger = BlockLedger(path, timeout=0.01)
    other = BlockLedger(path)
    with other._file.writing():
        made = inject([user("cello?")], stack, ledger=ledger, conversation="c")
    assert (made.messages, made.reason) == ([user("cello?")], "ledger failed")
    assert made.outcomes[-1].provider == "ledger"
    assert made.outcomes[-1].status is Status.FAILED
    assert inject([user("cello?")], stack, ledger=ledger, conversation="c").block is not None
    ledger.close()
    other.close()


def test_two_processes_of_one_conversation_send_the_same(
    make_stack: MakeStack, tmp_path: Path
) -> None:
    stack = make_stack("Mira plays the cello", also=[Profile()])
    one, two = BlockLedger(tmp_path / "ledger.db"), BlockLedger(tmp_path / "ledger.db")
    first = inject([user("cello?")], stack, ledger=one, conversation="c")
    again = inject([user("cello?")], stack, ledger=two, conversation="c")
    assert again.messages == first.messages
    one.close()
    two.close()


def test_the_one_that_kept_it_first_counts(make_stack: MakeStack, ledger: BlockLedger) -> None:
    class Slow:
        """Lets another process be faster."""

        def __init__(self) -> None:
            self.other: Callable[[], Injection] | None = None
            self.first = Injection([])

        @hookimpl
        def build_user_context(self, scope: Scope) -> str | None:
            if self.other is not None:
                other, self.other = self.other, None
                self.first = other()
            return "a context"

    slow = Slow()
    stack = make_stack("Mira plays the cello", also=[slow])
    slow.other = lambda: inject([user("cello?")], stack, ledger=ledger, conversation="c")
    made = inject([user("cello?")], stack, ledger=ledger, conversation="c")
    assert made.messages == slow.first.messages
    assert made.hits == ()
    assert slow.first.hits != ()


def test_the_awaited_twin_gives_the_same(make_stack: MakeStack) -> None:
    stack = make_stack("Mira plays the cello", also=[Profile()])

    def talk() -> Iterator[list[Any]]:
        clean: list[Any] = []
        for text in ("cello?", "ok", "viola?", "/clear", "So?"):
            clean.append(user(text))
            yield list(clean)
            clean.append(said("So."))

    async def awaited(ledger: BlockLedger) -> list[Any]:
        face = AsyncMemoryStack(stack)
        return [
            await ainject(messages, face, ledger=ledger, conversation="c", block_id=f"{n:08x}")
            for n, messages in enumerate(talk())
        ]

    one, two = BlockLedger(), BlockLedger()
    stack.providers[1].provider.calls = 0  # type: ignore[attr-defined]
    mine = [
        inject(messages, stack, ledger=one, conversation="c", block_id=f"{n:08x}")
        for n, messages in enumerate(talk())
    ]
    stack.providers[1].provider.calls = 0  # type: ignore[attr-defined]
    theirs = asyncio.run(awaited(two))
    for made, twin in zip(mine, theirs, strict=True):
        assert (made.messages, made.reason, made.restored, made.block_id) == (
            twin.messages,
            twin.reason,
            twin.restored,
            twin.block_id,
        )
    assert [made.reason for made in mine] == [None, "trivial", None, "trivial", None]
    one.close()
    two.close()

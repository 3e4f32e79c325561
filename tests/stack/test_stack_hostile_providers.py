"""Providers that lie, raise what is no exception, or hand over what is no record."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from memsheaf.stack import (
    Hit,
    MemoryRecord,
    MemoryStack,
    Mount,
    Scope,
    Status,
    hookimpl,
)

MIRA = Scope(user_id="mira")
OWN = "Mira plays the cello"
Make = Callable[..., Any]


class Stray(BaseException):
    """No Exception."""


def record(content: object = "a cello from elsewhere", **changes: object) -> MemoryRecord:
    made = MemoryRecord(content="placeholder", scope=MIRA)
    return made.model_copy(update={"content": content, **changes})


class Answers:
    """Answers every search with what a function gives."""

    name = "liar"

    def __init__(self, answer: Callable[[], object], *, inline: bool = False) -> None:
        self.answer = answer
        self.inline = inline

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int) -> Any:
        return self.answer()


class AnswersAsync:
    """Raises at its first search, on the loop, and is well afterwards."""

    name = "liar"

    def __init__(self, error: BaseException) -> None:
        self.errors = [error]

    @hookimpl
    async def search(self, text: str, scope: Scope, limit: int) -> list[Hit]:
        if self.errors:
            raise self.errors.pop()
        return [Hit(record(), 1.0)]


class Pretends:
    """Says that it is a hit."""

    record = record()
    score = 1.0
    relevance = 0.5

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return Hit


class BadText(str):
    """A text that cannot be compared."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __hash__(self) -> int:
        raise RuntimeError("hashed")


class BadNumber(float):
    """A number that cannot be compared."""

    def __lt__(self, other: float) -> bool:
        raise RuntimeError("compared")

    def __gt__(self, other: float) -> bool:
        raise RuntimeError("compared")


def raising(error: BaseException) -> Callable[[], object]:
    def answer() -> object:
        raise error

    return answer


def endless() -> Iterator[Hit]:
    while True:
        yield Hit(record(), 1.0)


def searched(shelf: Make, answer: Callable[[], object], *, inline: bool = False) -> Any:
    provider = Answers(answer, inline=inline)
    with MemoryStack([shelf(), provider], scope=MIRA) as stack:
        stack.store(OWN)
        result = stack.search("cello")
        assert OWN in [hit.record.content for hit in result]
        for hit in result:
            assert str(hit.explain())
            assert hit.record.to_json()
        return result


@pytest.mark.parametrize("inline", [False, True], ids=["pooled", "inline"])
@pytest.mark.parametrize(
    "error",
    [Stray(), SystemExit(3), GeneratorExit(), asyncio.CancelledError(), StopIteration()],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_provider_raises_is_its_own_failure(
    shelf: Make, error: BaseException, inline: bool
) -> None:
    outcome = searched(shelf, raising(error), inline=inline).outcomes[1]
    assert (outcome.status, outcome.error) == (Status.FAILED, error)


def test_an_interrupt_on_the_caller_s_thread_is_the_user_s(shelf: Make) -> None:
    with (
        MemoryStack([Answers(raising(KeyboardInterrupt()), inline=True)], scope=MIRA) as stack,
        pytest.raises(KeyboardInterrupt),
    ):
        stack.search("cello")


@pytest.mark.parametrize(
    "error",
    [SystemExit(1), KeyboardInterrupt(), Stray(), asyncio.CancelledError()],
    ids=lambda error: type(error).__name__,
)
def test_an_async_hook_that_raises_leaves_its_loop_alive(error: BaseException) -> None:
    with MemoryStack([AnswersAsync(error)], scope=MIRA) as stack:
        assert stack.search("cello").outcomes[0].status is Status.FAILED
        assert [hit.record.content for hit in stack.search("cello")] == [record().content]


def test_a_plain_hook_may_return_a_coroutine_also_inline(shelf: Make) -> None:
    async def later() -> list[Hit]:
        return [Hit(record(), 1.0)]

    assert len(searched(shelf, later, inline=True)) == 2


@pytest.mark.parametrize(
    "hit",
    [
        Pretends(),
        record(),
        None,
        Hit(record(id=None), 1.0),
        Hit(record(id=[]), 1.0),
        Hit(record(scope=None), 1.0),
        Hit(record(scope="mira"), 1.0),
        Hit(record(scope=Scope.EVERYONE), 1.0),
        Hit(record(tags=None), 1.0),
        Hit(record(kind="nonsense"), 1.0),
        Hit(record(importance=math.nan), 1.0),
        Hit(record(importance=7.0), 1.0),
        Hit(record(expires_at="soon"), 1.0),
        Hit(record(content=""), 1.0),
        Hit(record(content=7), 1.0),
        Hit(MemoryRecord.model_construct(content="cello"), 1.0),
        Hit("cello", 1.0),  # type: ignore[arg-type]
        Hit(record(), math.nan),
        Hit(record(), math.inf),
        Hit(record(), True),
        Hit(record(), 10**400),
        Hit(record(), "1"),  # type: ignore[arg-type]
        Hit(record(), 1.0, math.nan),
        Hit(record(), 1.0, True),
        Hit(record(), 1.0, 1.5),
        Hit(record(), 1.0, native_ids=7),  # type: ignore[arg-type]
        Hit(record(), 1.0, native_ids=(1, 2)),  # type: ignore[arg-type]
    ],
)
def test_a_hit_that_breaks_the_rules_is_dropped_alone_and_told(shelf: Make, hit: object) -> None:
    sound = record("another cello")
    result = searched(shelf, lambda: [hit, Hit(sound, 1.0)])
    assert {h.record.content for h in result} == {OWN, sound.content}
    (note,) = result.outcomes[1].notes
    assert note.startswith("1 dropped: ")


def test_a_record_that_can_be_mended_is_shown_by_the_rules(shelf: Make) -> None:
    noon = datetime(2026, 3, 1, 12)
    given = record(
        content="a\x00cello \ud800", updated_at=noon, created_at=noon, tags=["Wood", 7], kind="fact"
    )
    (shown,) = [h.record for h in searched(shelf, lambda: [Hit(given, 1)]) if h.id == given.id]
    assert shown.content == "a\ufffdcello \ufffd"
    assert shown.updated_at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert shown.tags == ("wood", "7")


def test_a_record_with_other_fields_is_not_taken_by_their_places(shelf: Make) -> None:
    other = record("another cello")  # as one that was pickled before a field had its name
    fields = {"text" if name == "content" else name: v for name, v in other.__dict__.items()}
    object.__setattr__(other, "__dict__", fields)
    result = searched(shelf, lambda: [Hit(other, 1.0)])
    assert [h.record.content for h in result] == [OWN]


def test_texts_and_numbers_that_cannot_be_compared_become_plain(shelf: Make) -> None:
    hits = [
        Hit(record("one cello", id=BadText("one")), BadNumber(2.0), BadNumber(0.5)),
        Hit(record(BadText("two cellos"), id="two"), BadNumber(1.0), BadNumber(0.5)),
    ]
    result = searched(shelf, lambda: hits)
    assert {h.id for h in result} >= {"one", "two"}
    assert all(type(h.id) is str and type(h.score) is float for h in result)


def test_an_endless_answer_is_cut(shelf: Make) -> None:
    assert searched(shelf, endless).outcomes[1].notes == ("cut to the 60 that were asked for",)


@pytest.mark.parametrize("answer", ["cello", b"cello", {"cello": 1}, 7, None])
def test_what_is_no_list_is_refused(shelf: Make, answer: object) -> None:
    assert searched(shelf, lambda: answer).outcomes[1].status is Status.FAILED


def test_a_provider_that_calls_the_stack_is_bounded(shelf: Make) -> None:
    stacks: list[MemoryStack] = []
    recursive = Answers(lambda: stacks[0].search("cello"))
    with MemoryStack([shelf(), recursive], scope=MIRA, read_timeout=0.5) as stack:
        stacks.append(stack)
        stack.store(OWN)
        result = stack.search("cello")
        assert [hit.record.content for hit in result] == [OWN]
        assert sum(thread.name == "memsheaf-liar" for thread in threading.enumerate()) <= 4


class Forger(Answers):
    """Gives every question about an id the same record."""

    def __init__(self, given: MemoryRecord) -> None:
        super().__init__(list)
        self.given = given

    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord:
        return self.given

    @hookimpl
    def list(self, scope: Scope, limit: int) -> Sequence[object]:
        return [None, "x", record(created_at=None, id=None), self.given]


def test_another_record_than_was_asked_for_is_not_passed_off_as_it(shelf: Make) -> None:
    forged = record("forged", updated_at=datetime(9000, 1, 1, tzinfo=UTC))
    with MemoryStack([shelf(), Forger(forged)], scope=MIRA) as stack:
        receipt = stack.store(OWN)
        found = stack.get(receipt.id)
        assert found is not None
        assert found.content == OWN
        assert stack.get("nobody") is None
        assert not stack.forget("nobody").remaining


def test_a_list_with_what_is_no_record_keeps_the_rest(shelf: Make) -> None:
    with MemoryStack([shelf(), Forger(record("listed"))], scope=MIRA) as stack:
        stack.store(OWN)
        page = stack.list()
        assert {r.content for r in page} == {OWN, "listed"}
        assert page.outcomes[1].notes[0].startswith("3 dropped: ")


class Keeps:
    """A foreign system that says that it deleted, and keeps what it has under its own ids."""

    name = "keeps"

    def __init__(self) -> None:
        self.rows: dict[str, MemoryRecord] = {}

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int) -> list[Hit]:
        return []

    @hookimpl
    def store(self, record: MemoryRecord) -> list[str]:
        native = f"native-{len(self.rows)}"
        self.rows[native] = record.model_copy(update={"id": native})
        return [native]

    @hookimpl
    def forget(self, record_id: str, scope: Scope, native_ids: Sequence[str]) -> bool:
        return True

    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        return self.rows.get(record_id)


def test_forget_looks_again_under_the_ids_of_a_foreign_system(shelf: Make) -> None:
    with MemoryStack([shelf(), Mount(Keeps())], scope=MIRA) as stack:
        receipt = stack.store(OWN)
        report = stack.forget(receipt.id)
        assert report.remaining == ("keeps",)
        assert not report.forgotten


class Greedy:
    """Changes what it is given."""

    name = "greedy"

    def __init__(self) -> None:
        self.taken: list[MemoryRecord] = []

    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        self.taken.append(record)
        record.metadata["owner"] = "otto"
        record.__dict__["content"] = "mutated"

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        return False

    @hookimpl
    def update(self, record_id: str, scope: Scope, changes: Mapping[str, Any]) -> bool:
        return False


def test_a_provider_that_changes_its_copy_changes_nobody_else_s(shelf: Make) -> None:
    other = shelf()
    with MemoryStack([Greedy(), other], scope=Scope(user_id="mira")) as stack:
        receipt = stack.store(OWN, metadata={"a": 1})
        assert receipt.record.content == OWN
        assert receipt.record.metadata == {"a": 1}
        assert receipt.record.scope == MIRA
        (held,) = other.records.values()
        assert (held.content, held.metadata, held.scope) == (OWN, {"a": 1}, MIRA)

"""The verbs: what they say is what happened, in every provider and only within the scope."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from memsheaf.stack import (
    IdUnavailable,
    InvalidQuery,
    InvalidRecord,
    MemoryRecord,
    MemoryStack,
    NotFound,
    Scope,
    ScopeError,
    Status,
    StoreFailed,
    hookimpl,
)
from memsheaf.stack.doubles import InMemoryStore

MIRA, TOMAS = Scope(user_id="mira"), Scope(user_id="tomas")
Make = Callable[..., Any]


def fails(*hooks: str) -> Callable[[str], None]:
    def before(hook: str) -> None:
        if hook in hooks or not hooks:
            raise OSError(5, "Input/output error")

    return before


def record(content: str = "tea at home", scope: Scope = MIRA, **fields: Any) -> MemoryRecord:
    return MemoryRecord.make(content=content, scope=scope, **fields)


# store


def test_1b_14_and_15_store_and_forget_reach_every_provider(shelf: Make) -> None:
    """Facts 14 and 15: store fans out, forget fans out."""
    a, b = shelf("a"), shelf("b")
    with MemoryStack([a, b], scope=MIRA) as stack:
        made = stack.store("tea at home", tags=["Tea"])
        assert [o.status for o in made.outcomes] == [Status.OK, Status.OK]
        assert not made.partial
        assert list(a.records) == list(b.records) == [made.id]
        assert a.records[made.id].tags == ("tea",)
        report = stack.forget(made.id)
        assert report.forgotten
        assert report.verified
        assert report.deleted == (made.id,)
        assert a.records == b.records == {}
        assert len(stack.search("tea")) == 0


def test_what_is_written_now_replaces_what_is_held_whatever_the_clock_says(shelf: Make) -> None:
    with MemoryStack([shelf(), shelf("b")], scope=MIRA) as stack:
        stack.store(record("tea", id="a", updated_at=datetime(2999, 1, 1, tzinfo=UTC)))
        made = stack.store("coffee", id="a")
        assert made.record.updated_at > datetime(2999, 1, 1, tzinfo=UTC)
        assert [r.content for r in stack.list()] == ["coffee"]
        stack.store_many(["water"], id="a")
        assert [r.content for r in stack.list()] == ["water"]
        stack.store(record("late", id="a"))  # a copy with a time of its own
        stack.store("late", id="a", updated_at="2026-01-01")
        assert [r.content for r in stack.list()] == ["water"]


def test_1b_7_8_10_11_12_search_through_a_stack(shelf: Make) -> None:
    """Facts 7, 8, 10, 11 and 12. Differs by design: blank text goes by update, not by access."""
    with MemoryStack([shelf("a"), shelf("b")], scope=MIRA) as stack:
        texts = ("elixir genserver supervision tree", "elixir pattern matching pipes")
        first, second = (stack.store(text) for text in texts)
        stack.store("python asyncio event loop")
        hits = stack.search("elixir supervision")
        assert [hit.id for hit in hits] == [first.id, second.id]
        other = stack.store("elixir supervision", scope=Scope(user_id="mira", agent_id="a2"))
        mine = stack.search("elixir", Scope(user_id="mira", agent_id="a2"))
        assert [hit.id for hit in mine] == [other.id]
        assert stack.search("", limit=1)[0].id == other.id
        assert stack.search(" \n", limit=9)[0].score == 0.0
        assert stack.forget(other.id)
        assert len(stack.search("elixir")) == 2
        stack.store(first.record.changed({"content": "erlang ports"}))
        assert [hit.id for hit in stack.search("elixir supervision")] == [second.id]
        assert [hit.id for hit in stack.search("erlang")] == [first.id]


def test_each_provider_gets_its_own_copy(updating_shelf: Make) -> None:
    a, b = updating_shelf("a"), updating_shelf("b")
    with MemoryStack([a, b], scope=MIRA) as stack:
        made = stack.store("tea", metadata={"x": 1})
        a.records[made.id].metadata.clear()
        assert b.records[made.id].metadata == made.record.metadata == {"x": 1}
        (many,) = stack.store_many(["coffee"], metadata={"x": 1})
        a.records[many.id].metadata.clear()
        assert b.records[many.id].metadata == {"x": 1}
        changed = stack.update(made.id, {"metadata": {"y": 2}})
        assert changed.record.metadata == {"y": 2}


def test_store_fails_only_where_nobody_took_it(shelf: Make) -> None:
    bad = shelf("bad", before=fails("store"))
    with MemoryStack([bad, shelf("good")], scope=MIRA) as stack:
        made = stack.store("tea")
        assert made.stored
        assert made.partial
        assert [o.status.value for o in made.outcomes] == ["failed", "ok"]
    with MemoryStack([shelf("a", before=fails()), shelf("b", before=fails())], scope=MIRA) as stack:
        with pytest.raises(StoreFailed, match=r"a: OSError.*b: OSError") as caught:
            stack.store("my insulin dose")
        assert len(caught.value.outcomes) == 2
        assert "insulin" not in str(caught.value)
    with MemoryStack([], scope=MIRA) as stack, pytest.raises(StoreFailed, match="no provider"):
        stack.store("tea")


def test_bad_input_is_refused_before_anything_is_written(shelf: Make) -> None:
    notes = shelf()
    with MemoryStack([notes], scope=MIRA) as stack:
        for content, fields, told in (
            ("  ", {}, "blank"),
            ("x" * 64_001, {}, "64000"),
            ("x" * 10_000_000, {}, "content_limit"),
            ("tea", {"importance": 7}, "importance"),
            ("tea", {"importance": float("nan")}, "importance"),
            ("tea", {"colour": "red"}, "colour"),
            (7, {}, "content"),
            (None, {}, "content"),
            (record(), {"tags": ["a"]}, "fields are given beside a record"),
        ):
            with pytest.raises(InvalidRecord, match=told):
                stack.store(content, **fields)  # type: ignore[arg-type]
            with pytest.raises(InvalidRecord, match=told):
                stack.store_many(["fine", content], **fields)  # type: ignore[list-item]
        for scope in (Scope(), Scope.EVERYONE):
            with pytest.raises(ScopeError):
                stack.store("tea", scope=scope)
        with pytest.raises(ScopeError, match="outside"):
            stack.store(record(scope=TOMAS), scope=MIRA)
        assert notes.records == {}
        kept = stack.store("a\x00b \ud800").record
        assert kept.content == "a\ufffdb \ufffd"
        naive = stack.store("tea", created_at=datetime(2026, 1, 1, 9)).record
        assert naive.created_at == datetime(2026, 1, 1, 9, tzinfo=UTC)


def test_store_many_tells_each_record_s_own_end(shelf: Make) -> None:
    poison = record("poison")

    class Picky(type(shelf())):  # type: ignore[misc]
        @hookimpl
        def store(self, record: MemoryRecord) -> None:
            if record.content == "poison":
                raise ValueError("will not take it")
            super().store(record)

    picky = Picky("picky")
    with MemoryStack([picky], scope=MIRA) as stack:
        receipts = stack.store_many(["tea", poison, "milk"])
        assert [r.stored for r in receipts] == [True, False, True]
        assert "picky: ValueError" in str(receipts[1].error)
        assert receipts[0].error is None
    with MemoryStack([picky, shelf("good")], scope=MIRA) as stack:
        (both,) = stack.store_many([poison])
        assert both.stored
        assert both.partial
        twins = [record("one", id="same"), record("two", id="same")]
        with pytest.raises(InvalidRecord, match="same id"):
            stack.store_many(twins)
        with pytest.raises(InvalidRecord, match="record 1"):
            stack.store_many(["fine", " "])
        assert stack.store_many([]) == []


def test_an_id_of_another_scope_cannot_be_used_and_that_is_all_one_learns(shelf: Make) -> None:
    notes = shelf()
    with MemoryStack([notes]) as stack:
        taken = stack.store("tea", scope=TOMAS)
        for call in (
            lambda: stack.store("mine", scope=MIRA, id=taken.id),
            lambda: stack.store(record("mine", id=taken.id)),
            lambda: stack.store_many([record("mine", id=taken.id)]),
            lambda: stack.store_many(["mine"], scope=MIRA, id=taken.id),
        ):
            with pytest.raises(IdUnavailable) as caught:
                call()
            assert "tomas" not in str(caught.value)
            assert taken.id not in str(caught.value)
        assert [r.content for r in notes.records.values()] == ["tea"]
        assert stack.store("tea twice", scope=TOMAS, id=taken.id).stored


# scope on each verb


def test_bc_045_a_written_memory_is_found_with_the_scope_it_was_written_with(shelf: Make) -> None:
    cook = Scope(user_id="lena", agent_id="cook")
    with MemoryStack([shelf("a"), shelf("b")]) as stack:
        stack.store("prefers metric units", scope=cook)
        stack.store("prefers Celsius", scope=Scope(user_id="lena"))

        def found(scope: Scope) -> set[str]:
            return {hit.record.content for hit in stack.search("prefers", scope)}

        assert found(cook) == {"prefers metric units"}
        assert found(Scope(user_id="lena")) == {"prefers metric units", "prefers Celsius"}
        assert found(Scope(user_id="lena", agent_id="other")) == set()
        assert found(Scope(user_id="tomas", agent_id="cook")) == set()
        empty = stack.search("prefers", Scope(user_id="lena", agent_id="other"))
        assert empty.wider is not None
        assert (empty.wider.scope, empty.wider.count) == (Scope(user_id="lena"), 2)
        assert stack.search("prefers", Scope(user_id="tomas", agent_id="cook")).wider is None


def test_every_verb_answers_not_found_for_another_s_id(shelf: Make) -> None:
    notes = shelf()
    with MemoryStack([notes]) as stack:
        made = stack.store("tea", scope=TOMAS)
        assert stack.get(made.id, MIRA) is None
        with pytest.raises(NotFound):
            stack.update(made.id, {"content": "mine"}, MIRA)
        report = stack.forget(made.id, MIRA)
        assert not report
        assert report.deleted == ()
        assert [o.count for o in stack.touch([made.id], MIRA)] == [0]
        assert list(stack.list(MIRA)) == []
        assert len(list(stack.export(MIRA))) == 1
        assert notes.records[made.id] == made.record
        assert stack.get(made.id, Scope.EVERYONE) == made.record


def test_no_verb_goes_without_a_scope(shelf: Make) -> None:
    with MemoryStack([shelf()]) as stack:
        for scope in (None, Scope(), "mira"):
            for call in (
                lambda s: stack.store("tea", scope=s),
                lambda s: stack.store_many(["tea"], scope=s),
                lambda s: stack.search("tea", s),
                lambda s: stack.prefetch("tea", s),
                lambda s: stack.get("x", s),
                lambda s: stack.list(s),
                lambda s: stack.update("x", {"content": "y"}, s),
                lambda s: stack.forget("x", s),
                lambda s: stack.touch(["x"], s),
                lambda s: list(stack.export(s)),
                lambda s: stack.import_([], s),
                lambda s: stack.user_context("", s),
                lambda s: stack.system_prompt(s),
            ):
                with pytest.raises(ScopeError):
                    call(scope)


def test_bc_015_forgetting_one_user_s_memories_leaves_the_others(shelf: Make) -> None:
    a, b = shelf("a"), shelf("b")
    with MemoryStack([a, b]) as stack:
        stack.store("plays cello", scope=MIRA)
        stack.store("plays chess", scope=TOMAS)
        stack.store("shared wifi name", scope=Scope(namespace="home"))
        for found in stack.list(MIRA):
            assert stack.forget(found.id, MIRA)
        with pytest.raises(ScopeError):
            stack.list(Scope())
        for notes in (a, b):
            assert {r.content for r in notes.records.values()} == {
                "plays chess",
                "shared wifi name",
            }


# forget


def test_forget_reaches_copies_of_the_content_in_its_scope(shelf: Make) -> None:
    twin, other = record("TEA  at home"), record(scope=TOMAS)
    a, b = shelf("a"), shelf("b", records=[twin, other])
    with MemoryStack([a, b], scope=MIRA) as stack:
        made = stack.store("tea at home")
        report = stack.forget(made.id)
    assert report.forgotten
    assert set(report.deleted) == {made.id, twin.id}
    assert list(b.records) == [other.id]
    assert a.records == {}


@pytest.mark.parametrize("tied", [False, True])
def test_forget_reaches_copies_that_many_memories_outrank(tied: bool) -> None:
    stores = InMemoryStore(), InMemoryStore()
    with MemoryStack(stores, scope=MIRA) as stack:
        made = stack.store("tea")
        copies = [stack.store("Tea").id for _ in range(60 if tied else 1)]
        stack.store_many([f"tea tea tea tea, pot {n}" for n in range(60)])
        stack.store("tea", scope=TOMAS)
        report = stack.forget(made.id)
        assert report
        assert report.verified
        assert set(report.deleted) == {made.id, *copies}
        assert all("pot" in found.content for found in stack.list(limit=500))
        assert len(stack.list(TOMAS)) == 1


def test_forget_reaches_copies_of_what_no_search_finds() -> None:
    with MemoryStack([InMemoryStore(), InMemoryStore()], scope=MIRA) as stack:
        made, copy = stack.store("!!!"), stack.store(" !!! ")
        stack.store_many([f"tea {n}" for n in range(60)])
        report = stack.forget(made.id)
        assert set(report.deleted) == {made.id, copy.id}
        assert report.verified
        assert len(stack.list()) == 60


def test_a_provider_that_ignores_forget_is_named(shelf: Make) -> None:
    with MemoryStack([shelf("a"), shelf("liar", deaf=True)], scope=MIRA) as stack:
        made = stack.store("tea at home")
        report = stack.forget(made.id)
    assert not report
    assert report.remaining == ("liar",)
    assert not report.verified


def test_a_provider_that_fails_forget_is_told_and_one_that_cannot_be_asked_is_unverified(
    shelf: Make,
) -> None:
    bad = shelf("bad", before=fails("forget"))
    mute = shelf("mute", before=fails("get", "search"))
    with MemoryStack([shelf("a"), bad, mute], scope=MIRA) as stack:
        made = stack.store("tea at home")
        report = stack.forget(made.id)
    assert report.remaining == ("bad",)
    assert report.unverified == ("mute",)
    assert report.partial
    assert report.deleted == (made.id,)
    assert "Input/output" in str(report.outcomes[1])


def test_to_forget_what_is_not_there_is_no_error(shelf: Make) -> None:
    with MemoryStack([shelf()], scope=MIRA) as stack:
        report = stack.forget("nowhere")
    assert not report
    assert report.verified
    assert not report.partial


def test_a_provider_that_hides_a_record_from_get_is_found_out_by_its_text(shelf: Make) -> None:
    class Hides(type(shelf())):  # type: ignore[misc]
        @hookimpl
        def get(self, record_id: str, scope: Scope) -> None:
            return None

    with MemoryStack([shelf("a"), Hides("hides", deaf=True)], scope=MIRA) as stack:
        made = stack.store("tea at home")
        report = stack.forget(made.id)
    assert report.remaining == ("hides",)
    assert not report


# wrong arguments


def test_an_id_that_is_no_text_is_the_caller_s_fault_and_no_provider_s(shelf: Make) -> None:
    held = shelf()
    wrong: list[Any] = [None, 7, b"x", ["x"]]
    with MemoryStack([held], scope=MIRA) as stack:
        for record_id in wrong * 3:
            for call in (stack.get, stack.forget, lambda i: stack.update(i, {"tags": []})):
                with pytest.raises(InvalidQuery, match="text"):
                    call(record_id)
            with pytest.raises(InvalidQuery, match="text"):
                stack.touch([record_id])
        assert held.calls == []


def test_one_text_is_no_list(shelf: Make) -> None:
    held = shelf()
    one: list[Any] = ["tea at home", b"tea", 7]
    with MemoryStack([held], scope=MIRA) as stack:
        for contents in one:
            with pytest.raises(InvalidRecord, match="a list"):
                stack.store_many(contents)
        for ids in ("abc", 7):
            with pytest.raises(InvalidQuery, match="a list"):
                stack.touch(ids)  # type: ignore[arg-type]
        assert held.calls == []

"""A stack as a provider of another, and the awaitable face."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from memsheaf.stack import (
    AsyncMemoryStack,
    ClosedError,
    ForgetReport,
    Incomplete,
    MemoryRecord,
    MemoryStack,
    Mount,
    NotFound,
    RegistrationError,
    Scope,
    ScopeError,
    Status,
    StoreFailed,
    hookimpl,
    pinned,
)

MIRA, TOMAS = Scope(user_id="mira"), Scope(user_id="tomas")
Make = Callable[..., Any]


def fails(*hooks: str) -> Callable[[str], None]:
    def before(hook: str) -> None:
        if hook in hooks or not hooks:
            raise OSError(5, "Input/output error")

    return before


# Nested


def test_a_nested_stack_does_every_verb(shelf: Make, updating_shelf: Make) -> None:
    a, b, c = shelf("a"), updating_shelf("b"), shelf("c")
    inner = MemoryStack([a, b])
    with MemoryStack([Mount(inner.as_provider(), "inner"), c], scope=MIRA) as stack:
        made = stack.store("tea at home", metadata={"x": 1})
        assert not made.partial
        assert {len(s.records) for s in (a, b, c)} == {1}
        (hit,) = stack.search("tea")
        assert hit.score == 1.0
        assert [s.provider for s in hit.sources] == ["inner", "c"]
        assert len(stack.prefetch("tea")) == 1
        changed = stack.update(made.id, {"content": "tea at work"}).record
        for store in (a, b, c):
            assert store.records[made.id].content == "tea at work"
            assert store.records[made.id].updated_at == changed.updated_at
        assert not any(s.stale for s in stack.search("tea")[0].sources)
        assert stack.get(made.id) == changed
        assert list(stack.list()) == [changed]
        assert [o.count for o in stack.touch([made.id])] == [1, 1]
        assert {s.records[made.id].access_count for s in (a, b, c)} == {1}
        many = stack.store_many(["milk", "sugar"])
        assert [r.partial for r in many] == [False, False]
        assert all(o.ok for o in stack.check() if o.provider == "inner")
        with pytest.raises(NotFound):
            stack.update("nowhere", {"content": "x"})
        assert stack.forget(made.id).verified
        assert {len(s.records) for s in (a, b, c)} == {2}
    with pytest.raises(ClosedError):
        inner.list(MIRA)


def test_partial_inside_stays_partial_outside(shelf: Make, updating_shelf: Make) -> None:
    sick: set[str] = set()

    def before(hook: str) -> None:
        if hook in sick:
            raise OSError(5, "Input/output error")

    inner = MemoryStack([updating_shelf("bad", before=before), shelf("good")])
    with MemoryStack([Mount(inner.as_provider(), "inner")], scope=MIRA) as stack:
        made = stack.store("tea at home")
        sick |= {"search", "store", "forget", "list", "update", "touch"}
        assert not any(o.complete for o in stack.touch([made.id]))
        for told in (
            stack.store("tea at work"),
            stack.store_many(["milk"])[0],
            stack.search("tea"),
            stack.list(),
            stack.update(made.id, {"content": "tea"}),
        ):
            assert told.partial
            assert all(o.provider == "inner" for o in told.outcomes)
        with pytest.raises(Incomplete):
            list(stack.export())
        report = stack.forget(made.id)
        assert report.partial
        assert not report.forgotten
        assert report.remaining == ("inner",)


def test_what_fails_inside_as_a_whole_fails_outside(shelf: Make) -> None:
    inner = MemoryStack([shelf("x", before=fails()), shelf("y", before=fails())])
    with MemoryStack([Mount(inner.as_provider(), "inner"), shelf("c")], scope=MIRA) as stack:
        made = stack.store("tea")
        assert [o.status.value for o in made.outcomes] == ["failed", "ok"]
        result = stack.search("tea")
        assert result.outcomes[0].status is Status.FAILED
        assert result[0].score == 1.0
    alone = MemoryStack([shelf("x", before=fails())])
    with MemoryStack([alone.as_provider()], scope=MIRA) as stack, pytest.raises(StoreFailed):
        stack.store("tea")


def test_a_nested_stack_that_is_pinned_elsewhere_misses_nothing(shelf: Make) -> None:
    inner = MemoryStack([pinned(shelf("hers"), MIRA)])
    with MemoryStack([Mount(inner.as_provider(), "inner"), shelf("all")]) as stack:
        stack.store("tea", scope=MIRA)
        result = stack.search("tea", TOMAS)
        assert len(result) == 0
        assert not result.partial
        assert stack.get("nowhere", TOMAS) is None


def test_a_close_that_fails_inside_is_told_outside() -> None:
    class Sticky:
        @hookimpl
        def search(self, text: str, scope: Scope) -> list[Any]:
            return []

        @hookimpl
        def close(self) -> None:
            raise OSError(5, "Input/output error")

    inner = MemoryStack([Sticky()])
    outer = MemoryStack([Mount(inner.as_provider(), "inner")])
    (outcome,) = outer.close()
    assert outcome.status is Status.FAILED
    assert "Input/output" in str(outcome)


def test_context_blocks_come_in_order_and_fail_alone() -> None:
    class Says:
        def __init__(self, text: str | None) -> None:
            self.text = text

        @hookimpl
        def build_user_context(self, scope: Scope, text: str) -> str | None:
            if self.text is None:
                raise ValueError("nothing to say")
            return f"{self.text} of {scope.user_id}"

        @hookimpl
        async def build_system_prompt(self, scope: Scope) -> str | None:
            return self.text

    inner = MemoryStack([Mount(Says("habits"), "h"), Mount(Says(None), "bad")])
    places = [Mount(inner.as_provider(), "inner"), Mount(Says("goals"), "g")]
    with MemoryStack(places, scope=MIRA) as stack:
        blocks = stack.user_context("x")
        assert list(blocks) == [("inner", "habits of mira"), ("g", "goals of mira")]
        assert blocks.partial
        prompt = stack.system_prompt()
        assert list(prompt) == [("inner", "habits"), ("g", "goals")]
        assert not prompt.partial
        assert prompt.texts == stack.system_prompt().texts


# Async

_REACHED_BY_SYNC = {"as_provider", "guard", "tell", "listen", "late_outcomes"}


def _verbs(face: type) -> dict[str, Callable[..., Any]]:
    return {
        name: method
        for name, method in inspect.getmembers(face, callable)
        if not name.startswith("_") and name not in _REACHED_BY_SYNC
    }


def test_both_faces_have_the_same_verbs_and_parameters() -> None:
    plain, awaited = _verbs(MemoryStack), _verbs(AsyncMemoryStack)
    assert plain.keys() == awaited.keys()
    assert {"store", "search", "forget", "get", "list", "export", "close"} <= plain.keys()
    for name, verb in plain.items():
        mine, its = inspect.signature(verb), inspect.signature(awaited[name])
        assert list(mine.parameters.values()) == list(its.parameters.values()), name
        assert inspect.iscoroutinefunction(awaited[name]) or name == "export", name


def test_every_verb_can_be_awaited(shelf: Make) -> None:
    async def main() -> None:
        async with AsyncMemoryStack([shelf("a"), shelf("b")], scope=MIRA) as stack:
            made = await stack.store("tea at home")
            await stack.store_many(["milk", "sugar"])
            assert [hit.id for hit in await stack.search("tea")] == [made.id]
            assert len(await stack.prefetch("tea")) == 1
            assert await stack.get(made.id) == made.record
            assert len(await stack.list()) == 3
            assert (await stack.update(made.id, {"content": "tea"})).stored
            assert [o.count for o in await stack.touch([made.id])] == [1, 1]
            assert len(await stack.user_context()) == len(await stack.system_prompt()) == 0
            lines = [line async for line in stack.export()]
            assert len(lines) == 4
            assert (await stack.import_(lines)).imported == 3
            assert {o.status for o in await stack.check()} == {Status.SKIPPED}
            assert await stack.retry("a")
            assert (await stack.forget(made.id)).verified
            with pytest.raises(ScopeError):
                await stack.search("tea", Scope())
        with pytest.raises(ClosedError):
            await stack.search("tea")
        assert await stack.close() == ()

    asyncio.run(main())


def test_bc_033_no_loop_owns_the_stack(shelf: Make, async_shelf: Make) -> None:
    """Loops come and go, two at once, a sync call inside a loop: all succeed."""

    async def before(hook: str) -> None:
        await asyncio.sleep(0.001)

    stack = AsyncMemoryStack([async_shelf("far", before), shelf("near")], scope=MIRA)

    async def search(text: str) -> int:
        return len(await stack.search(text))

    asyncio.run(stack.store("a and b"))
    assert asyncio.run(search("a")) == asyncio.run(search("b")) == 1

    async def inside() -> None:
        assert stack.sync.store("c and d").stored
        assert await search("c") == 1

    asyncio.run(inside())
    found: list[int] = []

    async def ten() -> None:
        found.extend(await asyncio.gather(*(search("a") for _ in range(10))))

    threads = [threading.Thread(target=lambda: asyncio.run(ten())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 20
    asyncio.run(stack.close())


def test_bc_033_a_slow_provider_does_not_block_the_caller_s_loop(shelf: Make) -> None:
    release = threading.Event()
    caller = threading.get_ident()
    seen: set[int] = set()

    class Inline(type(shelf())):  # type: ignore[misc]
        inline = True

    def before(hook: str) -> None:
        seen.add(threading.get_ident())
        release.wait(30)

    async def main() -> None:
        async with AsyncMemoryStack([Inline("slow", before=before)], scope=MIRA) as stack:
            task = asyncio.create_task(stack.search("tea"))
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert not task.done()
            release.set()
            assert len(await task) == 0

    asyncio.run(main())
    assert seen
    assert caller not in seen


def test_a_cancelled_await_leaves_the_stack_sound(shelf: Make) -> None:
    release = threading.Event()
    slow = shelf("slow", before=lambda hook: release.wait(30))

    async def main() -> None:
        async with AsyncMemoryStack([slow], scope=MIRA) as stack:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await stack.search("tea")
            release.set()
            assert (await stack.store("tea")).stored
            assert len(await stack.search("tea")) == 1

    asyncio.run(main())


def test_a_call_that_outlives_its_loop_harms_nobody(shelf: Make) -> None:
    release = threading.Event()
    slow = shelf("slow", before=lambda hook: release.wait(30))
    stack = AsyncMemoryStack([slow], scope=MIRA)

    async def leaves() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await stack.search("tea")

    asyncio.run(leaves())
    release.set()
    time.sleep(0.02)
    assert asyncio.run(stack.store("tea")).stored
    asyncio.run(stack.close())


# Events and guards


class Guard:
    def __init__(self, *events: str) -> None:
        self.refuses = set(events)
        self.seen: list[str] = []

    def _look(self, event: str) -> None:
        self.seen.append(event)
        if event in self.refuses:
            raise ValueError(f"{event}: the tea is secret")

    @hookimpl
    def before_store(self, record: MemoryRecord) -> None:
        self._look("before_store")

    @hookimpl
    def after_store(self, receipt: Any) -> None:
        self._look("after_store")

    @hookimpl
    def before_search(self, text: str) -> None:
        self._look("before_search")

    @hookimpl
    def after_search(self, result: Any) -> None:
        self._look("after_search")

    @hookimpl
    def before_forget(self, record_id: str) -> None:
        self._look("before_forget")

    @hookimpl
    def after_forget(self, report: Any) -> None:
        self._look("after_forget")


def test_events_come_around_each_operation(shelf: Make) -> None:
    guard = Guard()
    with MemoryStack([shelf()], scope=MIRA, plugins=[guard]) as stack:
        made = stack.store("tea")
        stack.search("tea")
        stack.update(made.id, {"content": "green tea"})
        stack.store_many(["milk"])
        stack.forget(made.id)
    assert guard.seen == [
        *("before_store", "after_store", "before_search", "after_search"),
        *("before_store", "after_store") * 2,
        *("before_forget", "after_forget"),
    ]


def test_a_guard_vetoes_before_any_provider_is_asked(shelf: Make) -> None:
    from memsheaf.stack import Refused

    notes = shelf()
    guard = Guard("before_store", "before_search", "before_forget")
    with MemoryStack([notes], scope=MIRA, plugins=[guard]) as stack:
        for call in (
            lambda: stack.store("tea"),
            lambda: stack.store_many(["tea"]),
            lambda: stack.search("tea"),
            lambda: stack.prefetch("tea"),
            lambda: stack.forget("x"),
        ):
            with pytest.raises(Refused) as caught:
                call()
            assert isinstance(caught.value.__cause__, ValueError)
            assert "secret" not in str(caught.value)
    assert notes.calls == []


def test_a_broken_listener_is_told_in_the_outcomes_and_breaks_nothing(shelf: Make) -> None:
    notes = shelf()
    broken, sound = Guard("after_store", "after_search", "after_forget"), Guard()
    with MemoryStack([notes], scope=MIRA, plugins=[broken, sound]) as stack:
        made = stack.store("tea")
        (many,) = stack.store_many(["milk"])
        result = stack.search("tea")
        report = stack.forget(made.id)
        for told in (made, many, result, report):
            (event,) = [o for o in told.outcomes if o.operation == "event"]
            assert event.status is Status.FAILED
            assert "ValueError" in str(event)
            assert "secret" not in str(event)
            assert not told.partial
        assert made.stored
        assert len(result) == 1
        assert report.verified
    assert sound.seen.count("after_store") == 2


def test_a_record_that_nobody_took_is_not_told_as_stored(shelf: Make) -> None:
    guard = Guard()
    with MemoryStack([shelf(before=fails("store"))], scope=MIRA, plugins=[guard]) as stack:
        (receipt,) = stack.store_many(["tea"])
    assert not receipt.stored
    assert guard.seen == ["before_store"]


def test_a_plugin_listens_as_long_as_it_wants(shelf: Make) -> None:
    class Listener:
        def __init__(self) -> None:
            self.forgotten: list[str] = []

        @hookimpl
        def after_forget(self, report: ForgetReport) -> None:
            self.forgotten.append(report.id)

    listener = Listener()
    with MemoryStack([shelf("a")], scope=MIRA) as stack:
        stop, again = stack.listen(listener), stack.listen(listener)
        again()
        stack.forget("one")
        stop()
        stop()
        stack.forget("two")
        assert listener.forgotten == ["one"]
        for odd in (object(), Listener, shelf("b")):
            for _ in range(2):
                with pytest.raises(RegistrationError):
                    stack.listen(odd)

"""The fan-out: slow, hanging, failing and strange providers hurt nobody but themselves."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memsheaf.stack import (
    Filter,
    Hit,
    MemoryRecord,
    MemoryStack,
    Mount,
    Outcome,
    Scope,
    Status,
    StoreFailed,
    hookimpl,
)
from memsheaf.stack.breaker import Breaker
from memsheaf.stack.workers import Call

MIRA = Scope(user_id="mira")
Make = Callable[..., Any]


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a hanging provider waits for; opened at the end."""
    event = threading.Event()
    yield event
    event.set()


class Searches:
    """Answers every search with what a function gives."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Any:
        return self.answer()


def record(content: str = "tea") -> MemoryRecord:
    return MemoryRecord(content=content, scope=MIRA)


def by_name(outcomes: tuple[Outcome, ...]) -> dict[str, Outcome]:
    return {outcome.provider: outcome for outcome in outcomes}


def threads_of(name: str) -> int:
    return sum(t.name == f"memsheaf-{name}" for t in threading.enumerate())


def exits() -> None:
    raise SystemExit(3)


def test_1b_18_a_provider_that_raises_takes_nothing_from_the_others(shelf: Make) -> None:
    """Fact 18: search still returns the healthy provider's hit, store still returns."""

    def fails(hook: str) -> None:
        raise ValueError("the tea is secret")

    with MemoryStack([shelf("bad", before=fails), shelf("good")], scope=MIRA) as stack:
        made = stack.store("tea at home")
        assert made.stored
        assert made.partial
        result = stack.search("tea")
    assert [hit.id for hit in result] == [made.id]
    assert result.partial
    assert by_name(result.outcomes)["bad"].status is Status.FAILED
    assert "ValueError" in str(by_name(result.outcomes)["bad"])
    assert "secret" not in str(result.outcomes)


def test_bc_087_seven_backends(gate: threading.Event) -> None:
    """Each strange one is told with its own reason, and the sound ones answer every time."""
    hits = [Hit(record(f"x number {n}"), 1.0) for n in range(60)]
    broken = MemoryRecord.model_construct(**{**dict(record()), "content": b"bytes"})
    drawn: list[int] = []

    def million() -> Iterator[Hit]:
        for n in range(1_000_000):
            drawn.append(n)
            yield hits[n % 60]

    def slow(content: str) -> Callable[[], list[Hit]]:
        def answer() -> list[Hit]:
            time.sleep(0.01)
            return [Hit(record(content), 1.0)]

        return answer

    answers: dict[str, Callable[[], Any]] = {
        "A": slow("x of a"),
        "B": slow("x of b"),
        "C": lambda: gate.wait(60),
        "D": exits,
        "E": lambda: None,
        "F": million,
        "G": lambda: [Hit(record(), float("nan")), Hit(broken, 1.0)],
    }
    places = [Mount(Searches(answer), name) for name, answer in answers.items()]
    with MemoryStack(places, scope=MIRA, read_timeout=0.5) as stack:
        for _ in range(3):
            result = stack.search("x")
            told = by_name(result.outcomes)
            assert {told[name].status for name in "ABFG"} == {Status.OK}
            assert told["C"].status is Status.TIMED_OUT
            assert "SystemExit" in str(told["D"])
            assert "NoneType" in str(told["E"])
            assert told["F"].notes == ("cut to the 30 that were asked for",)
            assert "1 dropped: its score is not a finite number" in told["G"].notes
            assert "1 dropped: its record breaks the rules of records" in told["G"].notes
            assert {"A", "B"} <= {s.provider for hit in result for s in hit.sources}
            assert result.partial
        assert len(drawn) < 1_000
        assert threads_of("C") <= 4


def test_a_hanging_provider_keeps_four_threads_and_no_calls_over_1000_calls(
    shelf: Make, gate: threading.Event
) -> None:
    bad = shelf("hangs", before=lambda hook: gate.wait(60))
    settings: dict[str, Any] = {"read_timeout": 0.002, "breaker_failures": 100_000}
    with MemoryStack([bad, shelf("good")], scope=MIRA, **settings) as stack:
        statuses = [by_name(stack.search("tea").outcomes)["hangs"].status for _ in range(1_000)]
        assert threads_of("hangs") <= 4
        gc.collect()
        assert sum(isinstance(thing, Call) for thing in gc.get_objects()) < 50
        assert set(statuses) == {Status.TIMED_OUT, Status.BUSY}
        assert set(statuses[500:]) == {Status.BUSY}
        assert len(bad.calls) == statuses.count(Status.TIMED_OUT) == 4
        assert len(stack.search("tea").outcomes) == 2


def test_busy_ends_when_the_call_ends(shelf: Make, gate: threading.Event) -> None:
    slow = shelf("slow", before=lambda hook: gate.wait(60))
    with MemoryStack([slow], scope=MIRA, workers=1, read_timeout=0.2) as stack:
        assert stack.search("tea").outcomes[0].status is Status.TIMED_OUT
        busy = stack.search("tea").outcomes[0]
        assert busy.status is Status.BUSY
        assert "no free worker" in str(busy)
        gate.set()
    with MemoryStack([slow], scope=MIRA) as stack:
        assert stack.search("tea").outcomes[0].ok


def test_a_timeout_of_its_own_beats_the_stack_s(shelf: Make, gate: threading.Event) -> None:
    slow = Mount(shelf("slow", before=lambda hook: gate.wait(60)), timeout=0.2)
    with MemoryStack([slow], scope=MIRA, read_timeout=30.0, read_deadline=60.0) as stack:
        outcome = stack.search("tea").outcomes[0]
    assert outcome.status is Status.TIMED_OUT
    assert "0.2 s" in str(outcome)


def test_the_deadline_bounds_all_rounds_of_a_search(shelf: Make, gate: threading.Event) -> None:
    """A search that finds nothing looks in the wider scope; who hung is not waited for again."""
    hung = shelf("hung", before=lambda hook: gate.wait(60))
    with MemoryStack([hung, shelf("good")], read_timeout=0.05) as stack:
        stack.search("tea", Scope(user_id="mira", agent_id="cook"))
    assert hung.calls == ["search"]


def test_a_hanging_provider_that_uses_up_the_time_opens_no_breaker_of_a_sound_one(
    shelf: Make, gate: threading.Event
) -> None:
    """Another round without time left would count as failures of those that answer."""
    hung = shelf("hung", before=lambda hook: hook == "search" and gate.wait(60))
    narrow = Scope(user_id="mira", agent_id="cook")
    settings: dict[str, Any] = {"read_timeout": 0.3, "read_deadline": 0.3}
    with MemoryStack([hung, shelf("good")], breaker_failures=1, **settings) as stack:
        stack.store("tea", scope=narrow)
        for _ in range(3):
            stack.retry("hung")
            assert stack.search("milk", narrow).outcomes[1].ok
        assert len(stack.search("tea", narrow)) == 1


def test_a_close_that_hangs_is_given_up(gate: threading.Event) -> None:
    class Sticky(Searches):
        @hookimpl
        def close(self) -> None:
            gate.wait(60)

    stack = MemoryStack([Sticky(list)], write_timeout=0.2)
    assert [o.status for o in stack.close()] == [Status.TIMED_OUT]


def test_many_threads_store_and_search_at_once(shelf: Make) -> None:
    notes = shelf("notes")
    with MemoryStack([notes, shelf("copy")], scope=MIRA, read_timeout=30.0) as stack:

        def work(n: int) -> None:
            for step in range(10):
                made = stack.store(f"tea {n} {step}")
                assert stack.get(made.id) is not None

        callers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert len(stack.list()) == len(notes.records) == 80
        assert threads_of("notes") <= 4


def test_a_timed_out_write_is_unknown_and_its_late_end_is_told(
    shelf: Make, gate: threading.Event
) -> None:
    slow = shelf("slow", before=lambda hook: gate.wait(60))
    with MemoryStack([slow, shelf("good")], scope=MIRA, write_timeout=0.2) as stack:
        made = stack.store("tea")
        assert by_name(made.outcomes)["slow"].status is Status.TIMED_OUT
        assert made.partial
        assert stack.late_outcomes() == ()
        gate.set()
        for _ in range(500):
            if stack.late_outcomes():
                break
            time.sleep(0.01)
        (late,) = stack.late_outcomes()
    assert (late.provider, late.operation, late.status) == ("slow", "store", Status.OK)
    assert made.id in slow.records


@pytest.mark.parametrize("many", [False, True])
def test_a_forget_is_not_verified_while_a_write_that_timed_out_may_yet_come(
    shelf: Make, gate: threading.Event, many: bool
) -> None:
    slow = shelf("slow", before=lambda hook: hook.startswith("store") and gate.wait(60))
    with MemoryStack([slow, shelf("good")], scope=MIRA, write_timeout=0.2) as stack:
        made = stack.store_many(["tea"])[0] if many else stack.store("tea")
        other = stack.store_many(["coffee"])[0].id
        report = stack.forget(made.id)
        assert (report.forgotten, report.verified, report.unverified) == (True, False, ("slow",))
        assert len(stack.late_outcomes()) == 0
        gate.set()
        for _ in range(500):
            if len(stack.late_outcomes()) == 2:
                break
            time.sleep(0.01)
        assert made.id in slow.records  # as the report said it may
        report = stack.forget(made.id)
        assert (report.deleted, report.verified) == ((made.id,), True)
        assert stack.forget(other).verified


def test_the_breaker_opens_per_operation_and_closes_on_retry(shelf: Make) -> None:
    sick = {"search"}

    def before(hook: str) -> None:
        if hook in sick:
            raise OSError(5, "Input/output error")

    notes = shelf("notes", before=before)
    with MemoryStack([notes], scope=MIRA, breaker_failures=3) as stack:
        told = [stack.search("tea").outcomes[0] for _ in range(5)]
        assert [o.status.value for o in told] == ["failed"] * 3 + ["skipped"] * 2
        assert "Input/output error" in str(told[0])
        assert "3 failures in a row" in str(told[4])
        assert stack.search("tea").partial
        assert stack.store("tea").stored
        assert len(stack.list()) == 1
        sick.clear()
        assert stack.search("tea").outcomes[0].status is Status.SKIPPED
        assert stack.retry("notes")
        assert len(stack.search("tea")) == 1


def test_a_breaker_lets_one_trial_through_after_its_pause() -> None:
    time_now = [0.0]
    breaker = Breaker(failures=2, pause=30.0, clock=lambda: time_now[0])
    breaker.failed()
    assert breaker.refuses() is None
    breaker.failed()
    assert "next try in 30 s" in str(breaker.refuses())
    time_now[0] = 31.0
    assert breaker.refuses() is None
    assert breaker.refuses() is not None
    breaker.failed()
    time_now[0] = 60.0
    assert breaker.refuses() is not None
    time_now[0] = 62.0
    assert breaker.refuses() is None
    breaker.succeeded()
    assert breaker.refuses() is None


def test_a_record_that_is_refused_is_no_failure_of_the_provider(shelf: Make) -> None:
    from memsheaf.stack import InvalidRecord

    def before(hook: str) -> None:
        if hook == "store":
            raise InvalidRecord("it is too odd for me")

    with MemoryStack([shelf(before=before), shelf("good")], scope=MIRA) as stack:
        told = [stack.store("tea").outcomes[0] for _ in range(8)]
    assert {str(o) for o in told} == {"shelf: it is too odd for me"}


def test_a_provider_that_calls_exit_ends_neither_thread_nor_process(shelf: Make) -> None:
    class Inline(Searches):
        inline = True

    places = [Mount(Searches(exits), "pooled"), Mount(Inline(exits), "inline"), shelf("good")]
    with MemoryStack(places, scope=MIRA) as stack:
        made = stack.store("tea")
        result = stack.search("tea")
    assert [hit.id for hit in result] == [made.id]
    assert [o.status.value for o in result.outcomes] == ["failed", "failed", "ok"]


def test_inline_hooks_run_on_the_caller_s_thread_and_the_rest_do_not() -> None:
    seen: list[threading.Thread] = []

    def answer() -> list[Hit]:
        seen.append(threading.current_thread())
        return []

    class Inline(Searches):
        inline = True

    with MemoryStack([Inline(answer), Searches(answer)], scope=MIRA) as stack:
        stack.search("tea")
    assert seen.count(threading.current_thread()) == 1
    assert len(set(seen)) == 2


def test_an_async_hook_is_cancelled_at_its_timeout(async_shelf: Make) -> None:
    ended: list[str] = []

    async def before(hook: str) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(f"{hook} cancelled")
            raise

    with MemoryStack([async_shelf("far", before)], scope=MIRA, read_timeout=0.1) as stack:
        for _ in range(6):
            assert stack.search("tea").outcomes[0].status in (Status.TIMED_OUT, Status.SKIPPED)
        for _ in range(500):
            if len(ended) >= 5:
                break
            time.sleep(0.01)
    assert ended == ["search cancelled"] * 5


def test_async_hooks_share_one_loop_whoever_calls(async_shelf: Make) -> None:
    loops: set[int] = set()

    async def before(hook: str) -> None:
        loops.add(id(asyncio.get_running_loop()))

    with MemoryStack([async_shelf("far", before)], scope=MIRA) as stack:
        made = stack.store("tea")
        callers = [threading.Thread(target=stack.search, args=("tea",)) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert stack.get(made.id) is not None
    assert len(loops) == 1


def test_after_close_everything_is_refused_and_close_can_be_called_again(shelf: Make) -> None:
    from memsheaf.stack import ClosedError

    stack = MemoryStack([shelf()], scope=MIRA)
    stack.store("tea")
    stack.close()
    assert stack.close() == ()
    for call in (
        lambda: stack.store("tea"),
        lambda: stack.search("tea"),
        lambda: stack.get("x"),
        lambda: stack.list(),
        lambda: stack.forget("x"),
        lambda: stack.update("x", {}),
        lambda: stack.touch(["x"]),
        lambda: list(stack.export()),
        lambda: stack.check(),
    ):
        with pytest.raises(ClosedError):
            call()


HANGS = """
import sys, time, threading
from memsheaf.stack import MemoryStack, Scope, hookimpl

class Hangs:
    @hookimpl
    def search(self, text, scope):
        time.sleep(600)

class HangsAsync:
    @hookimpl
    async def search(self, text, scope):
        time.sleep(600)

stack = MemoryStack([Hangs(), HangsAsync()], scope=Scope(user_id="mira"), read_timeout=0.5)
print([o.status.value for o in stack.search("x").outcomes], flush=True)
if "close" in sys.argv:
    stack.close()
"""


@pytest.mark.parametrize("argument", ["close", "leave"])
def test_the_process_exits_while_providers_hang(tmp_path: Path, argument: str) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(HANGS)
    ran = subprocess.run(
        [sys.executable, script, argument], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "['timed_out', 'timed_out']\n"


FORKS = """
import os, sys
from memsheaf.stack import Hit, MemoryRecord, MemoryStack, Scope, hookimpl

held = MemoryRecord(content="tea", scope=Scope(user_id="mira"))

class Notes:
    @hookimpl
    def search(self, text, scope):
        return [Hit(held, 1.0)]

class Far:
    @hookimpl
    async def search(self, text, scope):
        return [Hit(held, 1.0)]

stack = MemoryStack([Notes(), Far()], scope=held.scope)
assert len(stack.search("tea")) == 1
child = os.fork()
if child == 0:
    result = stack.search("tea")
    os._exit(0 if len(result) == 1 and not result.partial else 1)
_, status = os.waitpid(child, 0)
assert len(stack.search("tea")) == 1
stack.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_searches_with_threads_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(FORKS)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_write_for_which_there_is_no_thread_is_a_failure_and_never_made(
    shelf: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = shelf()
    with MemoryStack([held], scope=MIRA) as stack:
        with monkeypatch.context() as patched:

            def refuse(thread: threading.Thread) -> None:
                raise RuntimeError("can't start new thread")

            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(StoreFailed, match="RuntimeError"):
                stack.store("tea at home")
        made = stack.store("coffee at work")
        assert list(held.records) == [made.id]

"""The doubles do to calls what their names say."""

import threading

import pytest

from memsheaf.stack import MemoryRecord, Scope
from memsheaf.stack.conformance_driver import Driver
from memsheaf.stack.doubles import (
    FailingProvider,
    HangingProvider,
    InMemoryStore,
    LeakingProvider,
    RecordingProvider,
    SlowProvider,
)

MIRA, TOMAS = Scope(user_id="mira"), Scope(user_id="tomas")


def test_recording_notes_every_call() -> None:
    provider = RecordingProvider()
    with Driver(provider) as memory:
        memory.store(MemoryRecord(content="cello", scope=MIRA))
        assert memory.contents("cello") == ["cello"]
    assert [call[0] for call in provider.calls] == ["store", "search"]
    assert provider.calls[1][2]["text"] == "cello"


def test_failing_fails_where_it_should() -> None:
    inner = InMemoryStore()
    with Driver(FailingProvider(OSError("unplugged"), on=["search"], inner=inner)) as memory:
        memory.store(MemoryRecord(content="cello", scope=MIRA))
        with pytest.raises(OSError, match="unplugged"):
            memory.search("cello")
    assert len(inner) == 1
    with (
        Driver(FailingProvider(OSError("unplugged"))) as memory,
        pytest.raises(OSError, match="unp"),
    ):
        memory.store(MemoryRecord(content="cello", scope=MIRA))


def test_hanging_waits_to_be_released() -> None:
    provider = HangingProvider()
    done = threading.Event()

    def ask() -> None:
        with Driver(provider) as memory:
            memory.search("cello")
        done.set()

    thread = threading.Thread(target=ask)
    thread.start()
    assert not done.wait(0.05)
    provider.release()
    thread.join(10)
    assert done.is_set()


def test_slow_sleeps_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("memsheaf.stack.doubles.time.sleep", slept.append)
    with Driver(SlowProvider(3.5)) as memory:
        assert memory.search("cello") == []
    assert slept == [3.5]


def test_leaking_shows_others_records() -> None:
    inner = InMemoryStore()
    inner.store(MemoryRecord(content="the cello of tomas", scope=TOMAS))
    with Driver(LeakingProvider(inner)) as memory:
        assert memory.contents("cello", MIRA) == ["the cello of tomas"]

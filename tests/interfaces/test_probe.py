"""The doctor's round on providers that fail, hang, find nothing, forget nothing or only read."""

from memsheaf.interfaces.probe import probe
from memsheaf.stack import MemoryRecord, Mount, ProviderUnavailable, Scope, StackSettings, hookimpl
from memsheaf.stack.doubles import FailingProvider, HangingProvider, InMemoryStore

SETTINGS = StackSettings(read_timeout=0.2, write_timeout=0.2)


class Blind(InMemoryStore):
    @hookimpl
    def search(self, scope: Scope) -> list[object]:  # type: ignore[override]
        return []


class Elephant(InMemoryStore):
    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        return True


class Profile:
    @hookimpl
    def build_user_context(self, scope: Scope) -> str:
        return "- likes tea"


def test_a_good_store_passes_and_keeps_nothing() -> None:
    store = InMemoryStore()
    seen = probe(Mount(store), SETTINGS, round_trip=True)
    assert seen.fault is None
    assert seen.steps == ("write", "read", "forget")
    assert (seen.health, seen.mode, seen.records) == ("ok", "read-write", 0)
    assert len(store) == 0


def test_what_is_pinned_is_tried_within_its_scope() -> None:
    pinned = Scope(user_id="mira")
    assert probe(Mount(InMemoryStore(), scope=pinned), SETTINGS, round_trip=True).fault is None
    whole = Scope(user_id="a", agent_id="b", session_id="c", namespace="d")
    fault = probe(Mount(InMemoryStore(), scope=whole), SETTINGS, round_trip=True).fault
    assert fault is not None
    assert fault.startswith("write: it is pinned")


def test_the_step_that_fails_is_named() -> None:
    down = ProviderUnavailable("the server does not answer")
    for hook, step in (("store", "write"), ("search", "read"), ("forget", "forget")):
        hooks = {hook, "store_many"} if hook == "store" else {hook}
        seen = probe(Mount(FailingProvider(down, on=hooks)), SETTINGS, round_trip=True)
        assert seen.fault is not None
        assert seen.fault.startswith(f"{step}: "), seen.fault
        assert "the server does not answer" in seen.fault


def test_a_store_that_finds_nothing_or_forgets_nothing_is_seen_through() -> None:
    blind = Blind()
    fault = probe(Mount(blind), SETTINGS, round_trip=True).fault
    assert fault == "read: it does not find what it was given"
    assert len(blind) == 0
    fault = probe(Mount(Elephant()), SETTINGS, round_trip=True).fault
    assert fault is not None
    assert fault.startswith("forget: ")


def test_a_store_that_hangs_does_not_hang_the_doctor() -> None:
    hanging = HangingProvider()
    try:
        seen = probe(Mount(hanging), SETTINGS, round_trip=True)
    finally:
        hanging.release()
    assert seen.health == "timed_out"
    assert seen.fault is not None
    assert seen.steps == ()


def test_readers_and_context_are_tried_as_far_as_their_mode_goes() -> None:
    store = InMemoryStore()
    assert probe(Mount(store, mode="read"), SETTINGS, round_trip=True).steps == ("read",)
    assert probe(Mount(store, mode="write"), SETTINGS, round_trip=True).steps == ("write", "forget")
    assert probe(Mount(Profile()), SETTINGS, round_trip=True).steps == ("context",)


def test_what_cannot_be_mounted_is_told() -> None:
    seen = probe(Mount(object(), name="thing"), SETTINGS, round_trip=True)
    assert (seen.mode, seen.health) == (None, "failed")
    assert seen.fault is not None
    assert "no usable hooks" in seen.fault


def test_records_are_counted_without_a_round() -> None:
    store = InMemoryStore()
    for n in range(1_001):  # more than a page
        store.store(MemoryRecord(content=f"memory {n}", scope=Scope(user_id=f"user {n}")))
    seen = probe(Mount(store), SETTINGS, round_trip=False)
    assert seen.records == 1_001
    assert seen.steps == ()

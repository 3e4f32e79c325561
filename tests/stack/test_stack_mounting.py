"""Mounting: what is refused, and that a refusal leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pluggy
import pytest

from memsheaf.stack import (
    Down,
    Hit,
    MemoryRecord,
    MemoryStack,
    Mode,
    Mount,
    RegistrationError,
    Scope,
    ScopeError,
    UsageError,
    hookimpl,
    pinned,
    read_only,
    write_only,
)
from memsheaf.stack.contract import PROJECT, ProviderSpec
from memsheaf.stack.mounting import mount_all

MIRA = Scope(user_id="mira")
Make = Callable[..., Any]


class Base:
    @hookimpl
    def search(self, text: str, scope: Scope) -> list[Hit]:
        return []

    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        return None

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        return False


class LostMark(Base):
    def search(self, text: str, scope: Scope) -> list[Hit]:
        return []


class Misspelt(Base):
    @hookimpl
    def serach(self, text: str) -> list[Hit]:
        return []


class WrongArgument(Base):
    @hookimpl
    def get(self, record_key: str, scope: Scope) -> None:
        return None


class ScopelessSearch:
    @hookimpl
    def search(self, text: str) -> list[Hit]:
        return []


class ScopelessGet(Base):
    @hookimpl
    def get(self, record_id: str) -> None:
        return None


class StoreOnly:
    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        return None


class WrongFields(Base):
    scope_fields = ("tenant",)


class Writes(StoreOnly):
    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        return False


class Reads:
    @hookimpl
    def search(self, text: str, scope: Scope) -> list[Hit]:
        return []


class Context:
    @hookimpl
    def build_user_context(self, scope: Scope) -> str:
        return "likes tea"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (LostMark(), "lostmark: search overrides a hook of Base without @hookimpl"),
        (Misspelt(), "serach"),
        (WrongArgument(), "record_key"),
        (ScopelessSearch(), "search does not take scope"),
        (ScopelessGet(), "get does not take scope"),
        (StoreOnly(), "no usable hooks"),
        (object(), "no usable hooks"),
        (Base, "a class was given; give an instance"),
        (WrongFields(), "scope_fields may name only"),
        (Mount(Base(), "first"), "the name is taken"),
        (Mount(Base(), weight=0), "weight"),
        (Mount(Base(), weight=float("nan")), "weight"),
        (Mount(Base(), weight=float("inf")), "weight"),
        (Mount(Base(), timeout=0), "timeout"),
        (Mount(Base(), mode="upside-down"), "mode must be one of"),
        (Mount(StoreOnly(), mode="write"), "store and forget"),
        (Mount(Writes(), mode="read"), "needs the hook search"),
        (Mount(Base(), mode=Mode.CONTEXT), "build_system_prompt"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_name_and_nothing_stays(
    bad: object, told: str
) -> None:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ProviderSpec)
    good = Base()
    with pytest.raises(RegistrationError, match=told):
        mount_all(manager, [Mount(good, "first"), bad])
    assert not manager.get_plugins()
    assert not manager.hook.search.get_hookimpls()
    manager.check_pending()
    again = mount_all(manager, [Mount(good, "first"), Mount(Base(), "second")])
    assert [m.name for m in again] == ["first", "second"]


def test_one_object_is_mounted_once() -> None:
    store = Base()
    with pytest.raises(RegistrationError, match="registered"):
        MemoryStack([store, Mount(store, "again")])
    with MemoryStack([store]) as stack:
        assert [m.name for m in stack.providers] == ["base"]


def test_names_are_made_unique_where_none_is_given(shelf: Make) -> None:
    with MemoryStack([Base(), Base(), shelf("notes"), shelf("notes")]) as stack:
        assert [m.name for m in stack.providers] == ["base", "base-2", "notes", "notes-2"]


def test_the_mode_follows_from_the_hooks() -> None:
    with MemoryStack([Base(), Reads(), Writes(), Context()]) as stack:
        modes = [m.mode for m in stack.providers]
    assert modes == [Mode.READ_WRITE, Mode.READ, Mode.WRITE, Mode.CONTEXT]


def test_a_pinned_provider_needs_no_scope_argument() -> None:
    with MemoryStack([pinned(ScopelessSearch(), MIRA)]) as stack:
        assert stack.search("tea", MIRA).outcomes[0].ok
    for nobody in (Scope(), Scope.EVERYONE):
        with pytest.raises(ScopeError):
            MemoryStack([pinned(ScopelessSearch(), nobody)])


@pytest.mark.parametrize("plugin", [Misspelt(), Base(), object])
def test_a_plugin_that_is_no_listener_is_refused(plugin: object) -> None:
    with pytest.raises(RegistrationError):
        MemoryStack([], plugins=[plugin])


def test_a_read_only_provider_is_never_written(shelf: Make) -> None:
    held = MemoryRecord(content="tea from the library", scope=MIRA)
    library, notes = shelf("library", records=[held]), shelf("notes")
    with MemoryStack([read_only(library), notes], scope=MIRA) as stack:
        made = stack.store("tea at home")
        stack.update(made.id, {"content": "tea at work"})
        stack.touch([made.id, held.id])
        assert {hit.id for hit in stack.search("tea")} == {made.id, held.id}
        report = stack.forget(held.id)
    assert {"store", "update", "touch", "forget"}.isdisjoint(library.calls)
    assert not report.forgotten
    assert report.remaining == ("library",)


def test_a_write_only_provider_is_never_searched_and_still_checked(shelf: Make) -> None:
    archive, notes = shelf("archive", deaf=True), shelf("notes")
    with MemoryStack([write_only(archive), notes], scope=MIRA) as stack:
        made = stack.store("tea at home")
        assert [o.provider for o in stack.search("tea").outcomes] == ["notes"]
        assert archive.calls == ["store"]
        assert stack.forget(made.id).remaining == ("archive",)


def test_a_provider_that_is_down_tells_why_and_can_be_retried(shelf: Make) -> None:
    notes = shelf("notes")
    tries: list[int] = []

    def reopen() -> object:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("secret text")
        return notes

    places = [Mount(Down("the disk is away", reopen), "notes"), shelf("other")]
    with MemoryStack(places, scope=MIRA) as stack:
        made = stack.store("tea at home")
        assert made.partial
        assert "the disk is away" in str(made.outcomes[0])
        touched = stack.touch([made.id])
        assert [(o.provider, o.status.value) for o in touched] == [
            ("notes", "failed"),
            ("other", "ok"),
        ]
        assert stack.list().partial
        assert not stack.retry("notes")
        assert "secret" not in str(stack.search("tea").outcomes[0])
        assert stack.retry("notes")
        assert stack.store("tea at work").outcomes[0].ok
    assert [r.content for r in notes.records.values()] == ["tea at work"]


class NameRaises(Reads):
    @property
    def name(self) -> str:
        raise RuntimeError("no name yet")


class AttributesRaise(Reads):
    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"not connected, so no {name}")


class NeverEqual(Reads):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    __hash__ = None  # type: ignore[assignment]


class NumberedFields(Reads):
    scope_fields = 7


class Coloured(Reads):
    name = "\x1b[31mred"


@pytest.mark.parametrize(
    "make",
    [
        NameRaises,
        AttributesRaise,
        NeverEqual,
        NumberedFields,
        Coloured,
        lambda: Mount(Reads(), name="n" * 1000),
        lambda: Mount(Reads(), name=7),  # type: ignore[arg-type]
        lambda: Mount(Reads(), weight="heavy"),  # type: ignore[arg-type]
        lambda: Mount(Reads(), timeout="long"),  # type: ignore[arg-type]
        lambda: Mount(Reads(), scope="mira"),  # type: ignore[arg-type]
    ],
)
def test_whatever_is_wrong_with_an_object_it_is_refused_by_an_error_of_ours(
    shelf: Make, make: Callable[[], object]
) -> None:
    with pytest.raises(RegistrationError):
        MemoryStack([shelf(), make()])


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ScopeError):
        MemoryStack([], scope="mira")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="settings"):
        MemoryStack([], settings=7)  # type: ignore[arg-type]

"""Export and import, secrets, pins, scope fields, native ids, and the switch that turns all off."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memsheaf.stack import (
    Hit,
    Incomplete,
    InvalidRecord,
    MemoryRecord,
    MemoryStack,
    NotFound,
    ProviderUnavailable,
    Scope,
    Status,
    StoreCorrupt,
    UsageError,
    hookimpl,
    pinned,
)
from memsheaf.stack.native_ids import NativeIds

MIRA, TOMAS = Scope(user_id="mira"), Scope(user_id="tomas")
Make = Callable[..., Any]


def fails(*hooks: str) -> Callable[[str], None]:
    def before(hook: str) -> None:
        if hook in hooks or not hooks:
            raise OSError(5, "Input/output error")

    return before


def record(content: str = "tea at home", scope: Scope = MIRA, **fields: Any) -> MemoryRecord:
    return MemoryRecord.make(content=content, scope=scope, **fields)


# export, import


def test_an_export_comes_back_whole(shelf: Make) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    made = [record(f"n {n}", created_at=start + timedelta(days=n // 2)) for n in range(1_201)]
    with MemoryStack([shelf(records=made)], scope=MIRA) as stack:
        lines = list(stack.export())
    assert json.loads(lines[0])["format"] == "memsheaf-export"
    assert len(lines) == 1_202
    fresh = shelf()
    with MemoryStack([fresh], scope=MIRA) as stack:
        report = stack.import_(lines)
        assert (report.imported, report.refused, report.partial) == (1_201, (), False)
        assert stack.import_(lines).imported == 1_201
    assert fresh.records == {r.id: r for r in made}


def test_an_export_that_would_miss_a_provider_is_no_export(shelf: Make) -> None:
    stores = [shelf("a", records=[record()]), shelf("bad", before=fails("list"))]
    with MemoryStack(stores, scope=MIRA) as stack, pytest.raises(Incomplete, match="bad"):
        list(stack.export())


def test_import_refuses_line_by_line_and_keeps_to_the_scope(shelf: Make) -> None:
    notes = shelf(records=[record("held", TOMAS, id="held")])
    good, other = record("good"), record("secret of tomas", TOMAS)
    lines: list[str | bytes] = [
        '{"format": "memsheaf-export", "version": 1}',
        good.to_json(),
        "not json",
        other.to_json().encode(),
        record("mine", id="held").to_json(),
        '{"content": "no scope"}',
        "[1]",
        "",
    ]
    with MemoryStack([notes]) as stack:
        report = stack.import_(lines, MIRA)
        assert report.imported == 1
        assert [number for number, _ in report.refused] == [3, 4, 5, 6, 7]
        assert "secret" not in str(report.refused)
        assert set(notes.records) == {"held", good.id}
        assert stack.import_(lines, Scope.EVERYONE).imported == 2
        newer = stack.import_(['{"format": "memsheaf-export", "version": 2}'], MIRA)
        assert newer.refused[0][0] == 1


# secrets


def test_bc_060_memory_text_is_in_no_log_and_no_reason(
    shelf: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    text = "my insulin dose is 14 units"

    def leaks(hook: str) -> None:
        raise RuntimeError(f"rejected: {text}")

    with MemoryStack([shelf("leaky", before=leaks), shelf("good")], scope=MIRA) as stack:
        made = stack.store(text)
        changed = stack.update(made.id, {"content": f"{text} now"})
        result = stack.search(text)
        page = stack.list()
        report = stack.forget(made.id)
        outcomes = [
            *made.outcomes,
            *changed.outcomes,
            *result.outcomes,
            *page.outcomes,
            *report.outcomes,
            *report.checks,
        ]
        with pytest.raises(InvalidRecord) as refused:
            stack.store({"text": text})  # type: ignore[arg-type]
    told = " ".join(f"{o} {o!r} {o.notes}" for o in outcomes)
    assert "RuntimeError" in told
    for place in (told, str(refused.value), caplog.text):
        assert "insulin" not in place


# pinned, scope fields, native ids


def test_a_provider_pinned_to_another_scope_is_skipped_and_nothing_is_missing(
    shelf: Make,
) -> None:
    hers = shelf("hers", before=lambda hook: None)
    with MemoryStack([pinned(hers, MIRA), shelf("all")]) as stack:
        made = stack.store("tea", scope=TOMAS)
        assert not made.partial
        assert made.outcomes[0].status is Status.SKIPPED
        assert "pinned" in str(made.outcomes[0])
        result = stack.search("tea", TOMAS)
        assert len(result) == 1
        assert not result.partial
        assert "another user_id" in str(result.outcomes[0])
        assert stack.get("nowhere", TOMAS) is None
        with pytest.raises(NotFound):
            stack.update("nowhere", {"content": "x"}, TOMAS)
        assert len(list(stack.export(TOMAS))) == 2
        assert stack.forget(made.id, TOMAS).verified
        assert hers.calls == []
        (many,) = stack.store_many(["milk"], scope=TOMAS)
        assert not many.partial
        ours = stack.store_many([record("a", MIRA), record("b", TOMAS)])
        assert [r.partial for r in ours] == [False, False]
        assert [r.content for r in hers.records.values()] == ["a"]


def test_a_pin_stamps_what_a_foreign_system_does_not_know() -> None:
    class Unscoped:
        @hookimpl
        def search(self, text: str) -> list[Hit]:
            return [Hit(record("tea", Scope(namespace="x")), 1.0)]

    with MemoryStack([pinned(Unscoped(), MIRA)]) as stack:
        (hit,) = stack.search("tea", MIRA)
        assert hit.record.scope == Scope(user_id="mira", namespace="x")
        assert len(stack.search("tea", TOMAS)) == 0


def test_a_query_by_a_field_that_a_provider_cannot_tell_is_not_sent(shelf: Make) -> None:
    class UserOnly(type(shelf())):  # type: ignore[misc]
        scope_fields = ("user_id",)
        returned_scope_fields = ()

    notes = UserOnly("users")
    with MemoryStack([notes]) as stack:
        stack.store("tea", scope=MIRA)
        result = stack.search("tea", Scope(user_id="mira", session_id="s1"))
        assert "cannot keep records apart by session_id" in str(result.outcomes[0])
        assert result.partial
        assert len(stack.search("tea", MIRA)) == 1


def test_native_ids_are_kept_over_a_restart_and_reach_update_and_forget(
    foreign_shelf: Make, tmp_path: Path
) -> None:
    foreign = foreign_shelf()
    with MemoryStack([foreign], scope=MIRA, state=tmp_path / "state") as stack:
        made = stack.store("tea at home")
        (many,) = stack.store_many(["milk at home"])
    mode = (tmp_path / "state" / "native_ids.db").stat().st_mode & 0o777
    assert mode == 0o600
    with MemoryStack([foreign], scope=MIRA, state=tmp_path / "state") as stack:
        hits = {hit.id: hit for hit in stack.search("home")}
        assert set(hits) == {made.id, many.id}
        assert hits[made.id].sources[0].native_ids == ("native-1",)
        held = stack.get(made.id)
        assert held is not None
        assert held.id == made.id
        assert stack.forget(made.id).verified
        assert stack.forget(many.id)
    assert foreign.rows == {}


def test_a_batch_that_ends_late_still_tells_its_native_ids(foreign_shelf: Make) -> None:
    gate = threading.Event()

    class Slow(type(foreign_shelf())):  # type: ignore[misc]
        @hookimpl
        def store(self, record: MemoryRecord) -> Any:
            gate.wait(30)
            return super().store(record)

    slow = Slow()
    with MemoryStack([slow], scope=MIRA, write_timeout=0.2, read_timeout=30.0) as stack:
        (receipt,) = stack.store_many(["tea at home"])
        assert receipt.outcomes[0].status is Status.TIMED_OUT
        assert receipt.error is not None
        gate.set()
        while not stack.late_outcomes():
            time.sleep(0.005)
        assert stack.search("tea")[0].id == receipt.id
        stack.forget(receipt.id)
    assert slow.rows == {}


def test_a_disabled_stack_touches_no_provider(shelf: Make) -> None:
    notes = shelf()
    with MemoryStack([notes], scope=MIRA, disabled=True) as stack:
        made = stack.store("tea")
        assert not made.stored
        assert "disabled" in str(made.outcomes[0])
        assert len(stack.search("tea")) == 0
        assert stack.get(made.id) is None
        assert not stack.forget(made.id)
        with pytest.raises(UsageError):
            stack.store(" ")
    assert notes.calls == []


def test_an_id_map_that_is_damaged_or_a_link_is_told(foreign_shelf: Make, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with MemoryStack([foreign_shelf()], scope=MIRA, state=state) as stack:
        stack.store("tea")
    file = state / "native_ids.db"
    whole = file.read_bytes()
    file.write_bytes(b"no database" * 1000)
    with MemoryStack([foreign_shelf()], scope=MIRA, state=state) as stack:
        with pytest.raises(StoreCorrupt, match="restore or remove it"):
            stack.get("x")
        assert file.read_bytes() == b"no database" * 1000
    file.unlink()
    victim = tmp_path / "victim.db"
    victim.write_bytes(whole)
    file.symlink_to(victim)
    with (
        MemoryStack([foreign_shelf()], scope=MIRA, state=state) as stack,
        pytest.raises(ProviderUnavailable, match="cannot be opened"),
    ):
        stack.get("x")
    assert victim.read_bytes() == whole


def test_an_id_map_that_is_closed_keeps_what_comes_late_and_stays_closed(tmp_path: Path) -> None:
    native = NativeIds(tmp_path / "ids.db")
    native.add("far", "ours", ["theirs"])
    native.close()
    native.add("far", "late", ["also theirs"])
    assert native.native("far", "late") == ("also theirs",)
    names = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
    opened = [os.readlink(name) for name in names if os.path.lexists(name)]
    assert not [name for name in opened if name.startswith(str(tmp_path))]
    native.close()
    again = NativeIds(tmp_path / "ids.db")
    assert again.ours("far", ["also theirs"]) == "late"
    again.close()


def test_a_child_does_not_wait_for_a_lock_of_the_parent(tmp_path: Path) -> None:
    native = NativeIds(tmp_path / "ids.db")
    native.add("far", "ours", ["theirs"])
    with native._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if native.ours("far", ["theirs"]) == "ours" else 1)
        _, status = os.waitpid(child, 0)
    assert status == 0
    native.close()


def test_a_state_folder_that_cannot_be_looked_at_stops_nobody(shelf: Make, tmp_path: Path) -> None:
    with MemoryStack([shelf()], scope=MIRA, state=tmp_path / ("n" * 300)) as stack:
        made = stack.store("tea")
        assert stack.search("tea")[0].id == made.id
        assert stack.forget(made.id)

"""The saved index: current or caught up, rebuilt where it cannot be used, no place of leaks."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from memsheaf.index import BM25Index
from memsheaf.sessionsearch import (
    ConversationLog,
    NewItem,
    SessionRanking,
    SessionSearch,
    open_sessions,
)
from memsheaf.sessionsearch.default_index import DefaultIndex
from memsheaf.sessionsearch.index_files import IndexFiles
from memsheaf.stack import ProviderUnavailable, Scope

MIRA = Scope(user_id="mira")
MANY = 300  # more than are read again from the log without being saved


def fill(sessions: SessionSearch, conversation: str = "c", count: int = MANY) -> None:
    items = [NewItem("message", f"cello number {n}") for n in range(count)]
    sessions.log.append(conversation, items, MIRA)


def found(sessions: SessionSearch, text: str) -> list[str]:
    return [hit.id for hit in sessions.search(text, 1000, scope=MIRA)]


def index_of(sessions: SessionSearch) -> DefaultIndex:
    assert isinstance(sessions._index, DefaultIndex)
    return sessions._index


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "sessions"
    with open_sessions(home) as sessions:
        fill(sessions)
        sessions.catch_up()
    return home


def saved(folder: Path) -> Path:
    return folder / "sessions.db.index"


def test_it_is_opened_as_it_was_saved_and_reads_nothing_again(folder: Path) -> None:
    assert saved(folder).stat().st_mode & 0o777 == 0o700
    assert all(p.stat().st_mode & 0o077 == 0 for p in saved(folder).rglob("*"))
    with open_sessions(folder) as sessions:
        assert index_of(sessions).rebuilt is None
        assert sessions.catch_up() == 0
        assert found(sessions, "number 7")[:1] == ["c:7"]


def test_what_came_since_is_caught_up(folder: Path) -> None:
    with open_sessions(folder) as sessions:
        sessions.log.append("d", NewItem("message", "zither"), MIRA)
        sessions.log.delete("c", MIRA, 7)
        sessions.log.append("c", NewItem("message", "viola"), MIRA)
    with open_sessions(folder) as sessions:
        assert sessions.catch_up() == 2
        assert found(sessions, "zither") == ["d:0"]
        assert found(sessions, "viola") == [f"c:{MANY}"]
        assert "c:7" not in found(sessions, "number 7")
        sessions.log.restore("c", MIRA, 7)
        assert found(sessions, "number 7")[:1] == ["c:7"]


def test_a_few_items_are_not_worth_files(tmp_path: Path) -> None:
    with open_sessions(tmp_path / "s") as sessions:
        fill(sessions, count=3)
        assert len(found(sessions, "cello")) == 3
    assert not saved(tmp_path / "s").exists()
    with open_sessions(tmp_path / "s") as sessions:
        assert len(found(sessions, "cello")) == 3


def damaged(folder: Path, how: str) -> None:
    files = [path for path in saved(folder).rglob("*") if path.is_file()]
    for path in files:
        if how == "cut":
            os.truncate(path, path.stat().st_size // 2)
        elif how == "emptied":
            path.write_bytes(b"")
        elif how == "foreign":
            path.write_bytes(b"\x80\x04 nothing that we wrote" * 50)
        elif how == "catalog" and path.name.startswith("catalog"):
            path.unlink()
    if how == "gone":
        shutil.rmtree(saved(folder))
    elif how == "a file":
        shutil.rmtree(saved(folder))
        saved(folder).write_text("?")


@pytest.mark.parametrize("how", ["cut", "emptied", "foreign", "catalog", "a file"])
def test_what_is_damaged_blocks_no_append_is_told_and_rebuilt(
    folder: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    damaged(folder, how)
    with caplog.at_level(logging.WARNING), open_sessions(folder) as sessions:
        sessions.log.append("d", NewItem("message", "zither"), MIRA)
        assert sessions.rebuilt
        assert "rebuilt" in caplog.text
        assert found(sessions, "zither") == ["d:0"]
        assert len(found(sessions, "cello")) == MANY
    with open_sessions(folder) as sessions:
        assert index_of(sessions).rebuilt is None or how == "a file"
        assert len(found(sessions, "cello")) == MANY


def test_a_flipped_byte_is_found_by_the_search_that_reads_it(folder: Path) -> None:
    for path in saved(folder).rglob("*.segment"):
        content = bytearray(path.read_bytes())
        for at in range(len(content) // 2, len(content), 64):
            content[at] ^= 0x55
        path.write_bytes(content)
    with open_sessions(folder) as sessions:
        assert len(found(sessions, "cello")) == MANY
        assert index_of(sessions).rebuilt


def damage_postings(folder: Path) -> None:
    """Damage an array that is not read when the index is opened."""
    for path in saved(folder).rglob("*.segment"):
        content = bytearray(path.read_bytes())
        size = int.from_bytes(content[8:16], "little")
        for name, _, at, _ in json.loads(content[24 : 24 + size])["arrays"]:
            if name == "docs":
                content[24 + size + at] ^= 1
        path.write_bytes(content)


def test_damage_that_only_an_explanation_reads_is_mended(folder: Path) -> None:
    damage_postings(folder)
    with open_sessions(folder) as sessions:
        assert sessions.search("cello", 0, scope=MIRA).explain.matched == MANY
        assert "a count" in (sessions.rebuilt or "")


def test_damage_that_a_save_finds_hinders_no_closing(folder: Path) -> None:
    damage_postings(folder)
    with open_sessions(folder) as sessions:
        fill(sessions)
        sessions.catch_up()
    assert "saving" in (sessions.rebuilt or "")
    with open_sessions(folder) as sessions:
        assert len(found(sessions, "cello")) == 2 * MANY


def test_parts_of_two_indexes_are_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "s"
    with open_sessions(home) as first, open_sessions(home) as second:
        for n in range(20):
            for name in ("c", "d"):
                first.log.append(name, NewItem("message", f"{name} cello{n}"), MIRA)
            first.catch_up()
        second.catch_up()  # the same sequence, the rows in another order
        first.save()
        with monkeypatch.context() as patch:
            patch.setattr(BM25Index, "save", interrupted(OSError("no space")))
            second.save()
    with open_sessions(home) as sessions:
        for n in range(20):
            assert found(sessions, f"d cello{n}")[:1] == [f"d:{n}"]
        assert sessions.rebuilt


def test_what_was_taken_in_by_half_is_taken_in_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_sessions(folder) as sessions:
        sessions.log.append("d", NewItem("message", "zither"), MIRA)
        with monkeypatch.context() as patch:
            patch.setattr(BM25Index, "add_many", interrupted(KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt):
                sessions.catch_up()
        assert found(sessions, "zither") == ["d:0"]
        assert len(found(sessions, "cello")) == MANY
        assert "KeyboardInterrupt" in (sessions.rebuilt or "")


def interrupted(error: BaseException) -> Callable[..., None]:
    def stop(*_: object, **__: object) -> None:
        raise error

    return stop


def test_a_flipped_bit_anywhere_in_the_catalog_is_found(folder: Path) -> None:
    (path,) = saved(folder).glob("catalog-*")
    content = path.read_bytes()
    with open_sessions(folder) as sessions:
        assert sessions.rebuilt is None
    for at in range(len(content) // 10, len(content), len(content) // 40):
        flipped = bytearray(content)
        flipped[at] ^= 1
        path.write_bytes(flipped)
        with ConversationLog(folder / "sessions.db") as log:
            assert DefaultIndex(log).rebuilt, at


def test_without_files_it_is_built_without_a_word(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damaged(folder, "gone")
    with open_sessions(folder) as sessions:
        assert len(found(sessions, "cello")) == MANY
        assert index_of(sessions).rebuilt is None
    assert not caplog.records


def test_arrays_that_do_not_fit_together_are_noticed_by_a_search(folder: Path) -> None:
    with open_sessions(folder) as sessions:
        index_of(sessions)._catalog.rows.size -= 50
        assert len(found(sessions, "cello")) == MANY
        assert "search" in (index_of(sessions).rebuilt or "")


def test_the_index_of_another_log_is_not_used(folder: Path, tmp_path: Path) -> None:
    with open_sessions(tmp_path / "other") as other:
        for n in range(5):
            other.log.append("x", NewItem("message", f"oboe {n}"), MIRA)
    shutil.copytree(saved(folder), saved(tmp_path / "other"))
    with open_sessions(tmp_path / "other") as sessions:
        assert index_of(sessions).rebuilt
        assert found(sessions, "cello") == []
        assert len(found(sessions, "oboe")) == 5


def test_a_log_that_was_put_back_from_a_backup(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "sessions.db", tmp_path / "backup.db")
    with open_sessions(folder) as sessions:
        fill(sessions, "later")
        sessions.catch_up()
    shutil.copy(tmp_path / "backup.db", folder / "sessions.db")
    with open_sessions(folder) as sessions:
        sessions.log.append("d", NewItem("message", "zither"), MIRA)
        assert index_of(sessions).rebuilt
        assert len(found(sessions, "cello")) == MANY
        assert found(sessions, "zither") == ["d:0"]


def test_an_erasure_leaves_no_text_in_the_files(tmp_path: Path) -> None:
    home = tmp_path / "s"
    with open_sessions(home) as sessions:
        fill(sessions)
        secret = [NewItem("message", "the xylographer sleeps at noon") for _ in range(3)]
        sessions.log.append("secret", secret, MIRA)
        sessions.log.append("c", NewItem("message", "a quixotic plan"), MIRA)
        assert len(found(sessions, "xylographer")) == 3
        sessions._index.save()
        assert b"xylograph" in bytes_of(home)
        sessions.log.erase("secret", MIRA)
        assert b"xylograph" not in bytes_of(home)
        assert found(sessions, "xylographer") == []
        assert b"quixot" in bytes_of(saved(home))
        sessions.log.erase("c", MIRA, MANY)
        assert found(sessions, "quixotic plan") == []
        assert len(found(sessions, "cello")) == MANY
    for word in (b"xylograph", b"quixot", b"sleep"):
        assert word not in bytes_of(home)
    with open_sessions(home) as sessions:
        assert found(sessions, "xylographer sleeps quixotic") == []


def test_an_erasure_leaves_no_names_in_the_files(tmp_path: Path) -> None:
    home = tmp_path / "s"
    with open_sessions(home) as sessions:
        for number in range(3):
            item = NewItem(f"type{number}", f"oboe {number}", role=f"role{number}")
            project = {"project": f"/project{number}"}
            sessions.log.append(f"c{number}", item, MIRA, metadata=project)
            sessions.log.append(f"c{number}", NewItem("message", f"reed {number}"), MIRA)
        fill(sessions)
        assert len(found(sessions, "oboe")) == 3
        sessions._index.save()
        sessions.log.erase("c0", MIRA)
        sessions.log.erase("c1", MIRA, 0)
        sessions.catch_up()
        assert (saved(home) / f"catalog-{sessions.log.sequence()}").exists()
        for name in (b"type0", b"role0", b"project0", b"type1", b"role1"):
            assert name not in bytes_of(home)
    with open_sessions(home) as sessions:
        assert sessions.rebuilt is None
        assert [h.id for h in sessions.search("oboe", scope=MIRA, types="type2")] == ["c2:0"]
        assert [h.id for h in sessions.search("oboe", scope=MIRA, roles="role2")] == ["c2:0"]
        assert [h.id for h in sessions.search("reed", scope=MIRA, project="/project1")] == ["c1:1"]


def test_factors_follow_the_kinds_that_are_left(tmp_path: Path) -> None:
    ranking = SessionRanking(roles={"last": 3.0}, prior=0.0)
    with open_sessions(tmp_path / "s", preset=ranking) as sessions:
        for role in ("first", "second", "last"):
            sessions.log.append("c", NewItem("message", "oboe reed", role=role), MIRA)
        sessions.log.append("d", NewItem("message", "cello"), MIRA)
        sessions.catch_up()
        sessions.log.delete("c", MIRA, 0)
        scores = [(hit.id, hit.score) for hit in sessions.search("oboe", scope=MIRA)]
        sessions.save()
        assert [(hit.id, hit.score) for hit in sessions.search("oboe", scope=MIRA)] == scores


def test_an_erasure_removes_what_lies_in_the_place_of_the_index(tmp_path: Path) -> None:
    with open_sessions(tmp_path / "s") as sessions:
        fill(sessions, count=3)
        outside = tmp_path / "outside"
        outside.mkdir()
        saved(tmp_path / "s").symlink_to(outside)
        with pytest.raises(ProviderUnavailable, match="delete it"):
            sessions.log.erase("c", MIRA, 0)
        assert outside.exists()
        saved(tmp_path / "s").unlink()
        saved(tmp_path / "s").write_text("?")
        sessions.log.erase("c", MIRA, 1)
        assert not saved(tmp_path / "s").exists()
        assert found(sessions, "cello") == ["c:2"]


def test_an_erasure_that_ends_within_the_removal_is_finished_by_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "s"

    def half(files: IndexFiles) -> None:
        (files.folder / "words" / "manifest").unlink()
        raise KeyboardInterrupt

    with open_sessions(home) as sessions:
        texts = ["the xylographer", "cello"]
        sessions.log.append("c", [NewItem("message", text) for text in texts], MIRA)
        sessions.catch_up()
        sessions.save()
        with monkeypatch.context() as patch:
            patch.setattr(IndexFiles, "drop", half)
            with pytest.raises(KeyboardInterrupt):
                sessions.log.erase("c", MIRA, 0)
    assert b"xylograph" in bytes_of(saved(home))
    with open_sessions(home) as sessions:
        assert found(sessions, "cello") == ["c:1"]
        assert b"xylograph" not in bytes_of(home)


def test_files_that_an_erasure_removes_just_now_are_not_told_as_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = IndexFiles.locked

    def late(self: IndexFiles, *, writing: bool) -> AbstractContextManager[None]:
        shutil.rmtree(self.folder)
        return locked(self, writing=writing)

    with ConversationLog(folder / "sessions.db") as log:
        with monkeypatch.context() as patch:
            patch.setattr(IndexFiles, "locked", late)
            index = DefaultIndex(log)
        assert index.rebuilt is None
        assert len(found(SessionSearch(log, index=index), "cello")) == MANY


def test_a_process_that_did_not_hear_of_an_erasure_saves_nothing_of_it(tmp_path: Path) -> None:
    home = tmp_path / "s"
    with open_sessions(home) as late, open_sessions(home) as sessions:
        sessions.log.append("secret", NewItem("message", "the xylographer"), MIRA)
        fill(sessions)
        late.catch_up()
        sessions.log.erase("secret", MIRA)
        late._index.save()
        assert not saved(home).exists()
    assert b"xylograph" not in bytes_of(home)


def test_a_log_that_was_closed_first_is_told_and_nothing_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_sessions(tmp_path / "s") as sessions:
        fill(sessions)
        sessions.catch_up()
        sessions.log.close()
    assert "not saved" in caplog.text
    with open_sessions(tmp_path / "s") as sessions:
        assert len(found(sessions, "cello")) == MANY


def test_the_feed_comes_in_parts_and_each_says_where_it_ends(tmp_path: Path) -> None:
    with open_sessions(tmp_path / "s") as sessions:
        for _ in range(6):
            fill(sessions, count=4)
        sessions.log.delete("c", MIRA, 1)
        seen: dict[int, bool] = {}
        after, parts = 0, 0
        while True:
            part = sessions.log.changes(after, limit=8)
            for change in part.changes:
                seen |= {item.seq: True for item in change.items}
                seen |= dict.fromkeys(change.removed, False)
            after, parts = part.sequence, parts + 1
            if not part.more:
                break
        assert parts > 2
        assert after == sessions.log.sequence()
        assert seen == {seq: seq != 1 for seq in range(24)}


def test_threads_append_and_search(tmp_path: Path) -> None:
    with open_sessions(tmp_path / "s") as sessions:
        errors: list[BaseException] = []

        def write(name: str) -> None:
            try:
                for n in range(30):
                    sessions.log.append(name, NewItem("message", f"{name} cello {n}"), MIRA)
                    assert f"{name}:{n}" in found(sessions, f"{name} {n}")
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(f"t{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert len(found(sessions, "cello")) == 120


WRITER = """
import sys
from memsheaf.sessionsearch import NewItem, open_sessions
from memsheaf.stack import ProviderUnavailable, Scope
mira = Scope(user_id="mira")
with open_sessions(sys.argv[1]) as sessions:
    for n in range(100_000):
        batch = [NewItem("message", f"{sys.argv[2]} cello {n} {i}") for i in range(20)]
        sessions.log.append(sys.argv[2], batch, mira)
        assert sessions.search(f"{n}", scope=mira)
        if n % 5 == 0:
            sessions._index.save()
        print(n, flush=True)
"""


def test_processes_that_are_killed_lose_nothing_and_bring_nothing_back(tmp_path: Path) -> None:
    home = tmp_path / "s"
    with open_sessions(home) as sessions:
        sessions.log.append("gone", NewItem("message", "xylographer"), MIRA)
        sessions.catch_up()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(home), name], stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    ]
    last = {}
    try:
        for writer, name in zip(writers, ("one", "two"), strict=True):
            assert writer.stdout is not None
            for _ in range(8):
                last[name] = int(writer.stdout.readline())
        with open_sessions(home) as sessions:
            sessions.log.erase("gone", MIRA)
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
    with open_sessions(home) as sessions:
        assert found(sessions, "xylographer") == []
        for name in ("one", "two"):
            held = sessions.log.conversation(name, MIRA).item_count
            assert held >= 20 * (last[name] + 1)
            assert len(found(sessions, name)) == min(held, 1000)
        sessions._index.save()
    assert b"xylograph" not in bytes_of(home)

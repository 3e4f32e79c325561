"""Reading, correcting and forgetting: the user has the last word, and what is gone is gone."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import Item
from memsheaf.stack import (
    InvalidRecord,
    NotFound,
    ProviderTimeout,
    ProviderUnavailable,
    StorageFull,
    StoreCorrupt,
)
from memsheaf.stack.disk import DBNAME
from memsheaf.usermodel import Add, LineKind, LineOrigin, Operation, Profile, UserModel

Say = Callable[..., Item]
Opens = Callable[..., UserModel]


def texts(model: UserModel, user_id: str = "mira") -> list[str]:
    return [line.text for line in model.profile(user_id).current]


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.fixture
def rome(model: UserModel, say: Say) -> UserModel:
    """A model that knows where Mira lives."""
    model.observe(say("I live in Rome", 1), user_id="mira")
    model.refresh("mira")
    return model


def test_a_profile_is_there_for_everybody_who_opens_the_folder(
    rome: UserModel, open_model: Opens, folder: Path
) -> None:
    other = open_model()
    assert other.profile("mira") == rome.profile("mira")
    assert other.users() == ("mira",)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / DBNAME).stat().st_mode & 0o777 == 0o600
    assert other.profile("nobody") == Profile("nobody")


def test_a_correction_outranks_derivation(rome: UserModel, say: Say) -> None:
    line = rome.correct("mira", "L1", " Lives in\nPisa ")
    assert (line.id, line.text, line.kind, line.origin) == (
        "L2",
        "Lives in Pisa",
        LineKind.FACT,
        LineOrigin.USER,
    )
    rome.observe(say("I live in Rome", 2), user_id="mira")
    profile = rome.refresh("mira")
    assert texts(rome) == ["Lives in Pisa"]
    assert profile.find("L1") is not None
    assert profile.lines[0].superseded_by == "L2"


def test_a_user_adds_a_line_and_corrects_it_again(rome: UserModel) -> None:
    rome.correct("mira", None, "Always answer in Italian", "instruction")
    rome.correct("mira", "L2", "Always answer in Greek")
    assert [(line.text, line.kind) for line in rome.profile("mira").current] == [
        ("I live in Rome", LineKind.FACT),
        ("Always answer in Greek", LineKind.INSTRUCTION),
    ]
    rome.correct("mira", None, "I live in Rome!")  # the user's own takes the place of the same
    assert [line.origin for line in rome.profile("mira").current] == [LineOrigin.USER] * 2


@pytest.mark.parametrize(
    ("line_id", "text", "kind", "error"),
    [
        ("L9", "x", None, NotFound),
        ("L1", " ", None, InvalidRecord),
        ("L1", "x" * 501, None, InvalidRecord),
        ("L1", None, None, InvalidRecord),
        ("L1", "x", "hobby", InvalidRecord),
    ],
)
def test_a_wrong_correction_changes_nothing(
    rome: UserModel, line_id: str, text: Any, kind: Any, error: type[Exception]
) -> None:
    before = rome.profile("mira")
    with pytest.raises(error):
        rome.correct("mira", line_id, text, kind)
    with pytest.raises(NotFound):
        rome.correct("noor", "L1", "x")
    assert rome.profile("mira") == before


def test_the_history_tells_every_version(rome: UserModel, say: Say) -> None:
    rome.observe(say("I live in Rome!", 2), user_id="mira")
    rome.refresh("mira")
    rome.correct("mira", "L1", "Lives in Pisa")
    told = [(c.version, c.by, c.action, c.line_id, c.text, c.sources) for c in rome.history("mira")]
    assert told == [
        (1, "echo", "added", "L1", "I live in Rome", ("c:1",)),
        (2, "echo", "confirmed", "L1", "I live in Rome", ("c:2",)),
        (3, "user", "superseded", "L1", "I live in Rome", ()),
        (3, "user", "corrected", "L2", "Lives in Pisa", ()),
    ]
    assert rome.history("noor") == ()


def test_forgetting_a_line_removes_its_text_everywhere(
    rome: UserModel, say: Say, folder: Path, clock: Any
) -> None:
    rome.observe(say("My sister is called Petronella", 2), user_id="mira")
    rome.refresh("mira")
    rome.correct("mira", "L1", "Lives in Ouagadougou")
    rome.observe(say("Tell nobody: my sister is called Petronella!", 3), user_id="mira")
    assert b"Ouagadougou" in bytes_of(folder)
    made = rome.forget("mira", "L2")
    assert (made.lines, made.items, made.erased) == (1, 1, True)
    assert b"Petronella" not in bytes_of(folder)
    rome.refresh("mira")
    assert texts(rome) == ["Lives in Ouagadougou"]
    assert [c.text for c in rome.history("mira") if c.line_id == "L2"] == [None, None]
    assert b"Petronella" not in json.dumps(rome.export("mira")).encode()
    assert rome.forget("mira", "L3").erased
    assert b"Ouagadougou" not in bytes_of(folder)
    assert texts(rome) == []  # what it had replaced does not come back
    with pytest.raises(NotFound):
        rome.forget("mira", "L3")


def test_lines_that_say_the_same_go_together(rome: UserModel, say: Say) -> None:
    rome.correct("mira", "L1", "Lives in Pisa")
    rome.correct("mira", "L2", "I live in Rome")
    assert len(rome.profile("mira").lines) == 3
    assert rome.forget("mira", "L3").lines == 2
    assert [line.text for line in rome.profile("mira").lines] == ["Lives in Pisa"]


def test_a_statement_whose_correction_was_corrected_does_not_come_back(
    rome: UserModel, say: Say
) -> None:
    piza = rome.correct("mira", "L1", "Lives in Piza")
    pisa = rome.correct("mira", piza.id, "Lives in Pisa")
    for seq in (2, 3):
        rome.observe(say("I live in Rome", seq), user_id="mira")
        rome.flush()
        assert texts(rome) == ["Lives in Pisa"]
    said = rome.profile("mira").lines[3:]
    assert [(line.superseded_by, line.times) for line in said] == [(pisa.id, 2)]
    rome.forget("mira", pisa.id)
    rome.observe(say("I live in Rome", 4), user_id="mira")
    rome.flush()
    assert texts(rome) == ["I live in Rome"]


def test_each_forget_and_nothing_else_changes_the_mark(rome: UserModel, say: Say) -> None:
    marks = [rome.forget_mark("mira")]
    rome.observe(say("I like tea", 2), user_id="mira")
    rome.flush()
    rome.correct("mira", None, "Loves wine")
    rome.forget_sources("mira", ["other:1"])
    with pytest.raises(NotFound):
        rome.forget("mira", "L99")
    assert rome.forget_mark("mira") == marks[0] == rome.forget_mark("noor") != ""
    forgets: list[Callable[[], object]] = [
        lambda: rome.forget("mira", "L1"),
        lambda: rome.forget_sources("mira", ["c:2"]),
        lambda: rome.forget("mira"),
        lambda: rome.forget("mira"),
    ]
    for forget in forgets:
        forget()
        marks.append(rome.forget_mark("mira"))
    assert len(set(marks)) == 5
    assert rome.forget_mark("noor") == marks[0]
    assert rome.forget_mark(None) == rome.forget_mark("") == ""


def test_a_forgotten_user_leaves_nothing(rome: UserModel, say: Say, folder: Path) -> None:
    rome.observe([say("My dog is Quetzalcoatl", 2), say("I live in Rome", 1)], user_id="mira")
    rome.observe(say("I am noor", 2), user_id="noor")
    made = rome.forget("mira")
    assert (made.lines, made.items, made.erased) == (1, 1, True)
    found = bytes_of(folder)
    assert b"Quetzalcoatl" not in found
    assert b"Rome" not in found
    assert b"mira" not in found
    assert rome.profile("mira") == Profile("mira")
    assert rome.history("mira") == ()
    assert rome.status("mira").waiting == 0
    assert rome.export("mira")["lines"] == []
    again = rome.observe(
        [say("I live in Rome", 1), say("My dog is Quetzalcoatl", 2)], user_id="mira"
    )
    assert again.repeated == 2  # the same log, read again, does not bring it back
    rome.flush()
    assert texts(rome) == []
    assert texts(rome, "noor") == ["I am noor"]
    rome.observe(say("I live in Rome", 50), user_id="mira")  # said again on purpose
    rome.flush()
    assert texts(rome) == ["I live in Rome"]


def test_the_default_deriver_learns_offline(folder: Path, say: Say) -> None:
    with UserModel(folder, background=False) as model:
        model.observe(say("I live in Berlin.", 1), user_id="mira")
        model.refresh("mira")
        model.observe(say("I moved from Berlin to Lisbon.", 2), user_id="mira")
        old, new = model.refresh("mira").lines
        assert (old.sources, old.superseded_by) == (("c:1",), new.id)
        assert (new.sources, new.text) == (("c:2",), "Lives in Lisbon")


@pytest.mark.parametrize("whole", [False, True])
def test_what_is_forgotten_while_it_is_derived_does_not_return(
    open_model: Opens, say: Say, echo_deriver: Any, whole: bool
) -> None:
    model = open_model()
    model.observe(say("I live in Rome", 1), user_id="mira")
    model.refresh("mira")

    def forget_meanwhile(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        if items[0].seq == 2:
            model.forget("mira", None if whole else "L1")
        return [
            Add(LineKind.FACT, "I live in Rome", 0.9, (items[0].id,)),
            Add(LineKind.FACT, "I like tea", 0.9, (items[0].id,)),
        ]

    other = open_model(echo_deriver(forget_meanwhile))
    other.observe(say("Rome suits me, I like tea", 2), user_id="mira")
    other.refresh("mira")
    assert texts(model) == ([] if whole else ["I like tea"])
    other.observe(say("I live in Rome, I like tea", 3), user_id="mira")  # said later: learned
    other.refresh("mira")
    assert sorted(texts(model)) == ["I like tea", "I live in Rome"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [("Lives\x00in \ud800 Rome", "Lives\ufffdin \ufffd Rome"), ("\udfff", "\ufffd")],
)
def test_a_text_that_cannot_be_kept_is_mended_also_after_a_forget(
    open_model: Opens, say: Say, echo_deriver: Any, text: str, kept: str
) -> None:
    def act(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        if profile.current:
            model.forget("mira", profile.current[0].id)
        return [Add(LineKind.FACT, text, 0.8, (items[0].id,))]

    model = open_model(echo_deriver(act))
    model.correct("mira", None, "Loves tea")
    model.observe(say("I live in Rome"), user_id="mira")
    assert [line.text for line in model.refresh("mira").current] == [kept]
    assert model.status().waiting == 0


def test_what_was_set_aside_is_forgotten_too(
    open_model: Opens, say: Say, echo_deriver: Any, clock: Any, folder: Path
) -> None:
    def fail(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        raise ValueError(items[0].text)

    model = open_model(echo_deriver(fail), attempts=1)
    model.observe(say("The Xanadu plan", 1), user_id="mira")
    model.flush()
    assert model.status().set_aside == 1
    assert model.forget("mira").items == 1
    assert model.status().items == ()
    assert b"Xanadu" not in bytes_of(folder)
    assert model.retry("mira") == 0


def test_a_retried_item_does_not_bring_back_what_was_forgotten_since(
    open_model: Opens, say: Say, echo_deriver: Any, clock: Any
) -> None:
    model = open_model()
    model.observe(say("I live in Rome", 1), user_id="mira")
    model.refresh("mira")

    def fail(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        raise ValueError

    def paraphrase(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        return [Add(LineKind.FACT, "I live in Rome", 0.9, (item.id,)) for item in items]

    failing = open_model(echo_deriver(fail), attempts=1)
    failing.observe(say("Rome is where I sleep", 2), user_id="mira")
    failing.flush()
    clock.now += 60
    model.forget("mira", "L1")
    clock.now += 60
    other = open_model(echo_deriver(paraphrase))
    assert other.retry("mira") == 1
    other.refresh("mira")
    assert texts(other) == []
    other.observe(say("My home is Rome", 3), user_id="mira")
    other.refresh("mira")
    assert texts(other) == ["I live in Rome"]


def test_an_export_holds_all_and_is_json(rome: UserModel, say: Say) -> None:
    rome.observe(say("I like tea", 2), user_id="mira")
    found = json.loads(json.dumps(rome.export("mira")))
    assert (found["user_id"], found["version"]) == ("mira", 1)
    assert found["lines"][0]["text"] == "I live in Rome"
    assert found["lines"][0]["sources"] == ["c:1"]
    assert [step["action"] for step in found["history"]] == ["added"]
    assert [(each["item_id"], each["state"]) for each in found["waiting"]] == [("c:2", "waiting")]


def test_any_text_survives_the_store(model: UserModel, say: Say) -> None:
    words = ["it's; DROP TABLE Cache; --", "\ud800 lone", "\u8336 \U0001f375", "%_\\", '{"a": [1]}']
    model.observe([say(text, seq) for seq, text in enumerate(words)], user_id="it's")
    model.refresh("it's")
    assert texts(model, "it's") == [words[0], "\ufffd lone", *words[2:]]


def test_a_foreign_folder_is_refused_and_left_alone(tmp_path: Path, echo_deriver: Any) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / DBNAME).write_bytes(b"not a database at all, but long enough to look at" * 50)
    with pytest.raises(StoreCorrupt):
        UserModel(foreign, deriver=echo_deriver())
    assert (foreign / DBNAME).read_bytes().startswith(b"not a database")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ProviderUnavailable, match="name another"):
        UserModel(tmp_path / "file", deriver=echo_deriver())


def test_a_newer_format_is_refused(rome: UserModel, folder: Path, echo_deriver: Any) -> None:
    rome.close()
    with sqlite3.connect(folder / DBNAME) as raw:
        raw.execute("UPDATE Settings SET value = 2 WHERE key = 'memsheaf_users'")
    raw.close()
    with pytest.raises(StoreCorrupt, match="this version"):
        UserModel(folder, deriver=echo_deriver())


def test_another_writer_is_waited_for_and_reading_goes_on(
    rome: UserModel, folder: Path, say: Say, echo_deriver: Any
) -> None:
    raw = sqlite3.connect(folder / DBNAME, isolation_level=None)
    with UserModel(folder, deriver=echo_deriver(), background=False, timeout=0.1) as model:
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(ProviderTimeout, match="try again"):
            model.observe(say("I like tea", 2), user_id="mira")
        assert texts(model) == ["I live in Rome"]
        raw.execute("ROLLBACK")
        assert model.observe(say("I like tea", 2), user_id="mira").accepted == 1
    raw.close()


def test_a_full_disk_is_told_and_changes_nothing(rome: UserModel, folder: Path, say: Say) -> None:
    rome.observe(say("I like tea", 2), user_id="mira")
    with rome._store.writing() as rows:
        pages = rows._connection.execute("PRAGMA page_count").fetchone()[0]
        rows._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageFull, match="nothing was changed"):
        rome.observe([say("x" * 9_000, seq) for seq in range(3, 30)], user_id="mira")
    assert rome.status().waiting == 1
    with rome._store.writing() as rows:
        rows._connection.execute("PRAGMA max_page_count = 100000")
    assert [line.text for line in rome.refresh("mira").lines] == ["I live in Rome", "I like tea"]


def test_bytes_that_a_reader_holds_are_erased_later(
    rome: UserModel, folder: Path, echo_deriver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memsheaf.usermodel.rows._ERASE_SECONDS", 0.1)
    with UserModel(folder, deriver=echo_deriver(), background=False, timeout=0.1) as model:
        raw = sqlite3.connect(folder / DBNAME, isolation_level=None)
        raw.execute("BEGIN")
        raw.execute("SELECT count(*) FROM Cache").fetchone()
        assert not model.forget("mira", "L1").erased
        raw.execute("ROLLBACK")
        raw.close()
        assert texts(model) == []
    assert b"live in Rome" not in bytes_of(folder)


@pytest.mark.parametrize("value", [b"\x80\x04N.", "not json", '{"lines": [{}]}', "[]"])
def test_a_damaged_row_is_an_error_and_nothing_is_unpickled(
    rome: UserModel, folder: Path, value: Any
) -> None:
    with sqlite3.connect(folder / DBNAME) as raw:
        raw.execute("UPDATE Cache SET value = ? WHERE key LIKE 'profile/%'", (value,))
    raw.close()
    with pytest.raises(StoreCorrupt, match="restore a backup"):
        rome.profile("mira")


def test_corrections_and_refreshes_at_once_lose_nothing(open_model: Opens, say: Say) -> None:
    models = [open_model(), open_model()]

    def learn(model: UserModel, first: int) -> None:
        for seq in range(first, first + 15):
            model.observe(say(f"statement {seq}", seq), user_id="mira")
            model.refresh("mira", timeout=30)

    def correct(model: UserModel) -> None:
        for number in range(15):
            model.correct("mira", None, f"correction {number}")

    threads = [
        threading.Thread(target=learn, args=(models[0], 0)),
        threading.Thread(target=learn, args=(models[1], 100)),
        threading.Thread(target=correct, args=(models[1],)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    profile = models[0].profile("mira")
    assert len(profile.current) == 45
    assert profile.version == len({change.version for change in models[0].history("mira")})
    assert [line.id for line in profile.lines] == [f"L{n}" for n in range(1, 46)]

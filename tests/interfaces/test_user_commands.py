"""`memsheaf user …` from end to end, in a home of its own."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memsheaf.interfaces import main
from memsheaf.interfaces.commands.user import _SUBCOMMANDS
from memsheaf.sessionsearch import ItemOrigin, NewItem, open_sessions
from memsheaf.stack import MemoryStack, Scope

if TYPE_CHECKING:
    from tests.interfaces.conftest import Done, Run

HOSTILE = "a\x1b]0;owned\x07\x1b[31mred\r\x9b2J\u202eevil"
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def run(command: Run) -> Run:
    return lambda *words: command("user", *words)


def texts(done: Done) -> list[str]:
    return [line["text"] for line in done.json["lines"]]


def data(home: Path) -> Path:
    return home / "data"


def everywhere(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_learn_show_history_correct_forget(run: Run) -> None:
    made = run("learn", "I live in Berlin. I love hiking.", "--json")
    assert made.code == 0
    assert texts(made) == ["Lives in Berlin", "Loves hiking"]
    assert (made.json["accepted"], made.json["repeated"], made.json["ignored"]) == (1, 0, 0)
    moved = run("learn", "I moved from Berlin to Lisbon.", "--json")
    assert (texts(moved), moved.json["ended"]) == (["Lives in Lisbon"], 1)

    shown = run("show", "--json")
    assert shown.code == 0
    assert shown.json["user_id"] == "mira"
    assert texts(shown) == ["Loves hiking", "Lives in Lisbon"]
    assert set(shown.json["lines"][0]) == {
        "id",
        "kind",
        "text",
        "confidence",
        "times",
        "first_seen",
        "last_seen",
        "sources",
        "origin",
        "subject",
        "current",
        "superseded_by",
        "ended_at",
        "reason",
    }
    everything = run("show", "--all", "--json").json["lines"]
    assert [line["current"] for line in everything] == [False, True, True]
    assert everything[0]["superseded_by"] == everything[2]["id"]
    assert texts(run("show", "--kind", "preference", "--json")) == ["Loves hiking"]

    right = run("correct", "Lives in Porto", "--line", "L3", "--json")
    assert right.code == 0
    assert right.json["line"]["origin"] == "user"
    assert run("learn", "I live in Lisbon.").code == 0
    assert texts(run("show", "--json")) == ["Loves hiking", "Lives in Porto"]

    changes = run("history", "--json").json["changes"]
    assert [change["action"] for change in changes[:2]] == ["added", "added"]
    assert {change["by"] for change in changes} == {"rules", "user"}
    assert len(run("history", "--limit", "2", "--json").json["changes"]) == 2

    gone = run("forget", "L2", "--json")
    assert (gone.code, gone.json["lines"], gone.json["erased"]) == (0, 1, True)
    assert texts(run("show", "--json")) == ["Lives in Porto"]
    assert run("forget", "L2").code == 1


def test_text_for_people(run: Run) -> None:
    learned = run("learn", "I love tea.")
    assert "Loves tea" in learned.out
    assert "1 item read" in learned.out
    assert "1 new line," in learned.out
    shown = run("show")
    assert "preference; confidence 0.80; said once" in shown.out
    assert "from told-" in shown.out
    assert "added" in run("history").out
    assert "0 waiting, 0 set aside" in run("status").out
    assert "version 1, 1 line " in run("refresh").out
    assert "written by the user" in run("correct", "Loves oolong", "--line", "L1").out
    assert "replaced by L2" in run("show", "--all").out
    assert "forgot 2 lines" in run("forget", "--all").out


def test_a_line_leads_to_the_words_that_it_came_from(run: Run, home: Path) -> None:
    (line,) = run("learn", "I play the cello.", "--json").json["lines"]
    with open_sessions(data(home) / "sessions") as sessions:
        item = sessions.log.item(line["sources"][0], Scope(user_id="mira"))
    assert item.text == "I play the cello."


def test_kept_conversations_are_learned_from_once(run: Run, home: Path) -> None:
    mira, omar = Scope(user_id="mira"), Scope(user_id="omar")
    with open_sessions(data(home) / "sessions") as sessions:
        for place in range(3):
            items = [
                NewItem("message", f"I use tool{place}.", role="user", origin=ItemOrigin.USER),
                NewItem("message", "I love answers.", role="assistant"),
                NewItem("message", "I love cron.", role="user", origin=ItemOrigin.AUTOMATION),
            ]
            sessions.log.append(f"c{place}", items, mira)
        secret = NewItem("message", "I love secrets.", role="user", origin=ItemOrigin.USER)
        sessions.log.append("other", secret, omar)
    one = run("learn", "--conversation", "c1", "--json")
    assert (one.code, texts(one)) == (0, ["Uses tool1"])
    rest = run("learn", "--sessions", "--json")
    assert texts(rest) == ["Uses tool0", "Uses tool2"]
    assert (rest.json["accepted"], rest.json["repeated"], rest.json["ignored"]) == (2, 1, 6)
    assert run("learn", "--sessions").code == 1
    assert run("learn", "--conversation", "other").code == 1
    assert texts(run("show", "--json")) == ["Uses tool1", "Uses tool0", "Uses tool2"]


def test_users_are_apart(run: Run) -> None:
    run("learn", "I love tea.")
    assert run("show", "--user", "omar").code == 1
    assert run("forget", "L1", "--user", "omar").code == 1
    assert run("correct", "Loves wine", "--line", "L1", "--user", "omar").code == 1
    assert texts(run("show", "--json")) == ["Loves tea"]
    assert run("learn", "I love coffee.", "--user", "omar").code == 0
    assert texts(run("show", "--user", "omar", "--json")) == ["Loves coffee"]


def test_reading_makes_nothing(run: Run, home: Path) -> None:
    assert run("show").code == 1
    assert run("history", "--json").json == {"user_id": "mira", "changes": []}
    assert run("status").code == 0
    assert run("export").code == 1
    assert run("refresh").code == 1
    assert run("forget", "L1").code == 1
    assert not data(home).exists()


@pytest.mark.parametrize(
    "words",
    [
        ["learn"],
        ["learn", "  "],
        ["learn", "I love tea.", "--sessions"],
        ["learn", "I love tea.", "--deriver", "nobody"],
        ["learn", "I love tea.", "--deriver", "llm"],
        ["show", "--user", ""],
        ["forget"],
        ["forget", "L1", "--all"],
        ["correct", "Loves tea", "--kind", "secret"],
        ["correct", " "],
        ["nothing"],
    ],
)
def test_wrong_use_ends_with_two(run: Run, words: list[str]) -> None:
    assert run(*words).code == 2


def test_without_a_statement_nothing_is_learned(run: Run) -> None:
    done = run("learn", "Do I love tea?", "--json")
    assert (done.code, done.json["lines"], done.json["accepted"]) == (1, [], 1)


def test_hostile_text_is_spelled_out(run: Run) -> None:
    assert run("correct", f"Loves {HOSTILE}").code in (0, 2)
    assert run("correct", "Loves \u202eevil").code in (0, 2)
    run("learn", f"I love {HOSTILE} hiking.")
    run("learn", "I love \u202eevil tea.")
    for words in (["show", "--all"], ["history"], ["status"], ["forget", HOSTILE]):
        done = run(*words)
        for text in (done.out, done.err):
            assert not any(c in text for c in "\x1b\x07\x9b\r\u202e")
    assert run("show", "--json").out.isascii()
    assert run("export").out.isascii()


def test_export_to_a_private_file(run: Run, tmp_path: Path) -> None:
    run("learn", "I love tea.")
    file = tmp_path / "mira.json"
    done = run("export", "-o", str(file), "--json")
    assert (done.code, done.json) == (0, {"lines": 1, "file": str(file)})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = json.loads(file.read_text())
    assert found == run("export").json
    assert set(found) == {"user_id", "version", "lines", "history", "waiting"}
    assert run("export", "-o", str(file)).code == 2
    assert run("export", "-o", str(file), "--force").code == 0


def test_what_is_forgotten_with_its_sources_is_nowhere(run: Run, home: Path) -> None:
    run("learn", "I love marzipan.")
    assert b"marzipan" in everywhere(home)
    gone = run("forget", "L1", "--sources", "--json")
    assert (gone.code, gone.json["sources"]) == (0, 1)
    assert b"marzipan" not in everywhere(home)
    assert run("learn", "--sessions").code == 1


def test_all_of_a_user_is_forgotten(run: Run) -> None:
    run("learn", "I love tea. I hate noise.")
    done = run("forget", "--all", "--json")
    assert (done.code, done.json["lines"]) == (0, 2)
    assert run("show").code == 1
    assert run("history").code == 1


def test_what_rests_on_an_erased_conversation_goes(run: Run, home: Path) -> None:
    first = run("learn", "I love zebras.", "--json").json
    talk = first["lines"][0]["sources"][0].rpartition(":")[0]
    run("learn", "I hate walruses.")
    done = run("forget", "--conversation", talk, "--sources", "--json")
    assert done.code == 0
    assert (done.json["lines"], done.json["sources"]) == (1, 1)
    assert [line["text"] for line in run("show", "--json").json["lines"]] == ["Hates walruses"]
    assert b"zebras" not in everywhere(home)
    assert run("forget", "--conversation", talk).code == 1
    assert run("forget", "L2", "--conversation", talk).code == 2


def test_questions_are_answered_with_sources_or_not_at_all(run: Run) -> None:
    assert run("ask", "Where does she live?").code == 1
    run("learn", "I live in Lisbon. I prefer tea to coffee.")
    done = run("ask", "tea or coffee?", "--json")
    assert done.code == 0
    assert [line["text"] for line in done.json["lines"]] == ["Prefers tea to coffee"]
    assert done.json["lines"][0]["sources"]
    assert "Prefers tea to coffee" in run("ask", "tea or coffee?").out
    none = run("ask", "What is her shoe size?", "--json")
    assert (none.code, none.json["answer"], none.json["lines"]) == (1, None, [])
    assert run("ask", "tea?", "--model").code == 2


def test_a_configured_namespace_reads_where_it_writes(run: Run) -> None:
    run("learn", "I love zebras.")
    Path("memsheaf.toml").write_text(
        '[scope]\nuser_id = "mira"\nnamespace = "work"\n'
        '[[providers]]\ntype = "user_model"\n[[providers]]\ntype = "local"\n'
    )
    assert run("show").code == 1
    assert run("learn", "I hate walruses.").code == 0
    with MemoryStack.from_config() as stack:
        block = stack.user_context("hello", Scope(user_id="mira", namespace="work"))
        assert "walruses" in str(block)
        other = stack.user_context("hello", Scope(user_id="mira"))
        assert "walruses" not in str(other)


def test_a_user_has_a_profile_in_each_namespace(run: Run, home: Path) -> None:
    work = ("--namespace", "work")
    assert run("learn", "I love zebras.").code == 0
    made = run("learn", "I hate walruses.", *work, "--json")
    assert (made.code, made.json["user_id"], made.json["namespace"]) == (0, "mira", "work")
    (line,) = made.json["lines"]
    assert texts(run("show", "--json")) == ["Loves zebras"]
    assert "namespace" not in run("show", "--json").json
    assert texts(run("show", *work, "--json")) == ["Hates walruses"]
    with open_sessions(data(home) / "sessions") as sessions:
        item = sessions.log.item(line["sources"][0], Scope(user_id="mira", namespace="work"))
    assert item.text == "I hate walruses."

    exported = json.loads(run("export", *work).out)
    assert (exported["user_id"], exported["namespace"]) == ("mira", "work")
    assert run("ask", "Walruses?", *work).code == 0
    assert run("ask", "Walruses?").code == 1
    assert len(run("history", *work, "--json").json["changes"]) == 1
    assert "(user_id=mira namespace=work)" in run("status", *work).out
    assert run("refresh", *work).code == 0
    assert run("correct", "Loves walruses", "--line", "L1", *work).code == 0
    assert run("show", "--namespace", "home").code == 1
    assert texts(run("show", "--namespace", "", "--json")) == ["Loves zebras"]

    said = NewItem("message", "I use vim.", role="user", origin=ItemOrigin.USER)
    with open_sessions(data(home) / "sessions") as sessions:
        sessions.log.append("edit", said, Scope(user_id="mira", namespace="work"))
    assert run("learn", "--conversation", "edit", "--namespace", "home").code == 1
    assert texts(run("learn", "--conversation", "edit", *work, "--json")) == ["Uses vim"]
    assert run("forget", "--conversation", "edit").code == 1
    gone = run("forget", "--all", "--sources", *work, "--json")
    assert (gone.json["lines"], gone.json["sources"]) == (3, 2)
    assert texts(run("show", "--json")) == ["Loves zebras"]
    assert b"walruses" not in everywhere(home)


def test_a_namespace_that_the_provider_does_not_keep_is_told(run: Run) -> None:
    Path("memsheaf.toml").write_text('[[providers]]\ntype = "user_model"\nnamespace = "work"\n')
    assert run("learn", "I love tea.", "--namespace", "work").code == 0
    assert texts(run("show", "--json")) == ["Loves tea"]
    refused = run("show", "--namespace", "home")
    assert refused.code == 2
    assert "--namespace" in refused.err


@pytest.mark.parametrize("name", _SUBCOMMANDS)
def test_every_command_says_whose_profile_it_means(run: Run, name: str) -> None:
    told = run(name, "--help").out
    assert "--user ID" in told
    assert "--namespace ID" in told


def test_files_are_private(run: Run, home: Path) -> None:
    run("learn", "I love tea.")
    for path in data(home).rglob("*"):
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_the_configured_provider_reads_the_same_profile(run: Run, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / ".memsheaf").mkdir(mode=0o700)
    (here / "memsheaf.toml").write_text('[[providers]]\ntype = "user_model"\nname = "me"\n')
    assert run("learn", "I love marzipan.").code == 0
    assert (here / ".memsheaf" / "me" / "users").is_dir()
    with MemoryStack.from_config() as stack:
        block = stack.user_context("sweets", Scope(user_id="mira"))
    assert "Loves marzipan" in str(block)


def test_disabled(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSHEAF_DISABLED", "1")
    assert run("show").code == 2


def test_every_command_is_in_the_table() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    section = page.split("## `memsheaf user`", 1)[1].split("\n## ", 1)[0]
    for name in _SUBCOMMANDS:
        assert f"| `user {name}" in section


def test_help_names_every_command(run: Run) -> None:
    done = run("--help")
    assert done.code == 0
    assert all(name in done.out for name in _SUBCOMMANDS)


def test_what_rests_on_a_forgotten_conversation_goes_with_it(
    run: Run, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    run("learn", "I love tea.")
    (line,) = run("learn", "I play the cello.", "--json").json["lines"]
    conversation = line["sources"][0].rpartition(":")[0]
    with pytest.raises(SystemExit) as ended:
        main(["sessions", "forget", conversation, "--json"])
    assert ended.value.code == 0
    told = json.loads(capsysbinary.readouterr().out)
    assert told == {"id": conversation, "forgotten": True, "profile_lines": 1}
    assert texts(run("show", "--json")) == ["Loves tea"]


WORK = ("--namespace", "work")


@pytest.fixture
def learned(run: Run) -> str:
    """A conversation of a namespace, from which a line was learned."""
    run("learn", "I love tea.")
    (line,) = run("learn", "I play the cello.", *WORK, "--json").json["lines"]
    return str(line["sources"][0].rpartition(":")[0])


@pytest.mark.parametrize("whose", [(), WORK, ("--user", "", *WORK)])
def test_a_forgotten_conversation_is_unlearned_in_its_own_namespace(
    run: Run, command: Run, learned: str, home: Path, whose: tuple[str, ...]
) -> None:
    done = command("sessions", "forget", learned, *whose, "--json")
    assert done.json == {"id": learned, "forgotten": True, "profile_lines": 1}
    assert run("show", *WORK).code == 1
    assert texts(run("show", "--json")) == ["Loves tea"]
    assert b"cello" not in everywhere(home)


def test_a_deleted_conversation_is_unlearned_in_its_own_namespace(
    run: Run, command: Run, learned: str, home: Path
) -> None:
    with open_sessions(data(home) / "sessions") as sessions:
        assert sessions.log.delete(learned, Scope(user_id="mira"))
    assert command("sessions", "forget", learned, "--json").json["profile_lines"] == 1
    assert run("show", *WORK).code == 1


def test_nobody_elses_conversation_is_unlearned(run: Run, command: Run, learned: str) -> None:
    for whose in (("--user", "otto"), ("--namespace", "home")):
        assert command("sessions", "forget", learned, *whose).code == 1
    assert texts(run("show", *WORK, "--json")) == ["Plays the cello"]


def test_an_item_and_a_conversation_of_the_same_id_are_two(
    run: Run, command: Run, home: Path
) -> None:
    mira = Scope(user_id="mira")
    with open_sessions(data(home) / "sessions") as sessions:
        for name, text in (("c", "I love tea."), ("c:0", "I play the cello.")):
            said = NewItem("message", text, role="user", origin=ItemOrigin.USER)
            sessions.log.append(name, said, mira)
    assert run("learn", "--sessions").code == 0
    done = command("sessions", "forget", "c:00", "--json")  # the item, however it is written
    assert (done.code, done.json["profile_lines"]) == (0, 1)
    assert texts(run("show", "--json")) == ["Plays the cello"]


def test_what_cannot_be_unlearned_is_told_and_the_rest_is_forgotten(
    command: Run, learned: str, home: Path
) -> None:
    file = Path("memsheaf.toml")
    file.write_text('[[providers]]\ntype = "user_model"\nnamespace = "home"\n')
    place = home / "data" / "sessions"
    with pytest.MonkeyPatch.context() as here:
        here.setenv("MEMSHEAF_SESSIONS", str(place))
        done = command("sessions", "forget", learned)
        assert done.code == 2
        assert f"forgotten {learned}" in done.out
        assert "keeps the users of namespace 'home' only" in done.err
        assert command("sessions", "forget", learned).code == 1
        with open_sessions(place) as sessions:
            scope, said = Scope(user_id="mira", namespace="work"), NewItem("message", "x")
            sessions.log.append("again", said, scope)
        told = command("sessions", "forget", "again", "--json")
    assert (told.code, told.json["forgotten"], told.json["profile_lines"]) == (2, True, 0)
    assert "'home'" in told.json["profile_error"]

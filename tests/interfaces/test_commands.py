"""Every command from end to end, on real files in a home of its own."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memsheaf.agent import AgentMemory
from memsheaf.interfaces.commands.demo import EXAMPLE
from memsheaf.interfaces.commands.inspect import advice
from memsheaf.sessionsearch import open_sessions
from memsheaf.stack import MemoryStack, Scope

if TYPE_CHECKING:
    from tests.interfaces.conftest import Run

HOSTILE = "a\x1b]0;owned\x07\x1b[31mred\r\x9b2J\u202eevil \u65e5\u672c"
TWO_STORES = '[[providers]]\ntype = "local"\n\n[[providers]]\ntype = "sqlite"\n'
BROKEN_SECOND = (
    '[[providers]]\ntype = "local"\n\n[[providers]]\nname = "bad"\ntype = "sqlite"\n'
    'path = "bad.db"\n'
)


@pytest.fixture
def home(home: Path) -> Path:
    home.mkdir()
    return home


@pytest.fixture
def run(command: Run) -> Run:
    return command


def keys(value: dict[str, Any]) -> set[str]:
    return set(value)


def test_a_forgotten_memory_leaves_the_blocks_that_agents_sent(run: Run, home: Path) -> None:
    made = run("remember", "Mira loves marzipan", "--json")
    asked = {"role": "user", "content": "Does Mira love marzipan?"}
    later = [asked, {"role": "assistant", "content": "?"}, {"role": "user", "content": "And tea?"}]
    scope = Scope(user_id="mira")

    def sent(messages: list[dict[str, str]]) -> str:
        with (
            MemoryStack.from_config(scope=scope) as stack,
            open_sessions(home / "data" / "sessions") as sessions,
            AgentMemory(stack=stack, sessions=sessions) as memory,
        ):
            return str(memory.before_request(messages, conversation="c").messages)

    assert "loves marzipan" in sent([asked])
    assert "loves marzipan" in sent(later)
    assert run("forget", made.json["id"]).code == 0
    assert "loves marzipan" not in sent(later)
    assert all(b"marzipan" not in path.read_bytes() for path in home.rglob("*.db*"))


def test_remember_recall_update_get_list_forget(run: Run) -> None:
    made = run("remember", "Mira plays the cello", "--kind", "fact", "--tag", "Music", "--json")
    assert made.code == 0
    assert keys(made.json) == {"id", "stored", "partial", "scope", "outcomes"}
    assert made.json["stored"] is True
    assert made.json["scope"] == {"user_id": "mira"}
    id_ = made.json["id"]

    found = run("recall", "who plays a cello", "--json")
    assert found.code == 0
    assert keys(found.json) == {"results", "partial", "outcomes", "notes"}
    (hit,) = found.json["results"]
    assert keys(hit) == {"id", "score", "relevance", "record", "sources"}
    assert hit["record"]["content"] == "Mira plays the cello"
    assert hit["record"]["tags"] == ["music"]
    assert hit["sources"][0]["provider"] == "local"

    shown = run("recall", "cello", "--explain")
    assert "Mira plays the cello" in shown.out
    assert "reciprocal of rank 1" in shown.out

    assert run("update", id_, "--content", "Mira plays the viola", "--no-tags").code == 0
    got = run("get", id_, "--json")
    assert got.json["content"] == "Mira plays the viola"
    assert got.json["tags"] == []
    assert "| Mira plays the viola" in run("get", id_).out
    listed = run("list", "--json")
    assert keys(listed.json) == {"records", "next", "partial", "outcomes"}
    assert [record["id"] for record in listed.json["records"]] == [id_]
    assert id_ in run("list", "--kind", "semantic").out

    gone = run("forget", id_, "--json")
    assert gone.code == 0
    assert gone.json["forgotten"] is gone.json["verified"] is True
    assert gone.json["deleted"] == [id_]
    assert gone.json["remaining"] == gone.json["unverified"] == []
    assert run("recall", "viola").code == 1


def test_recall_counts_once_what_it_shows_and_search_by_everyone_does_not(run: Run) -> None:
    ids = [run("remember", f"cello lesson {n}", "--json").json["id"] for n in range(3)]
    run("recall", "cello", "--limit", "2")
    run("recall", "cello", "--everyone")
    counts = [run("get", id_, "--json").json["access_count"] for id_ in ids]
    assert sorted(counts) == [0, 1, 1]


def test_nothing_found_or_not_yours_is_one(run: Run) -> None:
    id_ = run("remember", "Otto's secret", "--user", "otto", "--json").json["id"]
    for words in (
        ("recall", "secret"),
        ("get", id_),
        ("forget", id_),
        ("update", id_, "--content", "mine"),
        ("list",),
        ("export",),
    ):
        done = run(*words)
        assert done.code == 1, words
        assert "Otto" not in done.out + done.err
    assert run("get", id_, "--json").json is None
    assert run("get", id_, "--user", "otto", "--json").json["content"] == "Otto's secret"
    assert run("recall", "secret", "--everyone").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("remember", " "),
        ("remember", "x", "--importance", "7"),
        ("remember", "x", "--importance", "nan"),
        ("remember", "x", "--kind", "opinion"),
        ("remember", "x", "--expires", "tomorrow"),
        ("remember", "x", "--meta", "novalue"),
        ("remember", "x", "--user", " "),
        ("remember", "x" * 64_001),
        ("recall", "x", "--limit", "0"),
        ("recall", "x", "--since", "yesterday"),
        ("recall", "x", "--everyone", "--user", "mira"),
        ("list", "--after", "nonsense"),
        ("update", "some-id"),
        ("update", "some-id", "--tag", "a", "--no-tags"),
        ("import", "no-such-file"),
        ("export", "--json"),
        ("trust",),
        ("rember", "x"),
    ],
)
def test_wrong_use_is_two_and_writes_nothing(run: Run, words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.code == 2
    assert done.out == ""
    assert len(done.err) < 1_000
    assert run("list", "--everyone").code == 1


def test_nothing_found_while_a_provider_fails_is_two(run: Run, home: Path) -> None:
    (home / "memsheaf.toml").write_text(BROKEN_SECOND)
    garbage = os.urandom(8192)
    (home / "bad.db").write_bytes(garbage)
    made = run("remember", "Mira plays the cello", "--json")
    assert made.code == 0
    assert made.json["partial"] is True
    assert [o["status"] for o in made.json["outcomes"]] == ["ok", "failed"]
    found = run("recall", "cello")
    assert found.code == 0
    assert "bad" in found.err
    for words in (("recall", "zebra"), ("get", "no-such-id"), ("forget", "no-such-id")):
        assert run(*words).code == 2, words
    assert run("list", "--user", "nobody").code == 2
    # Forgotten in one store, but nobody can say so of the other: not done.
    forgotten = run("forget", made.json["id"], "--json")
    assert forgotten.code == 2
    assert forgotten.json["verified"] is False
    assert "bad" in forgotten.json["unverified"]
    assert (home / "bad.db").read_bytes() == garbage


def test_providers_lists_each_with_health_and_records(run: Run, home: Path) -> None:
    (home / "memsheaf.toml").write_text(BROKEN_SECOND)
    (home / "bad.db").write_bytes(os.urandom(8192))
    run("remember", "Mira plays the cello")
    listed = run("providers", "--json")
    assert listed.code == 0
    assert keys(listed.json) == {"disabled", "providers", "plugins"}
    local, bad = listed.json["providers"]
    assert keys(local) == {"name", "type", "mode", "health", "ms", "records", "reason"}
    assert (local["type"], local["mode"], local["health"]) == ("local", "read-write", "ok")
    assert local["records"] == 1
    assert (bad["name"], bad["health"], bad["records"]) == ("bad", "failed", None)
    assert "bad.db" in bad["reason"]
    assert {"local", "sqlite"} <= {p["plugin"] for p in listed.json["plugins"]}
    assert "bad.db" in run("providers").out


def test_providers_and_doctor_tell_of_a_broken_plugin(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site" / "memsheaf_wreck-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: memsheaf-wreck\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[memsheaf.providers]\nwreck = no_such_module:F\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    plugins = {p["plugin"]: p for p in run("providers", "--json").json["plugins"]}
    assert plugins["wreck"]["status"] == "broken"
    assert "no_such_module" in plugins["wreck"]["reason"]
    assert plugins["local"]["status"] == "loaded"
    told = run("doctor")
    assert told.code == 0
    assert "broken  plugin wreck" in told.out
    (home / "memsheaf.toml").write_text('[[providers]]\ntype = "wreck"\n')
    asked = run("doctor", "--json")
    assert asked.code == 2
    assert asked.json["providers"][0]["advice"].startswith("install what is missing")


def test_doctor_takes_every_provider_through_a_round_and_leaves_nothing(
    run: Run, home: Path
) -> None:
    (home / "memsheaf.toml").write_text(TWO_STORES)
    done = run("doctor", "--json")
    assert done.code == 0
    assert done.json["healthy"] is True
    assert [p["name"] for p in done.json["providers"]] == ["local", "sqlite"]
    for provider in done.json["providers"]:
        assert provider["steps"] == ["write", "read", "forget"]
        assert provider["fault"] is provider["advice"] is None
    assert run("list", "--everyone").code == 1
    assert [p["records"] for p in run("providers", "--json").json["providers"]] == [0, 0]
    assert run("doctor").out.count("write, read, forget") == 2


def test_doctor_says_what_to_do(run: Run, home: Path) -> None:
    (home / "memsheaf.toml").write_text(
        BROKEN_SECOND + '\n[[providers]]\nname = "file"\ntype = "local"\npath = "taken"\n'
        '\n[[providers]]\nname = "reader"\ntype = "local"\nmode = "read"\n'
        '\n[[providers]]\nname = "pinned"\ntype = "local"\nscope = {user_id = "otto"}\n'
    )
    (home / "bad.db").write_bytes(os.urandom(8192))
    (home / "taken").write_text("a file")
    done = run("doctor", "--json")
    assert done.code == 2
    seen = {p["name"]: p for p in done.json["providers"]}
    assert "restore a backup" in seen["bad"]["advice"]
    assert "a file stands where" in seen["file"]["advice"]
    assert seen["reader"]["steps"] == ["read"]
    assert seen["pinned"]["steps"] == ["write", "read", "forget"]
    assert (home / "taken").read_text() == "a file"
    told = run("doctor")
    assert told.code == 2
    assert "FAILED  bad (sqlite" in told.out


def test_advice_always_says_something() -> None:
    assert advice("timed out after 2 s") != advice("disk is full") != advice("who knows")


def test_export_and_import_bring_everything_back(run: Run, tmp_path: Path) -> None:
    for n in range(3):
        run("remember", f"memory {n} \u65e5\u672c", "--tag", f"t{n}")
    before = run("list", "--json").json["records"]
    written = run("export", "--output", "out.jsonl", "--json")
    assert written.json == {"exported": 3, "file": "out.jsonl"}
    assert stat.S_IMODE(Path("out.jsonl").stat().st_mode) == 0o600
    again = run("export", "--output", "out.jsonl")
    assert again.code == 2
    assert "--force" in again.err
    assert run("export").out.encode() == Path("out.jsonl").read_bytes()
    for record in before:
        run("forget", record["id"])
    back = run("import", "out.jsonl", "--json")
    assert back.code == 0
    assert back.json == {"imported": 3, "refused": [], "partial": False}
    assert run("list", "--json").json["records"] == before
    with Path("out.jsonl").open("ab") as file:
        file.write(b"{not json\n\xff\xfe\n")
    refused = run("import", "out.jsonl", "--json")
    assert refused.code == 2
    assert refused.json["imported"] == 3
    assert [entry["line"] for entry in refused.json["refused"]] == [5, 6]
    # Another's scope takes none of them.
    assert run("import", "out.jsonl", "--user", "otto", "--json").json["imported"] == 0


def test_stored_text_reaches_no_terminal(run: Run) -> None:
    made = run("remember", HOSTILE, "--tag", "x\x1b[2J", "--meta", "k=\x1b[2J", "--json")
    assert made.code == 0
    id_ = made.json["id"]
    for words in (("recall", "\u65e5\u672c", "--explain"), ("get", id_), ("list",), ("providers",)):
        done = run(*words)
        assert done.code == 0
        assert (done.out + done.err).replace("\n", "").isprintable(), words
    assert run("get", id_, "--json").json["content"] == HOSTILE
    for text in ('"', "AND OR NOT", "*", "a:b", "\x00", "(((", "-"):
        assert run("recall", text).code in (0, 1), text
    named = run("remember", "x", "--user", "\u202eevil", "--json")
    assert named.json["scope"] == {"user_id": "\u202eevil"}
    assert run("recall", "nothing", "--user", "\u202eevil").out.replace("\n", "").isprintable()


def test_text_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        class buffer:
            @staticmethod
            def read() -> bytes:
                return "two\nlines \u65e5\u672c \xff".encode() + b"\xff"

    monkeypatch.setattr(sys, "stdin", Stdin)
    id_ = run("remember", "-", "--json").json["id"]
    assert run("get", id_, "--json").json["content"] == "two\nlines \u65e5\u672c \xff\ufffd"


def test_a_folder_that_cannot_be_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = Path("/proc") if os.geteuid() == 0 else tmp_path / "closed"  # root writes anywhere
    if os.geteuid() != 0:
        closed.mkdir(mode=0o500)
    monkeypatch.setenv("MEMSHEAF_HOME", str(closed / "memsheaf"))
    for words in (("remember", "x"), ("recall", "x"), ("list",), ("doctor",)):
        assert run(*words).code == 2, words
    (provider,) = run("providers", "--json").json["providers"]
    assert provider["health"] == "failed"
    assert provider["reason"]
    assert run("doctor", "--json").json["providers"][0]["advice"]
    assert run("config").code == 0


def test_a_data_folder_that_is_a_file(run: Run, home: Path) -> None:
    (home / "data").write_text("mine")
    for words in (("remember", "x"), ("recall", "x"), ("doctor",)):
        done = run(*words)
        assert done.code == 2, words
        assert done.err or done.out
    assert (home / "data").read_text() == "mine"
    assert "a file stands where" in run("doctor").out


def test_a_corrupt_store_is_told_and_kept(run: Run, home: Path) -> None:
    (home / "memsheaf.toml").write_text('[[providers]]\ntype = "sqlite"\npath = "memory.db"\n')
    assert run("remember", "Mira plays the cello").code == 0
    (home / "memory.db").write_bytes(b"not a database at all" * 500)
    for extra in ("-wal", "-shm"):
        Path(f"{home / 'memory.db'}{extra}").unlink(missing_ok=True)
    for words in (("recall", "cello"), ("remember", "x"), ("list",)):
        done = run(*words)
        assert done.code == 2, words
        assert "memory.db" in done.err
    assert (home / "memory.db").read_bytes() == b"not a database at all" * 500
    assert "restore a backup" in run("doctor").out


def test_disabled_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSHEAF_DISABLED", "1")
    assert run("remember", "x").code == 2
    assert "MEMSHEAF_DISABLED" in run("recall", "x").err
    assert run("doctor").code == 2
    assert run("providers", "--json").json["disabled"] is True


def test_init_then_remember_keeps_the_memory_in_the_project(run: Run) -> None:
    assert run("init", "--json").json == {"file": "memsheaf.toml"}
    assert run("remember", "Mira plays the cello").code == 0
    assert Path(".memsheaf/local").is_dir()
    assert Path(".memsheaf/.gitignore").read_text() == "*\n"


def test_demo_shows_everything_and_touches_nothing(run: Run, home: Path) -> None:
    done = run("demo")
    assert done.code == 0
    assert done.err == ""
    for part in (
        "30 memories",
        "local #1, sqlite #1, cloud #1",
        "reciprocal of rank 1",
        "! cloud: the server does not answer",
        "forgotten True, verified True",
        "0 found",
        "before:",
        "<memory-context-",
        EXAMPLE,
    ):
        assert part in done.out, part
    assert list(home.iterdir()) == []
    shown = run("demo", "--json").json
    *fine, outage = shown["answers"]
    assert not any(answer["partial"] for answer in fine)
    assert outage["partial"]
    assert "Tuesday" in outage["hits"][0]["content"]
    assert {s["provider"] for s in outage["hits"][0]["sources"]} == {"local", "sqlite"}
    assert shown["forget"] == {"forgotten": True, "verified": True, "found_after": 0}
    assert "almond" in shown["messages_after"][-1]["content"]
    assert "almond" not in shown["messages_before"][-1]["content"]


def test_the_ten_lines_of_the_demo_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(EXAMPLE.splitlines()) == 10
    exec(compile(EXAMPLE, "example", "exec"), {"__name__": "example"})
    printed = capsys.readouterr().out
    assert "local: weight 1" in printed.replace("localstore", "local")
    assert "Mira is allergic to walnuts" in printed
    assert printed.endswith("True\n")

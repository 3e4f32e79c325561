import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memsheaf.interfaces.commands.inspect import advice
from memsheaf.interfaces.terminal import safe

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the command in a folder and with a home of its own."""
    here = tmp_path / "here"
    here.mkdir()

    def ran(*words: str | bytes, **environ: str) -> subprocess.CompletedProcess[bytes]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("MEMSHEAF_")}
        return subprocess.run(
            [sys.executable, "-m", "memsheaf.interfaces", *words],
            cwd=here,
            env={**clean, "MEMSHEAF_HOME": str(tmp_path / "home"), **environ},
            capture_output=True,
            timeout=60,
        )

    return ran


def test_help_imports_neither_numpy_nor_pydantic() -> None:
    code = (
        "import sys\nfrom memsheaf.interfaces.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'numpy', 'pydantic', 'memsheaf.stack'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert b"remember" in done.stdout


def test_version_and_wrong_use(run: Run) -> None:
    assert run("--version").stdout.startswith(b"memsheaf ")
    unknown = run("rember")
    assert unknown.returncode == 2
    assert b"Traceback" not in unknown.stderr


@pytest.mark.parametrize(
    ("words", "step"),
    [
        ("rember", b"(see memsheaf --help)"),
        ("sessions search", b"(see memsheaf sessions search --help)"),
        ("sessions search cello --limit many", b"(see memsheaf sessions search --help)"),
        ("sessions list --since lately", b"give one like 2026-02-03"),
        ("recall cello", b"unset it"),
    ],
)
def test_what_is_refused_is_told_on_one_line_with_the_next_step(
    run: Run, tmp_path: Path, words: str, step: bytes
) -> None:
    (tmp_path / "here" / "t.md").write_text(
        "## User\nWhere is the cello?\n\n## Assistant\nIn the hall.\n"
    )
    assert run("sessions", "import", "t.md").returncode == 0
    done = run(*words.split(), MEMSHEAF_DISABLED="1" if words == "recall cello" else "")
    assert done.returncode == 2
    assert done.stderr.startswith(b"memsheaf: ")
    assert done.stderr.count(b"\n") == 1
    assert step in done.stderr


def test_init_writes_a_file_that_loads_and_never_overwrites(run: Run, tmp_path: Path) -> None:
    assert run("init").returncode == 0
    file = tmp_path / "here" / "memsheaf.toml"
    file.write_text(file.read_text() + "# mine\n")
    again = run("init")
    assert again.returncode == 2
    assert b"--force" in again.stderr
    assert file.read_text().endswith("# mine\n")
    shown = json.loads(run("config", "--json").stdout)
    assert shown["files"] == [str(file)]
    assert shown["warnings"] == []
    origins = {s["key"]: s["origin"] for s in shown["settings"]}
    assert origins["providers.local.type"].startswith(str(file))
    assert origins["stack.search_limit"] == "default"
    assert run("init", "--force").returncode == 0
    assert not file.read_text().endswith("# mine\n")


def test_a_wrong_file_is_one_line_without_traceback(run: Run, tmp_path: Path) -> None:
    (tmp_path / "here" / "memsheaf.toml").write_text("[stack]\nserch_limit = 3\n")
    done = run("config")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert (
        b"memsheaf.toml:2: stack.serch_limit: unknown key; did you mean 'search_limit'?"
        in done.stderr
    )


def test_trust_makes_a_doubtful_file_count(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "here" / "memsheaf.toml"
    file.write_text("[scope]\nuser_id = '${WHO}'\n")
    ignored = run("config", "--json", WHO="mira-secret")
    assert json.loads(ignored.stdout)["files"] == []
    assert b"memsheaf trust" in ignored.stderr
    told = run("trust")
    assert told.returncode == 0
    assert b"${...}" in told.stdout
    counted = run("config", "--json", WHO="mira-secret")
    assert json.loads(counted.stdout)["files"] == [str(file)]
    assert b"mira-secret" not in counted.stdout
    assert run("trust", "--revoke").returncode == 0
    assert run("trust", "--revoke").returncode == 1


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1"])
def test_output_never_crashes_in_a_poor_locale(run: Run, tmp_path: Path, locale: str) -> None:
    (tmp_path / "here" / "memsheaf.toml").write_text(
        "[scope]\nuser_id='\u2699 \u201dna\u00efve'\n", "utf-8"
    )
    poor = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run("config", **poor)
    assert done.returncode == 0, done.stderr
    assert b"user_id" in done.stdout
    shown = json.loads(run("config", "--json", **poor).stdout)
    values = {s["key"]: s["value"] for s in shown["settings"]}
    assert values["scope.user_id"] == "\u2699 \u201dna\u00efve"
    assert run("remember", "caf\u00e9 \u65e5\u672c \u2699".encode(), **poor).returncode == 0
    shown = run("recall", "\u65e5\u672c".encode(), **poor)
    assert shown.returncode == 0, shown.stderr
    assert b"\\u65e5\\u672c" in shown.stdout
    (hit,) = json.loads(run("recall", "caf\u00e9".encode(), "--json", **poor).stdout)["results"]
    assert hit["record"]["content"] == "caf\u00e9 \u65e5\u672c \u2699"


def test_stored_text_cannot_drive_the_terminal() -> None:
    hostile = "a\x1b]0;title\x07\x9b31m\r\n\u202eevil\u2066\u200b\ud800\U000e0041"
    shown = safe(hostile)
    assert shown.isprintable()
    assert "\\x1b" in shown
    assert "\\u202e" in shown
    assert safe("na\u00efve \u2699 \u65e5\u672c \U0001f469\u200d\U0001f680") == (
        "na\u00efve \u2699 \u65e5\u672c \U0001f469\u200d\U0001f680"
    )


def test_a_reader_that_has_gone_is_no_error(run: Run, tmp_path: Path) -> None:
    assert run("remember", "Mira plays the cello").returncode == 0
    for words in (["recall", "cello"], ["list", "--json"], ["export"], ["--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "memsheaf.interfaces", *words],
            cwd=tmp_path / "here",
            env={**os.environ, "MEMSHEAF_HOME": str(tmp_path / "home")},
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
        )
        os.close(writing)
        assert done.returncode == 0, words
        assert b"Error" not in done.stderr
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "closing", "code"),
    [("list", ">&-", 1), ("export", ">&-", 1), ("remember -", "<&-", 2), ("import -", "<&-", 0)],
)
def test_closed_streams_are_empty_ones(tmp_path: Path, words: str, closing: str, code: int) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m memsheaf.interfaces {words} {closing}"],
        cwd=tmp_path,
        env={**os.environ, "MEMSHEAF_HOME": str(tmp_path / "home")},
        stderr=subprocess.PIPE,
        timeout=60,
    )
    assert done.returncode == code
    assert b"Error" not in done.stderr


def test_a_warning_is_told_once_and_cannot_drive_the_terminal(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "here" / "evil\x1b]0;title\x07"
    folder.mkdir()
    (folder / "memsheaf.toml").write_text("[scope]\nuser_id = '${WHO}'\n")
    done = subprocess.run(
        [sys.executable, "-m", "memsheaf.interfaces", "recall", "anything"],
        cwd=folder,
        env={**os.environ, "MEMSHEAF_HOME": str(tmp_path / "home")},
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.count(b"is ignored") == 1
    assert b"\x1b" not in done.stderr


@pytest.mark.parametrize("locale", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_a_path_that_is_no_utf8_is_found_and_words_are_utf8(
    run: Run, tmp_path: Path, locale: dict[str, str]
) -> None:
    folder = os.fsencode(tmp_path) + b"/b\xe4r"
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("this file system takes UTF-8 alone")
    with open(folder + b"/chat.md", "w") as file:
        file.write("## User\nWhere is the cello?\n\n## Assistant\nIn the hall.\n")
    made = run("sessions", "import", folder + b"/chat.md", "--json", **locale)
    assert json.loads(made.stdout)["added"] == 2, made.stderr
    assert run("sessions", "export", "-o", folder + b"/out.jsonl", **locale).returncode == 0
    assert os.path.getsize(folder + b"/out.jsonl")
    missing = run("import", folder + b"/none.jsonl", **locale)
    assert missing.returncode == 2
    assert b"No such file" in missing.stderr
    assert run("remember", "caf\u00e9".encode(), **locale).returncode == 0
    assert b"caf\\u00e9" in run("list", "--json").stdout


def test_a_data_folder_that_is_a_file_is_told_in_plain_words(run: Run, tmp_path: Path) -> None:
    (tmp_path / "here" / "memsheaf.toml").write_text("[[providers]]\ntype = 'local'\n")
    (tmp_path / "here" / ".memsheaf").write_text("mine")
    done = run("remember", "Mira plays the cello")
    assert done.returncode == 2
    assert b"a file stands where the folder" in done.stderr
    assert b"Errno" not in done.stderr
    assert (tmp_path / "here" / ".memsheaf").read_text() == "mine"


def test_the_cursor_of_the_next_page_can_be_pasted_into_a_shell(run: Run) -> None:
    for text in ("first memory", "second memory"):
        assert run("remember", text).returncode == 0
    shown = run("list", "--limit", "1").stdout.decode()
    option, cursor = shlex.split(shown.rpartition("more: ")[2])
    assert option == "--after"
    assert b"first memory" in run("list", "--after", cursor).stdout


def test_doctor_tells_what_to_do_about_a_full_or_read_only_disk() -> None:
    assert advice("the disk is full or read-only") == (
        "free some space on its disk, or make its folder writable for you"
    )


def test_sessions_of_a_cloned_repository_may_not_lead_out(run: Run, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / ".memsheaf" / "sessions").mkdir(parents=True)
    victim = tmp_path / "victim.db"
    (here / ".memsheaf" / "sessions" / "sessions.db").symlink_to(victim)
    (here / "t.jsonl").write_text("{}\n")
    done = run("sessions", "import", "t.jsonl")
    assert done.returncode == 2
    assert b"is a link out of" in done.stderr
    assert not victim.exists()

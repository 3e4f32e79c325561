"""Cases that users of other tools reported: from the transcript to the search, in both indexes."""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import ConversationLog, SessionSearch
from memsheaf.sessionsearch.importers import import_paths
from memsheaf.stack import Scope

MIRA = Scope(user_id="mira")


class Sessions:
    """Imports texts, and finds them again."""

    def __init__(self, folder: Path, index: str) -> None:
        self.folder = folder
        self.log = ConversationLog(folder / "log.db")
        self.search = SessionSearch(self.log, index=index)

    def put(self, *texts: str, times: list[Any] | None = None) -> None:
        """Each text as the only message of a session of its own."""
        for number, text in enumerate(texts):
            line = {
                "type": "user",
                "uuid": f"u{number}",
                "sessionId": f"s{number}",
                "timestamp": times[number] if times else "2026-01-05T09:00:00Z",
                "message": {"role": "user", "content": text},
            }
            (self.folder / f"{number}.jsonl").write_text(json.dumps(line) + "\n")
        summary = import_paths(sorted(self.folder.glob("*.jsonl")), self.log, MIRA)
        assert (summary.added, summary.problem_count) == (len(texts), 0)

    def found(self, query: str, **filters: Any) -> list[str]:
        return [hit.item.text for hit in self.search.search(query, scope=MIRA, **filters)]


@pytest.fixture(params=["default", "sqlite"])
def sessions(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sessions]:
    made = Sessions(tmp_path, request.param)
    yield made
    made.search.close()
    made.log.close()


def test_hyphens_are_text(sessions: Sessions) -> None:
    ticket = "Ticket KRT-512: rotate the staging certificate"
    other = ["Ticket KRT-77 was closed in May", "we spoke about krt and 512 separately"]
    sessions.put(ticket, *other)
    for query in ("KRT-512", "krt-512 certificate"):
        assert sessions.found(query)[0] == ticket
    assert ticket in sessions.found("-KRT")  # neither a NOT nor a column
    assert sessions.found("pre-commit") == []


def test_flags_and_operators_are_text(sessions: Sessions) -> None:
    flag, headers = "build with --fail-on-warn to catch it early", "C++ headers live in include/"
    gate = "use the AND gate, not the OR gate"
    sessions.put(flag, headers, gate)
    expected = {'"--fail-on-warn"': flag, "--fail-on-warn": flag, "C++": headers, "AND": gate}
    for query, text in expected.items():
        assert sessions.found(query)[0] == text, query
    for query in (
        "gate OR", "NOT gate", "NEAR(gate", "(gate", '"unclosed', "***", "std::map", "body:gate",
        "gate^2", "'; DROP TABLE memories;--", "gate*", "\x00", "\ud800", "{gate}", "a" * 10_000,
    ):  # fmt: skip
        sessions.found(query)
    assert sessions.found("(gate") == [gate]
    assert sessions.found("gate^2") == [gate]


def test_scripts_without_spaces_and_accents(sessions: Sessions) -> None:
    coffee, weather, summer = (
        "ผมชอบกาแฟดำมากกว่าชา",
        "東京の天気はどうですか",
        "l'été dernier à Nîmes",
    )
    ship, rocket = (
        "Donaudampfschifffahrtsgesellschaft schickt die Rechnung",
        "🚀 launch day went well",
    )
    sessions.put(coffee, weather, summer, ship, rocket)
    expected = {
        "กาแฟ": coffee, "天気": weather, "ete": summer, "Nîmes": summer, "nimes": summer,
        "l\u2019été": summer,
    }  # fmt: skip
    for query, text in expected.items():
        assert text in sessions.found(query), query
    sessions.found("Schifffahrt")
    sessions.found("🚀")


def test_both_spellings_of_an_accent_are_one(sessions: Sessions) -> None:
    tax, call = "impôt sur le revenu 2024", "résumé of the call with Zoë"
    sessions.put(
        unicodedata.normalize("NFD", tax), unicodedata.normalize("NFC", call), "nothing of it"
    )
    for form in ("NFC", "NFD"):
        for query, text in (("impôt", tax), ("résumé", call), ("Zoë", call)):
            (found,) = sessions.found(unicodedata.normalize(form, query))
            assert unicodedata.normalize("NFC", found) == text
    assert sessions.found("resume") == [call]


def test_times_with_and_without_a_zone_compare(sessions: Sessions) -> None:
    """Without a zone it is UTC; without a time it is the time of the file, which is now."""
    times = ["2026-03-01T09:00:00", "2026-03-01T09:00:00+09:00", "2026-03-01T02:00:00Z"]
    words = [f"gate {name}" for name in "abcde"]
    sessions.put(*words, times=[*times, None, "yesterday"])
    oldest = sessions.found("gate", sort="oldest")
    assert oldest[:3] == ["gate b", "gate c", "gate a"]
    assert set(oldest[3:]) == {"gate d", "gate e"}
    since = sessions.found("gate", since="2026-03-01T01:00:00Z", sort="oldest")
    assert since[:2] == ["gate c", "gate a"]
    listed = [one.id for one in sessions.log.conversations(MIRA)]
    assert listed[2:] == ["claude-code:s0", "claude-code:s2", "claude-code:s1"]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_times_of_every_unit_are_found_on_their_day(
    sessions: Sessions, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        times = [1767583930, 1767583930.285, 1767583930285, "1767583930"]
        times += ["2026-01-05T03:32:10.285Z", 1767583930285031]
        sessions.put(*(f"tide {n}" for n in range(6)), times=times)
        assert len(sessions.found("tide", since="2026-01-05", until="2026-01-06")) == 6
        assert sessions.found("tide", until="2026-01-05T03:32:09Z") == []
        first = datetime(2026, 1, 5, 3, 32, 10, tzinfo=UTC)
        assert min(one.created_at for one in sessions.log.conversations(MIRA)) == first
    finally:
        monkeypatch.undo()
        time.tzset()


def test_what_stood_on_a_line_with_a_separator_is_found(sessions: Sessions) -> None:
    text = "error above\u2028lanternfish below, nel\u0085inside"
    sessions.put(text)
    assert sessions.found("lanternfish") == [text]


def test_the_last_word_of_a_very_long_message_is_found(sessions: Sessions) -> None:
    texts = [f"short message {n}" for n in range(9)]
    texts.insert(4, "word " * 300_000 + "marzipan")
    sessions.put(*texts)
    assert sessions.found("marzipan") == [texts[4]]
    assert len(sessions.found("short", limit=20)) == 9

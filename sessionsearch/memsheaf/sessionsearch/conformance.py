"""The conformance suite of session indexes: subclass it in a test module.

>>> class TestMyIndex(SessionIndexConformance):
...     def index_of(self, log):
...         return "default"  # the name of an entry point, or an index
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memsheaf.stack import Scope

from .indexes import ItemQuery, SessionIndex
from .items import NewItem
from .log import ConversationLog
from .session_search import SessionSearch

__all__ = ["HOSTILE_QUERIES", "SessionIndexConformance"]

MIRA, TOM = Scope(user_id="mira"), Scope(user_id="tom")

HOSTILE_QUERIES = (
    '"--fail-on-warn"', "--fail-on-warn", "C++", "AND", "gate OR", "NOT gate", "NEAR(gate",
    '"unclosed', "***", "std::map", "body:gate", "gate^2", "'; DROP TABLE items;--", "-gate",
    "terms : gate", "marks:every", '"', "\\", "\x00", "\ud800 gate", "{gate}", "gate\n\ngate",
    "a" * 100_000, "gate " * 2_000, "\u202egate", "%", "_", "🚀", "é" * 300, "1e9999", "(gate",
    "gate*", "?!", "{terms}:gate",
)  # fmt: skip
"""Queries that break query languages; each is only text."""


class SessionIndexConformance:
    """What every index of sessions has to do; each test makes a log of its own."""

    def index_of(self, log: ConversationLog) -> SessionIndex | str:
        """The index under test, or the name of its entry point."""
        raise NotImplementedError("return the index that is tested")

    @contextmanager
    def opened(self, folder: Path) -> Iterator[SessionSearch]:
        """A search over a log in a folder, by the index under test."""
        with (
            ConversationLog(folder / "log.db") as log,
            SessionSearch(log, index=self.index_of(log)) as sessions,
        ):
            yield sessions

    def test_words_are_alternatives(self, tmp_path: Path) -> None:
        """An item with one word is found, one with none is not; the better one comes first."""
        with self.opened(tmp_path) as sessions:
            say(sessions, "c", "the weather", "deploy elixir on fly", "deploy", "in May")
            say(sessions, "d", "nothing of it", "elixir")
            assert found(sessions, "Deploying ELIXIR")[0] == "c:1"
            assert sorted(found(sessions, "deploy elixir")) == ["c:1", "c:2", "d:1"]
            assert found(sessions, "zither") == found(sessions, "") == []

    def test_limit(self, tmp_path: Path) -> None:
        """A limit cuts what is ranked; what comes first does not depend on it."""
        with self.opened(tmp_path) as sessions:
            say(sessions, "c", *(f"cello {'string ' * n}" for n in range(12)))
            every = found(sessions, "cello string", limit=99)
            assert len(every) == 12
            assert found(sessions, "cello string", limit=3) == every[:3]
            assert found(sessions, "cello", limit=0) == []

    def test_scope(self, tmp_path: Path) -> None:
        """Nothing of another scope is found, matched or counted."""
        cook = Scope(user_id="mira", agent_id="cook")
        odd = Scope(user_id="mira", session_id='s" OR every', namespace="n'")
        with self.opened(tmp_path) as sessions:
            for name, scope in (("m", MIRA), ("t", TOM), ("k", cook), ("o", odd)):
                say(sessions, name, f"the cello of {name}", scope=scope)
            assert sorted(found(sessions, "cello", MIRA)) == ["k:0", "m:0", "o:0"]
            assert found(sessions, "cello", TOM) == ["t:0"]
            assert found(sessions, "cello", cook) == ["k:0"]
            assert found(sessions, "cello", odd) == ["o:0"]
            assert found(sessions, "cello", Scope(namespace="n'")) == ["o:0"]
            assert found(sessions, "cello", Scope(user_id="tom", agent_id="cook")) == []
            assert len(found(sessions, "cello", Scope.EVERYONE)) == 4
            assert found(sessions, "cello", MIRA, conversation="t") == []
            explain = sessions.search("cello", scope=Scope(user_id="nobody")).explain
            assert (explain.conversations, explain.items, explain.matched) == (0, 0, 0)
            query = ItemQuery("cello", Scope())  # a search refuses it; an index finds nothing
            assert list(sessions._index.search(query, 10)) == []
            assert sessions._index.counts(query).items == 0

    def test_filters(self, tmp_path: Path) -> None:
        """Each filter is applied before the limit, and counted."""
        with self.opened(tmp_path) as sessions:
            for n in range(30):
                item = NewItem(
                    "message", "cello cello", role="user", created_at=f"2026-01-{n + 1:02}"
                )
                sessions.log.append("c", item, MIRA, metadata={"project": "/home/mira/web"})
            rare = NewItem("tool_result", "one old cello", role="tool", created_at="2025-06-01")
            sessions.log.append("d", rare, MIRA, metadata={"project": "/home/mira/music/strings"})
            for filters in FILTERS:
                assert found(sessions, "cello", limit=1, **filters) == ["d:0"], filters
                result = sessions.search("cello", scope=MIRA, **filters)
                assert sum(result.explain.removed.values()) == 30, filters
            assert found(sessions, "cello", project="/home/mira/mus") == []
            assert len(found(sessions, "cello", project="/home/mira/", limit=99)) == 31
            assert found(sessions, "cello", conversation=[], roles=[]) == []
            nothing = sessions.search("cello", scope=MIRA, types="message", until="2025-12-31")
            assert dict(nothing.explain.removed) == {"types": 1, "until": 30}
            assert (nothing.explain.items, nothing.explain.matched) == (31, 31)
            sessions.log.append("d", [], MIRA, metadata={"project": "/elsewhere"})
            assert found(sessions, "cello", project="/elsewhere") == ["d:0"]
            assert found(sessions, "cello", project="/home/mira/music") == []

    def test_sort(self, tmp_path: Path) -> None:
        """By time, among what matches well."""
        with self.opened(tmp_path) as sessions:
            for name, moment in (("a", "2026-03-03"), ("b", "2026-03-01"), ("c", "2026-03-02")):
                item = NewItem("message", f"cello bridge {name}", created_at=moment)
                sessions.log.append(name, item, MIRA)
            noise = NewItem("message", "only a bridge", created_at="2026-03-09")
            sessions.log.append("n", [noise, *[NewItem("message", "bridge")] * 5], MIRA)
            assert found(sessions, "cello bridge", sort="newest") == ["a:0", "c:0", "b:0"]
            assert found(sessions, "cello bridge", sort="oldest", limit=2) == ["b:0", "c:0"]

    def test_tools(self, tmp_path: Path) -> None:
        """Tool calls and results are found by name, arguments and output."""
        call = {"name": "read_file", "arguments": {"path": "/etc/cello.toml", "depth": 7}}
        with self.opened(tmp_path) as sessions:
            items = [
                NewItem("tool_call", role="assistant", data=call),
                NewItem("tool_result", role="tool", data={"output": [{"text": "strings = 4"}]}),
                NewItem("unheard_of", "a kind of its own"),
                NewItem("message", "   "),
            ]
            sessions.log.append("c", items, MIRA)
            for query in ("read_file", "cello.toml", "/etc/cello.toml", "path", "7"):
                assert found(sessions, query) == ["c:0"], query
            assert found(sessions, "strings") == ["c:1"]
            assert found(sessions, "kind") == ["c:2"]

    def test_any_string_is_a_query(self, tmp_path: Path) -> None:
        """No string is a syntax error, reaches the store as code, or widens the scope."""
        with self.opened(tmp_path) as sessions:
            say(sessions, "c", "build with --fail-on-warn", "C++ headers", "use the AND gate")
            say(sessions, "t", "the gate of tom", scope=TOM)
            for query in HOSTILE_QUERIES:
                assert {name.split(":")[0] for name in found(sessions, query)} <= {"c"}, query[:40]
            assert found(sessions, "--fail-on-warn")[0] == "c:0"
            assert found(sessions, "C++") == ["c:1"]
            assert found(sessions, "AND")[:1] == ["c:2"]
            say(sessions, "k", "Ticket KRT-512: rotate", "KRT-77 closed", "krt and 512 apart")
            assert found(sessions, "KRT-512")[0] == "k:0"
            assert "k:1" in found(sessions, "-KRT")
            assert found(sessions, "pre-commit") == []

    def test_languages(self, tmp_path: Path) -> None:
        """Scripts without spaces, accents in both normal forms, symbols."""
        with self.opened(tmp_path) as sessions:
            texts = [
                "ผมชอบกาแฟดำมากกว่าชา",
                "東京の天気はどうですか",
                "🚀 launch day",
                "l'été à Nîmes",
            ]
            say(sessions, "c", *texts, "impo\u0302t sur le revenu")
            for query, place in (
                ("กาแฟ", 0), ("天気", 1), ("🚀", 2), ("ete", 3), ("Nîmes", 3), ("nimes", 3),
                ("l\u2019été", 3), ("impôt", 4), ("impo\u0302t", 4),
            ):  # fmt: skip
                assert f"c:{place}" in found(sessions, query), query

    def test_it_follows_the_log(self, tmp_path: Path) -> None:
        """Deleted, restored and erased items and conversations, in any order, twice."""
        with self.opened(tmp_path) as sessions:
            log = sessions.log
            say(sessions, "c", "cello one", "cello two", "cello three")
            say(sessions, "d", "cello four")
            assert len(found(sessions, "cello")) == 4
            assert log.delete("c", MIRA, 1)
            assert log.delete("d", MIRA)
            assert sorted(found(sessions, "cello")) == ["c:0", "c:2"]
            log.restore("d", MIRA)
            log.restore("c", MIRA, 1)
            assert sorted(found(sessions, "cello")) == ["c:0", "c:1", "c:2", "d:0"]
            log.erase("c", MIRA, 0)
            assert sorted(found(sessions, "cello")) == ["c:1", "c:2", "d:0"]
            log.delete("c", MIRA)
            log.erase("c", MIRA)
            assert found(sessions, "cello") == ["d:0"]
            assert sessions._index.sequence == log.sequence()
            sessions._index.apply(log.changes(0))  # it knows them all
            assert found(sessions, "cello") == ["d:0"]

    def test_it_goes_on_where_it_was(self, tmp_path: Path) -> None:
        """Another opening finds what was found before and what came since."""
        with self.opened(tmp_path) as sessions:
            say(sessions, "c", *(f"cello {n}" for n in range(300)))
            assert len(found(sessions, "cello", limit=1000)) == 300
        with ConversationLog(tmp_path / "log.db") as log:
            log.append("d", NewItem("message", "zither"), MIRA)
        with self.opened(tmp_path) as sessions:
            assert sessions.catch_up() == 1
            assert len(found(sessions, "cello", limit=1000)) == 300
            assert found(sessions, "zither") == ["d:0"]

    def test_it_can_begin_anew(self, tmp_path: Path) -> None:
        """After a reset it is empty, tells why, and reads the log again."""
        with self.opened(tmp_path) as sessions:
            say(sessions, "c", "cello")
            assert found(sessions, "cello") == ["c:0"]
            sessions._index.reset("a test")
            assert (sessions._index.sequence, sessions._index.rebuilt) == (0, "a test")
            assert found(sessions, "cello") == ["c:0"]

    def test_an_erasure_leaves_no_text(self, tmp_path: Path) -> None:
        """No file of log and index holds an erased word."""
        with self.opened(tmp_path) as sessions:
            say(sessions, "c", *(f"cello {n}" for n in range(300)))
            say(sessions, "secret", "the xylographer", "the xylographer again")
            say(sessions, "c", "a quixotic plan")
            assert len(found(sessions, "xylographer quixotic")) == 3
            sessions._index.save()
            sessions.log.erase("secret", MIRA)
            sessions.log.erase("c", MIRA, 300)
            assert found(sessions, "xylographer quixotic") == []
            sessions._index.save()
            sessions.log.erase("nobody", MIRA)
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        for word in (b"xylograph", b"quixot"):
            assert not any(word in content for content in files)

    def test_relevance(self, tmp_path: Path) -> None:
        """It is the share of the query that an item holds itself, whatever the score is."""
        with self.opened(tmp_path) as sessions:
            say(sessions, "c", "cello bridge", "cello", "viola", "oboe")
            hits = {hit.id: hit for hit in sessions.search("cello bridge", scope=MIRA)}
            assert abs(hits["c:0"].relevance - 1) < 1e-9
            assert 0 < hits["c:1"].relevance < 0.6
            part = sessions.search("cello zither", scope=MIRA)[0].relevance
            assert 0 < part < 0.7


FILTERS: tuple[dict[str, Any], ...] = (
    {"roles": "tool"},
    {"types": ["tool_result", "other"]},
    {"until": "2025-12-31"},
    {"project": "/home/mira/music"},
    {"conversation": "d"},
)


def say(sessions: SessionSearch, conversation: str, *texts: str, scope: Scope = MIRA) -> None:
    """Append messages to a conversation."""
    sessions.log.append(conversation, [NewItem("message", text) for text in texts], scope)


def found(sessions: SessionSearch, text: str, scope: Scope = MIRA, **filters: Any) -> list[str]:
    """The ids that a search finds."""
    return [hit.id for hit in sessions.search(text, scope=scope, **filters)]

"""Both indexes pass the suite, agree on what they find, and are rebuilt where they are damaged."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import ConversationLog, NewItem, SessionSearch
from memsheaf.sessionsearch.conformance import HOSTILE_QUERIES, SessionIndexConformance
from memsheaf.stack import RegistrationError, Registry, Scope

MIRA = Scope(user_id="mira")


class TestDefault(SessionIndexConformance):
    def index_of(self, log: ConversationLog) -> str:
        return "default"


class TestSqlite(SessionIndexConformance):
    def index_of(self, log: ConversationLog) -> str:
        return "sqlite"


def test_the_group_holds_both_and_a_name_that_is_none_is_told(tmp_path: Path) -> None:
    assert set(Registry("memsheaf.session_indexes").plugins) >= {"default", "sqlite"}
    with ConversationLog(tmp_path / "log.db") as log, pytest.raises(RegistrationError, match="sql"):
        SessionSearch(log, index="sqlit")


def test_both_find_the_same_up_to_ranking(tmp_path: Path) -> None:
    draw = random.Random(7)
    plain = "cello viola running runs C++ krt-512 a/b.py user_name getName 7 the"
    words = [*plain.split(), "été", "東京の天気"]
    with ConversationLog(tmp_path / "log.db") as log:
        for conversation in range(12):
            items = [
                NewItem(
                    draw.choice(["message", "tool_call"]),
                    " ".join(draw.choices(words, k=draw.randrange(6))),
                    role=draw.choice(["user", "assistant", None]),
                    created_at=1_700_000_000 + draw.randrange(1000),
                )
                for _ in range(10)
            ]
            log.append(f"c{conversation}", items, Scope(user_id=draw.choice(["mira", "tom"])))
        for conversation in range(0, 12, 3):
            log.delete(f"c{conversation}", Scope.EVERYONE, 3)
        with SessionSearch(log) as one, SessionSearch(log, index="sqlite") as two:
            filters: list[dict[str, Any]] = [
                {},
                {"roles": "user"},
                {"types": "tool_call", "since": 1_700_000_500},
                {"until": 1_700_000_500, "conversation": ["c1", "c2"]},
                {"sort": "oldest"},
            ]
            for query in (*words, "cello viola", "running the C++ test", *HOSTILE_QUERIES):
                for each in filters if query not in HOSTILE_QUERIES else filters[:1]:
                    for scope in (MIRA, Scope.EVERYONE)[: 1 if each else 2]:
                        a = one.search(query, 1000, scope=scope, **each)
                        b = two.search(query, 1000, scope=scope, **each)
                        assert texts_of(a) == texts_of(b), (query[:40], each)
                        if len(query) < 1000:
                            assert a.explain.removed == b.explain.removed, (query, each)
                            assert a.explain.matched == b.explain.matched
                        held = {hit.id: hit.relevance for hit in b}
                        for hit in a:
                            assert hit.relevance == pytest.approx(held.get(hit.id, hit.relevance))


def texts_of(result: Any) -> set[str]:
    """All ids, whichever of the same text took the place."""
    return {id for hit in result for id in (hit.id, *hit.copies)}


@pytest.mark.parametrize("index", ["default", "sqlite"])
@pytest.mark.parametrize("seed", [1, 2])
def test_after_any_changes_exactly_what_can_be_read_is_found(
    tmp_path: Path, seed: int, index: str
) -> None:
    draw = random.Random(seed)
    words = [f"w{n}" for n in range(30)]
    log = ConversationLog(tmp_path / "log.db")
    sessions = SessionSearch(log, index=index)
    said: list[tuple[str, int]] = []
    for _ in range(200):
        chance = draw.random()
        name, seq = draw.choice(said) if said else ("c0", 0)
        if chance < 0.55:
            texts = (" ".join(draw.choices(words, k=draw.randrange(6))) for _ in range(3))
            items = [NewItem("message", text) for text in texts]
            added = log.append(f"c{draw.randrange(6)}", items, MIRA)
            said += [(item.conversation, item.seq) for item in added]
        elif chance < 0.65:
            log.delete(name, MIRA, seq)
        elif chance < 0.73:
            log.restore(name, MIRA, seq)
        elif chance < 0.76:
            log.erase(name, MIRA, seq)
        elif chance < 0.79:
            sessions.save()
        elif chance < 0.81:
            sessions.close()
            sessions = SessionSearch(log, index=index)
        else:
            query = " ".join(draw.choices(words, k=2))
            shown = [i for c in log.conversations(MIRA) for i in log.items(c.id, MIRA)]
            right = {i.id for i in shown if {*query.split()} & {*i.text.split()}}
            found = sessions.search(query, 1000, scope=MIRA)
            assert texts_of(found) == right
            assert found.explain.matched == len(right)
    sessions.close()
    log.close()


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM session_words_data",
        "DROP TABLE session_words_idx",
        "DROP TABLE session_words",
        "DROP TABLE session_words_state",
        "UPDATE session_words_state SET mark = 'other'",
    ],
)
def test_damage_in_the_tables_blocks_no_append_and_is_rebuilt(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "log.db"
    with ConversationLog(path) as log, SessionSearch(log, index="sqlite") as sessions:
        log.append("c", NewItem("message", "cello"), MIRA)
        assert len(sessions.search("cello", scope=MIRA)) == 1
    database = sqlite3.connect(path)
    database.execute(harm)
    database.commit()
    database.close()
    with ConversationLog(path) as log:
        log.append("c", NewItem("message", "another cello"), MIRA)
        with SessionSearch(log, index="sqlite") as sessions:
            log.append("c", NewItem("message", "a third cello"), MIRA)
            assert len(sessions.search("cello", scope=MIRA)) == 3
        log.erase("c", MIRA, 0)
        with SessionSearch(log, index="sqlite") as sessions:
            assert len(sessions.search("cello", scope=MIRA)) == 2


@pytest.mark.parametrize("index", ["default", "sqlite"])
def test_an_explanation_tells_the_words_as_they_were_typed(tmp_path: Path, index: str) -> None:
    with ConversationLog(tmp_path / "log.db") as log, SessionSearch(log, index=index) as sessions:
        log.append("c", NewItem("message", "The hallway cellos"), MIRA)
        for hits in (
            sessions.search("Where are the 'Hallways', hallways and std::map?", scope=MIRA),
            sessions.discover("Where are the 'Hallways', hallways and std::map?", scope=MIRA),
        ):
            assert hits.explain.words == ("Hallways", "hallways", "std::map")
            assert hits.explain.matched == len(hits) == 1
        for text in ("", "?!", " \n"):
            nothing = sessions.search(text, scope=MIRA, roles="user").explain
            assert str(nothing) == "the query has no word to look for"
            assert (nothing.items, nothing.matched, sum(nothing.removed.values())) == (1, 0, 0)

"""Session search through its own calls: what is found, for whom, and in what order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memsheaf.sessionsearch import ConversationLog, Item, NewItem, SessionSearch, open_sessions
from memsheaf.stack import InvalidQuery, InvalidRecord, NotFound, Scope, ScopeError

MIRA, TOM = Scope(user_id="mira"), Scope(user_id="tom")


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[SessionSearch]:
    with open_sessions(tmp_path / "sessions") as opened:
        yield opened


def say(sessions: SessionSearch, conversation: str, *texts: str, scope: Scope = MIRA) -> None:
    sessions.log.append(conversation, [NewItem("message", t, role="user") for t in texts], scope)


def found(sessions: SessionSearch, text: str, scope: Scope = MIRA, **filters: object) -> list[str]:
    return [hit.id for hit in sessions.search(text, scope=scope, **filters)]  # type: ignore[arg-type]


def test_words_are_alternatives_and_an_item_without_one_is_not_found(
    sessions: SessionSearch,
) -> None:
    say(sessions, "c", "how to deploy elixir on fly", "deploy again", "the weather in May")
    assert found(sessions, "deploy elixir fly") == ["c:0", "c:1"]


def test_one_conversation_or_several(sessions: SessionSearch) -> None:
    for name in ("c1", "c2", "c3"):
        say(sessions, name, f"the cello of {name}")
    assert found(sessions, "cello", conversation="c1") == ["c1:0"]
    assert sorted(found(sessions, "cello", conversation=["c1", "c3"])) == ["c1:0", "c3:0"]
    assert found(sessions, "cello", conversation="none") == []


def test_limit(sessions: SessionSearch) -> None:
    say(sessions, "c", *(f"cello number {n}" for n in range(5)))
    assert len(sessions.search("cello", 2, scope=MIRA)) == 2
    assert len(sessions.search("cello", 0, scope=MIRA)) == 0
    for bad in (-1, 1001, True, 2.0):
        with pytest.raises(InvalidQuery):
            sessions.search("cello", bad, scope=MIRA)  # type: ignore[arg-type]


def test_nothing_there_and_nothing_asked(sessions: SessionSearch) -> None:
    assert found(sessions, "cello") == []
    say(sessions, "c", "cello")
    assert found(sessions, "") == found(sessions, " \n") == found(sessions, "?!") == []
    assert str(sessions.search("", scope=MIRA).explain) == "the query has no word to look for"


def test_what_is_appended_after_attaching_is_found(sessions: SessionSearch) -> None:
    say(sessions, "c", "before attaching: cello")
    assert sessions.attach("c", MIRA) == 1
    say(sessions, "c", "after attaching: viola")
    assert found(sessions, "viola") == ["c:1"]
    assert sessions.search("viola", scope=MIRA)[0].item.type == "message"
    with pytest.raises(NotFound):
        sessions.attach("c", TOM)


def test_indexing_again_changes_nothing(sessions: SessionSearch) -> None:
    say(sessions, "c", "cello", "viola")
    items = sessions.log.items("c", MIRA)
    assert sessions.index(items) == 2
    before = [(hit.id, hit.score) for hit in sessions.search("cello viola", scope=MIRA)]
    assert sessions.index(items) == 0
    assert [(hit.id, hit.score) for hit in sessions.search("cello viola", scope=MIRA)] == before
    with pytest.raises(InvalidRecord):
        sessions.index(["cello"])  # type: ignore[list-item]


def test_tool_calls_and_results_by_name_arguments_and_output(sessions: SessionSearch) -> None:
    call = {"name": "read_file", "arguments": {"path": "/etc/cello.toml", "depth": 7}}
    sessions.log.append(
        "c",
        [
            NewItem("tool_call", role="assistant", data=call),
            NewItem("tool_result", role="tool", data={"output": ["strings = 4"]}),
            NewItem("tool_result", "viola = 5", role="tool", data={"output": "viola = 5"}),
        ],
        MIRA,
    )
    for query in ("read_file", "cello.toml", "/etc/cello.toml", "7"):
        assert found(sessions, query) == ["c:0"], query
    assert found(sessions, "strings") == ["c:1"]
    hit = sessions.search("cello", scope=MIRA)[0]
    assert "/etc/«cello».toml" in hit.snippet
    assert "read_file" in hit.content
    assert hit.item.data == call
    assert sessions.search("viola", scope=MIRA)[0].content == "viola = 5"


def test_scope_guards_everything(sessions: SessionSearch) -> None:
    say(sessions, "m", "the cello is in the hall")
    say(sessions, "t", "the cello is broken", scope=TOM)
    assert found(sessions, "cello", MIRA) == ["m:0"]
    assert found(sessions, "cello", TOM) == ["t:0"]
    assert sorted(found(sessions, "cello", Scope.EVERYONE)) == ["m:0", "t:0"]
    assert found(sessions, "cello", Scope(user_id="mira", agent_id="cook")) == []
    assert found(sessions, "cello", MIRA, conversation="t") == []
    assert [row.conversation.id for row in sessions.discover("cello", scope=MIRA)] == ["m"]
    assert [each.id for each in sessions.browse(scope=TOM)] == ["t"]
    for call in (sessions.scroll, sessions.read):
        with pytest.raises(NotFound):
            call("t:0" if call == sessions.scroll else "t", scope=MIRA)
    for reading in (sessions.search, sessions.discover):
        with pytest.raises(ScopeError):
            reading("cello", scope=Scope())
    with pytest.raises(ScopeError):
        sessions.browse(scope=Scope())
    with pytest.raises(ScopeError):
        sessions.scroll("m:0", scope=Scope())


def test_statistics_of_others_do_not_move_scores(sessions: SessionSearch) -> None:
    say(sessions, "m", "the cello is in the hall", "the viola is not")
    alone = [(hit.id, hit.score, hit.relevance) for hit in sessions.search("cello", scope=MIRA)]
    say(sessions, "t", *["cello cello"] * 20, scope=TOM)
    assert [(h.id, h.score, h.relevance) for h in sessions.search("cello", scope=MIRA)] == alone


def test_filters_work_before_the_limit(sessions: SessionSearch) -> None:
    for n in range(30):
        sessions.log.append(
            "c",
            NewItem("message", "cello cello", role="user", created_at=f"2026-01-{n + 1:02}"),
            MIRA,
        )
    rare = NewItem(
        "tool_result", "so much about one old cello in it", role="tool", created_at="2025-06-01"
    )
    sessions.log.append("d", rare, MIRA, metadata={"project": "/home/mira/music"})
    for filters in (
        {"roles": "tool"},
        {"types": ["tool_result"]},
        {"until": "2025-12-31"},
        {"project": "/home/mira/music"},
        {"project": "/home/mira"},
        {"conversation": "d"},
    ):
        assert found(sessions, "cello", limit=1, **filters) == ["d:0"], filters
    assert found(sessions, "cello", project="/home/mir") == []
    assert found(sessions, "cello", since="2026-01-30", limit=3) == ["c:29"]
    assert len(sessions.search("cello", 5, scope=MIRA, roles=["user"])) == 5


def test_nothing_found_says_what_was_searched_and_which_filter_removed_how_many(
    sessions: SessionSearch,
) -> None:
    say(sessions, "c", "cello one", "cello two", "viola")
    result = sessions.search("cello", scope=MIRA, types="tool_call", since="2100-01-01")
    assert not result
    explain = result.explain
    assert (explain.conversations, explain.items, explain.matched) == (1, 3, 2)
    assert explain.removed == {"types": 2, "since": 0}
    assert str(explain) == (
        "searched 3 items of 1 conversation for cello: 2 match; types removed 2"
    )
    assert "0 match" in str(sessions.search("zither", scope=MIRA).explain)
    nobody = sessions.search("cello", scope=TOM).explain
    assert (nobody.conversations, nobody.items, nobody.matched) == (0, 0, 0)


def test_sorted_by_time(sessions: SessionSearch) -> None:
    times = ["2026-03-01T09:00:00", "2026-03-01T09:00:00+09:00", "2026-03-01T02:00:00Z"]
    for name, moment in zip("abc", times, strict=True):
        sessions.log.append(name, NewItem("message", f"cello {name}", created_at=moment), MIRA)
    assert found(sessions, "cello", sort="oldest") == ["b:0", "c:0", "a:0"]
    assert found(sessions, "cello", sort="newest") == ["a:0", "c:0", "b:0"]
    assert sorted(found(sessions, "cello", since="2026-03-01T01:00:00Z")) == ["a:0", "c:0"]
    with pytest.raises(InvalidQuery):
        sessions.search("cello", scope=MIRA, sort="best")  # type: ignore[arg-type]


def test_sorting_by_time_keeps_what_hardly_matches_away(sessions: SessionSearch) -> None:
    say(sessions, "a", "the cello bridge broke")
    say(sessions, "b", "a bridge over the river", "unrelated")
    assert found(sessions, "cello bridge broke", sort="newest") == ["a:0"]


def test_text_of_copied_sessions_takes_one_place(sessions: SessionSearch) -> None:
    talk = ["where is the cello", "in the hall", "thanks for the cello"]
    say(sessions, "first", *talk)
    say(sessions, "resumed", *talk, "and the cello bow?")
    hits = sessions.search("cello", scope=MIRA)
    copies = {hit.id: hit.copies for hit in hits}
    assert len(hits) == 3
    assert sorted(len(same) for same in copies.values()) == [0, 1, 1]
    assert copies["resumed:3"] == ()
    told = {id for hit in hits for id in (hit.id, *hit.copies)}
    assert told == {"first:0", "first:2", "resumed:0", "resumed:2", "resumed:3"}


def test_the_same_words_twice_in_one_conversation_were_said_twice(sessions: SessionSearch) -> None:
    say(sessions, "c", "yes", "no", "yes")
    assert sorted(found(sessions, "yes")) == ["c:0", "c:2"]


def test_what_is_hidden_or_erased_is_not_found_and_what_is_restored_is(
    sessions: SessionSearch,
) -> None:
    say(sessions, "c", "cello one", "cello two", "cello three")
    say(sessions, "d", "cello four")
    assert len(found(sessions, "cello")) == 4
    sessions.log.delete("c", MIRA, 1)
    assert sorted(found(sessions, "cello")) == ["c:0", "c:2", "d:0"]
    sessions.log.restore("c", MIRA, 1)
    assert sorted(found(sessions, "cello")) == ["c:0", "c:1", "c:2", "d:0"]
    sessions.log.delete("d", MIRA)
    assert found(sessions, "four") == []
    sessions.log.restore("d", MIRA)
    assert found(sessions, "four") == ["d:0"]
    sessions.log.erase("c", MIRA, 0)
    assert sorted(found(sessions, "cello")) == ["c:1", "c:2", "d:0"]
    sessions.log.erase("c", MIRA)
    assert found(sessions, "cello") == ["d:0"]


def test_discover_has_a_row_per_conversation_with_best_hits_and_ends(
    sessions: SessionSearch,
) -> None:
    say(sessions, "a", "good morning", "the cello is in the hall", "the cello again", "bye")
    say(sessions, "b", "hello", "no cello here", "see you")
    rows = sessions.discover("cello hall", scope=MIRA, hits=2)
    assert [row.conversation.id for row in rows] == ["a", "b"]
    assert [hit.id for hit in rows[0].hits] == ["a:1", "a:2"]
    assert [item.text for item in (*rows[0].first, *rows[0].last)] == ["good morning", "bye"]
    assert rows[0].score >= rows[1].score
    assert not sessions.discover("zither", scope=MIRA)


def test_scroll_read_and_browse(sessions: SessionSearch) -> None:
    say(sessions, "a", *"abcdefg")
    say(sessions, "b", "later")
    window = sessions.scroll("a:3", scope=MIRA, before=2, after=1)
    assert [item.text for item in window] == ["b", "c", "d", "e"]
    assert [item.text for item in sessions.read("a", scope=MIRA, after=4)] == ["f", "g"]
    assert [each.id for each in sessions.browse(scope=MIRA)] == ["b", "a"]
    with pytest.raises(NotFound):
        sessions.scroll("a:99", scope=MIRA)


def test_another_log_object_of_the_same_file_is_followed(
    sessions: SessionSearch, tmp_path: Path
) -> None:
    with ConversationLog(sessions.log.path) as other:
        other.append("c", NewItem("message", "cello"), MIRA)
        assert found(sessions, "cello") == ["c:0"]
        other.erase("c", MIRA)
        assert found(sessions, "cello") == []


def test_preset_of_the_seed(tmp_path: Path) -> None:
    with open_sessions(tmp_path / "raxol", preset="raxol") as sessions:
        say(sessions, "c", "cello", "viola cello", "bass")
        assert found(sessions, "cello") == ["c:0", "c:1"]
    with pytest.raises(InvalidQuery):
        open_sessions(tmp_path / "other", preset="none")


def test_items_are_returned_raw(sessions: SessionSearch) -> None:
    say(sessions, "c", "cello")
    hit = sessions.search("cello", scope=MIRA)[0]
    assert isinstance(hit.item, Item)
    assert hit.item == sessions.log.item("c:0", MIRA)
    assert (hit.title, hit.position, hit.relevance) == ("", 0, 1.0)

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memsheaf.providers.local import LocalOptions, LocalStore, build
from memsheaf.stack import (
    ClosedError,
    Filter,
    IdUnavailable,
    MemoryRecord,
    Scope,
    ScopeError,
    cursor_of,
)

MIRA, OTTO = Scope(user_id="mira"), Scope(user_id="otto")
START = datetime(2026, 1, 1, tzinfo=UTC)


def note(content: str, scope: Scope = MIRA, **fields: object) -> MemoryRecord:
    return MemoryRecord.make(content=content, scope=scope, **fields)


def found(
    store: LocalStore, text: str, scope: Scope = MIRA, limit: int = 10, **where: object
) -> list[str]:
    return [hit.id for hit in store.search(text, scope, limit, Filter.of(where))]


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalStore]:
    with LocalStore(tmp_path / "store" if request.param == "disk" else None) as made:
        yield made


def test_the_seed_example_with_its_reference_scores() -> None:
    store = LocalStore(ranking="raxol")
    for name, text in [
        ("a", "elixir genserver supervision tree"),
        ("b", "elixir pattern matching pipes"),
        ("c", "python asyncio event loop"),
    ]:
        store.store(note(text, id=name))
    hits = store.search("elixir supervision", MIRA, 10, None)
    assert [hit.id for hit in hits] == ["a", "b"]
    assert [hit.score for hit in hits] == pytest.approx([1.7508, 0.7700], abs=1e-4)
    assert hits[0].relevance == 1
    assert "recency" in str(hits[0].explain())


def test_tags_are_found_and_lift_a_record(store: LocalStore) -> None:
    store.store(note("call the plumber", id="plain"))
    store.store(note("call the plumber", id="tagged", tags=["urgent"]))
    assert found(store, "plumber urgent") == ["tagged", "plain"]
    assert found(store, "urgent") == ["tagged"]


def test_storing_an_id_again_replaces_it(store: LocalStore) -> None:
    store.store(note("walnut cake", id="a", created_at=START))
    store.store(note("pecan cake", id="a", created_at=START, updated_at=START + timedelta(1)))
    store.store(note("old cake", id="a", created_at=START))
    assert found(store, "walnut") == found(store, "old") == []
    assert found(store, "pecan") == ["a"]


def test_an_id_of_another_scope_is_refused_and_not_told(store: LocalStore) -> None:
    store.store(note("mine", id="a"))
    with pytest.raises(IdUnavailable) as caught:
        store.store(note("taken over", OTTO, id="a"))
    assert "mira" not in str(caught.value)
    assert store.get("a", OTTO) is None
    assert not store.forget("a", OTTO)
    assert not store.update("a", OTTO, {"content": "x"})
    assert store.touch(["a"], OTTO) == 0
    assert found(store, "mine", OTTO) == []
    held = store.get("a", MIRA)
    assert held is not None
    assert held.content == "mine"


def test_an_empty_scope_reads_nothing(store: LocalStore) -> None:
    store.store(note("mine"))
    with pytest.raises(ScopeError):
        store.search("mine", Scope(), 10, None)
    with pytest.raises(ScopeError):
        store.list(Scope(), 10, None, "newest", None)
    assert len(store.search("mine", Scope.EVERYONE, 10, None)) == 1


def test_every_scope_field_is_enforced(store: LocalStore) -> None:
    full = Scope(user_id="u", agent_id="a", session_id="s", namespace="n")
    store.store(note("cello", full, id="x"))
    for name, value in full.set_fields().items():
        for text in ("cello", " "):
            assert found(store, text, Scope(**{name: value})) == ["x"]
            assert found(store, text, Scope(**{name: value + "2"})) == []


def test_blank_text_gives_the_most_recent(store: LocalStore) -> None:
    for n in range(5):
        store.store(note("x", id=f"r{n}", created_at=START + timedelta(n)))
    store.store(note("x", id="future", created_at=datetime(2999, 1, 1, tzinfo=UTC)))
    store.store(note("x", id="fresh"))
    store.touch(["r0"], MIRA)
    assert found(store, " \n", limit=4) in (
        ["fresh", "future", "r4", "r3"],
        ["future", "fresh", "r4", "r3"],
    )
    assert found(store, "?!") == []
    assert found(store, "x", limit=0) == found(store, "", limit=-3) == []


def test_filters_count_before_the_limit(store: LocalStore) -> None:
    for n in range(60):
        store.store(note("tea " * (60 - n), id=f"r{n:02}", kind="fact", created_at=START))
    store.store(note("tea with many other words around it", id="x", kind="skill", tags=["home"]))
    assert found(store, "tea", limit=2, kinds=["procedural"]) == ["x"]
    assert found(store, "", limit=2, tags_any=["home"]) == ["x"]
    assert [r.id for r in store.list(MIRA, 5, None, "oldest", Filter.of({"kinds": ["skill"]}))] == [
        "x"
    ]


def test_expired_records_never_come_back(store: LocalStore) -> None:
    store.store(note("tea", id="a", expires_at=START))
    assert found(store, "tea") == found(store, "") == []
    assert store.get("a", MIRA) is None
    assert store.list(MIRA, 5, None, "newest", None) == []


def test_a_typing_error_is_forgiven_and_a_known_word_is_not_bent(store: LocalStore) -> None:
    store.store(note("the supervision tree", id="a"))
    store.store(note("the tea house", id="b"))
    assert found(store, "supervison") == ["a"]
    assert found(store, "tea") == ["b"]


def test_any_text_is_a_query(store: LocalStore) -> None:
    store.store(note("we use C++ and KRT-512 in 東京都", id="a"))
    for text in ("c++", "krt-512", "東京", '"', "a AND (", "x" * 5000, "\x00*'"):
        store.search(text, MIRA, 5, None)
    assert found(store, "C++") == found(store, "krt-512") == found(store, "東京") == ["a"]


@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_pages_are_complete_and_in_order(store: LocalStore, order: str) -> None:
    for n in range(300):
        store.store(note("x", id=f"r{n * 7 % 300:03}", created_at=START + timedelta(n % 3)))
    seen: list[MemoryRecord] = []
    after = None
    while page := store.list(MIRA, 70, after, order, None):  # type: ignore[arg-type]
        seen += page
        after = cursor_of(page[-1])
    keys = [(r.created_at, r.id) for r in seen]
    assert len(seen) == 300
    assert keys == sorted(keys, reverse=order == "newest")


def test_update_keeps_what_is_not_named(store: LocalStore) -> None:
    store.store(note("allergic to walnuts", id="a", metadata={"pinned": True}, created_at=START))
    assert store.update("a", MIRA, {"content": "allergic to pecans", "updated_at": START})
    held = store.get("a", MIRA)
    assert held is not None
    assert (held.scope, held.created_at, held.metadata) == (MIRA, START, {"pinned": True})
    assert held.updated_at > START
    assert found(store, "pecans") == ["a"]
    assert found(store, "walnuts") == []
    assert not store.update("nobody", MIRA, {"content": "x"})


def test_touch_counts_once_per_call_and_is_no_change(store: LocalStore) -> None:
    store.store(note("x", id="a", created_at=START))
    assert store.touch(["a", "a", "nobody"], MIRA) == 1
    held = store.get("a", MIRA)
    assert held is not None
    assert (held.access_count, held.updated_at) == (1, START)
    assert held.last_accessed_at > START


def test_forget_and_store_again(store: LocalStore) -> None:
    store.store(note("tea", id="a"))
    assert store.forget("a", MIRA)
    assert not store.forget("a", MIRA)
    assert found(store, "tea") == found(store, "") == []
    store.store(note("tea again", OTTO, id="a"))
    assert found(store, "tea", OTTO) == ["a"]


def test_a_batch_tells_each_outcome(store: LocalStore) -> None:
    store.store(note("x", OTTO, id="taken"))
    told = store.store_many([note("tea", id="a"), note("tea", id="taken"), note("tea", id="b")])
    assert [type(t) for t in told] == [type(None), IdUnavailable, type(None)]
    assert sorted(found(store, "tea")) == ["a", "b"]


def test_what_comes_back_shares_nothing_with_the_store(store: LocalStore) -> None:
    store.store(note("tea", id="a", metadata={"n": [1]}))
    store.search("tea", MIRA, 1, None)[0].record.metadata["n"] = "changed"
    assert store.search("tea", MIRA, 1, None)[0].record.metadata == {"n": [1]}


def test_statistics_are_those_of_the_scope() -> None:
    alone, shared = LocalStore(), LocalStore()
    for store in (alone, shared):
        store.store(note("green tea house", id="a"))
        store.store(note("coffee house", id="b"))
    for n in range(50):
        shared.store(note(f"tea {n}", OTTO))
    assert alone.search("tea house", MIRA, 9, None)[0].score == pytest.approx(
        shared.search("tea house", MIRA, 9, None)[0].score
    )


def test_a_closed_store_says_so(store: LocalStore) -> None:
    store.close()
    store.close()
    with pytest.raises(ClosedError):
        store.store(note("x"))


def test_built_from_options(tmp_path: Path) -> None:
    with build(LocalOptions(path=Path("notes"), ranking="nexum", b=0.2), tmp_path) as store:
        store.store(note("tea", id="a"))
        assert found(store, "tea") == ["a"]
    assert (tmp_path / "notes" / "cache.db").exists()
    assert not LocalStore(tmp_path).inline
    assert LocalStore().inline

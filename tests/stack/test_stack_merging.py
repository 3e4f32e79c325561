"""From many lists to one: agreement, weights, demotion, copies, order, arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memsheaf.stack import (
    Hit,
    InvalidQuery,
    MemoryRecord,
    MemoryStack,
    Mount,
    Scope,
    UsageError,
    hookimpl,
)
from memsheaf.stack.fusion import DEMOTION, FUSIONS, normalise
from memsheaf.stack.merge import Listing, merge, merge_recent
from memsheaf.stack.relevance import lexical_relevance
from memsheaf.stack.text import same_content_key

MIRA, TOMAS = Scope(user_id="mira"), Scope(user_id="tomas")
DAY = datetime(2026, 1, 1, tzinfo=UTC)
Make = Callable[..., Any]


def record(
    content: str, id: str | None = None, scope: Scope = MIRA, at: datetime = DAY, **fields: Any
) -> MemoryRecord:
    return MemoryRecord.make(
        **{"id": id or content.replace(" ", "-"), "content": content, "scope": scope},
        created_at=at,
        **fields,
    )


def listing(name: str, *records: MemoryRecord, weight: float = 1.0, **hit: Any) -> Listing:
    hits = [Hit(r, float(len(records) - n), **hit) for n, r in enumerate(records)]
    return Listing(name, weight, hits)


TEA, COFFEE, MILK = record("tea a"), record("tea b"), record("tea c")


@pytest.mark.parametrize("fusion", FUSIONS)
@given(scores=st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_every_fusion_falls_from_one_within_0_and_1(fusion: str, scores: list[float]) -> None:
    values = normalise(fusion, sorted(scores, reverse=True))
    assert len(values) == len(scores)
    assert values[:1] == [1.0][: len(scores)]
    assert values == sorted(values, reverse=True)
    assert all(0 <= value <= 1 for value in values)


def test_the_formulas() -> None:
    assert normalise("reciprocal", [9, 8, 7]) == [1.0, 11 / 12, 11 / 13]
    assert normalise("linear", [9, 8]) == [1.0, 0.5]
    assert normalise("minmax", [9.0, 6.0, 5.0]) == [1.0, 0.25, 0.0]
    assert normalise("minmax", [1e308, 0.0, -1e308]) == [1.0, 0.5, 0.0]
    with pytest.raises(InvalidQuery, match="unknown fusion"):
        normalise("magic", [1.0])


@example([1.0, 255.94718655609827, 1.9471865560982735])
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6))
def test_a_hit_that_all_put_first_scores_exactly_1(weights: list[float]) -> None:
    lists = [listing(f"p{n}", TEA, COFFEE, weight=w) for n, w in enumerate(weights)]
    hits = merge("tea", lists)
    assert hits[0].id == TEA.id
    assert hits[0].score == 1.0
    assert len(hits[0].sources) == len(weights)


def test_agreement_counts_and_an_empty_answer_counts_too() -> None:
    agreed = merge("tea", [listing("a", TEA, MILK), listing("b", COFFEE, MILK)])
    assert agreed[0].id == MILK.id
    assert agreed[0].score == 11 / 12
    assert agreed[1].score == 0.5
    alone = merge("tea", [listing("a", TEA), listing("b")])
    assert alone[0].score == 0.5


def test_weights_weigh() -> None:
    hits = merge("tea", [listing("a", TEA, weight=3.0), listing("b", COFFEE)])
    assert [(hit.id, hit.score) for hit in hits] == [(TEA.id, 0.75), (COFFEE.id, 0.25)]


def test_a_hit_without_a_term_of_the_query_keeps_only_a_part() -> None:
    noise = record("weather report")
    hits = merge("tea", [listing("noise", noise), listing("a", COFFEE, TEA)])
    assert [hit.id for hit in hits] == [COFFEE.id, TEA.id, noise.id]
    assert hits[-1].score == pytest.approx(DEMOTION * 0.5)
    assert hits[-1].relevance == 0.0
    assert "no term of the query" in str(hits[-1].explain())
    kept = merge("tea", [listing("noise", noise)], demotion=1.0)
    assert kept[0].score == 1.0


def test_a_provider_s_own_relevance_is_taken_and_saves_a_hit_by_meaning() -> None:
    meant = record("a hot drink")
    hits = merge("tea", [listing("a", meant, relevance=0.7), listing("b", COFFEE)])
    by_id = {hit.id: hit for hit in hits}
    assert by_id[meant.id].relevance == 0.7
    assert by_id[meant.id].score == 0.5
    assert 0 < (by_id[COFFEE.id].relevance or 0) <= 1


@given(st.lists(st.text("ab c", min_size=1, max_size=8).filter(str.strip), min_size=1, max_size=5))
def test_relevance_lies_in_0_and_1_and_is_1_where_all_terms_match(contents: list[str]) -> None:
    pool = [record(content, id=str(n)) for n, content in enumerate(contents)]
    values = lexical_relevance(contents[0], pool)
    assert all(0 <= value <= 1 for value in values)
    assert values[0] == pytest.approx(1.0)


def test_a_term_that_nobody_holds_counts_with_the_highest_idf() -> None:
    pool = [record("tea one"), record("tea two")]
    both, unknown = math.log(1 + 0.5 / 2.5), math.log(1 + 2.5 / 0.5)
    expected = both / (both + unknown)
    assert lexical_relevance("tea zeppelin", pool) == pytest.approx([expected] * 2)


def test_of_two_copies_the_newest_is_shown_and_the_older_is_told_stale() -> None:
    old = record("tea with sugar", id="same")
    new = old.changed({"content": "tea without sugar"})
    for lists in (
        [listing("a", old), listing("b", new)],
        [listing("a", new), listing("b", old)],
    ):
        (hit,) = merge("tea", lists)
        assert hit.record.content == "tea without sugar"
        assert {s.provider: s.stale for s in hit.sources} == {
            lists[0].provider: lists[0].hits[0].record is old,
            lists[1].provider: lists[1].hits[0].record is old,
        }


def test_equal_content_is_one_memory_within_a_scope_only() -> None:
    one = record("Tea  at HOME", id="1")
    two = record("tea at home", id="2")
    other = record("tea at home", id="3", scope=TOMAS)
    hits = merge("tea", [listing("a", one), listing("b", two, other)])
    assert len(hits) == 2
    assert {s.record_id for s in hits[0].sources} == {"1", "2"}
    assert hits[1].record.scope == TOMAS


def test_duplicates_within_one_list_count_once_at_their_best_place() -> None:
    copies = [record("tea at home", id=str(n)) for n in range(3)]
    hits = merge("tea", [listing("a", *copies, COFFEE)])
    assert [(hit.record.content, hit.score) for hit in hits] == [
        ("tea at home", 1.0),
        ("tea b", 11 / 12),
    ]


_WORDS = st.sampled_from(
    ["tea at home", "Tea  at HOME", "milk at home", "at home", "café", "CAFE\u0301"]
)


@given(
    st.lists(
        st.lists(
            st.builds(
                record,
                _WORDS,
                id=st.sampled_from("abcdef"),
                scope=st.sampled_from([MIRA, TOMAS]),
                at=st.sampled_from([DAY, DAY + timedelta(1)]),
            ),
            max_size=6,
            unique_by=lambda made: made.id,
        ),
        max_size=3,
    )
)
def test_copies_are_joined_as_a_plain_grouping_joins_them(lists: list[list[MemoryRecord]]) -> None:
    """By id first, then by the content and scope of the newest copy of each id."""
    hits = merge("tea", [listing(str(n), *records) for n, records in enumerate(lists)])
    newest: dict[str, MemoryRecord] = {}
    for made in [r for records in lists for r in records]:
        if made.id not in newest or newest[made.id].updated_at < made.updated_at:
            newest[made.id] = made
    keys = {i: (r.scope.key(), same_content_key(r.content)) for i, r in newest.items()}
    groups = [{i for i in keys if keys[i] == key} for key in set(keys.values())]
    told = [{source.record_id for source in hit.sources} for hit in hits]
    assert sorted(map(sorted, told)) == sorted(map(sorted, groups))
    for hit in hits:
        places = [(source.provider, source.rank) for source in hit.sources]
        assert places == sorted(places)
        latest = max(newest[i].updated_at for i in {s.record_id for s in hit.sources})
        assert hit.record.updated_at == latest


def test_a_full_copy_under_our_id_is_shown_before_a_foreign_one() -> None:
    ours = record("tea at home", id="ours")
    foreign = record("tea at home", id="n1", at=DAY + timedelta(1))
    lists = [
        Listing("foreign", 1.0, [Hit(foreign, 1.0, native_ids=("n1",))]),
        listing("a", ours),
    ]
    (hit,) = merge("tea", lists)
    assert hit.id == "ours"
    aliased = merge("tea", lists[:1], alias=lambda provider, hit: "ours")
    assert aliased[0].id == "ours"
    assert aliased[0].sources[0].native_ids == ("n1",)


def test_ties_go_by_recency_then_id_and_no_future_outranks_now() -> None:
    now = datetime.now(UTC)
    old = record("tea old", at=DAY)
    fresh = record("tea fresh", at=now - timedelta(hours=1))
    future_b = record("tea z", id="z", at=now + timedelta(days=9_000))
    future_a = record("tea y", id="y", at=now + timedelta(days=1))
    lists = [listing(r.id, r) for r in (old, future_b, fresh, future_a)]
    expected = ["y", "z", "tea-fresh", "tea-old"]
    assert [hit.id for hit in merge("tea", lists)] == expected
    assert [hit.id for hit in merge_recent(lists)] == expected


@given(st.permutations([TEA, COFFEE, MILK]), st.permutations(["a", "b", "c"]))
def test_the_order_does_not_hang_on_who_answered_first(
    order: Sequence[MemoryRecord], names: Sequence[str]
) -> None:
    lists = {name: listing(name, *order) for name in names}
    hits = merge("tea", [lists[name] for name in sorted(lists)])
    again = merge("tea", [lists[name] for name in names])
    assert [hit.id for hit in hits] == [hit.id for hit in again] == [r.id for r in order]


def test_the_explanation_adds_up() -> None:
    lists = [
        listing("a", TEA, MILK, weight=2.0),
        listing("b", MILK, record("snow")),
        listing("c"),
    ]
    for hit in merge("tea", lists, rerank=lambda text, pool: [1.0] * len(pool)):
        tree = hit.explain()
        assert tree.value == hit.score
        keeps = 1.0 if hit.relevance else DEMOTION
        assert math.fsum(p.value for p in tree.parts) / 5.0 * keeps == pytest.approx(hit.score)
        assert {p.description.split(":")[0] for p in tree.parts} == {
            *(s.provider for s in hit.sources),
            "rerank",
        }
        assert str(tree).count("\n") == len(tree.parts)


def test_a_reranker_is_one_more_list_and_never_replaces_the_order() -> None:
    lists = [listing("a", TEA, COFFEE), listing("b", TEA, COFFEE)]

    def against(text: str, pool: Sequence[MemoryRecord]) -> list[float]:
        return [1.0 if r.id == COFFEE.id else 0.0 for r in pool]

    assert [hit.id for hit in merge("tea", lists, rerank=against)] == [COFFEE.id, TEA.id]
    light = merge("tea", lists, rerank=against, rerank_weight=0.1)
    assert [hit.id for hit in light] == [TEA.id, COFFEE.id]


def test_rerank_by_name_in_a_stack(shelf: Make) -> None:
    held = [record("tea and milk and snow"), record("tea for two")]
    with MemoryStack([shelf(records=held)], scope=MIRA) as stack:
        hits = stack.search("tea for two", rerank="bm25")
        assert hits[0].record.content == "tea for two"
        assert "rerank" in str(hits[0].explain())
        with pytest.raises(InvalidQuery, match="rerank"):
            stack.search("tea", rerank="magic")


def test_fusion_and_demotion_are_settings(shelf: Make) -> None:
    held = [record("tea one"), record("tea two")]
    with MemoryStack([shelf(records=held)], scope=MIRA, fusion="linear") as stack:
        assert [hit.score for hit in stack.search("tea")] == [1.0, 0.5]
    with pytest.raises(UsageError, match="fusion"):
        MemoryStack([], fusion="magic")
    with pytest.raises(UsageError, match="unknown setting: colour"):
        MemoryStack([], colour="red")


def test_noise_beside_a_store_costs_the_last_place_at_the_most(shelf: Make) -> None:
    """Of five irrelevant hits only the first gets in, and only at the end of ten."""

    class Noise:
        @hookimpl
        def search(self, text: str, scope: Scope) -> list[Hit]:
            return [Hit(record(f"weather {n}"), 100.0) for n in range(5)]

    held = [record(f"tea number {n}") for n in range(12)]
    with MemoryStack([shelf(records=held)], scope=MIRA) as stack:
        alone = [hit.id for hit in stack.search("tea number 7")]
    with MemoryStack([shelf(records=held), Noise()], scope=MIRA) as stack:
        beside = [hit.id for hit in stack.search("tea number 7")]
    assert beside[:9] == alone[:9]


def test_1b_16_and_17_distinct_records_both_and_equal_ones_once(shelf: Make) -> None:
    """Facts 16 and 17: distinct records of two stores both come, identical content once."""
    one, two = record("elixir pipes"), record("elixir processes")
    stores = [shelf("a", records=[one]), shelf("b", records=[two])]
    with MemoryStack(stores, scope=MIRA) as stack:
        assert {hit.id for hit in stack.search("elixir")} == {one.id, two.id}
    twins = [shelf(n, records=[record("elixir pipes", id=n)]) for n in ("a", "b")]
    with MemoryStack(twins, scope=MIRA) as stack:
        (hit,) = stack.search("elixir")
    assert len(hit.sources) == 2


def test_overfetch_and_the_second_question(shelf: Make) -> None:
    """Where duplicates eat a full list the stack asks once more for double."""
    asked: list[int] = []
    copies = [record("tea at home", id=f"c{n:02}") for n in range(9)]
    others = [record(f"tea {n}", id=f"d{n}") for n in range(5)]

    class Full:
        @hookimpl
        def search(self, text: str, scope: Scope, limit: int) -> list[Hit]:
            asked.append(limit)
            return [Hit(r, 1.0) for r in [*copies, *others][:limit]]

    with MemoryStack([Full()], scope=MIRA) as stack:
        assert len(stack.search("tea", limit=3)) == 3
    assert asked == [9, 18]


def test_a_weight_of_a_mount_reaches_the_fusion(shelf: Make) -> None:
    light, heavy = record("tea light"), record("tea heavy")
    places = [
        Mount(shelf("a", records=[light]), weight=1.0),
        Mount(shelf("b", records=[heavy]), weight=4.0),
    ]
    with MemoryStack(places, scope=MIRA) as stack:
        hits = stack.search("tea")
    assert [(hit.id, hit.score) for hit in hits] == [(heavy.id, 0.8), (light.id, 0.2)]


@pytest.mark.parametrize(
    "rerank", [lambda text, records: [1.0], lambda text, records: 1 / 0, lambda text, records: None]
)
def test_a_reranker_that_fails_is_told_as_such(shelf: Make, rerank: Any) -> None:
    with MemoryStack([shelf()], scope=Scope(user_id="mira")) as stack:
        stack.store_many(["tea at home", "tea at work"])
        with pytest.raises(InvalidQuery, match="rerank"):
            stack.search("tea", rerank=rerank)
        assert len(stack.search("tea")) == 2

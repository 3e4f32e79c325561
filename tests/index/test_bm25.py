"""The index against a naive scorer, after writes in any order."""

import math
import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from memsheaf.index import (
    BM25Index,
    Document,
    Partition,
    bounds,
    head,
    search,
    segment,
    sources,
    store,
)
from memsheaf.index import bm25 as bm25_module


class Naive:
    """BM25 in plain Python, recomputed for every query."""

    def __init__(self, weights: dict[str, float] | None = None) -> None:
        self.docs: dict[str, Document] = {}
        self.weights = weights or {}

    def add(self, document: Document) -> None:
        self.docs.pop(document.id, None)
        self.docs[document.id] = document

    def _counts(self, document: Document) -> dict[str, float]:
        counts: dict[str, float] = {}
        texts = document.fields
        for name, text in ({"": texts} if isinstance(texts, str) else texts).items():
            for word in text.split():
                counts[word] = counts.get(word, 0.0) + self.weights.get(name, 1.0)
        return counts

    def scores(
        self,
        text: str,
        where: Partition = (),
        allow: Callable[[str], bool] = lambda id: True,
        k1: float = 0.9,
        b: float = 0.4,
    ) -> list[tuple[str, float, float]]:
        chosen = {}
        for id, document in self.docs.items():
            own = (*document.partition, None, None, None, None)
            if all(w is None or w == o for w, o in zip(where, own, strict=False)):
                chosen[id] = self._counts(document)
        lengths = {id: sum(counts.values()) for id, counts in chosen.items()}
        mean = sum(lengths.values()) / len(chosen) if chosen else 0.0
        query = Counter(text.split())
        idf = {}
        for word in query:
            df = sum(word in counts for counts in chosen.values())
            idf[word] = math.log(1 + (len(chosen) - df + 0.5) / (df + 0.5))
        rows = []
        for id, counts in chosen.items():
            if allow(id) and any(word in counts for word in query):
                norm = k1 * (1 - b + b * lengths[id] / mean)
                score = sum(
                    times * idf[word] * counts[word] * (k1 + 1) / (counts[word] + norm)
                    for word, times in query.items()
                    if word in counts
                )
                share = sum(idf[w] for w in query if w in counts) / sum(idf.values())
                rows.append((id, score * self.docs[id].weight, share))
        return sorted(rows, key=lambda row: (-row[1], row[0]))


def check(index: BM25Index, naive: Naive, text: str, limit: int = 10, **options: Any) -> None:
    found = index.search(text, limit, **options)
    every = naive.scores(text, **{k: v for k, v in options.items() if v is not None})
    assert [h.score for h in found] == pytest.approx([s for _, s, _ in every[:limit]], rel=1e-9)
    truth = {id: (score, share) for id, score, share in every}
    assert len({h.id for h in found}) == len(found)
    for hit in found:
        assert truth[hit.id] == pytest.approx((hit.score, hit.relevance), rel=1e-9)


def _look_up_always(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (search, sources, segment):
        monkeypatch.setattr(module, "LARGE", 1)


@pytest.fixture(params=["defaults", "columns", "no columns"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "defaults":  # tiny segments, small groups
        monkeypatch.setattr(bm25_module, "DOCUMENTS", 12)
        monkeypatch.setattr(store, "_PACE", 1)
        monkeypatch.setattr(head, "DOCUMENTS", 5)
        _look_up_always(monkeypatch)
        monkeypatch.setattr(bounds, "GUESS", 1)
        monkeypatch.setattr(bounds, "MANY", 2)
    if request.param == "no columns":
        monkeypatch.setattr(segment, "COLUMNS", 0)


PARTITIONS: list[Partition] = [(), ("u1",), ("u2", "a"), ("u1", "a"), ("u2", None, None, "s")]
WHERE: list[Partition] = [
    (),
    (),
    ("u1",),
    (None, "a"),
    ("u2",),
    ("nobody",),
    (None, None, None, "s"),
]


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("seed", range(8))
def test_equals_the_naive_scorer_after_writes_in_any_order(seed: int, tmp_path: Any) -> None:
    rng = random.Random(seed)
    weights = rng.choice([{}, {"tags": 2.0}, {"tags": 0.3}])
    index, naive = BM25Index("plain", field_weights=weights), Naive(weights)
    words = [f"w{i}" for i in range(rng.choice([5, 40]))]

    def text() -> str:
        rates = [1 / (i + 1) for i in range(len(words))]
        return " ".join(rng.choices(words, rates, k=rng.randint(0, 12)))

    def document() -> Document:
        fields: Any = {"content": text(), "tags": text()} if weights else text()
        weight = rng.choice([1.0, 2.5]) if seed % 3 == 0 else 1.0
        return Document(f"d{rng.randint(0, 150)}", fields, rng.choice(PARTITIONS), weight)

    for step in range(120):
        action = rng.random()
        if action < 0.35:
            d = document()
            index.add(d.id, d.fields, partition=d.partition, weight=d.weight)
            naive.add(d)
        elif action < 0.45:
            batch = [document() for _ in range(rng.randint(1, 60))]
            index.add_many(batch)
            for d in batch:
                naive.add(d)
        elif action < 0.6:
            id = f"d{rng.randint(0, 150)}"
            assert index.remove(id) == (naive.docs.pop(id, None) is not None)
        elif action < 0.64:
            index.save(tmp_path / "saved", sequence=step)
            index = BM25Index.load(tmp_path / "saved", analyzer="plain")
            assert index.sequence == step
        else:
            allow = rng.choice([None, None, lambda id: id.endswith("1")])
            options = rng.choice([{}, {"k1": 1.5, "b": 0.75}, {"b": 0.0}, {"k1": 0.0}])
            limit = rng.choice([1, 3, 10, 500])
            where = rng.choice(WHERE)
            check(index, naive, text(), limit, where=where, allow=allow, **options)
    assert len(index) == len(naive.docs)
    assert list(index.ids()) == list(naive.docs)


TEXTS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=8).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), TEXTS | st.none()), max_size=40), TEXTS)
def test_adds_replacements_and_removals(writes: list[tuple[int, str | None]], query: str) -> None:
    index, naive = BM25Index("plain"), Naive()
    for number, text in writes:
        if text is None:
            assert index.remove(str(number)) == (naive.docs.pop(str(number), None) is not None)
        else:
            index.add(str(number), text)
            naive.add(Document(str(number), text))
    check(index, naive, query)


def test_equals_rank_bm25_with_our_idf() -> None:
    rng = random.Random(5)
    texts = [" ".join(rng.choices("abcdefgh", k=rng.randint(1, 9))) for _ in range(60)]
    peer = BM25Okapi([t.split() for t in texts], k1=1.5, b=0.75)
    for word in peer.idf:
        df = sum(word in t.split() for t in texts)
        peer.idf[word] = math.log(1 + (60 - df + 0.5) / (df + 0.5))
    index = BM25Index("plain", k1=1.5, b=0.75)
    index.add_many(Document(str(i), t) for i, t in enumerate(texts))
    expected = peer.get_scores(list("acch"))
    for hit in index.search("a c c h", 60):
        assert hit.score == pytest.approx(expected[int(hit.id)], rel=1e-9)


@pytest.mark.usefixtures("sizes")
def test_many_repetitions_and_long_texts_are_exact() -> None:
    rng = random.Random(1)
    index, naive = BM25Index("plain"), Naive()
    for i in range(60):
        text = "a " * rng.choice([1, 40, 1500]) + "b " * rng.choice([0, 1, 300]) + "c " * i * 9
        index.add(str(i), text)
        naive.add(Document(str(i), text))
    for query in ("a", "b c", "a b c", "a a b"):
        check(index, naive, query, 5)


def test_ties_go_by_id_and_any_string_is_a_query() -> None:
    index = BM25Index("plain")
    index.add_many(Document(id, "same words") for id in "cabd")
    assert [h.id for h in index.search("words", 3)] == ["a", "b", "c"]
    for text in ("", '"', "AND OR NOT", "(", "\0", "\ud800", "a:b*", "unknown"):
        assert index.search(text) == []


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("few", [0, 1_024])
def test_ids_masks_and_tests_filter_alike(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25_module, "_FEW", few)
    rng = random.Random(3)
    index, naive = BM25Index("plain"), Naive()
    for i in range(150):
        d = Document(f"d{i % 120}", " ".join(rng.choices("abcdefgh", k=6)), rng.choice(PARTITIONS))
        index.add(d.id, d.fields, partition=d.partition)
        naive.add(d)
    for id in ("d3", "d77"):
        index.remove(id)
        del naive.docs[id]
    chosen = {f"d{i}" for i in range(0, 120, 3)}
    mask = np.array([id in chosen for id in index.ids()])
    for where in WHERE:
        expected = naive.scores("a b c", where, chosen.__contains__)
        for allow in (chosen, list(chosen), chosen.__contains__, mask):
            hits = index.search("a b c", 10, where=where, allow=allow)
            assert [(h.score, h.relevance) for h in hits] == [
                pytest.approx(row[1:], rel=1e-9) for row in expected[:10]
            ]
            matches = index.scores("a b c", where=where, allow=allow)
            assert sorted(matches.ids()) == sorted(id for id, _, _ in expected)
    assert index.search("a", allow=[]) == []
    with pytest.raises(ValueError, match="order of ids"):
        index.search("a", allow=mask[1:])


def test_a_test_on_ids_is_asked_only_about_the_best() -> None:
    index = BM25Index("plain")
    index.add_many(Document(f"d{i}", "same " + "other " * (i % 100)) for i in range(5_000))
    asked: list[str] = []

    def any_of(id: str) -> bool:
        asked.append(id)
        return True

    hits = index.search("same", allow=lambda id: id in ("d17", "d4099"))
    assert [hit.id for hit in hits] == ["d17", "d4099"]
    assert len(index.search("same", 3, allow=any_of)) == 3
    assert len(asked) < 2_500


def test_terms_that_many_hold_are_looked_up_for_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    _look_up_always(monkeypatch)
    rng = random.Random(2)
    index, naive = BM25Index("plain"), Naive()
    texts = [
        " ".join(
            [f"rare{rng.randint(0, 60)}", f"rare{rng.randint(0, 60)}", *rng.choices("abcd", k=3)]
        )
        for _ in range(3_000)
    ]
    documents = [
        Document(f"d{i}", text, weight=rng.choice([1.0, 1.2])) for i, text in enumerate(texts)
    ]
    index.add_many(documents)
    for d in documents:
        naive.add(d)
    for i in range(0, 3_000, 40):
        index.remove(f"d{i}")
        del naive.docs[f"d{i}"]
    for query in ("rare1 rare2 a", "rare7 b", "rare5 rare9 rare11 c d", "a b"):
        check(index, naive, query)


@pytest.mark.parametrize("room", [0, 600, 1 << 20])
def test_columns_take_no_more_room_than_they_may(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _look_up_always(monkeypatch)
    monkeypatch.setattr(segment, "COLUMNS", room)
    rng = random.Random(6)
    index, naive = BM25Index("plain"), Naive()
    documents = [Document(f"d{i}", " ".join(rng.choices("abcdef", k=5))) for i in range(100)]
    for d in documents:
        naive.add(d)
    index.add_many(documents)
    index._store.settle()
    for k1, b in ((0.9, 0.4), (2.0, 0.4), (0.9, 0.9), (0.9, 0.4)):
        check(index, naive, "a b c d e", k1=k1, b=b)
        (part,) = index._store.segments
        assert len(part.columns) == {0: 0, 600: 3}.get(room, len(part.columns))
    assert room < 1_000 or len(part.columns) == 5


def test_a_query_of_thousands_of_words() -> None:
    index, naive = BM25Index("plain"), Naive()
    for i in range(300):
        d = Document(f"d{i}", " ".join(f"w{i * 7 + k}" for k in range(30)))
        index.add(d.id, d.fields)
        naive.add(d)
    assert len(index.search(" ".join(f"w{k}" for k in range(6_000)), 5)) == 5
    monstrous = " ".join(f"w{k}" for k in range(6_000) if k % 3)
    check(index, naive, monstrous, 5)


def test_refuses_bad_values_before_writing() -> None:
    index = BM25Index("plain", partition_fields=1)
    with pytest.raises(ValueError, match="weight"):
        index.add("a", "text", weight=0)
    with pytest.raises(ValueError, match="partition"):
        index.add("a", "text", partition=("u", "v"))
    with pytest.raises(ValueError, match="k1"):
        BM25Index("plain", k1=-1)
    assert len(index) == 0
    assert "a" not in index


def test_fuzzy_stands_in_only_for_unknown_words() -> None:
    index = BM25Index("plain")
    index.add("a", "memory sheaf", partition=("u",))
    index.add("b", "memori lane", partition=("v",))
    assert index.search("memroy", where=("u",)) == []
    assert [h.id for h in index.search("memroy", where=("u",), fuzzy=True)] == ["a"]
    assert [h.id for h in index.search("memory", fuzzy=True)] == ["a"]
    assert index.search("memroy", fuzzy=True)[0].relevance < 1


def test_prefix_matches_longer_words() -> None:
    index = BM25Index("plain")
    index.add("a", "configuration")
    index.add("b", "config")
    assert [h.id for h in index.search("config")] == ["b"]
    assert {h.id for h in index.search("config", prefix=True)} == {"a", "b"}
    assert [h.id for h in index.search("confi", prefix=True)] == ["b", "a"]


def test_phrase_raises_those_that_hold_the_words_in_sequence() -> None:
    index = BM25Index("plain")
    for i in range(30):
        index.add(f"a{i:02}", "york new hotel")
    index.add("z", "new york hotel")
    assert index.search("new york", 1)[0].id == "a00"
    hit = index.search("new york", 1, phrase=0.5)[0]
    assert hit.id == "z"
    assert hit.score == pytest.approx(1.5 * index.search("new york", 1)[0].score)


def test_a_phrase_lifts_a_document_over_many_better_ones() -> None:
    index = BM25Index("plain")
    index.add_many(Document(f"a{i:02}", "york new " + "new " * (i % 3)) for i in range(60))
    index.add("z", "new york and several other words that lengthen the text")
    every = {hit.id: hit.score for hit in index.search("new york", 100)}
    assert every["z"] == min(every.values())
    assert index.search("new york", 1, phrase=3.0)[0].id == "z"


def test_fuzzy_compares_only_words_that_the_selection_lacks() -> None:
    index = BM25Index("plain")
    index.add("a", "memory", partition=("u",))
    index.add("b", "memori", partition=("v",))
    assert [h.id for h in index.search("memory", where=("v",), fuzzy=True)] == ["b"]
    assert [h.id for h in index.search("memory", where=("u",), fuzzy=True)] == ["a"]
    assert [h.id for h in index.search("memory", fuzzy=True)] == ["a"]


def test_matches_know_their_place_in_their_partition() -> None:
    index = BM25Index("plain")
    for session in ("s1", "s2"):
        for turn, text in enumerate(["hello there", "what now", "hello again"]):
            index.add(f"{session}:{turn}", text, partition=("u", None, None, session))
    index.remove("s1:1")
    found = index.scores("hello", where=("u",))
    rows = zip(found.ids(), found.group.tolist(), found.position.tolist(), strict=True)
    places = {id: (found.partitions[g][3], p, found.size(g)) for id, g, p in rows}
    assert places["s1:2"] == ("s1", 1, 2)
    assert places["s2:2"] == ("s2", 2, 3)
    s2 = [p[3] for p in found.partitions].index("s2")
    assert found.id(s2, 1) == "s2:1"
    naive = Naive()
    naive.add(Document("s1", "hello there hello again"))
    naive.add(Document("s2", "hello there what now hello again"))
    expected = {id: score for id, score, _ in naive.scores("hello")}
    scores = found.group_scores().tolist()
    for name, score in zip([p[3] for p in found.partitions], scores, strict=True):
        assert score == pytest.approx(expected[str(name)])


@pytest.mark.usefixtures("sizes")
def test_readers_always_find_what_is_being_replaced() -> None:
    index = BM25Index("plain")
    index.add_many(Document(f"d{i}", f"common word{i}") for i in range(50))
    failures: list[object] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                found = [hit.id for hit in index.search("common", 100)]
                if len(found) != 50 or len(set(found)) != 50:
                    failures.append(found)
        except Exception as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for round in range(300):
        index.add(f"d{round % 50}", f"common word{round}")
    stop.set()
    for reader in readers:
        reader.join()
    assert failures == []

"""Merged segments are what a build from the living documents gives, whatever the steps."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from memsheaf.index import BM25Index, Document, Partition, merge
from memsheaf.index import bm25 as bm25_module
from memsheaf.index.batch import analyze, take_apart
from memsheaf.index.merge import merge as steps
from memsheaf.index.segment import Segment, build
from memsheaf.index.vocabulary import Vocabulary

PARTITIONS: list[Partition] = [(), ("u1",), ("u1", "a"), ("u2", None, None, "s"), ("u3",)]


@pytest.fixture(params=["one step each", "tiny steps"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "tiny steps":
        monkeypatch.setattr(merge, "DOCUMENTS", 3)
        monkeypatch.setattr(merge, "POSTINGS", 8)
        monkeypatch.setattr(merge, "PARTITIONS", 2)


def documents(rng: random.Random, first: int, count: int) -> list[Document]:
    made = []
    for number in range(first, first + count):
        words = [f"w{int(rng.expovariate(0.2))}" for _ in range(rng.randint(0, 9))]
        words += ["often"] * rng.choice([1, 2, 700])
        fields = {"content": " ".join(words), "tags": rng.choice(["", "w1 w2", "red"])}
        partition = rng.choice(PARTITIONS) if first % 2 else ("u1",)
        made.append(Document(f"id{number}", fields, partition, rng.choice([1.0, 2.0])))
    return made


def content(segment: Segment) -> dict[str, Any]:
    return {
        **{name: array.tolist() for name, array in segment.arrays.items()},
        "ids": [segment.ids[n] for n in range(len(segment))],
        "partitions": segment.partitions,
        "first": segment.first.tolist(),
    }


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weights", [{}, {"tags": 0.3}])
def test_equals_a_build_of_the_living(seed: int, weights: dict[str, float]) -> None:
    rng = random.Random(seed)
    vocabulary = Vocabulary(lambda token: (token,))

    def made(some: list[Document], numbers: list[int]) -> Segment:
        columns = take_apart(some, 4)
        batch = analyze(columns, lambda texts: vocabulary.number(map(str.split, texts)), weights)
        return build(batch, np.array(numbers, np.int64))

    first, sources, living, numbers = seed, [], [], []
    for _ in range(rng.randint(1, 5)):
        some = documents(rng, first, rng.choice([1, 7, 40]))
        source = made(some, list(range(first, first + len(some))))
        dead = set(rng.sample(range(len(some)), rng.choice([0, 0, len(some) // 3, len(some)])))
        for n, document in enumerate(some):
            if n in dead:
                source.kill(source.ids.find(document.id)[0], 1)
            else:
                living.append(document)
                numbers.append(first + n)
        sources.append(source)
        first += len(some)
    *waits, done = steps(sources, 5)
    assert set(waits) == {None}
    assert done is not None
    merged, maps = done
    for source, target in zip(sources, maps, strict=True):
        for n, place in enumerate(target.tolist()):
            assert (place < 0) == (source.died is not None and source.died[n] == 1)
            assert place < 0 or merged.ids[place] == source.ids[n]
    assert all(place in merged.ids.find(merged.ids[place]) for place in range(len(merged)))
    assert content(merged) == content(made(living, numbers))
    if living:
        longest, fractional, smallest = made(living, numbers).rounding
        assert merged.rounding[0] >= longest
        assert merged.rounding[1] >= fractional
        assert merged.rounding[2] <= smallest


def test_removals_during_a_merge_hold_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25_module, "DOCUMENTS", 10)
    index = BM25Index("plain")
    index.add_many(Document(f"a{n}", f"common own{n}") for n in range(50))
    with index._writing:
        columns = take_apart([Document(f"b{n}", "common") for n in range(50)], 4)
        index._store.append(build(index._analyze(columns), np.arange(50)))
        assert index._store.step()  # begun
    assert index.remove("a7")
    index.add("b9", "replaced")
    index.compact()
    assert "a7" not in index
    assert [hit.id for hit in index.search("replaced")] == ["b9"]
    assert {hit.id for hit in index.search("common", 200)} == {
        *(f"a{n}" for n in range(50) if n != 7),
        *(f"b{n}" for n in range(50) if n != 9),
    }
    assert index.search("own7") == []


def test_below_some_hundred_thousand_documents_there_are_two_segments_at_rest() -> None:
    index = BM25Index("plain")
    for start in range(0, 50_000, 2_500):
        index.add_many(Document(f"d{n}", f"text number{n}") for n in range(start, start + 2_500))
        assert len(index._store.segments) <= 2
    for n in range(50_000, 53_000):
        index.add(f"d{n}", f"text number{n}")
        assert len(index._store.segments) <= 3
    assert len(index) == 53_000
    assert [hit.id for hit in index.search("number51999")] == ["d51999"]


def test_each_chunk_of_a_generator_is_visible_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25_module, "_CHUNK", 50)
    monkeypatch.setattr(bm25_module, "DOCUMENTS", 10)
    monkeypatch.setattr(bm25_module, "_FAN_IN", 3)
    index = BM25Index("plain")
    index.add("d3", "old")
    seen = []

    def made(broken: bool) -> Iterator[Document]:
        for n in range(500):
            if n % 50 == 0:
                seen.append(len(index.search("common", 1_000)))
            if broken and n == 220:
                raise OSError("the source is gone")
            yield Document(f"d{n}", f"common own{n}")

    with pytest.raises(OSError, match="the source is gone"):
        index.add_many(made(broken=True))
    assert seen == [0, 50, 100, 150, 200]
    assert len(index) == 200
    assert index.search("old") == []
    index.add_many(made(broken=False))
    assert seen[5:] == [200] * 5 + [250, 300, 350, 400, 450]
    assert len(index) == 500
    assert len(index._store.segments) <= 2
    assert list(index.ids()) == [f"d{n}" for n in range(500)]


def test_removals_alone_give_room_back() -> None:
    index = BM25Index("plain")
    index.add_many(Document(f"d{n}", f"text number{n}") for n in range(4_000))
    for n in range(3_000):
        assert index.remove(f"d{n}")
    assert sum(len(segment) for segment in index._store.segments) < 2_000
    assert len(index.search("text", 5_000)) == 1_000

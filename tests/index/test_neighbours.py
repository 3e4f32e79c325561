"""Words near a word, against a comparison of each term by the textbook."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.index import BM25Index, Document, bm25, queries
from memsheaf.index.neighbours import Neighbours
from memsheaf.index.vocabulary import Vocabulary


def edits(one: str, two: str) -> int:
    """Optimal string alignment, as in the textbook."""
    rows: list[list[int]] = [[*range(len(two) + 1)]]
    for i in range(1, len(one) + 1):
        row = [i]
        for j in range(1, len(two) + 1):
            cost = one[i - 1] != two[j - 1]
            best = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + cost)
            if i > 1 and j > 1 and one[i - 1] == two[j - 2] and one[i - 2] == two[j - 1]:
                best = min(best, rows[i - 2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def naive(word: str, terms: list[str]) -> list[tuple[int, float]]:
    most = 0 if len(word) < 3 else 1 if len(word) < 8 else 2
    found = [(n, edits(word, term)) for n, term in enumerate(terms)]
    return [(n, 1 - d / len(word)) for n, d in found if most and d <= most]


def vocabulary(terms: list[str]) -> Vocabulary:
    made = Vocabulary(lambda token: (token,))
    made.number([terms])
    return made


LETTERS = st.text("abcdé", max_size=10)


@settings(max_examples=60, deadline=None)
@given(st.lists(LETTERS, max_size=12, unique=True), LETTERS, st.data())
def test_similar_and_starting_equal_the_naive(
    terms: list[str], word: str, data: st.DataObject
) -> None:
    terms = [term for term in terms if term]
    word = data.draw(st.sampled_from([word, *terms]))
    if word and data.draw(st.booleans()):  # close to a term
        at = data.draw(st.integers(0, len(word) - 1))
        swapped = word[:at] + word[at : at + 2][::-1] + word[at + 2 :]
        word = data.draw(st.sampled_from([word[:at] + word[at + 1 :], swapped, word + "a"]))
    held, near = vocabulary(terms[: len(terms) // 2]), Neighbours()
    near.update(held)
    for size in (len(terms) // 2, len(terms)):
        held.number([terms[:size]])
        near.update(held)
        assert sorted(near.similar(word)) == naive(word, terms[:size])
        begun = [
            (n, len(word) / len(term))
            for n, term in enumerate(terms[:size])
            if word and term.startswith(word) and term != word
        ]
        assert near.starting(word) == begun


@pytest.mark.parametrize("length", [3, 7, 8, 63, 64, 65, 128])
def test_words_of_any_length(length: int) -> None:
    rng = random.Random(length)
    word = "".join(rng.choices("abcdefgh", k=length))
    terms = {word[1:], word[:-1], word + "x", "x" + word, word[:-2], word + "xy"}
    terms.add(
        word[: length // 2] + word[length // 2 : length // 2 + 2][::-1] + word[length // 2 + 2 :]
    )
    terms |= {"".join(rng.choices("abcdefgh", k=length)) for _ in range(20)}
    ordered = sorted(terms)
    near = Neighbours()
    near.update(vocabulary(ordered))
    assert sorted(near.similar(word)) == naive(word, ordered)


def test_terms_of_a_saved_index_are_compared_too(tmp_path: object) -> None:
    index = BM25Index("plain")
    index.add("a", "memory zürich 東京")
    index.save(str(tmp_path))
    index = BM25Index.load(str(tmp_path), analyzer="plain")
    index.add("b", "memori")
    found = {hit.id: hit.score for hit in index.search("memorz", fuzzy=True)}
    assert found.keys() == {"a", "b"}
    assert [hit.id for hit in index.search("zuerich", fuzzy=True)] == ["a"]
    assert [hit.id for hit in index.search("zur", prefix=True)] == ["a"]


def test_an_identifier_with_a_known_part_stands_for_itself() -> None:
    index = BM25Index("plain")
    index.add("a", "ticket KRT-513")
    index.add("b", "ticket KRT 512")
    assert [hit.id for hit in index.search("KRT-512", fuzzy=True)] == ["b", "a"]
    assert index.search("QRS-599", fuzzy=True) == []
    assert {hit.id for hit in index.search("KRX-51x", fuzzy=True)} == {"a", "b"}


def test_the_nearest_terms_are_taken_where_there_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queries, "VARIANTS", 2)
    index = BM25Index("plain")
    for n, word in enumerate(["elephanto", "elephxntx", "elephantx", "elephantx"]):
        index.add(str(n), word)
    found = {hit.id for hit in index.search("elephant", fuzzy=True)}
    assert found == {"0", "2", "3"}
    assert np.isfinite([hit.score for hit in index.search("elephant", fuzzy=True)]).all()


def test_what_others_wrote_before_does_not_choose_among_equals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queries, "VARIANTS", 2)
    words = ["elephanta", "elephantb", "elephantc", "elephantd"]
    alone, shared = BM25Index("plain"), BM25Index("plain")
    for n, word in enumerate(reversed(words)):
        shared.add(f"other{n}", word, partition=("v",))
    for index in (alone, shared):
        for word in words:
            index.add(word, word, partition=("u",))
    for index in (alone, shared):
        found = index.search("elephant", where=("u",), fuzzy=True)
        assert [hit.id for hit in found] == ["elephanta", "elephantb"]


@pytest.mark.parametrize("seed", range(3))
def test_a_partition_is_searched_as_if_it_were_alone(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bm25, "DOCUMENTS", 40)
    rng = random.Random(seed)
    users = ["u1", "u2", "u3", "u4"]
    shared, alone = BM25Index("plain"), {user: BM25Index("plain") for user in users}
    for start in range(0, 600, 50):
        some = [
            Document(
                f"d{n}",
                " ".join("elephant"[: rng.randint(3, 8)] + rng.choice("abcd") for _ in range(3)),
                (rng.choice(users), rng.choice(["a", None])),
            )
            for n in range(start, start + rng.choice([5, 50]))
        ]
        shared.add_many(some)
        for document in some:
            alone[str(document.partition[0])].add_many([document])
    for user in users:
        for query in ["elephant", "elephanz elep", "elephxnta eleb", "elephantc nothing"]:
            found = shared.search(query, 20, where=(user,), fuzzy=True)
            expected = alone[user].search(query, 20, fuzzy=True)
            assert [h.id for h in found] == [h.id for h in expected]
            assert np.allclose([h.score for h in found], [h.score for h in expected], rtol=1e-12)
    masked = shared.search("elephanz", 20, where=(None, "a"), fuzzy=True)
    assert masked
    assert all(hit.relevance < 1 for hit in masked)

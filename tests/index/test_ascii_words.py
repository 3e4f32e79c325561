"""Words numbered in bulk get the numbers that they get one by one."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.index import BM25Index, Document, ascii_words, get_analyzer
from memsheaf.index.ascii_words import AsciiWords
from memsheaf.index.vocabulary import Vocabulary

ENGLISH = get_analyzer("english")
WORDS = st.sampled_from(
    [
        *("fox", "Foxes,", "pre-commit", "KRT-512", "!!!", "\0", "\x7f", "\x85", "été", "東京"),
        *("a" * 16, "a" * 17, "a" * 200, "x" * 8, "x" * 9, "x" * 15),
        "tab\tnew\nline\x1c\x1d\x1e\x1f\x0b\x0c\r",
    ]
)
TEXTS = st.lists(
    st.lists(WORDS, max_size=6).map(" ".join) | st.text(max_size=12) | st.text("ab \n", max_size=9),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_numbers_are_those_of_the_vocabulary(batches: list[list[str]]) -> None:
    one, other = Vocabulary(ENGLISH.expand), Vocabulary(ENGLISH.expand)
    words = AsciiWords(one, ENGLISH.tokenize)
    for texts in batches:
        if texts:
            numbers = words.number(texts).tolist()
            expected = other.number(map(ENGLISH.tokenize, texts)).tolist()
            assert [n < 0 or one.text(n) for n in numbers] == [
                n < 0 or other.text(n) for n in expected
            ]


@pytest.mark.parametrize("slots", [4, 16, 1 << 12])
def test_a_full_or_crowded_table_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    monkeypatch.setattr(ascii_words, "SLOTS", slots)
    rng = random.Random(slots)
    held = Vocabulary(lambda token: (token,))
    words = AsciiWords(held, str.split)
    for _ in range(30):
        texts = [
            " ".join(f"w{int(rng.expovariate(0.02))}" for _ in range(rng.randint(0, 9)))
            for _ in range(40)
        ]
        found = [held.text(n) for n in words.number(texts).tolist() if n >= 0]
        assert found == " ".join(texts).split()


def test_an_index_built_in_bulk_equals_one_built_singly() -> None:
    rng = random.Random(3)
    vocabulary = [
        "Foxes",
        "pre-commit",
        "KRT-512",
        "it's",
        "été",
        "l'été",
        "東京",
        "jumping",
        "C++",
    ]
    vocabulary += [f"word{n}ing" for n in range(300)]
    documents = [
        Document(f"d{n}", {"content": " ".join(rng.choices(vocabulary, k=9)), "tags": "red"})
        for n in range(2_500)
    ]
    bulk, single = BM25Index("english"), BM25Index("english")
    bulk.add_many(documents)
    for document in documents:
        single.add(document.id, document.fields)
    for query in ["fox", "pre-commit krt", "ete 東京 red", "word7 word99", "c++ jump"]:
        found, expected = bulk.search(query, 50), single.search(query, 50)
        assert [hit.id for hit in found] == [hit.id for hit in expected]
        assert np.allclose([h.score for h in found], [h.score for h in expected], rtol=1e-12)

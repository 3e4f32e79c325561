"""Packed strings: look-up, and what two lists share."""

from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.index.strings import Strings

TEXTS = st.lists(st.text("ab\udc80é", max_size=3) | st.text(max_size=4), max_size=30)


@given(TEXTS, TEXTS)
@settings(max_examples=100, deadline=None)
def test_what_two_lists_share(mine: list[str], theirs: list[str]) -> None:
    own, other = Strings.pack(mine), Strings.pack(theirs)
    shared = own.shared(other).tolist()
    assert {mine[place] for place in shared} == set(mine) & set(theirs)
    assert set(shared) == {n for n, text in enumerate(mine) if text in theirs}


@given(TEXTS)
@settings(max_examples=50, deadline=None)
def test_strings_are_found_at_all_their_places(texts: list[str]) -> None:
    packed = Strings.pack(texts)
    assert [packed[n] for n in range(len(packed))] == texts == packed.texts()
    for text in texts:
        assert sorted(packed.find(text)) == [n for n, own in enumerate(texts) if own == text]
    assert packed.find("absent from all") == []

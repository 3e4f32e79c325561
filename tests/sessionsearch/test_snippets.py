"""Snippets of hostile, long and foreign text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.sessionsearch.snippets import snippet


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("We hid the cello\n\tin the hall.", "cellos", "We hid the «cello» in the hall."),
        ("KRT-512: rotate", "krt-512", "«KRT-512»: rotate"),
        ("see /etc/cello.toml now", "cello", "see /etc/«cello».toml now"),
        ("the user_name field", "name", "the user_«name» field"),
        ("a (cello) and 'viola'!", "cello viola", "a («cello») and '«viola»'!"),
        ("nothing here", "zither", "nothing here"),
        ("", "zither", ""),
        ("the cello", "", "the cello"),
        ("say «cello» twice", "cello", "say <«cello»> twice"),
        ("\x1b[31mred cello\x1b[0m\x07 \x1b]0;title\x07end", "cello", "red «cello» end"),
        ("a\u202ecello\u2066\u200b\x00b", "cello", "a «cello» b"),
        ("l\u2019été à Nîmes", "nimes", "l\u2019été à «Nîmes»"),
        ("東京の天気はどう", "天気", "東京の«天気»はどう"),
        ("ผมชอบกาแฟดำ", "กาแฟ", "ผมชอบ«กาแฟ»ดำ"),
        ("🚀 launch", "🚀", "«🚀» launch"),
    ],
)
def test_marks(text: str, query: str, expected: str) -> None:
    assert snippet(text, query) == expected


def test_the_window_holds_the_most_words_of_the_query() -> None:
    text = "cello " + "filler " * 200 + "the viola and the cello together " + "more " * 200
    line = snippet(text, "viola cello", 80)
    assert "«viola» and the «cello» together" in line
    assert line.startswith("… ")
    assert line.endswith(" …")
    assert len(line) < 110


def test_one_huge_word_and_a_huge_text_stay_short() -> None:
    assert len(snippet("a" * 1_000_000, "a" * 1_000_000)) < 400
    assert len(snippet("x" * 5000 + " cello", "cello")) < 600
    assert len(snippet("word " * 300_000, "word", 100)) < 200


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200), st.text(max_size=40))
def test_any_text_gives_one_printable_line(text: str, query: str) -> None:
    line = snippet(text, query)
    assert not any(unicodedata.category(c)[0] == "C" for c in line if c != "\u200d")
    assert not {"\n", "\r", "\u2028", "\u2029"} & set(line)
    assert line.count("«") == line.count("»")

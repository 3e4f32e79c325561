# ruff: noqa: RUF001  (look-alike letters are the subject)
"""What the analyzers find, by the kind of text."""

import random
import unicodedata

import pytest
import snowballstemmer
from hypothesis import given, settings
from hypothesis import strategies as st
from snowballstemmer.english_stemmer import (  # type: ignore[import-untyped]
    EnglishStemmer,
)

from memsheaf.index import TextAnalyzer, get_analyzer, register_analyzer, terms
from memsheaf.index.analysis import MAX_TERM
from memsheaf.index.scripts import fold, normalize

ENGLISH = get_analyzer("english")
PLAIN = get_analyzer("plain")

PIECES = [
    *("word", "Words", "CamelCase", "KRT-512", "C++", "été", "e\u0301te\u0301", "l’été", "東京"),
    *("が", "か\u3099", "กาแฟ", "ดำ", "हिन्दी", "كِتاب", "שָׁלוֹם", "🚀", "👩\u200d💻", "👍🏽", "🇩🇪"),
    *("❤\ufe0f", "\x00", "\ud800", "\u200b", "_", "__", "'", ".", "-", "/", "::", "ﷺ", "ﬁ", "Å"),
    *("İ", "ẞ", "ς", "™", "\u0301", "ㅎㅏㄴ", "ｶﾞ", "①", "\u2028", " "),
]
texts = st.one_of(
    st.text(st.characters(), max_size=40),
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
)


def found(query: str, text: str) -> bool:
    return bool(set(terms(ENGLISH, query)) & set(terms(ENGLISH, text)))


def found_whole(query: str, text: str) -> bool:
    return set(terms(ENGLISH, query)) <= set(terms(ENGLISH, text)) and found(query, text)


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("running", ["run"]),
        ("AI", ["ai"]),
        ("R2", ["r2"]),
        ("C++", ["c++", "c"]),
        ("C++17", ["c++17", "c++", "c", "17"]),
        ("C#,", ["c#", "c"]),
        (".NET", [".net", "net"]),
        ("node.js", ["node.js", "node", "js"]),
        ("pre-commit", ["pre-commit", "pre", "commit"]),
        ("(KRT-512)", ["krt-512", "krt", "512"]),
        ("-KRT", ["krt"]),
        ("foo_bar", ["foo_bar", "foo", "bar"]),
        ("__init__", ["__init__", "init"]),
        ("v1.2.3.", ["v1.2.3", "v1", "2", "3"]),
        ("user@example.org", ["user@example.org", "user", "example.org", "exampl", "org"]),
        ("--fail-on-warn", ["fail-on-warn", "fail", "on", "warn"]),
        ("std::map", ["std::map", "std", "map"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("src/app.py:12", ["src/app.py:12", "src", "app.py", "app", "py", "12"]),
        ("https://a.io/b?q=1", ["https://a.io/b?q=1", "https", "a.io", "a", "io", "b", "q", "1"]),
        (r"C:\tmp", [r"c:\tmp", "c", "tmp"]),
        ("Zoë's", ["zoe"]),
        ("don’t", ["don't", "do"]),
        ("we'll", ["we'll", "we"]),
        ("l’été", ["l'ete", "l", "ete"]),
        ("O'Reilly's", ["o'reilly", "o", "reilli"]),
        ("2024-05-01T10:30", ["2024-05-01t10:30", "2024-05-01", "2024", "05", "01", "10", "30"]),
        ("東京タワー", ["東", "東京", "京", "京タ", "タワ", "ワー"]),
        ("水", ["水"]),
        ("の", ["の"]),
        ("KRT-512の", ["krt-512", "krt", "512", "の"]),
        ("great🎉🚀", ["great", "🎉🚀", "🎉", "🚀"]),
        ("👩\u200d💻", ["👩💻", "👩", "💻"]),
        ("👍🏽", ["👍🏽", "👍"]),
        ("🇩🇪", ["🇩🇪"]),
        ("❤\ufe0f", ["❤"]),
        ("Foo™", ["foo"]),
        ("ＫＲＴ－５１２", ["krt-512", "krt", "512"]),
        ("!!!…", []),
        ("\ud800\x00", []),
    ],
)
def test_terms_of_one_token(token: str, expected: list[str]) -> None:
    assert terms(ENGLISH, token) == expected


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("กาแฟ", "ผมชอบกาแฟดำมากกว่าชา"),
        ("天気", "東京の天気はどうですか"),
        ("ກາເຟ", "ຂ້ອຍມັກກາເຟ"),
        ("កាហ្វេ", "ខ្ញុំចូលចិត្តកាហ្វេ"),
        ("ကော်ဖီ", "ကျွန်တော်ကော်ဖီကြိုက်တယ်"),
        ("서울", "서울에서 만나요"),
        ("水", "冷たい水をください"),
        ("ete", "l'été dernier à Nîmes"),
        ("l’été", "l'été dernier à Nîmes"),
        ("nimes", "l'été dernier à Nîmes"),
        ("🚀", "🚀 launch day went well"),
        ("resume", "résumé of the call with Zoë"),
        ("impo\u0302t", "impôt sur le revenu 2024"),
        ("كتاب", "هذا كِتابٌ جديد"),
        ("كتاب", "كتـــاب"),
        ("שלום", "שָׁלוֹם עולם"),
        ("हिन्दी", "मुझे हिन्दी पसंद है"),
        ("ёлка", "наша е\u0308лка"),
        ("ΑΘΗΝΑ", "στην Αθήνα"),
        ("example.org", "mail user@example.org today"),
        ("app.py", "see src/app.py:12"),
        ("password", "the pass\u200bword"),
    ],
)
def test_a_query_is_found_whole(query: str, text: str) -> None:
    assert found_whole(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [("мой", "мои"), ("かく", "がく"), ("การ", "สวัสดี"), ("pre-commit", "nothing of it")],
)
def test_a_different_word_is_not_found(query: str, text: str) -> None:
    assert not found(query, text)


def test_plain_keeps_words_unstemmed() -> None:
    assert terms(PLAIN, "Running Nîmes") == ["running", "nimes"]


def test_absurdly_long_words_are_cut_alike() -> None:
    word = "x" * 1_000_000
    assert terms(PLAIN, word) == ["x" * MAX_TERM]
    assert found(word, f"see {word} there")
    assert max(map(len, terms(ENGLISH, "ab.cd/" * 50_000 + "🚀" * 500))) <= MAX_TERM


WORDS = st.from_regex(r"[A-Za-z0-9_]{1,12}", fullmatch=True)


@given(
    st.lists(st.tuples(WORDS, st.sampled_from(list(" \n.,;-/:@+#'()=&\\?!\"—…東🚀"))), max_size=8)
)
@settings(max_examples=150)
def test_what_grep_finds_by_whole_word_is_found(pairs: list[tuple[str, str]]) -> None:
    text = "".join(word + gap for word, gap in pairs)
    for word, _ in pairs:
        after_apostrophe = f"'{word}" in text or word.lower() in {"t", "ant"}
        if word.strip("_") and not after_apostrophe:
            assert found(word, text)


@given(texts)
@settings(max_examples=200)
def test_any_string_gives_the_same_terms_every_time(text: str) -> None:
    first = terms(ENGLISH, text)
    assert first == terms(ENGLISH, text) == terms(TextAnalyzer("other", ENGLISH._stem), text)  # type: ignore[attr-defined]
    assert all(0 < len(term) <= MAX_TERM for term in first)
    "".join(first).encode()


@given(texts)
@settings(max_examples=200)
def test_composed_and_decomposed_text_give_the_same_terms(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert terms(ENGLISH, composed) == terms(ENGLISH, decomposed) == terms(ENGLISH, text)


@given(texts)
@settings(max_examples=200)
def test_normalisation_is_idempotent(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)
    folded = fold(normalize(text))
    assert fold(folded) == folded


def test_both_snowball_engines_agree() -> None:
    pure, fast = EnglishStemmer(), snowballstemmer.stemmer("english")
    roots = ["connect", "run", "happi", "generous", "relat", "nation", "organ", "geolog", "dy"]
    ends = ["", "s", "ed", "ing", "ly", "ational", "izer", "ousness", "ogist", "ying", "'s", "ee"]
    rng = random.Random(1)
    made = [
        "".join(rng.choices("etaoinshrdlucmfwypvbgkqjxz", k=rng.randint(1, 11)))
        for _ in range(2000)
    ]
    for word in [*(root + end for root in roots for end in ends), *made]:
        assert pure.stemWord(word) == fast.stemWord(word)


def test_registry_refuses_a_second_analyzer_of_a_name() -> None:
    register_analyzer(PLAIN)
    with pytest.raises(ValueError, match="registered already"):
        register_analyzer(TextAnalyzer("plain/2"))
    with pytest.raises(ValueError, match="no analyzer is called 'klingon'"):
        get_analyzer("klingon")
    assert get_analyzer(PLAIN.name) is PLAIN


def test_a_registered_analyzer_is_found_by_name() -> None:
    german = TextAnalyzer("german-test/1", snowballstemmer.stemmer("german").stemWord)
    register_analyzer(german)
    assert get_analyzer("german-test") is get_analyzer("german-test/1") is german
    assert terms(german, "Häuser") == terms(german, "Häusern")

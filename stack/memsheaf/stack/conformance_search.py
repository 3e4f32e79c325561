"""The kit's tests of storing, finding, ranking, limits and odd texts."""

# ruff: noqa: D102  (the name of a test says what it checks)
from __future__ import annotations

from datetime import timedelta
from unicodedata import normalize

import pytest

from .conformance_base import HOSTILE_TEXTS, MIRA, START, TOMAS, ConformanceBase, record
from .conformance_driver import Driver
from .scope import Scope

__all__ = ["SearchConformance"]

FINDABLE = (
    ("C++", "the C++ headers live in include"),
    ("KRT-512", "Ticket KRT-512: rotate the staging certificate"),
    ("天気", "東京の天気はどうですか"),
    ("กาแฟ", "ผมชอบกาแฟดำมากกว่าชา"),
    ("nimes", "l'été dernier à Nîmes"),
    ("été", "l'e\u0301te\u0301 dernier a\u0300 Ni\u0302mes"),
    ("DEPLOY", "we deploy on Thursday"),
    ("R2", "the bucket is on R2"),
)


class SearchConformance(ConformanceBase):
    """What is stored is found, whole, best first, whatever the text."""

    # Storing and finding

    def test_stored_record_is_found(self, memory: Driver) -> None:
        memory.store(record())
        assert memory.contents("who plays the cello?") == ["Mira plays the cello"]

    def test_record_comes_back_whole(self, memory: Driver) -> None:
        self._whole()
        stored = record(
            "naïve 東京 🚀 \u202eltr\u202c 'quoted' \"twice\" <b> %s \\n\n second line",
            scope=Scope(user_id="mira", agent_id="cook", session_id="s:1", namespace="n/1"),
            kind="gotcha", importance=0.123456789, tags=["Deploy", "c++", "größe"], evergreen=True,
            metadata={"a": [1, {"b": None}], "é": 1.5, "t": True, "big": 2**60}, origin="import",
            updated_at=START + timedelta(microseconds=1), access_count=7, derived_from=["c1:4"],
            last_accessed_at=START + timedelta(days=1), expires_at=START + timedelta(days=36_500),
        )  # fmt: skip
        memory.store(stored)
        assert memory.records("naïve") == [stored]
        assert memory.records("", scope=stored.scope) == [stored]

    def test_nothing_mutable_is_shared(self, memory: Driver) -> None:
        self._whole()
        stored = record(metadata={"pinned": [1]})
        memory.store(stored)
        stored.metadata["pinned"] = "changed by the writer"
        memory.records("cello")[0].metadata["pinned"] = "changed by a reader"
        assert memory.records("cello")[0].metadata == {"pinned": [1]}

    def test_storing_again_makes_no_duplicate(self, memory: Driver) -> None:
        stored = record()
        memory.store(stored)
        memory.store(stored)
        assert len(memory.search("cello")) == 1

    def test_same_id_replaces(self, memory: Driver) -> None:
        self._whole()
        old = record("Lena works at the bakery")
        memory.store(old)
        memory.store(old.changed({"content": "Lena works at the observatory"}))
        assert memory.contents("observatory") == ["Lena works at the observatory"]
        if self.ranks_words:
            assert memory.contents("bakery") == []

    def test_older_copy_is_ignored(self, memory: Driver) -> None:
        self._whole()
        old = record("Lena works at the bakery")
        new = old.changed({"content": "Lena works at the observatory"})
        memory.store(new)
        memory.store(old)
        assert memory.records("Lena works") == [new]

    @pytest.mark.parametrize(("text", "content"), FINDABLE, ids=[text for text, _ in FINDABLE])
    def test_word_is_found(self, memory: Driver, text: str, content: str) -> None:
        self._words()
        memory.store(record("something else altogether"))
        memory.store(record(content))
        for query in (text, normalize("NFC", text), normalize("NFD", text), text.lower()):
            assert memory.contents(query) == [content]

    def test_identifier_outranks_its_parts(self, memory: Driver) -> None:
        self._words()
        for content in ("we spoke about krt and 512 apart", "KRT-77 closed", "KRT-512 is open"):
            memory.store(record(content))
        assert memory.contents("KRT-512")[0] == "KRT-512 is open"

    def test_tags_are_findable(self, memory: Driver) -> None:
        self._words()
        memory.store(record("rotate the certificate", tags=["staging"]))
        assert memory.contents("staging") == ["rotate the certificate"]

    # Ranking

    def test_one_word_of_a_question_is_enough(self, memory: Driver) -> None:
        self._words()
        memory.store(record("deploy with make release"))
        assert memory.contents("how do I deploy to production?") == ["deploy with make release"]

    def test_better_match_comes_first(self, memory: Driver) -> None:
        best = "deploy to production with make release"
        contents = ("Tom bakes bread", "deploy the cello case", best, "production of bread")
        for content in contents:
            memory.store(record(content))
        hits = memory.search("deploy to production")
        assert hits[0].record.content == best
        assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
        assert "Tom bakes bread" not in [h.record.content for h in hits] or not self.ranks_words

    def test_relevance_lies_between_0_and_1_and_grows_with_the_match(self, memory: Driver) -> None:
        for content in ("red green blue", "red green", "red", "yellow"):
            memory.store(record(content))
        found = {h.record.content: h.relevance for h in memory.search("red green blue")}
        told = {content: value for content, value in found.items() if value is not None}
        if not told:
            pytest.skip("tells no relevance")
        assert all(0 <= value <= 1 for value in told.values())
        ordered = [told[c] for c in ("red green blue", "red green", "red") if c in told]
        assert ordered == sorted(ordered, reverse=True)
        assert len(set(ordered)) == len(ordered)
        assert ordered[0] > 0.5

    def test_same_search_gives_the_same_order(self, memory: Driver) -> None:
        for n in range(12):
            memory.store(record(f"equal words, number {n}"))
        first = memory.contents("equal words", limit=12)
        assert len(first) == 12
        assert memory.contents("equal words", limit=12) == first
        assert memory.contents("equal words", limit=5) == first[:5]

    # Limits and odd texts

    @pytest.mark.parametrize("limit", [0, 1, 3, 16, 200])
    def test_limit_holds(self, memory: Driver, limit: int) -> None:
        for n in range(16):
            memory.store(record(f"cello lesson {n}"))
        assert len(memory.search("cello", limit=limit)) == min(limit, 16)
        assert len(memory.search("", limit=limit)) == min(limit, 16)

    @pytest.mark.parametrize("text", ["", "  ", "\n\t"], ids=["empty", "spaces", "newline"])
    def test_blank_text_gives_the_most_recent(self, memory: Driver, text: str) -> None:
        for n in (2, 0, 3, 1):
            memory.store(record(f"note {n}", updated_at=START + timedelta(hours=n)))
        assert memory.contents(text, limit=3) == ["note 3", "note 2", "note 1"]

    @pytest.mark.parametrize("text", ["?!", "…", "- -- -", '""', "()"])
    def test_text_without_a_term_gives_nothing(self, memory: Driver, text: str) -> None:
        self._words()
        memory.store(record("?! … - () what"))
        assert memory.contents(text) == []

    @pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
    def test_any_text_is_a_query(self, memory: Driver, text: str) -> None:
        memory.store(record("the gate is open", tags=["gate"]))
        memory.store(record("the gate is his", scope=TOMAS))
        assert set(memory.contents(text)) <= {"the gate is open"}
        assert memory.contents("gate open") == ["the gate is open"]

    @pytest.mark.parametrize("text", ["AND", "--fail-on-warn", '"--fail-on-warn"', "NOT gate"])
    def test_operator_words_are_words(self, memory: Driver, text: str) -> None:
        self._words()
        content = "the AND gate, not built with --fail-on-warn"
        memory.store(record(content))
        assert memory.contents(text) == [content]

    @pytest.mark.parametrize("content", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
    def test_any_content_can_be_stored(self, memory: Driver, content: str) -> None:
        stored = record(content, tags=[content[:100]], metadata={content[:100]: content})
        memory.store(stored)
        assert memory.contents("") == [stored.content]
        assert memory.forget(stored.id, MIRA) is True
        assert memory.contents("") == []

"""Public reports about other memories, held by each store and by a stack of both."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import pytest

from memsheaf.providers.local import LocalStore
from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack import InvalidRecord, MemoryStack, Scope

MIRA = Scope(user_id="mira")
TICKETS = (
    "Ticket KRT-512: rotate the staging certificate",
    "Ticket KRT-77 was closed in May",
    "we spoke about krt and 512 separately",
)
FLAG, CPLUS, GATES = (
    "build with --fail-on-warn to catch it early",
    "C++ headers live in include/",
    "use the AND gate, not the OR gate",
)
COFFEE, WEATHER, INVOICE, ROCKET, SUMMER = (
    "ผมชอบกาแฟดำมากกว่าชา",
    "東京の天気はどうですか",
    "Donaudampfschifffahrtsgesellschaft schickt die Rechnung",
    "🚀 launch day went well",
    "l'été dernier à Nîmes",
)


@pytest.fixture(params=["local", "sqlite", "both"])
def stack(request: pytest.FixtureRequest) -> Iterator[MemoryStack]:
    stores: list[object] = []
    if request.param != "sqlite":
        stores.append(LocalStore())
    if request.param != "local":
        stores.append(SqliteStore())
    with MemoryStack(stores, scope=MIRA) as opened:
        yield opened


def found(stack: MemoryStack, text: str) -> list[str]:
    result = stack.search(text)
    assert not result.partial
    return [hit.record.content for hit in result]


def test_bc_001_a_ticket_key_ranks_first_and_a_minus_is_no_operator(stack: MemoryStack) -> None:
    for text in TICKETS:
        stack.store(text)
    assert found(stack, "KRT-512")[0] == TICKETS[0]
    assert found(stack, "krt-512 certificate")[0] == TICKETS[0]
    assert set(found(stack, "-KRT")) == set(TICKETS)
    assert found(stack, "pre-commit") == []


def test_bc_002_flags_quotes_and_operator_words_are_words(stack: MemoryStack) -> None:
    for text in (FLAG, CPLUS, GATES):
        stack.store(text)
    for query in ('"--fail-on-warn"', "--fail-on-warn"):
        assert found(stack, query) == [FLAG]
    assert found(stack, "C++") == [CPLUS]
    for query in ("AND", "gate OR", "NOT gate", "NEAR(gate", "(gate", "body:gate", "gate^2"):
        assert found(stack, query) == [GATES]
    for query in ('"unclosed', "***", "std::map", "'; DROP TABLE memories;--"):
        assert found(stack, query) == []
    assert len(stack.list()) == 3


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("กาแฟ", COFFEE),
        ("天気", WEATHER),
        ("🚀", ROCKET),
        ("ete", SUMMER),
        ("Nîmes", SUMMER),
        ("nimes", SUMMER),
        ("l\u2019été", SUMMER),
    ],
)
def test_bc_007_scripts_without_spaces_and_accents(
    stack: MemoryStack, query: str, text: str
) -> None:
    for each in (COFFEE, WEATHER, INVOICE, ROCKET, SUMMER):
        stack.store(each)
    assert found(stack, query) == [text]


def test_bc_008_composed_and_decomposed_spellings_are_one(stack: MemoryStack) -> None:
    tax, call = "impôt sur le revenu 2024", "résumé of the call with Zoë"
    stack.store(unicodedata.normalize("NFC", tax))
    stack.store(unicodedata.normalize("NFD", call))
    for form in ("NFC", "NFD"):
        assert len(found(stack, unicodedata.normalize(form, "impôt"))) == 1
        assert len(found(stack, unicodedata.normalize(form, "résumé"))) == 1
    stack.store(unicodedata.normalize("NFD", tax))
    assert len(found(stack, "impôt")) == 1


@pytest.mark.parametrize("texts", [[], [""], ["", "   ", "\n"], ["!!!", "…"], ["the a of"]])
def test_bc_010_a_store_without_a_word_finds_nothing_and_then_something(
    stack: MemoryStack, texts: list[str]
) -> None:
    for text in texts:
        if text.strip():
            stack.store(text)
        else:
            with pytest.raises(InvalidRecord, match="blank"):
                stack.store(text)
    assert found(stack, "anything") == []
    stack.store("anything goes")
    (hit,) = stack.search("anything")
    assert 0 < hit.score <= 1


def test_bc_012_spelling_of_case_and_space_makes_no_second_memory(stack: MemoryStack) -> None:
    same = ("  The  deploy window is Thursday. ", "The deploy window is Thursday.")
    other = ("The deploy window is not Thursday.", "The deploy window is Thursday (UTC+2).")
    receipts = [stack.store(text) for text in (*same, same[1].lower(), *other)]
    shown = found(stack, "deploy window")
    assert len(shown) == 3
    assert set(other) <= set(shown)
    report = stack.forget(receipts[0].id)
    assert report.verified
    assert len(report.deleted) == 3
    assert set(found(stack, "deploy window")) == set(other)


def test_bc_013_a_repeat_is_recognised_and_what_is_near_is_kept(stack: MemoryStack) -> None:
    for text in ("Mira prefers window seats", "Mira prefers aisle seats"):
        stack.store(text)
    stack.store("Mira prefers window seats")
    window, aisle = stack.search("window seats")
    assert (window.record.content, aisle.record.content) == (
        "Mira prefers window seats",
        "Mira prefers aisle seats",
    )
    assert window.score == 1.0
    assert window.relevance == pytest.approx(1.0)
    assert aisle.relevance is not None
    assert 0 < aisle.relevance < 1
    assert len({source.record_id for source in window.sources}) == 2


def test_bc_019_an_edited_memory_is_found_by_its_new_words_only(stack: MemoryStack) -> None:
    stack.store("Lena works at the bakery", id="1")
    stack.update("1", {"content": "Lena works at the observatory"})
    assert found(stack, "bakery") == []
    assert found(stack, "observatory") == ["Lena works at the observatory"]


def test_bc_040_naive_times_are_utc_and_order_holds(stack: MemoryStack) -> None:
    for name, at in (
        ("a", "2026-03-01T09:00:00"),
        ("b", "2026-03-01T09:00:00+09:00"),
        ("c", "2026-03-01T02:00:00Z"),
    ):
        stack.store(f"note {name}", id=name, created_at=at)
    stack.store("note d", id="d", created_at=None)
    with pytest.raises(InvalidRecord, match="created_at"):
        stack.store("note e", created_at="yesterday")
    assert [r.id for r in stack.list(order="oldest")] == ["b", "c", "a", "d"]
    since = stack.search("note", filters={"since": "2026-03-01T01:00:00Z"})
    assert {hit.id for hit in since} == {"a", "c", "d"}


def test_bc_041_a_day_is_found_in_whatever_shape_it_was_written(stack: MemoryStack) -> None:
    shapes: list[object] = [
        1767583930,
        1767583930.285,
        1767583930285,
        "1767583930",
        "2026-01-05T03:32:10.285Z",
        1767583930285031,
    ]
    for place, shape in enumerate(shapes):
        stack.store(f"shape {place}", created_at=shape)
    day = stack.search("shape", filters={"since": "2026-01-05", "until": "2026-01-06"})
    assert len(day) == len(shapes)


@pytest.mark.parametrize(
    ("asked", "texts"),
    [
        ("users/john_doe", ["secret A"]),
        ("users/john-doe", ["secret B"]),
        ("tenant/acme", ["secret C"]),
        ("tenant/acme-corp", ["secret D"]),
        ('["a","b/c"]', ["secret E"]),
        ('["a","b","c"]', ["secret F"]),
        ("%", []),
        ("a%", []),
        ("users/john", []),
        ("USERS/JOHN_DOE", []),
    ],
)
def test_bc_044_each_scope_sees_its_own(stack: MemoryStack, asked: str, texts: list[str]) -> None:
    owners = [
        "users/john_doe",
        "users/john-doe",
        "tenant/acme",
        "tenant/acme-corp",
        '["a","b/c"]',
        '["a","b","c"]',
    ]
    for letter, owner in zip("ABCDEF", owners, strict=True):
        stack.store(f"secret {letter}", scope=Scope(namespace=owner))
    scope = Scope(namespace=asked)
    assert [hit.record.content for hit in stack.search("secret", scope)] == texts
    assert [r.content for r in stack.list(scope)] == texts

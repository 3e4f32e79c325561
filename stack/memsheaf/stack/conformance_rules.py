"""The kit's tests of forgetting, scopes, filters and expiry."""

# ruff: noqa: D102  (the name of a test says what it checks)
from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from .conformance_base import MIRA, START, TOMAS, ConformanceBase, record
from .conformance_driver import Driver
from .errors import IdUnavailable
from .filters import Filter
from .scope import SCOPE_FIELDS, Scope, ScopeField

__all__ = ["RulesConformance"]

WILDCARD_NAMES = ("%", "_", "*", "m%", "mir_", "mira*", "MIRA", "mira ", "mira/x", "mira\\")


class RulesConformance(ConformanceBase):
    """Nothing is shown to whom it does not belong, nor after it is gone."""

    # Forgetting

    def test_forget_tells_whether_something_was_deleted(self, memory: Driver) -> None:
        kept, gone = record("the cello is old"), record("the cello is new")
        memory.store(kept)
        memory.store(gone)
        assert memory.forget(gone.id, MIRA) is True
        assert memory.forget(gone.id, MIRA) is False
        assert memory.forget("no-such-record", MIRA) is False
        assert memory.contents("cello") == ["the cello is old"]
        assert memory.contents("") == ["the cello is old"]

    def test_forgotten_record_can_be_stored_again(self, memory: Driver) -> None:
        stored = record()
        memory.store(stored)
        memory.forget(stored.id, MIRA)
        memory.store(stored)
        assert memory.contents("cello") == [stored.content]

    # Scopes

    @pytest.mark.parametrize("field", SCOPE_FIELDS)
    def test_search_stays_in_its_scope(self, memory: Driver, field: ScopeField) -> None:
        self._enforces(memory, field)
        mine, theirs = Scope(**{field: "one"}), Scope(**{field: "two"})
        memory.store(record("cello of one", mine))
        for n in range(5):
            memory.store(record(f"cello cello of two {n}", theirs))
        memory.store(record("cello of nobody", Scope(**{_other(field): "one"})))
        for text in ("cello", ""):
            assert memory.contents(text, mine, limit=2) == ["cello of one"]
            assert memory.contents(text, Scope(**{field: "three"})) == []

    def test_unset_field_of_a_query_matches_anything(self, memory: Driver) -> None:
        for field in ("user_id", "agent_id"):
            self._enforces(memory, field)
        both = Scope(user_id="mira", agent_id="cook")
        memory.store(record("cello of both", both))
        memory.store(record("cello of the user", MIRA))
        assert set(memory.contents("cello", MIRA)) == {"cello of both", "cello of the user"}
        assert memory.contents("cello", both) == ["cello of both"]
        assert memory.contents("cello", Scope(agent_id="cook")) == ["cello of both"]
        assert memory.contents("cello", Scope(user_id="mira", agent_id="other")) == []
        assert len(memory.search("cello", Scope.EVERYONE)) == 2
        assert len(memory.search("", Scope.EVERYONE)) == 2

    @pytest.mark.parametrize("name", WILDCARD_NAMES)
    def test_names_that_look_like_patterns_are_names(self, memory: Driver, name: str) -> None:
        self._enforces(memory, "user_id")
        odd = Scope(user_id=name)
        memory.store(record("cello of mira"))
        for text in ("cello", ""):
            assert memory.contents(text, odd) == []
        memory.store(record("cello of the odd one", odd))
        for text in ("cello", ""):
            assert memory.contents(text, odd) == ["cello of the odd one"]
            assert memory.contents(text, MIRA) == ["cello of mira"]

    def test_fields_do_not_run_together(self, memory: Driver) -> None:
        for field in SCOPE_FIELDS:
            self._enforces(memory, field)
        scopes = [
            Scope(user_id="a", agent_id="b/c"), Scope(user_id="a/b", agent_id="c"),
            Scope(user_id="a", agent_id="b", session_id="c"), Scope(user_id="a b c"),
            Scope(agent_id="a"), Scope(namespace="a"), Scope(session_id="a"),
        ]  # fmt: skip
        for n, scope in enumerate(scopes):
            memory.store(record(f"secret {n}", scope))
        for n, scope in enumerate(scopes):
            assert memory.contents("secret", scope) == [f"secret {n}"]

    def test_foreign_id_is_not_forgotten(self, memory: Driver) -> None:
        self._enforces(memory, "user_id")
        stored = record()
        memory.store(stored)
        assert memory.forget(stored.id, TOMAS) is False
        assert memory.contents("cello") == [stored.content]

    def test_id_of_another_scope_is_refused(self, memory: Driver) -> None:
        self._enforces(memory, "user_id")
        self._whole()
        stored = record()
        memory.store(stored)
        theirs = record("taken over", TOMAS, id=stored.id, updated_at=START + timedelta(days=1))
        with pytest.raises(IdUnavailable) as refusal:
            memory.store(theirs)
        assert "mira" not in str(refusal.value)
        assert memory.records("cello") == [stored]
        assert memory.contents("", TOMAS) == []

    # Filters and expiry

    @pytest.mark.parametrize(
        ("conditions", "expected"),
        [
            ({"kinds": ["lesson"]}, {1}),
            ({"kinds": ["procedural", "episode"]}, {1, 2}),
            ({"tags_any": ["Red", "none"]}, {0, 1}),
            ({"tags_all": ["red", "blue"]}, {1}),
            ({"since": START + timedelta(days=1)}, {1, 2}),
            ({"until": START + timedelta(days=1)}, {0, 1}),
            ({"where": {"n": 1}}, {1}),
            ({"where": {"flag": True}}, {2}),
            ({"where": {"deep": {"a": [1, None]}, "n": 2}}, {2}),
            ({"where": {"missing": None}}, set()),
            ({"kinds": ["lesson"], "tags_any": ["green"]}, set()),
        ],
    )
    def test_filter(
        self, memory: Driver, conditions: dict[str, object], expected: set[int]
    ) -> None:
        kinds, tags = ("fact", "lesson", "episode"), (["red"], ["red", "blue"], ["green"])
        deep = {"a": [1, None]}
        metadata = (
            {"n": 0, "flag": 1},
            {"n": 1, "flag": False},
            {"n": 2, "flag": True, "deep": deep},
        )
        for n in range(3):
            memory.store(
                record(
                    f"cello {n}",
                    kind=kinds[n],
                    tags=tags[n],
                    metadata=metadata[n],
                    created_at=START + timedelta(days=n),
                )
            )
        filters = Filter.make(**conditions)
        for text in ("cello", ""):
            assert set(memory.contents(text, filters=filters)) == {f"cello {n}" for n in expected}
        if memory.has("list"):
            listed = memory.list(MIRA, filters=filters)
            assert {r.content for r in listed} == {f"cello {n}" for n in expected}

    def test_filter_comes_before_the_limit(self, memory: Driver) -> None:
        if not memory.filters_natively:
            pytest.skip("does not filter natively")
        for n in range(40):
            memory.store(record(f"cello cello {n}"))
        memory.store(
            record(
                "a long text that also has a cello somewhere",
                kind="lesson",
                metadata={"x": 1},
                updated_at=START,
                created_at=START - timedelta(days=9),
            )
        )
        for conditions in ({"kinds": ["lesson"]}, {"where": {"x": 1}}):
            filters = Filter.make(**conditions)
            for text in ("cello", ""):
                assert len(memory.search(text, limit=2, filters=filters)) == 1

    def test_expired_record_is_never_returned(self, memory: Driver) -> None:
        expired = record("cello of yesterday", expires_at=START)
        memory.store(expired)
        memory.store(record("cello of today", expires_at=datetime.now(UTC) + timedelta(days=1)))
        for text in ("cello", ""):
            assert memory.contents(text, limit=1) == ["cello of today"]
        if memory.has("get"):
            assert memory.get(expired.id, MIRA) is None
        if memory.has("list"):
            assert [r.content for r in memory.list(MIRA)] == ["cello of today"]


def _other(field: ScopeField) -> ScopeField:
    return SCOPE_FIELDS[(SCOPE_FIELDS.index(field) + 1) % len(SCOPE_FIELDS)]

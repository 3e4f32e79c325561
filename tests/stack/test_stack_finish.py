"""What `finish` has checked is taken as a whole, and nothing gets past the checks by that."""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memsheaf.stack import (
    Filter,
    Hit,
    MemoryRecord,
    MemoryStack,
    Mount,
    Scope,
    SearchResult,
    finish,
    hookimpl,
)
from memsheaf.stack.finishing import Finished
from memsheaf.stack.times import now

MIRA, TOMAS = Scope(user_id="mira"), Scope(user_id="tomas")
Answer = Callable[[str, Scope, int, Filter | None], Any]


def record(content: str, scope: Scope = MIRA, **fields: Any) -> MemoryRecord:
    return MemoryRecord(content=content, scope=scope, **fields)


MINE = [record("tea one", kind="fact"), record("tea two"), record("tea three")]
FOREIGN = record("tea of another", TOMAS)
TABLE = {r.id: r for r in [*MINE, FOREIGN]}
SCORED = [(record_id, 9.0 - n, 1.0) for n, record_id in enumerate(TABLE)]


class Answers:
    """Answers a search with what a function gives."""

    name = "notes"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Any:
        return self.answer(text, scope, limit, filters)


def searched(answer: Answer, scope: Scope = MIRA, **arguments: Any) -> SearchResult:
    with MemoryStack([Answers(answer)], scope=scope) as stack:
        return stack.search("tea", **arguments)


def contents(hits: Sequence[Hit]) -> list[str]:
    return [hit.record.content for hit in hits]


def finished(text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
    return finish(SCORED, TABLE, scope, filters, limit)


def test_what_finish_gives_is_the_same_as_what_the_checks_give() -> None:
    whole = searched(finished)
    one_by_one = searched(lambda *question: [*finished(*question)])
    assert contents(whole) == contents(one_by_one) == contents([Hit(r) for r in MINE])
    assert [o.count for o in whole.outcomes] == [o.count for o in one_by_one.outcomes] == [3]
    assert whole.outcomes[0].notes == one_by_one.outcomes[0].notes == ()


def test_finish_proves_what_it_checked_and_for_whom() -> None:
    made = finish(SCORED, TABLE, MIRA, None, 10)
    assert isinstance(made, Finished)
    assert made.holds(MIRA, None)
    assert not made.holds(Scope(user_id="mira"), None)
    assert not made.holds(TOMAS, None)
    assert not made.holds(MIRA, Filter.make(kinds=["fact"]))
    for other in (made[:1], made + made, Finished(made), pickle.loads(pickle.dumps(made))):
        assert not (isinstance(other, Finished) and other.holds(MIRA, None))
    assert copy.copy(made).holds(MIRA, None)


@pytest.mark.parametrize("asked", [Scope.EVERYONE, TOMAS])
def test_an_answer_that_was_finished_for_another_scope_is_checked(asked: Scope) -> None:
    result = searched(lambda text, scope, limit, filters: finish(SCORED, TABLE, asked, None, 10))
    assert FOREIGN.content not in contents(result)
    assert "1 dropped: outside the scope" in result.outcomes[0].notes


def test_an_answer_that_is_used_again_is_checked_for_who_asks_now() -> None:
    kept: list[Sequence[Hit]] = []

    def first_answer(*question: Any) -> Sequence[Hit]:
        kept.append(kept[0] if kept else finished(*question))
        return kept[0]

    with MemoryStack([Answers(first_answer)]) as stack:
        assert len(stack.search("tea", MIRA)) == 3
        assert len(stack.search("tea", TOMAS)) == 0
        assert contents(stack.search("tea", MIRA, filters={"kinds": ["fact"]})) == ["tea one"]


def test_an_answer_that_has_expired_since_is_checked() -> None:
    soon = record("tea soon gone", expires_at=datetime.now(UTC) + timedelta(seconds=0.3))
    made = finish([(soon.id, 1.0, 1.0)], {soon.id: soon}, MIRA, None, 10)
    assert contents(made) == ["tea soon gone"]
    while now() < soon.expires_at:  # type: ignore[operator]
        time.sleep(0.02)
    assert len(searched(lambda *question: made)) == 0
    assert len(finish([(soon.id, 1.0, 1.0)], {soon.id: soon}, MIRA, None, 10)) == 0


def test_a_subclass_is_checked_hit_by_hit() -> None:
    class Adds(Finished):
        """Says that it holds, with a hit more than was checked."""

        def holds(self, scope: Scope, filters: Filter | None) -> bool:
            return True

    result = searched(lambda *question: Adds([*finished(*question), Hit(FOREIGN, 1.0)]))
    assert contents(result) == contents([Hit(r) for r in MINE])
    assert result.outcomes[0].notes == ("1 dropped: outside the scope",)


def test_a_filter_that_a_provider_does_not_pass_on_is_applied() -> None:
    def unfiltered(text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        return finish(SCORED, TABLE, scope, None, limit)

    result = searched(unfiltered, filters={"kinds": ["fact"]})
    assert contents(result) == ["tea one"]
    assert "2 dropped: refused by the filter" in result.outcomes[0].notes


def test_more_than_was_asked_for_is_cut() -> None:
    def more(text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        return finish(SCORED, TABLE, scope, filters, 3)

    result = searched(more, limit=2)
    assert len(result) == 2
    with MemoryStack([Answers(more)], scope=MIRA, overfetch=1) as stack:
        result = stack.search("tea", limit=2)
    assert result.outcomes[0].notes == ("cut to the 2 that were asked for",)


def test_a_pinned_provider_is_stamped_as_ever() -> None:
    bound = Scope(user_id="mira", agent_id="cook")
    provider = Mount(Answers(finished), scope=Scope(agent_id="cook"))
    with MemoryStack([provider]) as stack:
        result = stack.search("tea", MIRA)
    assert {hit.record.scope for hit in result} == {bound}


def test_a_record_that_breaks_the_rules_is_told_as_ever() -> None:
    bad = MINE[0].model_copy(update={"importance": 7.0})
    table = {**TABLE, bad.id: bad}
    result = searched(lambda text, scope, limit, filters: finish(SCORED, table, scope, None, limit))
    assert contents(result) == ["tea two", "tea three"]
    assert result.outcomes[0].notes == ("1 dropped: its record breaks the rules of records",)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", range(4))
def test_a_score_that_is_no_number_moves_no_other_hit(score: float, place: int) -> None:
    strange = record("tea strange")
    table = {**TABLE, strange.id: strange}
    scored = [(r.id, 1.0 + n, 0.5) for n, r in enumerate(MINE)]
    scored.insert(place, (strange.id, score, 0.5))

    def answer(text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        return finish(scored, table, scope, filters, 2)

    assert contents(answer("tea", MIRA, 2, None)) == ["tea three", "tea two"]
    result = searched(answer)
    assert contents(result) == ["tea three", "tea two"]
    assert result.outcomes[0].notes == ("1 dropped: its score is not a finite number",)


def test_what_had_no_place_is_told_beside_what_the_stack_drops() -> None:
    bad = MINE[0].model_copy(update={"importance": 7.0})
    table = {**TABLE, bad.id: bad}
    scored = [(r.id, 1.0 + n, None) for n, r in enumerate([bad, *MINE[1:], FOREIGN])]
    scored.append((FOREIGN.id, float("nan"), None))
    result = searched(lambda text, scope, limit, filters: finish(scored, table, scope, None, limit))
    assert contents(result) == ["tea three", "tea two"]
    assert result.outcomes[0].notes == (
        "1 dropped: its score is not a finite number",
        "1 dropped: its record breaks the rules of records",
    )

"""The ranking against the formula written out, item by item."""

from __future__ import annotations

import math
import random
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsheaf.index import content_words, get_analyzer, postings, terms
from memsheaf.sessionsearch import (
    ConversationLog,
    Item,
    NewItem,
    SessionRanking,
    SessionSearch,
    default_index,
)
from memsheaf.sessionsearch import evidence as engine
from memsheaf.sessionsearch.default_index import DefaultIndex
from memsheaf.sessionsearch.ranking import PRESETS
from memsheaf.sessionsearch.setting import _weights
from memsheaf.stack import InvalidQuery, Scope

MIRA, TOM = Scope(user_id="mira"), Scope(user_id="tom")
WORDS = [f"word{n}" for n in range(40)]
ENGLISH = get_analyzer("english")


def oracle(talks: dict[str, list[Item]], query: str, ranking: SessionRanking) -> dict[str, float]:
    """The score of every item that holds a word, as `SessionRanking` describes it."""
    asked = terms(ENGLISH, content_words(query))
    words = {item.id: terms(ENGLISH, item.text) for items in talks.values() for item in items}
    words = {key: value for key, value in words.items() if value}
    talks = {name: [i for i in items if i.id in words] for name, items in talks.items()}
    size, mean = len(words), sum(map(len, words.values())) / len(words)
    k1, b = ranking.saturation(mean)
    own = dict.fromkeys(words, 0.0)
    session = dict.fromkeys(talks, 0.0)
    lengths = {name: sum(len(words[i.id]) for i in items) for name, items in talks.items()}
    longest = sum(lengths.values()) / len(talks)
    for word in set(asked):
        times = asked.count(word)
        df = sum(word in held for held in words.values())
        idf = math.log(1 + (size - df + 0.5) / (df + 0.5))
        for key, held in words.items():
            tf = held.count(word)
            own[key] += times * idf * saturated(tf, k1, b, len(held) / mean)
        tfs = {n: sum(words[i.id].count(word) for i in items) for n, items in talks.items()}
        df = sum(tf > 0 for tf in tfs.values())
        idf = math.log(1 + (len(talks) - df + 0.5) / (df + 0.5))
        if idf > 0.05:
            for name, tf in tfs.items():
                session[name] += times * idf * saturated(tf, k1, b, lengths[name] / longest)
    low, high = min(session.values()), max(session.values())
    top = max(own.values())
    scores = {}
    for name, items in talks.items():
        f = ranking.neighbours / (1 + lengths[name] / len(items) / ranking.reach)
        scaled = (session[name] - low) / (high - low) if high > low else 0.0
        for place, item in enumerate(items):
            around = {
                d: own[items[place + d].id] for d in (-2, -1, 1, 2) if 0 <= place + d < len(items)
            }
            score = own[item.id] + f * around.get(-1, 0.0) + 0.8 * f * around.get(1, 0.0)
            score += f**2 * around.get(-2, 0.0) + (0.8 * f) ** 2 * around.get(2, 0.0)
            score += ranking.prior * top * scaled / (1 + len(words[item.id]) / ranking.tau)
            score *= ranking.roles.get(item.role or "", 1.0) * ranking.types.get(item.type, 1.0)
            if own[item.id] > 0:
                scores[item.id] = score
    return scores


def saturated(tf: int, k1: float, b: float, share: float) -> float:
    return tf * (k1 + 1) / (tf + k1 * (1 - b + b * share)) if tf else 0.0


@pytest.fixture(params=[(1, 30), (2, 30)])
def talks(request: Any, tmp_path: Path) -> Iterator[tuple[SessionSearch, dict[str, list[Item]]]]:
    """Conversations that grow by turns, with removed items, beside those of somebody else."""
    seed, longest = request.param
    draw = random.Random(seed)
    with ConversationLog(tmp_path / "log.db") as log, SessionSearch(log) as sessions:
        for turn in range(60):
            name, scope = f"c{draw.randrange(12)}", MIRA
            if turn % 5 == 0:
                name, scope = f"t{draw.randrange(3)}", TOM
            items = [
                NewItem(
                    draw.choice(["message", "reasoning"]),
                    " ".join(draw.choices(WORDS, range(40, 0, -1), k=draw.randrange(1, longest))),
                    role=draw.choice(["user", "assistant", None]),
                )
                for _ in range(draw.randrange(1, 9))
            ]
            log.append(name, items, scope)
            if turn % 7 == 0:
                sessions.catch_up()
        for name in ("c1", "c2", "c3"):
            log.delete(name, MIRA, 1)
        names = [each.id for each in log.conversations(MIRA)]
        yield sessions, {name: log.items(name, MIRA) for name in names}


def questions(seed: int) -> Iterator[str]:
    draw = random.Random(seed)
    for _ in range(15):
        yield " ".join(draw.choices(WORDS, k=draw.randrange(1, 7)))


@pytest.mark.parametrize("preset", ["default", "raxol"])
def test_scores_are_those_of_the_formula(
    talks: tuple[SessionSearch, dict[str, list[Item]]], preset: str
) -> None:
    log, held = talks[0].log, talks[1]
    sessions = SessionSearch(log, preset=preset)
    for query in questions(4):
        expected = oracle(held, query, PRESETS[preset])
        best = sorted(expected.values(), reverse=True)
        for limit in (3, 10, 1000):
            hits = sessions.search(query, limit, scope=MIRA)
            assert [hit.score for hit in hits] == pytest.approx(best[:limit], rel=0.01)
            for hit in hits:
                assert hit.score == pytest.approx(expected[hit.id], rel=0.01)


@pytest.mark.parametrize("preset", ["default", "raxol"])
def test_dropping_conversations_early_loses_none_of_the_best(
    talks: tuple[SessionSearch, dict[str, list[Item]]],
    monkeypatch: pytest.MonkeyPatch,
    preset: str,
) -> None:
    scored: list[int] = []
    score = engine.Evidence._score

    def counted(self: engine.Evidence, among: engine.Mask, *values: Any) -> Any:
        scored.append(int(among.sum()))
        return score(self, among, *values)

    monkeypatch.setattr(engine, "_FIRST", 1)
    monkeypatch.setattr(engine, "_NEXT", 2)
    monkeypatch.setattr(engine.Evidence, "_score", counted)
    log, held = talks[0].log, talks[1]
    sessions = SessionSearch(log, preset=preset)
    dropped = 0
    for query in questions(5):
        scored.clear()
        expected = oracle(held, query, PRESETS[preset])
        best = sorted(expected.values(), reverse=True)
        hits = sessions.search(query, 3, scope=MIRA)
        assert [expected[hit.id] for hit in hits] == pytest.approx(best[:3], rel=0.01)
        dropped += len({name.rpartition(":")[0] for name in expected}) - sum(scored)
    assert dropped > 0


@pytest.mark.parametrize(("longest", "words", "most"), [(6, 100, 5), (40, 200, 6)])
def test_a_smaller_limit_gives_the_same_first_hits(
    tmp_path: Path, longest: int, words: int, most: int
) -> None:
    draw = random.Random(0)
    known = [f"word{n}" for n in range(words)]
    share = [1 / (n + 1) for n in range(words)]
    with ConversationLog(tmp_path / "log.db") as log, SessionSearch(log) as sessions:
        for name in range(300):
            said = [
                " ".join(draw.choices(known, share, k=draw.randrange(1, longest)))
                for _ in range(draw.choice([1, 2, 4, 12]))
            ]
            log.append(f"c{name}", [NewItem("message", text) for text in said], MIRA)
        for _ in range(40):
            query = " ".join(
                draw.choices(known[: draw.choice([10, words])], k=draw.randrange(1, most))
            )
            every = [(hit.id, hit.score) for hit in sessions.search(query, 1000, scope=MIRA)]
            for limit in (3, 10):
                first = [(hit.id, hit.score) for hit in sessions.search(query, limit, scope=MIRA)]
                assert first == every[:limit]


@pytest.fixture
def tightened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """Small steps, and of each tightening how many lists it left out, conversations in and out.

    No item may have a score above the bound of its conversation.
    """
    seen: list[tuple[int, int, int]] = []
    tighten = engine.Evidence._tighten

    def checked(self: engine.Evidence, able: engine.Mask, depth: int, *values: float) -> None:
        tighten(self, able, depth, *values)
        top, floor = values
        left = able & (self._most(self._reach, top) >= floor)
        seen.append((len(self._words.sizes) - depth, int(able.sum()), int(left.sum())))
        found = self._score(able, None)
        scores, owners = found.scores(found.top), self._catalog.rows["conversation"][found.rows]
        assert (scores <= self._most(self._reach, found.top)[owners] * (1 + 1e-9)).all()

    monkeypatch.setattr(engine.Evidence, "_tighten", checked)
    for name, value in (("_FIRST", 1), ("_NEXT", 1), ("_FEW", 0), ("_MANY", 1), ("_ENOUGH", 0)):
        monkeypatch.setattr(engine, name, value)
    monkeypatch.setattr(engine, "_STEP", 0)
    return seen


def test_bounds_that_are_tightened_list_by_list_lose_none_of_the_best(
    talks: tuple[SessionSearch, dict[str, list[Item]]], tightened: list[tuple[int, int, int]]
) -> None:
    sessions = SessionSearch(talks[0].log)
    for query in questions(6):
        for scope, filters in (
            (MIRA, {}),
            (MIRA, {"roles": "user"}),
            (MIRA, {"types": "reasoning", "conversation": ["c1", "c2", "c3", "c4", "c5"]}),
            (Scope.EVERYONE, {"roles": ["user", "assistant"]}),
        ):
            every = sessions.search(query, 1000, scope=scope, **filters)
            for limit in (1, 4):
                best = sessions.search(query, limit, scope=scope, **filters)
                assert [(h.id, h.score) for h in best] == [(h.id, h.score) for h in every[:limit]]
    assert any(after < before for _, before, after in tightened)
    assert {left_out for left_out, _, _ in tightened} > {0, 1}


def test_an_item_between_others_may_hear_more_than_these_do(
    tmp_path: Path, tightened: list[tuple[int, int, int]]
) -> None:
    with ConversationLog(tmp_path / "log.db") as log, SessionSearch(log) as sessions:
        for number in range(40):
            log.append(f"c{number}", [NewItem("message", "tuned"), NewItem("message", "bow")], MIRA)
        for name in "ab":
            said = ["cello", "cello", "tuned", "cello", "cello"]
            log.append(name, [NewItem("message", text) for text in said], MIRA)
        best = sessions.search("tuned cello", 1, scope=MIRA)[0]
        assert best.item.text == "tuned"
        assert best.copies
    assert any(left_out for left_out, _, _ in tightened)


def test_tables_of_weights_do_not_gather_where_many_scopes_search(tmp_path: Path) -> None:
    made: list[weakref.ref[Any]] = []
    with ConversationLog(tmp_path / "log.db") as log:
        index = DefaultIndex(log)
        sessions = SessionSearch(log, index=index)
        for number in range(5):
            texts = [f"cello{word} " + "bow " * number for word in range(5) for _ in range(200)]
            items = [NewItem("message", text) for text in texts]
            log.append(f"c{number}", items, Scope(user_id=f"user{number}"))
        sessions.catch_up()
        sessions.save()
        for number in range(5):
            _weights.cache_clear()
            assert sessions.search(f"cello{number}", scope=Scope(user_id=f"user{number}"))
            assert index._setting is not None
            made.append(weakref.ref(index._setting.table))
        assert index._cache._held
        assert [table() is not None for table in made] == [False, False, False, False, True]


def test_short_turns_hear_their_neighbours_and_long_ones_do_not() -> None:
    ranking = SessionRanking()
    assert ranking.saturation(10)[1] < ranking.saturation(200)[1] < 0.9
    assert ranking.saturation(10)[0] < ranking.saturation(200)[0] < 1.4
    assert SessionRanking(k1=1.2, b=0.75).saturation(10) == (1.2, 0.75)


@pytest.mark.parametrize(
    "setting",
    [
        {"k1": -0.1}, {"b": 1.5}, {"neighbours": 1.01}, {"neighbours": None}, {"reach": 0},
        {"tau": 0.0}, {"prior": math.nan}, {"prior": "much"}, {"k1": True},
        {"roles": {"user": -1}}, {"types": {"message": math.inf}}, {"roles": ["user"]},
        {"roles": {"user": 1e308}}, {"types": {"message": 10**400}}, {"roles": {1: 2.0}},
    ],
)  # fmt: skip
def test_settings_that_bounds_could_not_hold_for_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuery, match=next(iter(setting))):
        SessionRanking(**setting)


def test_settings_are_the_rankings_own_and_may_come_from_arrays() -> None:
    roles: dict[str, Any] = {"user": np.float32(0.5)}
    numbers: dict[str, Any] = {"k1": np.float32(0.5), "prior": np.int64(1)}
    ranking = SessionRanking(roles=roles, **numbers)
    roles["user"] = -1
    assert ranking == SessionRanking(k1=0.5, prior=1.0, roles={"user": 0.5})
    assert type(ranking.k1) is type(ranking.prior) is type(ranking.roles["user"]) is float


def test_a_save_makes_ready_what_frequent_words_need(
    talks: tuple[SessionSearch, dict[str, list[Item]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "_LONG", 2)
    before = [answers(talks[0], query) for query in questions(7)]
    ready = []
    for room in (4_000_000, 4):
        monkeypatch.setattr(postings, "_ROOM", room)
        with ConversationLog(talks[0].log.path) as log, SessionSearch(log) as sessions:
            sessions.catch_up()
            sessions.save()
            cache = sessions._index._cache  # type: ignore[attr-defined]
            ready.append(cache._held)
            assert [answers(sessions, query) for query in questions(7)] == before
            assert room == 4 or cache._held == ready[0], "nothing was left to make"
    assert ready[0] > ready[1] > 0


def test_taking_in_much_part_by_part_makes_it_ready_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    monkeypatch.setattr(default_index, "_OFTEN", 10)
    monkeypatch.setattr(default_index, "prepare", lambda *_: made.append(1))
    with ConversationLog(tmp_path / "log.db") as log, SessionSearch(log) as sessions:
        for number in range(40):
            log.append(f"c{number}", NewItem("message", "a cello"), MIRA)
        changes = log.changes
        monkeypatch.setattr(log, "changes", lambda after: changes(after, 5))
        assert sessions.catch_up() == 40
    assert made == [1]


def answers(sessions: SessionSearch, query: str) -> list[tuple[str, Any]]:
    return [(hit.id, pytest.approx(hit.score)) for hit in sessions.search(query, 5, scope=MIRA)]

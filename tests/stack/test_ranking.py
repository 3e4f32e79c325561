from datetime import UTC, datetime, timedelta

import pytest

from memsheaf.stack import ConfigError, MemoryRecord, Scope
from memsheaf.stack.ranking import PROFILES, Match, Nous, decay, ranking_profile

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def record(days: float = 0, **fields: object) -> MemoryRecord:
    fields.setdefault("created_at", NOW - timedelta(days=days))
    return MemoryRecord.make(content="x", scope=Scope(user_id="u"), **fields)


def score(name: str, match: Match, item: MemoryRecord, tags: tuple[str, ...] = ()) -> float:
    return PROFILES[name].explain(match, item, NOW, tags).value


def test_default_is_the_order_of_the_text() -> None:
    assert score("default", Match(1.25, 0.5), record(days=900, importance=0.1)) == 1.25


def test_raxol_adds_recency_and_half_a_point_for_each_shared_tag() -> None:
    match = Match(1.4508, 1)
    assert score("raxol", match, record()) == pytest.approx(1.7508)
    assert score("raxol", match, record(days=30)) == pytest.approx(1.4508 + 0.3 / 2.718281828)
    tagged = record(tags=["urgent", "home"])
    assert score("raxol", match, tagged, ("Urgent",)) == pytest.approx(1.7508 + 0.5)


def test_nous_reference_value_and_weights() -> None:
    match = Match(3, 0.9)
    assert score("nous", match, record(importance=0.8)) == pytest.approx(0.89)
    only = Nous(relevance=0, importance=1, recency=0)
    assert only.explain(match, record(importance=1.0), NOW).value == 1.0
    assert score("nous", match, record(days=7)) < score("nous", match, record())


def test_nous_decay_spares_evergreen() -> None:
    assert decay(1, record(days=2, evergreen=True), NOW) == 1
    assert 0 < decay(1, record(days=2), NOW) < 1
    assert decay(1, record(), NOW) == pytest.approx(1, abs=0.01)
    assert decay(1, record(days=2), NOW, rate=0.1) < decay(1, record(days=2), NOW)


@pytest.mark.parametrize(("days", "recency"), [(0, 1), (60, 0.25), (120, 0.0625)])
def test_nexum_recency_halves_every_thirty_days(days: float, recency: float) -> None:
    parts = PROFILES["nexum"].explain(Match(1, 1), record(days=days), NOW).parts
    assert parts[1].value == pytest.approx(0.15 * recency)


def test_nexum_usage_grows_and_stays_under_one() -> None:
    values = [
        PROFILES["nexum"].explain(Match(1, 1), record(access_count=n), NOW).parts[3].value * 10
        for n in (0, 1, 2, 8, 64)
    ]
    assert values == sorted(values)
    assert values == pytest.approx([0, 0.2, 1 / 3, 2 / 3, 64 / 68])


@pytest.mark.parametrize("name", ["nous", "nexum"])
def test_a_weighted_score_lies_between_zero_and_one(name: str) -> None:
    for relevance in (-0.5, 0, 1):
        old = record(created_at=datetime(1970, 1, 1, tzinfo=UTC))
        assert 0 <= score(name, Match(9, relevance), old) <= 1


@pytest.mark.parametrize("name", ["raxol", "nous", "nexum"])
def test_a_future_time_gains_nothing(name: str) -> None:
    match = Match(1, 1)
    assert score(name, match, record(days=-400)) == score(name, match, record())


@pytest.mark.parametrize("name", list(PROFILES))
def test_the_parts_make_the_value(name: str) -> None:
    told = PROFILES[name].explain(Match(2, 0.5), record(days=3), NOW)
    if told.parts:
        assert told.value == pytest.approx(sum(part.value for part in told.parts))


def test_an_unknown_profile_is_named() -> None:
    with pytest.raises(ConfigError, match="unknown ranking profile 'nope'"):
        ranking_profile("nope")

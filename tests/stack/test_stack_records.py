"""Records, scopes, filters and times: every rule of the boundary."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.stack import (
    Filter,
    InvalidQuery,
    InvalidRecord,
    Kind,
    KindClass,
    MemoryRecord,
    Origin,
    Scope,
    ScopeError,
    parse_time,
    same_content_key,
)

MIRA = Scope(user_id="mira")
FIELDS = ("user_id", "agent_id", "session_id", "namespace")

names = st.one_of(st.none(), st.sampled_from(["", "a", "b"]))
scopes = st.builds(Scope, user_id=names, agent_id=names, session_id=names, namespace=names)
owners = scopes.filter(lambda scope: bool(scope.set_fields()))
texts = st.text(st.characters(), max_size=40)
contents = texts.filter(lambda text: bool(text.strip()))
finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | finite | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
moments = st.datetimes(datetime(1970, 1, 2), datetime(9000, 1, 1), timezones=st.just(UTC))
records = st.builds(
    MemoryRecord,
    content=contents,
    kind=st.sampled_from(Kind),
    importance=st.floats(0, 1),
    tags=st.lists(st.text(max_size=8), max_size=4),
    evergreen=st.booleans(),
    metadata=st.dictionaries(st.text(max_size=5), values, max_size=3),
    scope=owners,
    created_at=moments,
    expires_at=st.none() | moments,
    origin=st.sampled_from(Origin),
    derived_from=st.lists(st.text(max_size=8), max_size=2),
)


def record(content: str = "Mira plays the cello", **fields: Any) -> MemoryRecord:
    return MemoryRecord.make(**{"content": content, "scope": MIRA, **fields})


# Scopes


@pytest.mark.parametrize(
    ("query", "owner", "seen"),
    [
        ({"user_id": "mira"}, {"user_id": "mira"}, True),
        ({"user_id": "mira"}, {"user_id": "mira", "agent_id": "cook"}, True),
        ({"user_id": "mira"}, {"user_id": "mira", "session_id": "s1"}, True),
        ({"user_id": "mira"}, {"user_id": "mira", "namespace": "work"}, True),
        ({"user_id": "mira"}, {"user_id": "tomas"}, False),
        ({"user_id": "mira"}, {"agent_id": "cook"}, False),
        ({"user_id": "mira", "agent_id": "cook"}, {"user_id": "mira"}, False),
        ({"user_id": "mira", "agent_id": "cook"}, {"user_id": "mira", "agent_id": "cook"}, True),
        ({"user_id": "mira", "agent_id": "cook"}, {"user_id": "mira", "agent_id": "tutor"}, False),
        ({"user_id": "mira", "agent_id": "cook"}, {"user_id": "tomas", "agent_id": "cook"}, False),
        ({"agent_id": "cook"}, {"user_id": "tomas", "agent_id": "cook"}, True),
        ({"session_id": "s1"}, {"user_id": "mira", "session_id": "s1"}, True),
        ({"namespace": "work"}, {"user_id": "mira"}, False),
        ({"user_id": "mira", "agent_id": ""}, {"user_id": "mira"}, True),
        ({}, {"user_id": "mira"}, False),
    ],
)
def test_the_table_of_query_and_owner(
    query: dict[str, str], owner: dict[str, str], seen: bool
) -> None:
    assert Scope(**query).matches(Scope(**owner)) is seen


@given(scopes, owners)
def test_a_set_field_must_be_equal_and_an_unset_one_matches_anything(
    query: Scope, owner: Scope
) -> None:
    asked = query.set_fields()
    expected = bool(asked) and all(getattr(owner, f) == value for f, value in asked.items())
    assert query.matches(owner) is expected
    assert Scope.EVERYONE.matches(owner)


@given(owners)
def test_a_record_is_found_with_the_very_scope_it_was_written_with(owner: Scope) -> None:
    assert owner.matches(owner)


@given(scopes)
def test_an_empty_string_is_an_absent_field(scope: Scope) -> None:
    assert "" not in scope.key()
    assert scope == Scope(**scope.set_fields())


@given(scopes)
def test_a_scope_without_a_field_is_neither_read_nor_written(scope: Scope) -> None:
    if scope.set_fields():
        assert scope.require_readable() is scope.require_writable() is scope
    else:
        with pytest.raises(ScopeError, match=r"EVERYONE"):
            scope.require_readable()
        with pytest.raises(ScopeError):
            scope.require_writable()


def test_everyone_is_read_and_never_written() -> None:
    assert Scope.EVERYONE.require_readable().is_everyone
    assert Scope() != Scope.EVERYONE
    with pytest.raises(ScopeError, match="cannot be written"):
        Scope.EVERYONE.require_writable()
    with pytest.raises(InvalidRecord, match="scope"):
        record(scope=Scope.EVERYONE)


@pytest.mark.parametrize("field", FIELDS)
def test_everyone_that_is_narrowed_is_refused_not_everyone_still(field: str) -> None:
    with pytest.raises(ScopeError, match="narrowed"):
        replace(Scope.EVERYONE, **{field: "mira"})
    assert replace(Scope.EVERYONE, **{field: ""}) == Scope.EVERYONE


@pytest.mark.parametrize("bad", ["  ", "\t", "a\x00b", "a\nb", "\ud800", "x" * 513, 7, b"mira"])
@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_no_store_can_keep_is_refused(field: str, bad: object) -> None:
    with pytest.raises(ScopeError, match=field):
        Scope(**{field: bad})  # type: ignore[arg-type]


@given(scopes, st.sampled_from(["agent", "user", "session", "global"]))
def test_presets_keep_their_fields_and_need_the_one_that_names_them(
    scope: Scope, preset: Any
) -> None:
    kept = {
        "agent": ("agent_id", "user_id"),
        "user": ("user_id",),
        "session": ("session_id", "agent_id", "user_id"),
        "global": (),
    }[preset]
    if preset == "global":
        assert scope.preset(preset).is_everyone
    elif getattr(scope, kept[0]) is None:
        with pytest.raises(ScopeError, match=kept[0]):
            scope.preset(preset)
    else:
        wanted = {f: v for f, v in scope.set_fields().items() if f in kept or f == "namespace"}
        assert scope.preset(preset).set_fields() == wanted


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ScopeError, match="galaxy"):
        MIRA.preset("galaxy")  # type: ignore[arg-type]


# Records


def test_1b_1_a_new_record_has_an_id_a_kind_no_tags_and_one_time() -> None:
    """Fact 1. Differs by design: times are aware datetimes, not integers."""
    made = record("hello")
    assert made.id
    assert made.kind is Kind.NOTE
    assert made.tags == ()
    assert made.created_at == made.updated_at == made.last_accessed_at
    assert made.created_at.tzinfo is UTC


def test_1b_2_kinds_by_name() -> None:
    """Fact 2. Differs by design: from Python an unknown kind is refused, `coerce` keeps it."""
    assert record(kind="decision").kind is Kind.DECISION
    assert record(kind=Kind.GOTCHA).kind is Kind.GOTCHA
    with pytest.raises(InvalidRecord, match="kind"):
        record(kind="bogus")
    assert Kind.coerce("bogus") == (Kind.NOTE, "bogus")


def test_1b_3_tags_are_lower_cased_and_each_once() -> None:
    """Fact 3."""
    assert record(tags=["Elixir", "elixir", "OTP"]).tags == ("elixir", "otp")


def test_1b_4_a_record_needs_a_content() -> None:
    """Fact 4. Differs by design: an error of ours, not a key error."""
    with pytest.raises(InvalidRecord, match="content"):
        MemoryRecord.make(scope=MIRA)


def test_1b_5_and_6_tokens() -> None:
    """Facts 5 and 6. Differs by design: short words are kept, so that Go and AI are found."""
    from memsheaf.index import get_analyzer, terms

    plain = get_analyzer("plain")
    found = terms(plain, "Elixir GenServer, supervision-tree!")
    assert {"elixir", "genserver", "supervision", "tree"} <= set(found)
    assert {"be", "cat", "done"} <= set(terms(plain, "a be cat done"))
    assert list(terms(plain, "")) == []


@given(records)
def test_json_and_back_is_the_same_record(made: MemoryRecord) -> None:
    assert MemoryRecord.from_json(made.to_json()) == made
    assert MemoryRecord.make(**json.loads(made.to_json())) == made


@given(texts)
def test_content_is_refused_blank_and_else_storable(text: str) -> None:
    if not text.strip():
        with pytest.raises(InvalidRecord, match="blank"):
            record(text)
        return
    kept = record(text).content
    assert len(kept) == len(text)
    kept.encode()
    assert "\x00" not in kept
    same = all(a == b or b == "\ufffd" for a, b in zip(text, kept, strict=True))
    assert same


@pytest.mark.parametrize("bad", [None, 5, b"text", ["text"]])
def test_content_that_is_no_text_is_refused(bad: object) -> None:
    with pytest.raises(InvalidRecord, match="content"):
        MemoryRecord.make(content=bad, scope=MIRA)


@given(st.floats() | st.integers() | st.booleans() | st.text(max_size=3))
def test_importance_lies_from_0_to_1_or_is_refused(value: float | int | bool | str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and 0 <= float(value) <= 1:
        assert record(importance=value).importance == value
    else:
        with pytest.raises(InvalidRecord, match="importance"):
            record(importance=value)


@given(st.lists(st.text(max_size=10), max_size=10))
def test_tags_are_normal_forms(tags: list[str]) -> None:
    kept = record(tags=tags).tags
    assert len(set(kept)) == len(kept)
    assert all(tag == tag.strip().lower() and tag for tag in kept)
    assert record(tags=kept).tags == kept


@pytest.mark.parametrize("bad", [["x" * 129], [str(n) for n in range(65)], {"a": 1}, 5, b"ab"])
def test_tags_beyond_the_rules_are_refused(bad: object) -> None:
    with pytest.raises(InvalidRecord, match="tags"):
        record(tags=bad)
    assert record(tags="One").tags == ("one",)


@pytest.mark.parametrize(
    "bad", [{"a": math.nan}, {"a": object()}, {1: "a"}, [1], "text", {"a": {"b": math.inf}}]
)
def test_metadata_is_json_or_refused(bad: object) -> None:
    with pytest.raises(InvalidRecord, match="metadata"):
        record(metadata=bad)


def test_metadata_that_nests_without_end_is_refused() -> None:
    deep: dict[str, Any] = {}
    deep["again"] = deep
    with pytest.raises(InvalidRecord, match="deep"):
        record(metadata=deep)


def test_metadata_is_a_copy_and_so_is_what_goes_out() -> None:
    mine = {"tags": ["a"]}
    kept = record(metadata=mine)
    mine["tags"].append("b")
    out = kept.copy_out()
    out.metadata["more"] = 1
    assert kept.metadata == {"tags": ["a"]}


@pytest.mark.parametrize("bad", ["", "  ", "a\nb", "x" * 257, "a\x00"])
def test_an_id_is_printable_and_short(bad: str) -> None:
    with pytest.raises(InvalidRecord, match="id"):
        record(id=bad)


def test_a_record_is_frozen_and_takes_no_unknown_field() -> None:
    made = record()
    with pytest.raises(ValueError, match="frozen"):
        made.content = "other"
    with pytest.raises(InvalidRecord, match="colour"):
        record(colour="red")


def test_the_error_names_the_field_and_never_the_value() -> None:
    with pytest.raises(InvalidRecord) as caught:
        record("my insulin dose is 14 units", importance="insulin", metadata={"x": object()})
    assert "importance" in str(caught.value)
    assert "insulin" not in f"{caught.value} {caught.value.__cause__}"


@given(records, st.timedeltas(timedelta(-5), timedelta(5)))
def test_an_expired_record_says_so(made: MemoryRecord, distance: timedelta) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    made = made.model_copy(update={"expires_at": at + distance})
    assert made.is_expired(at) is (distance <= timedelta(0))
    assert not made.model_copy(update={"expires_at": None}).is_expired(at)


@given(records)
def test_a_future_time_never_outranks_now(made: MemoryRecord) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert made.recency(at) == min(made.updated_at, at)


@given(records, moments, contents)
def test_a_change_keeps_the_rest_and_moves_the_time_on(
    made: MemoryRecord, at: datetime, text: str
) -> None:
    after = made.changed({"content": text}, at=at)
    assert after.updated_at > made.updated_at
    for name in ("id", "scope", "created_at", "metadata", "tags", "origin", "derived_from"):
        assert getattr(after, name) == getattr(made, name)


@pytest.mark.parametrize("field", ["id", "scope", "created_at", "origin", "access_count", "x"])
def test_identity_may_not_be_changed(field: str) -> None:
    with pytest.raises(InvalidRecord, match=field):
        record().changed({field: "other"})


def test_every_kind_has_one_class_and_a_class_means_its_first_kind() -> None:
    assert sorted(kind for c in KindClass for kind in c.kinds) == sorted(Kind)
    for kind_class in KindClass:
        assert Kind.parse(kind_class.value.upper()) is kind_class.kinds[0]
        assert all(kind.kind_class is kind_class for kind in kind_class.kinds)


@given(texts)
def test_the_key_of_equal_contents_folds_case_space_and_width(text: str) -> None:
    key = same_content_key(text)
    assert same_content_key(key) == key
    assert same_content_key(f"  {text}\n") == key
    assert same_content_key("\uff26ull  WIDTH") == same_content_key("full width")


# Times


@given(moments)
def test_every_shape_of_one_moment_is_that_moment(moment: datetime) -> None:
    assert parse_time(moment) == moment
    assert parse_time(moment.isoformat()) == moment
    east = moment.astimezone(timezone(timedelta(hours=9)))
    assert parse_time(east) == moment
    assert parse_time(east.isoformat()).utcoffset() == timedelta(0)


@given(st.datetimes(datetime(1980, 1, 1), datetime(3000, 1, 1)))
def test_a_time_without_a_zone_is_utc(naive: datetime) -> None:
    assert parse_time(naive) == parse_time(naive.isoformat()) == naive.replace(tzinfo=UTC)


def test_a_zone_that_does_not_know_its_offset_is_no_zone() -> None:
    class Unknown(tzinfo):
        def utcoffset(self, moment: datetime | None) -> None:
            return None

        tzname = dst = utcoffset

    naive = datetime(2026, 3, 1, 9)
    assert parse_time(naive.replace(tzinfo=Unknown())) == naive.replace(tzinfo=UTC)


@given(st.integers(200_000_000, 32_000_000_000), st.sampled_from([1, 10**3, 10**6, 10**9]))
def test_unix_times_are_told_apart_by_magnitude(seconds: int, unit: int) -> None:
    expected = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert parse_time(seconds * unit) == parse_time(str(seconds * unit)) == expected


@settings(max_examples=200)
@given(st.text(max_size=20) | st.integers() | st.floats() | st.none() | st.binary(max_size=3))
def test_anything_else_is_a_time_or_a_value_error(value: object) -> None:
    try:
        moment = parse_time(value)
    except ValueError:
        return
    assert moment.tzinfo is UTC


@pytest.mark.parametrize(
    "bad", [10**400, -(10**400), "9" * 400, "1e999", math.nan, True, "soon", b"2026", [2026], {}]
)
def test_what_is_no_time_is_a_value_error(bad: object) -> None:
    with pytest.raises(ValueError, match="time"):
        parse_time(bad)
    with pytest.raises(InvalidRecord, match="created_at"):
        record(created_at=bad)


# Filters


@given(
    records,
    st.lists(st.sampled_from(["procedural", "note", "fact", "episode"]), max_size=2),
    st.lists(st.text(max_size=2), max_size=2),
    st.lists(st.text(max_size=2), max_size=2),
    st.none() | moments,
    st.none() | moments,
)
def test_a_filter_is_all_its_conditions(
    made: MemoryRecord,
    kinds: list[str],
    any_of: list[str],
    all_of: list[str],
    since: datetime | None,
    until: datetime | None,
) -> None:
    chosen = Filter.make(kinds=kinds, tags_any=any_of, tags_all=all_of, since=since, until=until)
    members = {kind for name in kinds for kind in Kind.expand(name)}
    expected = (
        (not members or made.kind in members)
        and (not chosen.tags_any or any(tag in made.tags for tag in chosen.tags_any))
        and all(tag in made.tags for tag in chosen.tags_all)
        and (since is None or made.created_at >= since)
        and (until is None or made.created_at <= until)
    )
    assert chosen.matches(made) is expected


@given(records)
def test_metadata_conditions_compare_as_json(made: MemoryRecord) -> None:
    assert Filter(where=made.metadata).matches(made)
    assert not Filter(where={**made.metadata, "no such key": None}).matches(made)


@pytest.mark.parametrize(("held", "asked"), [(True, 1), (0, False), (1, True), ([True], [1])])
def test_true_and_1_differ_as_they_do_in_json(held: object, asked: object) -> None:
    assert not Filter.make(where={"x": asked}).matches(record(metadata={"x": held}))


@pytest.mark.parametrize(
    "empty",
    [None, {}, Filter(), {"tags_any": []}, {"tags_all": ()}, {"kinds": []}, {"where": {}},
     {"kinds": None, "tags_any": None, "where": None, "since": None}],
)  # fmt: skip
def test_bc_051_an_empty_condition_is_no_condition(empty: Any) -> None:
    assert Filter.of(empty) is None


@pytest.mark.parametrize(
    "bad",
    [{"scope": "*"}, {"tags": []}, {"kinds": ["bogus"]}, {"kinds": 5}, {"since": "soon"},
     {"tags_any": 5}, {"where": [1]}],
)  # fmt: skip
def test_a_wrong_condition_is_an_error_of_ours(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidQuery, match="filter"):
        Filter.of(bad)

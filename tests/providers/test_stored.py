"""Rows are read as quickly as their types can be checked, and no worse than by all the rules."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from memsheaf.providers.stored import read_stored
from memsheaf.stack import InvalidRecord, Kind, MemoryRecord, Origin, Scope

MOMENT = datetime(2026, 3, 1, 9, 30, 15, 123456, tzinfo=UTC)
WHOLE = MemoryRecord(
    id="r1",
    content='Mira "plays"\n the c\u00e9llo \U0001f3bb',
    kind=Kind.FACT,
    importance=0.25,
    tags=("music", "b c"),
    evergreen=True,
    metadata={"list": [1, 2.5, None, {"deep": "x"}], "text": "\u2028"},
    scope=Scope(user_id="mira", agent_id="cook", session_id="s", namespace="n"),
    created_at=MOMENT,
    updated_at=MOMENT + timedelta(days=1),
    last_accessed_at=MOMENT + timedelta(days=2),
    access_count=7,
    expires_at=MOMENT + timedelta(days=3),
    origin=Origin.IMPORT,
    derived_from=("i1", "i2"),
)
PLAIN = MemoryRecord(content="Otto bakes", scope=Scope(namespace="shop"))


@pytest.mark.parametrize("record", [WHOLE, PLAIN])
def test_it_reads_what_was_written(record: MemoryRecord) -> None:
    read = read_stored(record.to_json())
    assert read == record == MemoryRecord.from_json(record.to_json())
    assert list(read.__dict__) == list(record.__dict__)
    assert [type(value) for value in read.__dict__.values()] == [
        type(value) for value in record.__dict__.values()
    ]
    assert read.to_json() == record.to_json()
    times = (read.created_at, read.updated_at, read.last_accessed_at, read.expires_at)
    assert all(time is None or time.tzinfo is UTC for time in times)


def test_no_two_records_share_what_can_be_changed() -> None:
    one, two = read_stored(WHOLE.to_json()), read_stored(WHOLE.to_json())
    one.metadata["list"] = "changed"
    assert two == WHOLE
    first, second = read_stored(PLAIN.to_json()), read_stored(PLAIN.to_json())
    first.metadata["new"] = 1
    assert second.metadata == {}


DAMAGES: list[tuple[str, Any]] = [
    ("id", ""),
    ("id", 5),
    ("id", "a\u202e"),
    ("content", ""),
    ("content", " \u2003"),
    ("content", None),
    ("kind", "rumour"),
    ("importance", 1.5),
    ("importance", True),
    ("importance", float("nan")),
    ("tags", "x" * 200),
    ("tags", {"a": 1}),
    ("metadata", []),
    ("metadata", {"x": float("inf")}),
    ("scope", {"user_id": " "}),
    ("scope", {}),
    ("scope", None),
    ("scope", {"user": "mira"}),
    ("created_at", "yesterday"),
    ("updated_at", []),
    ("access_count", -1),
    ("access_count", 10**30),
    ("origin", "nobody"),
    ("derived_from", "i1"),
    ("surplus", 1),
]


@pytest.mark.parametrize(("name", "value"), DAMAGES)
def test_a_damaged_row_is_refused(name: str, value: object) -> None:
    fields = {**json.loads(WHOLE.to_json()), name: value}
    with pytest.raises(InvalidRecord):
        read_stored(json.dumps(fields))


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"id": "r1"', "not JSON"])
def test_what_is_no_row_is_refused(text: str) -> None:
    with pytest.raises(InvalidRecord):
        read_stored(text)


def test_what_was_written_by_hand_is_read_by_all_the_rules() -> None:
    fields = {"content": "by hand", "scope": {"user_id": "mira"}, "tags": ["B", "b "]}
    assert read_stored(json.dumps(fields)).tags == ("b",)
    there = MOMENT.astimezone(timezone(timedelta(hours=2)))
    moved = {**json.loads(WHOLE.to_json()), "created_at": there.isoformat(), "content": "a\0b"}
    read = read_stored(json.dumps(moved))
    assert (read.created_at, read.content) == (MOMENT, "a\ufffdb")
    assert read.created_at.tzinfo is UTC

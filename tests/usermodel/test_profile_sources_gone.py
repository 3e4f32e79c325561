"""Items that are gone from the log take along what rests on nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from memsheaf.sessionsearch import Item
from memsheaf.usermodel import Add, LineKind, UserModel

Say = Callable[..., Item]


def test_lines_go_with_their_last_source(model: UserModel, say: Say, folder: Path) -> None:
    kept, gone, both = (
        say("Loves zebras"),
        say("Hates walruses", 0, "d"),
        say("Loves zebras", 1, "d"),
    )
    model.observe([kept, gone, both], user_id="mira")
    model.refresh("mira")
    model.correct("mira", None, "Has a boat")
    made = model.forget_sources("mira", conversations=["d"])
    assert (made.lines, made.items, made.erased) == (1, 0, True)
    lines = {line.text: line for line in model.profile("mira").current}
    assert set(lines) == {"Loves zebras", "Has a boat"}
    assert (lines["Loves zebras"].times, lines["Loves zebras"].sources) == (1, ("c:0",))
    assert [(c.action, c.text) for c in model.history("mira")][-2:] == [
        ("weakened", "Loves zebras"),
        ("forgotten", None),
    ]
    assert b"walruses" not in b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
    assert model.observe([gone, both], user_id="mira").repeated == 2


def test_items_that_wait_are_not_derived(model: UserModel, say: Say, folder: Path) -> None:
    model.observe([say("Loves zebras"), say("Hates walruses", 1)], user_id="mira")
    made = model.forget_sources("mira", ["c:1"])
    assert (made.lines, made.items) == (0, 1)
    assert b"walruses" not in b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
    assert [line.text for line in model.refresh("mira").current] == ["Loves zebras"]


def test_a_batch_in_flight_does_not_bring_them_back(
    open_model: Any, say: Say, echo_deriver: Any
) -> None:
    holder: list[UserModel] = []

    def act(profile: Any, items: Any) -> list[Add]:
        holder[0].forget_sources("mira", [items[0]])
        return [Add(LineKind.FACT, item.text, 0.8, (item.id,)) for item in items]

    model = open_model(echo_deriver(act))
    holder.append(model)
    model.observe([say("Hates walruses"), say("Loves zebras", 1)], user_id="mira")
    assert [line.text for line in model.refresh("mira").current] == ["Loves zebras"]
    assert model.status().waiting == 0


def test_what_is_not_meant_stays(model: UserModel, say: Say) -> None:
    model.observe([say("one", 1), say("eleven", 11), say("other", 0, "cc")], user_id="mira")
    model.observe(say("one", 1), user_id="noor")
    before = model.refresh("mira")
    noor = model.refresh("noor")
    assert model.forget_sources("mira", ["c:2", "d:1"], conversations=["x"]).lines == 0
    assert model.profile("mira") == before
    model.forget_sources("mira", ["c:1"], conversations=["cc"])
    assert [line.text for line in model.profile("mira").current] == ["eleven"]
    assert model.profile("noor") == noor


def test_a_line_that_ended_by_a_gone_item_stays_ended(model: UserModel, say: Say) -> None:
    model.observe(say("Lives in Rome"), user_id="mira")
    model.refresh("mira")
    model.correct("mira", "L1", "Lives in Porto")
    model.forget_sources("mira", conversations=["c"])
    assert [line.text for line in model.profile("mira")] == ["Lives in Porto"]

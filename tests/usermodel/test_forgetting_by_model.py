"""Any sequence of handing over, deriving, correcting and forgetting, against plain lists."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.stack import NotFound, Scope
from memsheaf.usermodel import Add, LineKind, Operation, Profile, UserModel, owner_of

OWNERS = ["mira", str(owner_of(Scope(user_id="mira", namespace="work"))), "noor"]
WORDS = ["zebras", "walruses", "marzipan", "quartz"]
TALKS = ["a", "b"]

owners, talks = st.sampled_from(OWNERS), st.sampled_from(TALKS)
texts = st.sampled_from([f"Loves {word}" for word in WORDS])
places = st.integers(0, 20)
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("observe"), owners, talks, texts),
        st.tuples(st.just("refresh"), owners),
        st.tuples(st.just("correct"), owners, places, texts),
        st.tuples(st.just("forget_line"), owners, places),
        st.tuples(st.just("forget_talk"), owners, talks),
        st.tuples(st.just("forget_user"), owners),
    ),
    max_size=25,
)


class Echo:
    """Takes every item as one line."""

    name = "echo"

    def derive(self, profile: Profile, items: Sequence[Item]) -> list[Operation]:
        return [Add(LineKind.FACT, item.text, 0.8, (item.id,)) for item in items]


@dataclass
class Known:
    """What a user model should know of an owner.

    Attributes:
        lines: Text and sources of each line by its number, those that ended included.
        current: The numbers of those that hold.
        instead: The number of the user's line that took the place of another.
        waiting: Id and text of what was handed over.
        last: The last number.
    """

    lines: dict[int, tuple[str, list[str]]] = field(default_factory=dict)
    current: set[int] = field(default_factory=set)
    instead: dict[int, int] = field(default_factory=dict)
    waiting: list[tuple[str, str]] = field(default_factory=list)
    last: int = 0

    def add(self, text: str, sources: list[str]) -> int:
        self.last += 1
        self.lines[self.last] = text, sources
        self.current.add(self.last)
        return self.last

    def keep(self, numbers: set[int]) -> None:
        self.lines = {number: self.lines[number] for number in sorted(numbers)}
        self.current &= numbers
        self.instead = {n: by for n, by in self.instead.items() if {n, by} <= numbers}

    def stands_for(self, number: int) -> int | None:
        """The line that holds in the place of one."""
        while number not in self.current and number in self.instead:
            number = self.instead[number]
        return number if number in self.current else None

    def refresh(self) -> None:
        for item_id, text in self.waiting:
            said = [n for n, line in self.lines.items() if line[0] == text]
            twin = next((n for n in said if n in self.current), None)
            better = next((by for n in said if (by := self.stands_for(n)) is not None), None)
            if twin is None and better is not None:
                twin = next((n for n in said if self.instead.get(n) == better), None)
                if twin is None:
                    made = self.add(text, [item_id])
                    self.current.remove(made)
                    self.instead[made] = better
                    continue
            if twin is None:
                self.add(text, [item_id])
            else:
                self.lines[twin][1].append(item_id)
        self.waiting = []


def correct(model: UserModel, known: Known, owner: str, place: int, text: str) -> None:
    number = sorted(known.current)[place % len(known.current)] if known.current else None
    model.correct(owner, None if number is None else f"L{number}", text, LineKind.FACT)
    replaced = {n for n in known.current if n == number or known.lines[n][0] == text}
    known.current -= replaced
    known.instead |= dict.fromkeys(replaced, known.add(text, []))


def forget_line(model: UserModel, known: Known, owner: str, place: int) -> None:
    number = [*known.lines, 99][place % (len(known.lines) + 1)]
    if number == 99:
        try:
            model.forget(owner, "L99")
        except NotFound:
            return
        raise AssertionError("there is no such line")
    text = known.lines[number][0]
    same = {n for n, (said, _) in known.lines.items() if said == text}
    gone = [item for item in known.waiting if item[1] == text]
    made = model.forget(owner, f"L{number}")
    assert (made.lines, made.items, made.erased) == (len(same), len(gone), True)
    known.keep(known.lines.keys() - same)
    known.waiting = [item for item in known.waiting if item[1] != text]


def forget_talk(model: UserModel, known: Known, owner: str, talk: str) -> None:
    lost = set()
    for number, (text, sources) in known.lines.items():
        left = [source for source in sources if not source.startswith(f"{talk}:")]
        if sources and not left:
            lost.add(number)
        known.lines[number] = text, left
    gone = [item for item in known.waiting if item[0].startswith(f"{talk}:")]
    made = model.forget_sources(owner, conversations=[talk])
    assert (made.lines, made.items, made.erased) == (len(lost), len(gone), True)
    known.keep(known.lines.keys() - lost)
    known.waiting = [item for item in known.waiting if item not in gone]


def agree(model: UserModel, known: Known, owner: str) -> None:
    profile = model.profile(owner)
    assert [(line.id, line.text, list(line.sources)) for line in profile.lines] == [
        (f"L{number}", *line) for number, line in known.lines.items()
    ]
    assert {line.id for line in profile.current} == {f"L{number}" for number in known.current}
    block = model.build_user_context(owner) or ""
    for number, (text, _) in known.lines.items():
        assert (f"- {text} [L{number}," in block) is (number in known.current)
    assert model.status(owner).waiting == len(known.waiting)


@given(calls=CALLS)
@settings(max_examples=25, deadline=None)
def test_what_is_known_is_what_was_said_and_not_forgotten(calls: list[tuple[Any, ...]]) -> None:
    table = {owner: Known() for owner in OWNERS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "users")
        model = UserModel(folder, deriver=Echo(), background=False)
        for number, (call, owner, *given) in enumerate(calls):
            known = table[owner]
            if call == "observe":
                item = Item(given[0], number, "message", given[1], "user", ItemOrigin.USER)
                assert model.observe(item, user_id=owner).accepted == 1
                known.waiting.append((item.id, given[1]))
            elif call == "refresh":
                model.refresh(owner)
                known.refresh()
            elif call == "forget_user":
                model.forget(owner)
                table[owner] = Known()
            else:
                act: Callable[..., None] = globals()[call]
                act(model, known, owner, *given)
            for each in OWNERS:
                agree(model, table[each], each)
        model.close()
        left = b"".join(path.read_bytes() for path in folder.iterdir())
    held = str([(known.lines, known.waiting) for known in table.values()])
    assert all(word in held or word.encode() not in left for word in WORDS)

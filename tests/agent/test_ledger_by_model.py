"""Any sequence of calls on two ledgers of one file, against a plain table."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.agent import BlockLedger
from memsheaf.agent.ledger import Sent
from memsheaf.stack import Scope

OWNERS = [Scope(user_id="mira"), Scope(user_id="mira", agent_id="cook"), Scope(namespace="work")]
NOTHING = Sent("", "")

owners, conversations = st.sampled_from(OWNERS), st.sampled_from(["c", "d"])
records = st.lists(st.sampled_from(["m1", "m2"]), unique=True)
marks = st.sampled_from(["old", "new"])
CALLS = st.lists(
    st.one_of(
        st.tuples(
            st.just("keep"),
            owners,
            conversations,
            st.sampled_from(["t1", "t2"]),
            records,
            st.just("") | marks,
            st.none() | st.integers(0, 3),
        ),
        st.tuples(st.just("drop"), records),
        st.tuples(st.just("outdate"), owners, marks),
        st.tuples(st.just("erase"), owners, st.none() | conversations),
    ),
    max_size=25,
)


@dataclass
class Table:
    """What two ledgers should hold.

    Attributes:
        turns: What was sent, and the memories in it, by owner, conversation and turn.
        dropped: The memories that were dropped, in order.
        issued: The ids of the blocks.
    """

    turns: dict[tuple[Scope, str, str], tuple[Sent, set[str]]] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    issued: set[str] = field(default_factory=set)

    def sent(self, owner: Scope, conversation: str) -> dict[str, Sent]:
        return {k[2]: sent for k, (sent, _) in self.turns.items() if k[:2] == (owner, conversation)}

    def keep(
        self, place: tuple[Scope, str, str], made: Sent, held: list[str], since: int | None
    ) -> Sent:
        if place not in self.turns:
            gone = since is not None and not self.dropped_since(since).isdisjoint(held)
            self.turns[place] = (NOTHING, set()) if gone else (made, set(held))
            self.issued |= {self.turns[place][0].block_id} - {""}
        return self.turns[place][0]

    def dropped_since(self, since: int) -> set[str]:
        return set(self.dropped[since:])

    def drop(self, record_id: str) -> int:
        self.dropped.append(record_id)
        holders = [place for place, (_, held) in self.turns.items() if record_id in held]
        texts = [self.turns[place][0].text for place in holders]
        for place in holders:
            self.turns[place] = NOTHING, self.turns[place][1] - {record_id}
        return sum(map(bool, texts))

    def outdate(self, owner: Scope, mark: str) -> int:
        others = [
            p for p, (s, _) in self.turns.items() if p[0] == owner and s.mark not in ("", mark)
        ]
        for place in others:
            self.turns[place] = NOTHING, set()
        return len(others)

    def erase(self, scope: Scope, conversation: str | None) -> int:
        gone = [p for p in self.turns if scope.matches(p[0]) and conversation in (None, p[1])]
        for place in gone:
            del self.turns[place]
        return len(gone)


@given(calls=CALLS)
@settings(max_examples=25, deadline=None)
def test_two_ledgers_of_a_file_hold_what_was_kept_and_not_forgotten(
    calls: list[tuple[Any, ...]],
) -> None:
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        ledgers = [BlockLedger(Path(folder, "ledger.db")) for _ in range(2)]
        for number, (name, *given) in enumerate(calls):
            ledger = ledgers[number % 2]
            if name == "keep":
                owner, conversation, turn, held, mark, since = given
                made = Sent(f"{number:08x}", f"block {number}", mark)
                kept = ledger.keep(
                    owner,
                    conversation,
                    turn,
                    made.block_id,
                    made.text,
                    held,
                    mark=mark,
                    since=since,
                )
                assert kept == table.keep((owner, conversation, turn), made, held, since)
            elif name == "drop":
                assert ledger.drop(given[0]) == sum(map(table.drop, given[0]))
            elif name == "outdate":
                assert ledger.outdate(*given) == table.outdate(*given)
            else:
                assert ledger.erase(*given) == table.erase(*given)
            for each in ledgers:
                assert each.dropped() == len(table.dropped)
                assert all(block_id in each for block_id in table.issued)
                for owner in OWNERS:
                    assert each.sent(owner, "c") == table.sent(owner, "c")
                    assert each.sent(owner, "d") == table.sent(owner, "d")
        for each in ledgers:
            each.close()

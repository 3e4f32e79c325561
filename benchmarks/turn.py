"""What memory costs a turn: recall and injection, and the work that goes on behind it.

Run: python -m benchmarks.turn --json turn.json
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from benchmarks.children import findable
from benchmarks.corpus import Zipf
from memsheaf.agent import AgentMemory, ReflectionSettings, Reflector, TurnOptions, run_turn
from memsheaf.models import ScriptedModel
from memsheaf.providers.local import LocalStore
from memsheaf.sessionsearch import Item, ItemOrigin, open_sessions
from memsheaf.stack import MemoryRecord, MemoryStack, Scope
from memsheaf.usermodel import Add, LineKind, Operation, Profile, RefreshSettings, UserModel

SCOPE = Scope(user_id="mira")
SLOW = 2.0
"""Seconds that the model behind the turn takes."""


class _Lines:
    """A deriver that keeps each item as a line."""

    name = "lines"

    def __init__(self, delay: float) -> None:
        self._delay = delay

    def derive(self, profile: Profile, items: Sequence[Item]) -> list[Operation]:
        time.sleep(self._delay)
        return [Add(LineKind.FACT, item.text, 0.9, (item.id,)) for item in items]


def _milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def _stored(folder: Path, memories: int) -> LocalStore:
    store = LocalStore(folder)
    texts = [record.text for record in Zipf().records(memories)]
    refused = store.store_many([MemoryRecord(content=text, scope=SCOPE) for text in texts])
    if any(refused):
        raise SystemExit("not every memory was stored")
    return store


def _write(folder: Path, memories: int) -> None:
    _stored(folder, memories).close()


def _stored_elsewhere(folder: Path, memories: int) -> LocalStore:
    """Return a store that another process wrote: this one has seen none of its records."""
    with findable():
        writer = get_context("spawn").Process(target=_write, args=(folder, memories))
        writer.start()
        writer.join()
    if writer.exitcode != 0:
        raise SystemExit("the other process did not store the memories")
    return LocalStore(folder)


def recall_and_injection(
    folder: Path, memories: int, lines: int, turns: int, *, elsewhere: bool = False
) -> dict[str, float]:
    """Time `before_request` with a durable store and a profile.

    Args:
        folder: Where to keep them.
        memories: Memories in the store.
        lines: Lines of the profile.
        turns: Messages to time.
        elsewhere: Whether another process wrote the store, which is opened anew.
    """
    zipf = Zipf()
    store = (_stored_elsewhere if elsewhere else _stored)(folder / "store", memories)
    with (
        MemoryStack([store], scope=SCOPE) as stack,
        UserModel(folder / "profiles", deriver=_Lines(0.0)) as users,
    ):
        texts = [record.text for record in zipf.records(lines, first=memories)]
        users.observe(
            [
                Item("c", n, "message", text, role="user", origin=ItemOrigin.USER)
                for n, text in enumerate(texts)
            ],
            user_id="mira",
        )
        users.refresh("mira")
        memory = AgentMemory(stack=stack, user_model=users)
        taken: list[float] = []
        injected = 0
        for number, text in enumerate(zipf.queries(turns + 10)):
            request = [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": text},
            ]
            start = time.perf_counter()
            made = memory.before_request(request, conversation=f"c{number}")
            if number >= 10:
                taken.append((time.perf_counter() - start) * 1000)
                injected += made.block is not None
        return {
            "p50_ms": median(taken),
            "p95_ms": quantiles(taken, n=20)[-1],
            "injected_share": injected / turns,
            "profile_lines": len(users.profile("mira").current),
        }


def behind_the_turn(folder: Path, turns: int) -> dict[str, float]:
    """Time whole turns with and without reflection and user model, whose model takes 2 s."""
    zipf = Zipf()
    with (
        MemoryStack([_stored(folder / "store", 1_000)], scope=SCOPE) as stack,
        open_sessions(folder / "sessions") as sessions,
        UserModel(
            folder / "profiles",
            deriver=_Lines(SLOW),
            settings=RefreshSettings(max_age=0.0, close_seconds=0.1),
        ) as users,
    ):
        reflector = Reflector(
            stack, ScriptedModel(lambda request: "[]", delay=SLOW), settings=ReflectionSettings()
        )
        plain = AgentMemory(stack=stack, sessions=sessions)
        whole = AgentMemory(stack=stack, sessions=sessions, user_model=users, reflector=reflector)
        alone: list[float] = []
        with_both: list[float] = []
        model = ScriptedModel(lambda request: "All right.")
        for number, text in enumerate(zipf.queries(turns)):
            sides = [(plain, alone), (whole, with_both)]
            for memory, taken in sides if number % 2 else reversed(sides):

                def turn(memory: AgentMemory = memory, text: str = text) -> None:
                    run_turn(
                        text,
                        memory=memory,
                        model=model,
                        conversation=f"{id(memory)}-{number}",  # noqa: B023
                        options=TurnOptions(memory_tools=False),
                    )

                taken.append(_milliseconds(turn))
        reflector.close(timeout=0.1)
        return {
            "alone_ms": median(alone),
            "with_background_ms": median(with_both),
            "difference_ms": median(with_both) - median(alone),
        }


def main() -> None:
    """Run both and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    with TemporaryDirectory() as one, TemporaryDirectory() as two, TemporaryDirectory() as three:
        sizes = (options.memories, options.lines, options.turns)
        recall = recall_and_injection(Path(one), *sizes)
        print(
            f"recall and injection, {options.memories:,} memories, "
            f"{recall['profile_lines']:.0f} lines of profile: p50 {recall['p50_ms']:.2f} ms, "
            f"p95 {recall['p95_ms']:.2f} ms, bound 3 ms; "
            f"{recall['injected_share']:.0%} of the turns got a block"
        )
        reopened = recall_and_injection(Path(three), *sizes, elsewhere=True)
        print(
            f"the same with a store that another process wrote: p50 {reopened['p50_ms']:.2f} ms, "
            f"p95 {reopened['p95_ms']:.2f} ms"
        )
        behind = behind_the_turn(Path(two), options.turns)
        print(
            f"a turn alone {behind['alone_ms']:.2f} ms, with reflection and user model at "
            f"{SLOW:g} s behind it {behind['with_background_ms']:.2f} ms: "
            f"{behind['difference_ms']:+.2f} ms, bound +1 ms"
        )
    if options.json:
        options.json.write_text(
            json.dumps({"recall": recall, "reopened": reopened, "behind": behind}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()

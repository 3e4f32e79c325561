"""The user model under load and kill -9: order, exactly once, and what handing over costs.

One process hands over what many users say; others derive it with a scripted model that takes its
time. All of them are killed again and again while they work. At the end every profile is read:
each item must have become one line, in the order in which its user said it.

Run: python -m benchmarks.usermodel --json usermodel.json
"""

import argparse
import json
import os
import signal
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory

from benchmarks.children import findable
from memsheaf.models import ChatRequest, ScriptedModel
from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.usermodel import Add, LineKind, Operation, Profile, RefreshSettings, UserModel

_SPAWN = get_context("spawn")
_ACK = struct.Struct("<Qd")
_FEEDER = "feeder"


@dataclass(frozen=True, slots=True)
class Load:
    """What one run does."""

    users: int
    items: int
    kills: int
    processes: int
    workers: int
    batch: int
    delay: float

    def settings(self) -> RefreshSettings:
        """Settings of the queue: small batches, and leases that a kill does not hold for long."""
        return RefreshSettings(
            batch_items=self.batch,
            max_age=1.0,
            capacity=self.items + 1,
            workers=self.workers,
            lease=3.0,
            attempts=self.kills + 2,
            poll=0.2,
        )

    def said(self, number: int) -> tuple[str, Item]:
        """The item of a number, and who says it."""
        user, seq = f"user-{number % self.users}", number // self.users
        text = f"My statement number {seq}"
        return user, Item(f"of {user}", seq, "message", text, "user", ItemOrigin.USER)


class ScriptedDeriver:
    """One line per item, after a scripted model took its time."""

    name = "scripted"

    def __init__(self, delay: float) -> None:
        self._model = ScriptedModel(_echo, delay=delay)

    def derive(self, profile: Profile, items: Sequence[Item]) -> Sequence[Operation]:
        """Ask the model what the user said, and take it at its word."""
        asked = json.dumps([item.text for item in items])
        reply = self._model.complete([{"role": "user", "content": asked}], json_mode=True)
        self._model.calls.clear()
        texts = json.loads(reply.text)
        return [
            Add(LineKind.FACT, text, 0.9, (item.id,))
            for text, item in zip(texts, items, strict=True)
        ]


def _echo(request: ChatRequest) -> str:
    return str(request.messages[0]["content"])


def _hand_over(folder: str, load: Load, first: int, acks: Connection) -> None:
    """Hand over all items from a number on, and tell of each that it is durable, and its cost."""
    with UserModel(
        folder, deriver=ScriptedDeriver(0), settings=load.settings(), background=False
    ) as model:
        for number in range(first, load.items):
            user, item = load.said(number)
            start = time.perf_counter()
            model.observe(item, user_id=user)
            acks.send_bytes(_ACK.pack(number, time.perf_counter() - start))


def _derive(folder: str, load: Load) -> None:
    """Derive in the background until killed."""
    deriver = ScriptedDeriver(load.delay)
    with UserModel(folder, deriver=deriver, settings=load.settings()):
        while True:
            time.sleep(60)


class Run:
    """The processes of a run."""

    def __init__(self, folder: str, load: Load) -> None:
        self.folder, self.load = folder, load
        self.acknowledged = 0
        self.costs: list[float] = []
        self.kills = 0
        self.in_flight: list[int] = []
        self._derivers = [self._start_deriver() for _ in range(load.processes)]
        self._feeder, self._acks = self._start_feeder()

    def feed(self) -> None:
        """Hand everything over, and kill a process at even distances; every third is the feeder."""
        while self.acknowledged < self.load.items:
            self._read_acks()
            due = self.load.items * (self.kills + 1) // (self.load.kills + 1)
            if self.kills < self.load.kills and self.acknowledged >= due:
                self._kill_one()
        self._feeder.join(60)

    def finish(self, timeout: float) -> None:
        """Wait until nothing waits, and end the derivers."""
        until = time.monotonic() + timeout
        try:
            with UserModel(self.folder, deriver=ScriptedDeriver(0), background=False) as model:
                while model.status(limit=0).waiting and time.monotonic() < until:
                    time.sleep(0.2)
        finally:
            for process in self._derivers:
                _kill(process)

    def _read_acks(self) -> None:
        try:
            if self._acks.poll(0.2):
                number, cost = _ACK.unpack(self._acks.recv_bytes())
                self.costs.append(cost)
                self.acknowledged = number + 1
        except EOFError:
            self._feeder.join(60)
            self._feeder, self._acks = self._start_feeder()

    def _kill_one(self) -> None:
        self.kills += 1
        if self.kills % 3 == 0:
            _kill(self._feeder)  # what it had sent is read before the end of its pipe
            return
        place = self.kills % len(self._derivers)
        _kill(self._derivers[place])
        self.in_flight.append(self._count_in_flight())
        self._derivers[place] = self._start_deriver()

    def _count_in_flight(self) -> int:
        """Items that somebody derives, or derived when it was killed."""
        with UserModel(self.folder, deriver=ScriptedDeriver(0), background=False) as model:
            items = model.status(limit=self.load.items).items
        return sum(item.state == "deriving" for item in items)

    def _start_feeder(self) -> tuple[SpawnProcess, Connection]:
        """Start at the last acknowledged item: handing it over again must change nothing."""
        acks, theirs = _SPAWN.Pipe(duplex=False)
        first = max(0, self.acknowledged - 1)
        process = _SPAWN.Process(target=_hand_over, args=(self.folder, self.load, first, theirs))
        with findable():
            process.start()
        theirs.close()
        return process, acks

    def _start_deriver(self) -> SpawnProcess:
        process = _SPAWN.Process(target=_derive, args=(self.folder, self.load), daemon=True)
        with findable():
            process.start()
        return process


def _kill(process: SpawnProcess) -> None:
    if process.pid is not None:
        os.kill(process.pid, signal.SIGKILL)
    process.join(60)


def verify(folder: str, load: Load) -> dict[str, int]:
    """Count what is wrong: items that are missing or twice, and users whose order is broken."""
    missing = twice = disordered = batches = 0
    with UserModel(folder, deriver=ScriptedDeriver(0), background=False) as model:
        for user in range(load.users):
            profile = model.profile(f"user-{user}")
            batches += profile.version
            expected = [load.said(n)[1].id for n in range(user, load.items, load.users)]
            found = [source for line in profile.lines for source in line.sources]
            times = sum(line.times for line in profile.lines)
            missing += len(set(expected) - set(found))
            twice += max(times, len(found)) - len(set(found))
            disordered += found != [item_id for item_id in expected if item_id in set(found)]
        status = model.status(limit=0)
    return {
        "batches": batches,
        "missing": missing,
        "twice": twice,
        "users_out_of_order": disordered,
        "set_aside": status.set_aside,
    }


def run(load: Load, timeout: float) -> dict[str, object]:
    """One run, with its figures.

    Args:
        load: What to do.
        timeout: Seconds to wait for the last item after the last hand-over.
    """
    with TemporaryDirectory() as folder:
        start = time.monotonic()
        going = Run(folder, load)
        try:
            going.feed()
            fed = time.monotonic() - start
        finally:
            going.finish(timeout)
        seconds = time.monotonic() - start
        found = verify(folder, load)
    cuts = quantiles(going.costs, n=100) if len(going.costs) > 1 else going.costs * 99
    return {
        "users": load.users,
        "items": load.items,
        "kills": going.kills,
        "in_flight_at_kills": going.in_flight,
        "handover_ms": {f"p{p}": round(cuts[p - 1] * 1000, 3) for p in (50, 95, 99)},
        "fed_seconds": round(fed, 1),
        "seconds": round(seconds, 1),
        **found,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print the figures, and return 1 where an item was lost, repeated or out of order."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2, help="that derive")
    parser.add_argument("--workers", type=int, default=32, help="threads of each")
    parser.add_argument("--batch", type=int, default=10, help="the most items of a batch")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds of the model's reply")
    parser.add_argument("--timeout", type=float, default=150.0, help="seconds for the last items")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = vars(parser.parse_args(arguments))
    target, timeout = given.pop("json"), given.pop("timeout")
    figures = run(Load(**given), timeout)
    text = json.dumps(figures, indent=2)
    print(text)
    if target is not None:
        target.write_text(text + "\n", encoding="utf-8")
    wrong = ("missing", "twice", "users_out_of_order", "set_aside")
    return int(any(figures[name] for name in wrong))


if __name__ == "__main__":
    sys.exit(main())

"""Several processes on one log, a fork, and kill -9 at any moment."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memsheaf.sessionsearch import ConversationLog, NewItem
from memsheaf.stack import Scope

MIRA = Scope(user_id="mira")

WRITER = """
import sys
from memsheaf.sessionsearch import ConversationLog, NewItem
from memsheaf.stack import Scope

path, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
log = ConversationLog(path, timeout=60)
for number in range(rounds):
    batch = [NewItem("message", f"{name} {number} {part}") for part in range(3)]
    print(*(item.seq for item in log.append("c", batch, Scope(user_id="mira"))), flush=True)
log.close()
"""


def start(path: Path, name: str, rounds: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(rounds)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_numbers_have_no_gaps_and_batches_stay_whole(log_path: Path) -> None:
    writers = [start(log_path, name, 12) for name in ("one", "two")]
    with ConversationLog(log_path, timeout=60) as log:

        def write(name: str) -> None:
            for number in range(12):
                batch = [NewItem("message", f"{name} {number} {part}") for part in range(3)]
                log.append("c", batch, MIRA)

        threads = [threading.Thread(target=write, args=(name,)) for name in ("three", "four")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        for writer in writers:
            writer.communicate(timeout=100)
            assert writer.returncode == 0
        items = log.items("c", MIRA, limit=None)
    assert [item.seq for item in items] == list(range(4 * 12 * 3))
    for first in range(0, len(items), 3):
        words = [item.text.split() for item in items[first : first + 3]]
        assert len({tuple(w[:2]) for w in words}) == 1
        assert [w[2] for w in words] == ["0", "1", "2"]
    for name in ("one", "two", "three", "four"):
        mine = [item.text.split()[1] for item in items if item.text.startswith(name + " ")]
        assert mine == [str(n) for n in range(12) for _ in range(3)]


@pytest.mark.parametrize("lines", [1, 25])
def test_nothing_acknowledged_is_lost_to_a_kill(log_path: Path, lines: int) -> None:
    writer = start(log_path, "one", 100_000)
    assert writer.stdout is not None
    acknowledged = [writer.stdout.readline().split() for _ in range(lines)]
    writer.kill()
    rest = writer.communicate(timeout=60)[0].splitlines(keepends=True)
    acknowledged += [line.split() for line in rest if line.endswith("\n")]
    with ConversationLog(log_path) as log:
        seqs = [item.seq for item in log.items("c", MIRA, limit=None)]
        assert seqs == list(range(len(seqs)))
        assert len(seqs) % 3 == 0  # a batch is there or not
        assert len(seqs) >= 3 * len(acknowledged)
        assert log.append("c", NewItem("message", "next"), MIRA)[0].seq == len(seqs)


def test_both_sides_of_a_fork_go_on(log: ConversationLog) -> None:
    log.append("c", NewItem("message", "before"), MIRA)
    child = os.fork()
    if child == 0:
        try:
            log.append("c", NewItem("message", "child"), MIRA)
            os._exit(0)
        except BaseException:
            os._exit(1)
    log.append("c", NewItem("message", "parent"), MIRA)
    assert os.waitpid(child, 0)[1] == 0
    found = log.items("c", MIRA)
    assert [item.seq for item in found] == [0, 1, 2]
    assert {item.text for item in found} == {"before", "child", "parent"}

"""Several processes on one folder, a fork, and kill -9 at any moment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memsheaf.sessionsearch import Item
from memsheaf.usermodel import RefreshSettings, UserModel

Say = Callable[..., Item]
Opens = Callable[..., UserModel]

COMMON = """
import sys, time
from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.usermodel import Add, LineKind, RefreshSettings, UserModel

class Slow:
    name = "slow"
    def derive(self, profile, items):
        print("deriving", flush=True)
        time.sleep(float(sys.argv[2]))
        return [Add(LineKind.FACT, item.text, 0.8, (item.id,)) for item in items]

rules = RefreshSettings(max_age=0.05, batch_items=3, lease=1.0, poll=0.05, attempts=50)
"""
FEEDER = (
    COMMON
    + """
with UserModel(sys.argv[1], deriver=Slow(), settings=rules, background=False) as model:
    for seq in range(100_000):
        item = Item("c", seq, "message", f"statement {seq}", "user", ItemOrigin.USER)
        model.observe(item, user_id=f"user {seq % 4}")
        print(seq, flush=True)
"""
)
DERIVER = (
    COMMON
    + """
with UserModel(sys.argv[1], deriver=Slow(), settings=rules):
    time.sleep(300)
"""
)
ENDS = (
    COMMON
    + """
model = UserModel(sys.argv[1], deriver=Slow(), settings=RefreshSettings())
item = Item("c", 0, "message", "said just before the end", "user", ItemOrigin.USER)
model.observe(item, user_id="mira")
"""
)


def start(code: str, folder: Path, delay: float = 0.0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, str(folder), str(delay)],
        stdout=subprocess.PIPE,
        text=True,
    )


def kill_after_lines(process: subprocess.Popen[str], lines: int) -> list[str]:
    """Kill a process that has printed so much; returns all that it printed."""
    assert process.stdout is not None
    printed = [process.stdout.readline() for _ in range(lines)]
    process.kill()
    rest = process.communicate(timeout=60)[0].splitlines(keepends=True)
    return [line.strip() for line in printed + rest if line.endswith("\n")]


def test_what_was_handed_over_survives_and_is_derived_once(folder: Path, echo_deriver: Any) -> None:
    acknowledged = [int(line) for line in kill_after_lines(start(FEEDER, folder), 40)]
    for _ in range(3):
        kill_after_lines(start(DERIVER, folder, 0.03), 2)
    two = [start(DERIVER, folder, 0.01), start(DERIVER, folder, 0.01)]
    rules = RefreshSettings(batch_items=3, lease=1.0)
    try:
        with UserModel(folder, deriver=echo_deriver(), settings=rules, background=False) as model:
            until = time.monotonic() + 60
            while model.status(limit=0).waiting and time.monotonic() < until:
                time.sleep(0.05)
            status = model.status()
            profiles = [model.profile(f"user {n}") for n in range(4)]
    finally:
        for process in two:
            process.kill()
            process.communicate(timeout=60)
    assert (status.waiting, status.set_aside) == (0, 0)
    held = sorted(int(line.text.split()[1]) for profile in profiles for line in profile.lines)
    assert held == list(range(len(held)))
    assert len(held) > max(acknowledged)
    for profile in profiles:
        said = [int(line.text.split()[1]) for line in profile.lines]
        assert said == sorted(said)
        assert all(line.times == 1 for line in profile.lines)


def test_the_end_of_a_process_derives_what_waits(folder: Path, echo_deriver: Any) -> None:
    process = start(ENDS, folder)
    assert process.communicate(timeout=60)[0] == "deriving\n"
    assert process.returncode == 0
    with UserModel(folder, deriver=echo_deriver(), background=False) as model:
        assert [line.text for line in model.profile("mira").lines] == ["said just before the end"]


def test_a_kill_right_after_forget_leaves_no_text(
    folder: Path, say: Say, echo_deriver: Any
) -> None:
    code = (
        COMMON
        + """
import os
model = UserModel(sys.argv[1], deriver=Slow(), settings=rules, background=False)
item = Item("c", 0, "message", "My dog is Quetzalcoatl", "user", ItemOrigin.USER)
model.observe(item, user_id="mira")
model.refresh("mira")
model._store.erase = lambda: os.kill(os.getpid(), 9)
model.forget("mira", "L1")
"""
    )
    process = start(code, folder)
    process.communicate(timeout=60)
    assert process.returncode == -9
    with UserModel(folder, deriver=echo_deriver(), background=False) as model:
        assert model.profile("mira").lines == ()
        found = b"".join(path.read_bytes() for path in folder.iterdir())
        assert b"Quetzalcoatl" not in found


def test_both_sides_of_a_fork_go_on(open_model: Opens, say: Say) -> None:
    model = open_model(background=True, clock=time.time)
    model.observe(say("before", 0), user_id="mira")
    child = os.fork()
    if child == 0:
        try:
            model.observe(say("child", 1), user_id="mira")
            os._exit(0 if model.flush(30) else 2)
        except BaseException:
            os._exit(1)
    model.observe(say("parent", 2), user_id="mira")
    assert os.waitpid(child, 0)[1] == 0
    assert model.flush(30)
    assert {line.text for line in model.profile("mira").lines} == {"before", "child", "parent"}


def test_a_temporary_model_leaves_no_folder(say: Say, echo_deriver: Any) -> None:
    model = UserModel(deriver=echo_deriver(), background=False)
    folder = model._store.folder
    model.observe(say("one"), user_id="mira")
    assert folder.stat().st_mode & 0o777 == 0o700
    child = os.fork()
    if child == 0:
        try:
            model.close()
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert [line.text for line in model.refresh("mira").lines] == ["one"]
    model.close()
    assert not folder.exists()

"""The awaitable face is equal to the sync one."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

from memsheaf.models import ScriptedModel
from memsheaf.sessionsearch import Item
from memsheaf.usermodel import AsyncUserModel, Operation, Profile, UserModel

Say = Callable[..., Item]


def methods(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(value)
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


def test_both_faces_have_the_same_methods() -> None:
    assert methods(AsyncUserModel) == methods(UserModel)
    awaited = {
        name
        for name in methods(AsyncUserModel)
        if inspect.iscoroutinefunction(getattr(AsyncUserModel, name))
    }
    assert set(methods(UserModel)) - awaited == {"as_provider"}


def test_every_method_answers_as_the_sync_one(say: Say, echo_deriver: Any) -> None:
    threads: set[int] = set()

    def act(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        threads.add(threading.get_ident())
        return list(echo_deriver().derive(profile, items))

    async def use() -> None:
        async with AsyncUserModel(deriver=echo_deriver(act), background=False) as model:
            made = await model.observe([say("I like tea", 1)], user_id="mira")
            assert made.accepted == 1
            profile = await model.refresh("mira")
            assert profile == await model.profile("mira") == model.sync.profile("mira")
            assert [line.text for line in profile.lines] == ["I like tea"]
            await model.correct("mira", "L1", "Likes coffee")
            assert [line.text for line in (await model.profile("mira")).current] == ["Likes coffee"]
            assert await model.history("mira") == model.sync.history("mira")
            assert await model.export("mira") == model.sync.export("mira")
            assert await model.users() == ("mira",)
            assert "Likes coffee" in (await model.build_user_context("mira", "coffee") or "")
            assert (await model.ask("mira", "coffee?")).text == "Likes coffee"
            scripted = ScriptedModel(['{"answer": "Coffee.", "lines": ["L2"]}'])
            assert (await model.ask("mira", "What does she drink?", scripted)).text == "Coffee."
            await model.observe(say("I row", 2), user_id="mira")
            await model.end_session("mira")
            assert (await model.status("mira")).waiting == 1
            assert await model.flush(10, user_id="mira")
            assert await model.retry("mira") == 0
            assert (await model.forget("mira")).lines == 3
            assert model.as_provider().model is model.sync

    asyncio.run(use())
    assert threading.get_ident() not in threads


def test_calls_from_many_tasks_at_once_keep_order(say: Say, echo_deriver: Any) -> None:
    async def use() -> Profile:
        async with AsyncUserModel(deriver=echo_deriver(), background=False) as model:
            await asyncio.gather(
                *(model.observe(say(f"I am {n}", n), user_id="mira") for n in range(20))
            )
            return await model.refresh("mira")

    profile = asyncio.run(use())
    assert sorted(line.text for line in profile.lines) == sorted(f"I am {n}" for n in range(20))

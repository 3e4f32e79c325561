from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest

from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.usermodel import (
    Add,
    Deriver,
    LineKind,
    Operation,
    Profile,
    RefreshSettings,
    UserModel,
)

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def make_item(text: str, seq: int = 0, conversation: str = "c", **fields: Any) -> Item:
    given = {
        "type": "message",
        "role": "user",
        "origin": ItemOrigin.USER,
        "created_at": START + timedelta(minutes=seq),
        **fields,
    }
    return Item(conversation, seq, text=text, **given)


class EchoDeriver:
    """Takes every item as one line; remembers its batches; can be told what to do instead."""

    name = "echo"

    def __init__(self, act: Callable[[Profile, Sequence[Item]], Sequence[Operation]] | None = None):
        self.batches: list[list[str]] = []
        self.act = act or echo

    def derive(self, profile: Profile, items: Sequence[Item]) -> Sequence[Operation]:
        self.batches.append([item.text for item in items])
        return self.act(profile, items)


def echo(profile: Profile, items: Sequence[Item]) -> list[Operation]:
    return [Add(LineKind.FACT, item.text, 0.8, (item.id,)) for item in items]


class Clock:
    def __init__(self) -> None:
        self.now = START.timestamp() + 86_400.0

    def __call__(self) -> float:
        return self.now


class Opens(Protocol):
    def __call__(self, deriver: Deriver | None = None, **settings: Any) -> UserModel: ...


@pytest.fixture
def say() -> Callable[..., Item]:
    return make_item


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "users"


@pytest.fixture
def open_model(folder: Path, clock: Clock) -> Iterator[Opens]:
    """Opens user models on one folder, without background work unless told, and closes them."""
    opened: list[UserModel] = []

    def opens(deriver: Deriver | None = None, **settings: Any) -> UserModel:
        background = settings.pop("background", False)
        depth = settings.pop("depth", 1)
        ticking = settings.pop("clock", clock)
        model = UserModel(
            folder,
            deriver=deriver or EchoDeriver(),
            depth=depth,
            settings=RefreshSettings(**settings),
            background=background,
            clock=ticking,
        )
        opened.append(model)
        return model

    yield opens
    for model in opened:
        model.close()


@pytest.fixture
def model(open_model: Opens) -> UserModel:
    return open_model()


@pytest.fixture
def echo_deriver() -> type[EchoDeriver]:
    return EchoDeriver


@pytest.fixture
def texts() -> Callable[..., list[str]]:
    def current(model: UserModel, user_id: str = "mira") -> list[str]:
        return [line.text for line in model.profile(user_id).current]

    return current

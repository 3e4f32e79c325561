"""What a user model is opened with: a deriver, a depth, settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import Item
from memsheaf.stack import ConfigError, RegistrationError
from memsheaf.usermodel import Add, Operation, Profile, RefreshSettings, UserModel

Say = Callable[..., Item]
Opens = Callable[..., UserModel]
Texts = Callable[..., list[str]]


def test_depth_lets_the_deriver_question_itself(
    open_model: Opens, say: Say, echo_deriver: Any, texts: Texts
) -> None:
    class Doubting(echo_deriver):  # type: ignore[misc]
        asked = 0

        def question(
            self, profile: Profile, operations: Sequence[Operation], items: Sequence[Item]
        ) -> Sequence[Operation]:
            self.asked += 1
            return [each for each in operations if isinstance(each, Add) and "sure" in each.text]

    for depth, kept in [(1, ["maybe", "sure"]), (3, ["sure"])]:
        deriver = Doubting()
        model = open_model(deriver, depth=depth)
        user = f"user {depth}"
        model.observe([say("maybe", 1), say("sure", 2)], user_id=user)
        model.refresh(user)
        assert texts(model, user) == kept
        assert deriver.asked == depth - 1


def test_an_unknown_deriver_is_refused_with_those_that_exist(folder: Path) -> None:
    with pytest.raises(RegistrationError, match="rules"):
        UserModel(folder, deriver="ruels")
    assert not folder.exists()


@pytest.mark.parametrize(
    "wrong",
    [{"workers": 0}, {"capacity": -1}, {"lease": -1.0}, {"max_age": "soon"}, {"batch_items": True}],
)
def test_wrong_settings_are_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RefreshSettings(**wrong)


@pytest.mark.parametrize("wrong", [{"depth": 0}, {"depth": True}, {"deriver": object()}])
def test_wrong_arguments_are_told(folder: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        UserModel(folder, **wrong)
    assert not folder.exists()

"""Whose profile it is: one per user and namespace, and no name stands for two."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.stack import Scope, ScopeError
from memsheaf.usermodel import Add, LineKind, UserModel, owner_of

NAMES = ["mira", "work", "work/mira", '["work","mira"]', "work\\x1fmira", "a:b", " ", "́e"]
USABLE = [name for name in NAMES if name.strip()]
texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6)


class Echo:
    name = "echo"

    def derive(self, profile, items):  # type: ignore[no-untyped-def]
        return [Add(LineKind.FACT, item.text, 0.9, (item.id,)) for item in items]


def test_a_user_without_a_namespace_is_its_own_name() -> None:
    assert owner_of(Scope(user_id="mira", agent_id="cook", session_id="s")) == "mira"
    assert owner_of(Scope(namespace="work")) is None
    assert owner_of(Scope.EVERYONE) is None


def test_no_two_owners_share_a_name() -> None:
    pairs = list(itertools.product(USABLE, [None, *USABLE]))
    names = {owner_of(Scope(user_id=user, namespace=space)) for user, space in pairs}
    assert len(names) == len(pairs)


@given(texts, texts, texts)
def test_no_user_s_id_is_a_name_of_both(user: str, space: str, other: str) -> None:
    assume(user.strip() and space.strip() and other.strip())
    made = owner_of(Scope(user_id=user, namespace=space))
    assert made != owner_of(Scope(user_id=other))
    assert made is not None
    with pytest.raises(ScopeError):
        Scope(user_id=made)


@pytest.mark.parametrize("owner", ["", " ", "\x1fmira", "work\x1f", "a\x1fb\x1fc", "a\nb", 7, None])
def test_what_is_no_owner_is_refused(owner: str) -> None:
    with UserModel(background=False) as model, pytest.raises(ScopeError):
        model.profile(owner)


def test_users_of_two_namespaces_have_profiles_of_their_own() -> None:
    work, home = (Scope(user_id="mira", namespace=name) for name in ("work", "home"))
    with UserModel(deriver=Echo(), background=False) as model:
        for scope in (work, home, Scope(user_id="mira")):
            said = Item(f"c {scope}", 0, "message", f"in {scope}", "user", ItemOrigin.USER)
            name = owner_of(scope)
            assert name is not None
            model.observe(said, user_id=name)
            assert [line.text for line in model.refresh(name).current] == [f"in {scope}"]
        provider = model.as_provider()
        block = provider.build_user_context(work, "")
        assert block is not None
        assert "namespace=work" in block
        assert "namespace=home" not in block
        assert provider.build_user_context(Scope(user_id="mira", namespace="other"), "") is None
        assert len(model.users()) == 3
        work_name = owner_of(work)
        assert work_name is not None
        assert model.forget(work_name).lines == 1
        assert model.profile("mira").current

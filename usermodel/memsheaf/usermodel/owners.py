"""Whose profile it is: the user's id, or user and namespace as one name."""

from __future__ import annotations

from memsheaf.stack import Scope, ScopeError

__all__ = ["check_owner", "owner_of"]

_BETWEEN = "\x1f"  # the unit separator, which no field of a scope can hold


def owner_of(scope: Scope) -> str | None:
    r"""The name under which a user model keeps the profile of a scope's user.

    The same user has a profile of their own in each namespace, whichever agent asks. Pass the
    name as `user_id` to `UserModel`.

    Args:
        scope: Whose profile.

    Returns:
        The user's id where the scope has no namespace; else a name of both that is no user's id.
        None without a user: there is no shared profile.

    >>> owner_of(Scope(user_id="mira", agent_id="cook"))
    'mira'
    >>> owner_of(Scope(user_id="mira", namespace="work"))
    'work\x1fmira'
    >>> owner_of(Scope(namespace="work")) is None
    True
    """
    if scope.user_id is None or scope.namespace is None:
        return scope.user_id
    return f"{scope.namespace}{_BETWEEN}{scope.user_id}"


def check_owner(owner: str) -> str:
    """A user's id, or a name of `owner_of`, or raise.

    Raises:
        ScopeError: It is empty, not text, too long or not printable.
    """
    namespace, between, user = owner.partition(_BETWEEN) if isinstance(owner, str) else ("", "", "")
    scope = Scope(user_id=user, namespace=namespace) if between else Scope(user_id=owner)
    if scope.user_id is None or (between and scope.namespace is None):
        raise ScopeError("the user model needs a user_id; there is no shared profile")
    return owner

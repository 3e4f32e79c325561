"""The user model in a stack: it gives context, and neither stores nor searches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from memsheaf.stack import ProviderContext, ProviderFactory, Scope, hookimpl

from .owners import owner_of

if TYPE_CHECKING:
    from .model import UserModel

__all__ = ["FACTORY", "UserModelOptions", "UserModelProvider"]


class UserModelProvider:
    """Gives a turn what is known of its user.

    A profile is the user's, whichever agent asks and in whichever session; in each namespace the
    user has one of their own, see `owner_of`. A scope without a user gets nothing.

    Args:
        model: The user model; whoever made it closes it, unless told otherwise.
        namespace: The one namespace that all users of the model belong to; they are kept by
            their plain ids, and a scope of another namespace gets nothing. None for any.
        max_tokens: The most tokens of the block.
        owned: Whether closing this provider closes the model.
    """

    scope_fields = ("user_id", "namespace")

    def __init__(
        self, model: UserModel, *, namespace: str | None, max_tokens: int, owned: bool = False
    ) -> None:
        self.model = model
        self._namespace, self._max_tokens, self._owned = namespace, max_tokens, owned

    @hookimpl
    def build_user_context(self, scope: Scope, text: str) -> str | None:
        """What is known of the scope's user, the most useful lines first."""
        return self.model.build_user_context(self._owner(scope), text, self._max_tokens)

    def forget_mark(self, scope: Scope) -> str:
        """See `UserModel.forget_mark`."""
        return self.model.forget_mark(self._owner(scope))

    @hookimpl
    def check(self) -> str:
        """The state of its queue."""
        status = self.model.status(limit=0)
        return f"{status.waiting} items wait, {status.set_aside} are set aside"

    @hookimpl
    def close(self) -> None:
        """Close the model, where it is the provider's own."""
        if self._owned:
            self.model.close()

    def _owner(self, scope: Scope) -> str | None:
        if self._namespace is None:
            return owner_of(scope)
        return scope.user_id if scope.namespace in (None, self._namespace) else None


class UserModelOptions(BaseModel):
    """Settings of a user model in a configuration.

    It reads profiles; what the user says is handed over, and derived, by whoever opens a
    `UserModel` on the same folder.

    Attributes:
        path: The folder of the profiles; ``users`` in the provider's folder where not given.
        namespace: The one namespace that all its users belong to.
        max_tokens: The most tokens of the block.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path | None = None
    namespace: str | None = None
    max_tokens: int = Field(default=500, ge=1)


def build(options: UserModelOptions, context: ProviderContext) -> UserModelProvider:
    """The provider of a configuration; a relative path starts at the provider's folder."""
    from .model import UserModel  # which imports this module

    path = (options.path or Path("users")).expanduser()
    if context.folder is not None:
        path = context.folder / path
    model = UserModel(path, background=False, timeout=context.timeout)
    return UserModelProvider(
        model, namespace=options.namespace, max_tokens=options.max_tokens, owned=True
    )


FACTORY = ProviderFactory(build, UserModelOptions)

"""Where a user's profile lies, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memsheaf.stack import Scope, ScopeError
from memsheaf.stack.config import Config, load_config
from memsheaf.stack.registry import Registry

from .common import refuse_if, scope_of
from .model_place import opened_models
from .place import prepare

if TYPE_CHECKING:
    from memsheaf.usermodel import Deriver, UserModel

__all__ = ["SLOT", "Known", "opened_user"]

SLOT = "user_model"
"""The name of its chat model in a configuration."""
_TYPE = "user_model"
_FOLDER = "users"
_DATABASE = "cache.db"
_OFFLINE = "rules"  # needs no look at the plugins


@dataclass(frozen=True, slots=True)
class Known:
    """The user model of a call.

    Attributes:
        folder: Where the profiles lie.
        scope: Who is meant: a user, in a namespace or in none.
        owner: The name under which the profile of this user is kept, see `owner_of`.
        model: The opened user model; None where there is none yet.
    """

    folder: Path
    scope: Scope
    owner: str
    model: UserModel | None = None

    @property
    def named(self) -> dict[str, Any]:
        """Who is meant, for JSON."""
        return {str(name): value for name, value in self.scope.set_fields().items()}


@contextmanager
def opened_user(
    user_id: str | None = None,
    namespace: str | None = None,
    *,
    make: bool = False,
    deriver: str = "rules",
    depth: int = 1,
) -> Iterator[Known]:
    """Open the user model of a call; it derives only when it is asked to.

    Args:
        user_id: The user; the configuration's, or the login name, where not given.
        namespace: The user's namespace; the configuration's where not given.
        make: Make the folder where there is none.
        deriver: The name of what derives; one that takes a `model` gets the configured ones.
        depth: Passes of a derivation.
    """
    config = load_config()
    refuse_if(config.disabled)
    scope = scope_of(config.scope, user_id=user_id, namespace=namespace)
    if scope.user_id is None:
        raise ScopeError("a profile belongs to a user; give --user")
    user = Scope(user_id=scope.user_id, namespace=scope.namespace)
    folder, owner = _folder(config), _owner(config, user)
    if not make and not (folder / _DATABASE).exists():
        yield Known(folder, user, owner)
        return
    if folder.parent.parent == config.data:
        prepare(folder.parent)
    from memsheaf.usermodel import UserModel

    with ExitStack() as needed:
        chosen = _deriver(config, deriver, needed)
        yield Known(
            folder,
            user,
            owner,
            needed.enter_context(UserModel(folder, deriver=chosen, depth=depth, background=False)),
        )


def _deriver(config: Config, name: str, needed: ExitStack) -> Deriver | str:
    """A deriver that takes a model, with the configured chain; the name of any other."""
    if name == _OFFLINE:
        return name
    factory = Registry("memsheaf.derivers").load(name)
    taken = signature(factory).parameters if callable(factory) else {}
    if "model" not in taken:
        return name
    from memsheaf.usermodel import load_deriver

    options: dict[str, object] = {"model": needed.enter_context(opened_models(config, SLOT))}
    if "timeout" in taken:
        options["timeout"] = None  # each model has its own
    return load_deriver(name, **options)


def _owner(config: Config, scope: Scope) -> str:
    """The name under which the configured provider looks for the profile."""
    if scope.namespace is None:
        return scope.user_id or ""
    for settings in config.providers:
        own = getattr(settings.options, "namespace", None)
        if settings.placement.type == _TYPE and own is not None:
            if own != scope.namespace:
                raise ScopeError(
                    f"provider {settings.name} keeps the users of namespace {own!r} only, not of "
                    f"{scope.namespace!r}; change --namespace, [scope] or the provider"
                )
            return scope.user_id or ""
    from memsheaf.usermodel import owner_of

    return owner_of(scope) or ""


def _folder(config: Config) -> Path:
    """That of the configured provider, or the one that it would have by default."""
    for settings in config.providers:
        if settings.placement.type == _TYPE:
            return settings.folder / (getattr(settings.options, "path", None) or _FOLDER)
    return config.data / _TYPE / _FOLDER

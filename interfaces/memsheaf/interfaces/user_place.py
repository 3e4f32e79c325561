"""Where a user's profile lies, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memsheaf.stack import ScopeError
from memsheaf.stack.config import Config, load_config

from .common import refuse_if, scope_of
from .place import prepare

if TYPE_CHECKING:
    from memsheaf.usermodel import UserModel

__all__ = ["Known", "opened_user"]

_TYPE = "user_model"
_FOLDER = "users"
_DATABASE = "cache.db"


@dataclass(frozen=True, slots=True)
class Known:
    """The user model of a call.

    Attributes:
        folder: Where the profiles lie.
        user_id: Whose profile is meant.
        model: The opened user model; None where there is none yet.
    """

    folder: Path
    user_id: str
    model: UserModel | None = None


@contextmanager
def opened_user(
    user_id: str | None, *, make: bool = False, deriver: str = "rules"
) -> Iterator[Known]:
    """Open the user model of a call; it derives only when it is asked to.

    Args:
        user_id: The user; the configuration's, or the login name, where not given.
        make: Make the folder where there is none.
        deriver: The name of what derives.
    """
    config = load_config()
    refuse_if(config.disabled)
    user = scope_of(config.scope, user_id=user_id).user_id
    if user is None:
        raise ScopeError("a profile belongs to a user; give --user")
    folder = _folder(config)
    if not make and not (folder / _DATABASE).exists():
        yield Known(folder, user)
        return
    if folder.parent.parent == config.data:
        prepare(folder.parent)
    from memsheaf.usermodel import UserModel

    with UserModel(folder, deriver=deriver, background=False) as model:
        yield Known(folder, user, model)


def _folder(config: Config) -> Path:
    """That of the configured provider, or the one that it would have by default."""
    for settings in config.providers:
        if settings.placement.type == _TYPE:
            return settings.folder / (getattr(settings.options, "path", None) or _FOLDER)
    return config.data / _TYPE / _FOLDER

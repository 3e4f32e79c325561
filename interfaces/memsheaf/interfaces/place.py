"""Where past conversations lie, and whose they are; light where nothing is configured."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memsheaf.stack import ProviderUnavailable, Scope
from memsheaf.stack.config_sources import (
    DATA_FOLDER,
    FILE_NAME,
    find_workspace,
    is_mine,
    refuse_links,
    user_config_folder,
    user_data_folder,
)
from memsheaf.stack.folders import private_folder

from .common import refuse_if, scope_of

if TYPE_CHECKING:
    from memsheaf.sessionsearch import SessionSearch

__all__ = ["Place", "opened_sessions", "place", "prepare"]

VARIABLE = "MEMSHEAF_SESSIONS"
_FOLDER = "sessions"
_LOG = "sessions.db"
_SETTINGS = ("MEMSHEAF_STACK_", "MEMSHEAF_SCOPE_", "MEMSHEAF_DISABLED")


class Place(NamedTuple):
    """Where the sessions of a call lie.

    Attributes:
        folder: Of log and index.
        scope: Whose conversations are meant.
        search: The opened sessions; None where there are none yet.
    """

    folder: Path
    scope: Scope
    search: SessionSearch | None = None


@contextmanager
def opened_sessions(*, make: bool = False, **owner: str | bool | None) -> Iterator[Place]:
    """Open the sessions of a call.

    Args:
        make: Make the folder where there is none.
        owner: The scope options.
    """
    found = place(**owner)
    misled = any(path.is_file() for path in (found.folder, *found.folder.parents))
    if not (make or misled or (found.folder / _LOG).exists()):
        yield found
        return
    prepare(found.folder)
    with _opened(found.folder) as search:
        yield Place(found.folder, found.scope, search)


def _opened(folder: Path) -> SessionSearch:
    gc.disable()  # imports leave no garbage, and looking for it takes longer than a search
    try:
        from memsheaf.sessionsearch import open_sessions

        return open_sessions(folder)
    finally:
        gc.enable()


def place(*, everyone: bool | str | None = False, **given: str | bool | None) -> Place:
    """Where sessions lie: in a folder beside the memories, or where the variable says.

    The whole configuration is read only where there is one, because reading it takes longer
    than a search.
    """
    fields = {name: None if value is None else str(value) for name, value in given.items()}
    data, configured = _unconfigured() or _configured()
    scope = scope_of(configured, everyone=bool(everyone), **fields)
    own = os.environ.get(VARIABLE)
    return Place(Path(own).expanduser().absolute() if own else data / _FOLDER, scope)


def _unconfigured() -> tuple[Path, None] | None:
    """The data folder where no file and no variable says anything; None where one does."""
    if any(name.startswith(_SETTINGS) for name in os.environ):
        return None
    if (user_config_folder(os.environ) / FILE_NAME).exists():
        return None
    found = find_workspace(Path.cwd())
    if found is None:
        return user_data_folder(os.environ), None
    folder = found[0] / DATA_FOLDER
    if found[1] is not None or folder.is_symlink() or not is_mine(folder):
        return None
    return folder, None


def _configured() -> tuple[Path, Scope | None]:
    from memsheaf.stack.config import load_config

    config = load_config()
    refuse_if(config.disabled)
    return config.data, config.scope


def prepare(folder: Path) -> None:
    """Make a folder in the data folder, both private; refuse one that leads elsewhere."""
    data = folder.parent
    refuse_links(folder)
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        private_folder(folder)
        ignore = data / ".gitignore"
        if data.name == DATA_FOLDER and not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        told = f"{folder} cannot be made: {error.strerror}; check the path"
        raise ProviderUnavailable(told) from error

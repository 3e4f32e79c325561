"""From a configuration to mounts: each provider opened, or down with its reason."""

from __future__ import annotations

import os
from pathlib import Path

from .config import Config
from .config_providers import ProviderSettings
from .config_sources import DATA_FOLDER, refuse_links
from .config_values import scrubbed
from .errors import MemsheafError, ProviderUnavailable
from .folders import private_folder
from .mount import Down, Mount
from .registry import ProviderContext
from .scope import Scope

__all__ = ["mounts", "state_folder"]


def mounts(config: Config) -> list[Mount]:
    """Open every enabled provider; one that cannot be opened is mounted as `Down`.

    Returns:
        One mount per enabled provider in the configured order; none where all is disabled.
    """
    if config.disabled:
        return []
    return [_mount(config, each) for each in config.providers if each.placement.enabled]


def state_folder(config: Config) -> Path:
    """Where the stack keeps what it has to remember.

    Raises:
        ProviderUnavailable: It leads out of the data folder.
    """
    folder = config.data / "stack"
    refuse_links(folder)
    return folder


def _mount(config: Config, settings: ProviderSettings) -> Mount:
    placement = settings.placement
    provider: object
    try:
        provider = _build(config, settings)
    except (Exception, SystemExit) as error:
        reason = scrubbed(_reason(error), config.secrets)
        provider = Down(reason, lambda: _build(config, settings))
    pinned = placement.scope.model_dump(exclude_none=True) if placement.scope else {}
    return Mount(
        provider,
        name=settings.name,
        mode=placement.mode,
        weight=placement.weight,
        timeout=placement.timeout,
        scope=Scope(**pinned) if pinned else None,
    )


def _build(config: Config, settings: ProviderSettings) -> object:
    if settings.factory is None or settings.options is None:
        raise ProviderUnavailable(settings.broken or "its plugin cannot be used")
    _prepare(config, settings.folder)
    timeout = settings.placement.timeout or config.stack.write_timeout
    context = ProviderContext(settings.name, settings.folder, timeout)
    return settings.factory.build(settings.options, context)


def _prepare(config: Config, folder: Path) -> None:
    """Make the data folder private, and refuse one that leads elsewhere."""
    data = folder.parent
    refuse_links(folder)
    try:
        private_folder(data)
        ignore = data / ".gitignore"
        if data.name == DATA_FOLDER and not ignore.exists() and os.access(data, os.W_OK):
            ignore.write_text("*\n", encoding="utf-8")
    except (FileExistsError, NotADirectoryError) as error:
        raise ProviderUnavailable(f"a file stands where the folder {data} should be") from error
    except OSError as error:
        raise ProviderUnavailable(f"{data} cannot be used: {error.strerror}") from error


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())[:500]
    if isinstance(error, MemsheafError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

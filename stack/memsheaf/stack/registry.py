"""The registry: plugins by name, from the entry points of installed distributions.

Names are read without importing anything. A plugin is imported when it is first loaded, and one
that is broken is listed with its reason while the others work. What this distribution ships comes
by the same path. ``MEMSHEAF_PLUGINS`` limits which distributions may be loaded beside it: a comma
list; empty means none.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from .errors import RegistrationError

__all__ = [
    "GROUPS",
    "OWN_DISTRIBUTION",
    "Plugin",
    "ProviderContext",
    "ProviderFactory",
    "Registry",
    "provider_factory",
]

Group = Literal[
    "memsheaf.providers",
    "memsheaf.embedders",
    "memsheaf.importers",
    "memsheaf.session_indexes",
    "memsheaf.derivers",
]
GROUPS: tuple[Group, ...] = get_args(Group)
OWN_DISTRIBUTION = "memsheaf"
ALLOWED = "MEMSHEAF_PLUGINS"


@dataclass(frozen=True, slots=True)
class ProviderContext:
    """What the configuration tells a provider beside its own options.

    Args:
        name: Its configured name.
        folder: Where it may keep files, made by the provider; None: nowhere.
        timeout: Seconds that one call may take; a lock should be waited for no longer.
    """

    name: str
    folder: Path | None
    timeout: float


@dataclass(frozen=True, slots=True)
class ProviderFactory:
    """What an entry point of ``memsheaf.providers`` names.

    Args:
        build: Makes the provider from its validated options and its context.
        options: The model of its options; forbid extra fields, so that a typing error is told.
        network: Whether it may talk to another machine; a project's file needs trust for it.
    """

    build: Callable[[Any, ProviderContext], object]
    options: type[BaseModel]
    network: bool = False


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry of a registry.

    Attributes:
        name: The name that a configuration uses.
        distribution: The installed distribution that declares it.
        status: ``ready`` (not imported yet), ``loaded``, ``broken`` or ``blocked``.
        reason: Why it is broken or blocked.
    """

    name: str
    distribution: str
    status: Literal["ready", "loaded", "broken", "blocked"] = "ready"
    reason: str | None = None

    @property
    def ours(self) -> bool:
        """Whether it comes with this distribution."""
        return self.distribution == OWN_DISTRIBUTION


class Registry:
    """The plugins of one entry point group.

    Args:
        group: One of `GROUPS`.

    >>> Registry("memsheaf.providers").plugins.get("no-such-plugin") is None
    True
    """

    def __init__(self, group: Group) -> None:
        if group not in GROUPS:
            raise RegistrationError(f"unknown group {group!r}; use one of {', '.join(GROUPS)}")
        self.group = group
        self._plugins: dict[str, Plugin] = {}
        self._blocked: list[Plugin] = []
        self._entries: dict[str, EntryPoint] = {}
        self._loaded: dict[str, Any] = {}
        allowed = _allowed()
        for plugin, entry in _declared(group):
            if allowed is not None and not plugin.ours and plugin.distribution not in allowed:
                reason = f"{ALLOWED} does not list {plugin.distribution}"
                self._blocked.append(replace(plugin, status="blocked", reason=reason))
            elif plugin.name in self._plugins:
                self._refuse_twin(plugin)
            else:
                self._plugins[plugin.name] = plugin
                if entry is not None:
                    self._entries[plugin.name] = entry
        for plugin in self._blocked:
            self._plugins.setdefault(plugin.name, plugin)

    @property
    def plugins(self) -> Mapping[str, Plugin]:
        """A read-only view, name to plugin."""
        return MappingProxyType(self._plugins)

    def describe(self) -> tuple[Plugin, ...]:
        """Every plugin, tried: the working ones are loaded, the others tell their reason."""
        for name in list(self._entries):
            try:
                self.load(name)
            except RegistrationError:
                continue  # the entry itself now carries the reason
        listed = set(self._plugins.values()) | set(self._blocked)
        return tuple(sorted(listed, key=lambda plugin: (plugin.name, plugin.distribution)))

    def load(self, name: str) -> Any:
        """The object behind a name, imported on first use.

        Raises:
            RegistrationError: The name is unknown, blocked or broken; says which and the fix.
        """
        if name in self._loaded:
            return self._loaded[name]
        plugin = self.find(name)
        if plugin.status not in ("ready", "loaded"):
            raise RegistrationError(f"{self.group}: {name} is {plugin.status}: {plugin.reason}")
        try:
            loaded = self._entries[name].load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            reason = _one_line(error)
            self._plugins[name] = replace(plugin, status="broken", reason=reason)
            raise RegistrationError(
                f"{self.group}: {name} of {plugin.distribution} cannot be imported: {reason}"
            ) from error
        self._plugins[name] = replace(plugin, status="loaded")
        return self._loaded.setdefault(name, loaded)

    def find(self, name: str) -> Plugin:
        """The entry of a name, without importing it.

        Raises:
            RegistrationError: No plugin has this name; tells those that exist.
        """
        plugin = self._plugins.get(name)
        if plugin is None:
            known = sorted(self._plugins)
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known) or 'none'}"
            kind = self.group.rpartition(".")[2].replace("_", " ")
            raise RegistrationError(f"no plugin {name!r} among the {kind}; {hint}")
        return plugin

    def _refuse_twin(self, plugin: Plugin) -> None:
        first = self._plugins[plugin.name]
        reason = (
            f"both {first.distribution} and {plugin.distribution} declare it; "
            f"uninstall one or limit {ALLOWED}"
        )
        self._plugins[plugin.name] = replace(first, status="broken", reason=reason)
        self._entries.pop(plugin.name, None)


def provider_factory(loaded: object, name: str) -> ProviderFactory:
    """The factory that an entry point names; a plain class or function takes no options.

    Raises:
        RegistrationError: It is neither.
    """
    if isinstance(loaded, ProviderFactory):
        return loaded
    if callable(loaded):
        return ProviderFactory(lambda options, context: loaded(), _NoOptions)
    raise RegistrationError(
        f"{name}: the entry point names a {type(loaded).__name__}; "
        "it must name a ProviderFactory, a class or a function"
    )


class _NoOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


def _allowed() -> frozenset[str] | None:
    value = os.environ.get(ALLOWED)
    if value is None:
        return None
    return frozenset(_canonical(part) for part in value.split(",") if part.strip())


def _declared(group: str) -> Iterator[tuple[Plugin, EntryPoint | None]]:
    """Entries of every distribution; the first of a name on the path hides later copies of it."""
    seen: set[str] = set()
    for distribution in distributions():
        try:
            text = distribution.read_text("entry_points.txt") or ""
            if group not in text:
                continue
            name = _canonical(str(distribution.metadata["Name"] or _folder(distribution)))
            entries = [entry for entry in distribution.entry_points if entry.group == group]
        except Exception as error:
            folder = _folder(distribution)
            reason = f"its entry points cannot be read: {_one_line(error)}"
            yield Plugin(folder, folder, "broken", reason), None
            continue
        if name not in seen:
            seen.add(name)
            yield from ((Plugin(entry.name, name), entry) for entry in entries)


def _folder(distribution: Distribution) -> str:
    return Path(str(getattr(distribution, "_path", "unknown"))).stem


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

"""Mounting: from a plain object to a provider whose hooks are known and checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pluggy

from .contract import PROJECT, ProviderSpec
from .errors import RegistrationError
from .records import MemoryRecord
from .scope import SCOPE_FIELDS, Scope

__all__ = [
    "Down",
    "Hook",
    "Mode",
    "Mount",
    "Mounted",
    "NotConcerned",
    "listen",
    "mount_all",
    "pinned",
    "read_only",
    "write_only",
]

_NEEDS_SCOPE = ("search", "forget", "get", "list", "update", "touch", "prefetch")
_CONTEXT = ("build_system_prompt", "build_user_context")


class Mode(StrEnum):
    """What a provider is used for."""

    READ_WRITE = "read-write"
    READ = "read"
    WRITE = "write"
    CONTEXT = "context"

    @property
    def reads(self) -> bool:
        """Whether it is searched."""
        return self in (Mode.READ_WRITE, Mode.READ)

    @property
    def writes(self) -> bool:
        """Whether records are stored in it and forgotten from it."""
        return self in (Mode.READ_WRITE, Mode.WRITE)


@dataclass(frozen=True, slots=True)
class Down:
    """Stands for a provider that could not be opened; every operation tells why.

    Args:
        reason: Why it is down, without secrets.
        reopen: Opens it again; used by `MemoryStack.retry`.
    """

    reason: str
    reopen: Callable[[], object] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Mount:
    """A provider together with how the stack should use it.

    Args:
        provider: An object with methods marked by `hookimpl`, or `Down`.
        name: Its name in outcomes; made from its class where it is not given.
        mode: Found from its hooks where it is not given.
        weight: Its weight in the fusion, above 0.
        timeout: Seconds for one call; the stack's read and write timeouts where not given.
        scope: Pins it: it holds the records of this scope only.
    """

    provider: object
    name: str | None = None
    mode: Mode | str | None = None
    weight: float = 1.0
    timeout: float | None = None
    scope: Scope | None = None


class NotConcerned(str):
    """Why a provider is not asked, where its answer could hold nothing: nothing is missing."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Hook:
    """One implementation: the function, the arguments it declares, and whether it is async."""

    function: Callable[..., Any]
    arguments: tuple[str, ...]
    is_async: bool

    def bind(self, available: Mapping[str, Any]) -> dict[str, Any]:
        """The declared arguments, picked from those available."""
        return {name: available[name] for name in self.arguments}


def derived_store_many(store: Hook) -> Hook:
    """``store_many`` for a provider that has only ``store``: a loop, each record by itself."""

    def one_by_one(records: Sequence[MemoryRecord]) -> list[object]:
        entries: list[object] = []
        for record in records:
            try:
                entries.append(store.function(record))
            except Exception as error:  # an entry of the answer, told per record
                entries.append(error)
        return entries

    async def one_by_one_async(records: Sequence[MemoryRecord]) -> list[object]:
        entries: list[object] = []
        for record in records:
            try:
                entries.append(await store.function(record))
            except Exception as error:  # an entry of the answer, told per record
                entries.append(error)
        return entries

    function = one_by_one_async if store.is_async else one_by_one
    return Hook(function, ("records",), store.is_async)


@dataclass(frozen=True, slots=True)
class Mounted:
    """A provider that passed every check."""

    name: str
    provider: object
    mode: Mode
    hooks: Mapping[str, Hook]
    weight: float = 1.0
    timeout: float | None = None
    pinned: Scope | None = None
    scope_fields: frozenset[str] = frozenset()
    returned_scope_fields: frozenset[str] = frozenset(SCOPE_FIELDS)
    filters_natively: bool = False
    inline: bool = False

    @property
    def down(self) -> str | None:
        """Why it is down, or None."""
        return self.provider.reason if isinstance(self.provider, Down) else None

    def has(self, hook: str) -> bool:
        """Whether it implements a hook."""
        return hook in self.hooks

    def cannot_answer(self, scope: Scope) -> str | None:
        """Why a query with this scope is not sent to it, or None."""
        asked = scope.set_fields()
        if self.pinned is not None:
            held = self.pinned.set_fields()
            other = [f for f, value in asked.items() if f in held and held[f] != value]
            if other:
                return NotConcerned(f"it holds another {' and '.join(other)}")
        pinned = self.pinned.set_fields() if self.pinned is not None else {}
        known = self.scope_fields | self.returned_scope_fields | pinned.keys()
        unknown = [f for f in asked if f not in known]
        if unknown:
            return f"it cannot keep records apart by {' and '.join(unknown)}"
        return None

    def cannot_hold(self, owner: Scope) -> str | None:
        """Why a record of this scope is not sent to it, or None."""
        if self.pinned is not None and not self.pinned.matches(owner):
            return NotConcerned(f"it is pinned to {self.pinned}")
        return None


def read_only(provider: object, name: str | None = None) -> Mount:
    """Search a provider and never write to it."""
    return Mount(provider, name, Mode.READ)


def write_only(provider: object, name: str | None = None) -> Mount:
    """Write to a provider and never search it."""
    return Mount(provider, name, Mode.WRITE)


def pinned(provider: object, scope: Scope, name: str | None = None) -> Mount:
    """A provider that holds the records of one scope only, whose hooks need not take a scope."""
    return Mount(provider, name, scope=scope)


def mount_all(manager: pluggy.PluginManager, providers: list[object]) -> list[Mounted]:
    """Register providers under unique names; on refusal nothing of that call stays behind.

    Raises:
        RegistrationError: Names the provider, what is wrong and the fix.
    """
    done: list[Mounted] = []
    try:
        for entry in providers:
            wanted = entry if isinstance(entry, Mount) else Mount(entry)
            done.append(_mount(manager, wanted, {m.name for m in done}))
    except BaseException:
        for mounted in done:
            manager.unregister(name=mounted.name)
        raise
    return done


def listen(manager: pluggy.PluginManager, plugins: Iterable[object]) -> None:
    """Register plugins that implement events only.

    Raises:
        RegistrationError: A class, no event hook at all, or the hook of a provider.
    """
    for plugin in plugins:
        name = type(plugin).__name__.lower()
        if inspect.isclass(plugin):
            raise RegistrationError(f"{plugin.__name__}: a class was given; give an instance")
        try:
            manager.register(plugin)
            manager.check_pending()
        except (pluggy.PluginValidationError, ValueError) as error:
            raise RegistrationError(f"{name}: {error}") from error
        hooks = {caller.name for caller in manager.get_hookcallers(plugin) or ()}
        foreign = sorted(hook for hook in hooks if not hook.startswith(("before_", "after_")))
        if foreign or not hooks:
            what = f"{', '.join(foreign)} would never be called" if foreign else "no event hooks"
            raise RegistrationError(f"{name}: {what}; a provider is given as a provider")


def _mount(manager: pluggy.PluginManager, wanted: Mount, taken: set[str]) -> Mounted:
    provider = wanted.provider
    name = wanted.name or _free_name(provider, taken)
    _check_settings(name, wanted, manager)
    if isinstance(provider, Down):
        mode = Mode(wanted.mode) if wanted.mode else Mode.READ_WRITE
        manager.register(provider, name=name)
        return Mounted(name, provider, mode, {}, wanted.weight, wanted.timeout, wanted.scope)
    if inspect.isclass(provider):
        raise RegistrationError(f"{name}: a class was given; give an instance, {name}(...)")
    hooks = _register(manager, provider, name)
    try:
        _check_marks(provider, name, hooks)
        mode = _mode(name, wanted, hooks)
        _check_scopes(name, wanted, hooks)
        fields = {
            attribute: _scope_fields(provider, name, attribute, default)
            for attribute, default in (
                ("scope_fields", frozenset[str]()),
                ("returned_scope_fields", frozenset[str](SCOPE_FIELDS)),
            )
        }
    except BaseException:
        manager.unregister(name=name)
        raise
    return Mounted(
        name=name,
        provider=provider,
        mode=mode,
        hooks=hooks,
        weight=float(wanted.weight),
        timeout=wanted.timeout,
        pinned=wanted.scope,
        scope_fields=fields["scope_fields"],
        returned_scope_fields=fields["returned_scope_fields"],
        filters_natively=bool(getattr(provider, "filters_natively", False)),
        inline=bool(getattr(provider, "inline", False)),
    )


def _free_name(provider: object, taken: set[str]) -> str:
    base = str(getattr(provider, "name", "") or type(provider).__name__).lower()
    names = (base if n == 1 else f"{base}-{n}" for n in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def _check_settings(name: str, wanted: Mount, manager: pluggy.PluginManager) -> None:
    if manager.has_plugin(name):
        raise RegistrationError(f"{name}: the name is taken; give each provider its own name")
    if not 0 < wanted.weight < float("inf"):
        raise RegistrationError(f"{name}: weight must be above 0; to leave it out use its mode")
    if wanted.timeout is not None and not 0 < wanted.timeout < float("inf"):
        raise RegistrationError(f"{name}: timeout must be above 0 seconds")
    if wanted.scope is not None:
        wanted.scope.require_writable()
    try:
        Mode(wanted.mode or Mode.READ)
    except ValueError as error:
        raise RegistrationError(f"{name}: mode must be one of {', '.join(Mode)}") from error


def _register(manager: pluggy.PluginManager, provider: object, name: str) -> dict[str, Hook]:
    try:
        manager.register(provider, name=name)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        if manager.has_plugin(name):
            manager.unregister(name=name)
        raise RegistrationError(f"{name}: {error}") from error
    hooks: dict[str, Hook] = {}
    for caller in manager.get_hookcallers(provider) or ():
        for impl in caller.get_hookimpls():
            if impl.plugin is provider:
                is_async = inspect.iscoroutinefunction(impl.function)
                hooks[caller.name] = Hook(impl.function, tuple(impl.argnames), is_async)
    if "store" in hooks and "store_many" not in hooks:
        hooks["store_many"] = derived_store_many(hooks["store"])
    return hooks


def _check_marks(provider: object, name: str, hooks: Mapping[str, Hook]) -> None:
    """Refuse a method that overrides a marked one and lost its mark: it would never be called."""
    specified = {n for n in vars(ProviderSpec) if not n.startswith("_")}
    for hook in specified - (hooks.keys() - _derived(provider)):
        for base in type(provider).__mro__[1:]:
            if hasattr(vars(base).get(hook), f"{PROJECT}_impl"):
                raise RegistrationError(
                    f"{name}: {hook} overrides a hook of {base.__name__} without @hookimpl; mark it"
                )


def _derived(provider: object) -> set[str]:
    marked = hasattr(getattr(provider, "store_many", None), f"{PROJECT}_impl")
    return set() if marked else {"store_many"}


def _mode(name: str, wanted: Mount, hooks: Mapping[str, Hook]) -> Mode:
    reads, writes = "search" in hooks, "store" in hooks and "forget" in hooks
    if wanted.mode is None:
        if reads and writes:
            return Mode.READ_WRITE
        if reads:
            return Mode.READ
        if writes:
            return Mode.WRITE
        if any(hook in hooks for hook in _CONTEXT):
            return Mode.CONTEXT
        raise RegistrationError(
            f"{name}: no usable hooks; reading needs search, writing store and forget, context "
            f"{' or '.join(_CONTEXT)}, each marked with @hookimpl"
        )
    mode = Mode(wanted.mode)
    if mode.reads and not reads:
        raise RegistrationError(f"{name}: mode {mode} needs the hook search")
    if mode.writes and not writes:
        raise RegistrationError(f"{name}: mode {mode} needs the hooks store and forget")
    if mode is Mode.CONTEXT and not any(hook in hooks for hook in _CONTEXT):
        raise RegistrationError(f"{name}: mode context needs {' or '.join(_CONTEXT)}")
    return mode


def _check_scopes(name: str, wanted: Mount, hooks: Mapping[str, Hook]) -> None:
    for hook in _NEEDS_SCOPE:
        if wanted.scope is None and hook in hooks and "scope" not in hooks[hook].arguments:
            raise RegistrationError(
                f"{name}: {hook} does not take scope, so it would answer for everybody; "
                "declare the argument, or pin the provider with Mount(provider, scope=...)"
            )


def _scope_fields(
    provider: object, name: str, attribute: str, default: frozenset[str]
) -> frozenset[str]:
    declared = getattr(provider, attribute, default)
    fields = frozenset(declared if not isinstance(declared, str) else (declared,))
    if fields - set(SCOPE_FIELDS):
        raise RegistrationError(f"{name}: {attribute} may name only {', '.join(SCOPE_FIELDS)}")
    return fields

"""Mounting: from a plain object to a provider whose hooks are known and checked."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping

import pluggy

from .contract import PROJECT, ProviderSpec
from .errors import MemsheafError, RegistrationError
from .mount import Down, Hook, Mode, Mount, Mounted, derived_store_many
from .scope import SCOPE_FIELDS

__all__ = ["listen", "mount_all"]

_MAX_NAME = 128
_NEEDS_SCOPE = ("search", "forget", "get", "list", "update", "touch", "prefetch")
_CONTEXT = ("build_system_prompt", "build_user_context")


def mount_all(manager: pluggy.PluginManager, providers: list[object]) -> list[Mounted]:
    """Register providers under unique names; on refusal nothing of that call stays behind.

    Raises:
        RegistrationError: Names the provider, what is wrong and the fix.
    """
    done: list[Mounted] = []
    try:
        for entry in providers:
            wanted = entry if isinstance(entry, Mount) else Mount(entry)
            try:
                done.append(_mount(manager, wanted, {m.name for m in done}))
            except MemsheafError:
                raise
            except Exception as error:  # an attribute that raises, a setting of another type
                label = wanted.name or type(wanted.provider).__name__
                raise RegistrationError(
                    f"{label}: cannot be mounted: {type(error).__name__}; look at its attributes "
                    "and at the settings of its Mount"
                ) from error
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
            if manager.is_registered(plugin):
                manager.unregister(plugin)
            raise RegistrationError(f"{name}: {error}") from error
        hooks = {caller.name for caller in manager.get_hookcallers(plugin) or ()}
        foreign = sorted(hook for hook in hooks if not hook.startswith(("before_", "after_")))
        if foreign or not hooks:
            manager.unregister(plugin)
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
    if not name.isprintable() or len(name) > _MAX_NAME:
        raise RegistrationError(
            f"{type(wanted.provider).__name__}: its name must have up to {_MAX_NAME} printable "
            "characters"
        )
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

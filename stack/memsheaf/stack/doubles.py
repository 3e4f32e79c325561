"""Public test doubles: an in-memory store, and wrappers that record, fail, dawdle or hang.

A wrapper takes over the hooks, scope fields and other declarations of the provider inside it, so
that it can stand wherever that provider stands.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from .contract import ProviderSpec, hookimpl
from .in_memory import InMemoryStore
from .scope import Scope

__all__ = [
    "FailingProvider",
    "HangingProvider",
    "InMemoryStore",
    "LeakingProvider",
    "RecordingProvider",
    "SlowProvider",
]

_HOOKS = tuple(name for name in vars(ProviderSpec) if not name.startswith("_"))
_DECLARATIONS = ("scope_fields", "returned_scope_fields", "filters_natively")


class _Wrapper:
    """Gives each hook of the provider inside a method that passes through `_call`.

    Args:
        inner: The provider inside; an `InMemoryStore` where none is given.
    """

    def __init__(self, inner: object | None = None) -> None:
        self.inner = InMemoryStore() if inner is None else inner
        for name in _DECLARATIONS:
            if hasattr(self.inner, name):
                setattr(self, name, getattr(self.inner, name))
        for name in _HOOKS:
            function = getattr(self.inner, name, None)
            if function is not None and hasattr(function, "memsheaf_impl"):
                setattr(self, name, self._wrapped(name, function))

    def _wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)  # keeps the signature, which tells the arguments it takes
        def hook(*args: Any, **kwargs: Any) -> Any:
            return self._call(name, function, args, kwargs)

        return hookimpl(hook)

    def _call(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        raise NotImplementedError


class RecordingProvider(_Wrapper):
    """Notes every call in `calls`, then passes it on.

    Args:
        inner: The provider inside; an `InMemoryStore` where none is given.

    Attributes:
        calls: ``(hook, positional arguments, keyword arguments)`` in order.

    >>> provider = RecordingProvider()
    >>> provider.forget(record_id="r1", scope=Scope(user_id="mira"))
    False
    >>> provider.calls[0][0]
    'forget'
    """

    def __init__(self, inner: object | None = None) -> None:
        super().__init__(inner)
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def _call(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self.calls.append((name, args, kwargs))
        return function(*args, **kwargs)


class FailingProvider(_Wrapper):
    """Raises instead of answering.

    Args:
        error: What it raises.
        on: The hooks that fail; the others are passed on. None: all but ``close``.
        inner: The provider inside; an `InMemoryStore` where none is given.
    """

    def __init__(
        self,
        error: BaseException,
        on: Collection[str] | None = None,
        inner: object | None = None,
    ) -> None:
        super().__init__(inner)
        self.error = error
        self.on = frozenset(_HOOKS) - {"close"} if on is None else frozenset(on)

    def _call(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if name in self.on:
            raise self.error
        return function(*args, **kwargs)


class SlowProvider(_Wrapper):
    """Sleeps before each answer but ``close``.

    Args:
        delay: Seconds.
        inner: The provider inside; an `InMemoryStore` where none is given.
    """

    def __init__(self, delay: float, inner: object | None = None) -> None:
        super().__init__(inner)
        self.delay = delay

    def _call(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if name != "close":
            time.sleep(self.delay)
        return function(*args, **kwargs)


class HangingProvider(_Wrapper):
    """Answers nothing but ``close`` until `release` is called; then everything is passed on.

    Args:
        inner: The provider inside; an `InMemoryStore` where none is given.
    """

    def __init__(self, inner: object | None = None) -> None:
        super().__init__(inner)
        self._released = threading.Event()

    def release(self) -> None:
        """Let the calls that hang, and all later ones, go on."""
        self._released.set()

    def _call(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if name != "close":
            self._released.wait()
        return function(*args, **kwargs)


class LeakingProvider(_Wrapper):
    """Answers as if everyone asked, whoever asks: what a stack has to catch.

    Args:
        inner: The provider inside; an `InMemoryStore` where none is given.
    """

    def _call(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        def widened(value: Any) -> Any:
            return Scope.EVERYONE if isinstance(value, Scope) else value

        return function(
            *map(widened, args), **{key: widened(value) for key, value in kwargs.items()}
        )

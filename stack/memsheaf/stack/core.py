"""What reading and writing share: providers, scope, guards, events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pluggy

from .contract import PROJECT, ProviderSpec
from .delivery import Delivery, DirectDelivery
from .errors import ClosedError, InvalidQuery, Refused, ScopeError, UsageError
from .fanout import Accepted, Answer, FanOut, Request, reason_of
from .mount import Down, Mount, Mounted
from .mounting import listen, mount_all
from .native_ids import NativeIds
from .results import Operation, Outcome, Status
from .scope import Scope
from .settings import StackSettings

__all__ = ["Core", "check_count", "check_id"]


class Core:
    """The mounted providers and the machinery around them."""

    def __init__(
        self,
        providers: Iterable[object],
        plugins: Iterable[object],
        scope: Scope | None,
        settings: StackSettings,
        state: Path | None,
        disabled: bool,
    ) -> None:
        if not isinstance(settings, StackSettings):
            raise UsageError(f"settings must be StackSettings, not {type(settings).__name__}")
        if scope is not None and not isinstance(scope, Scope):
            raise ScopeError(f"scope must be a Scope, not {type(scope).__name__}")
        self.settings = settings
        self.default_scope = scope
        self.disabled = "memory is disabled (MEMSHEAF_DISABLED)" if disabled else None
        self.manager = pluggy.PluginManager(PROJECT)
        self.manager.add_hookspecs(ProviderSpec)
        self.mounted = mount_all(self.manager, list(providers))
        listen(self.manager, plugins)
        self.fanout = FanOut(settings.workers, settings.breaker_failures, settings.breaker_pause)
        self.delivery: Delivery = DirectDelivery(
            self.fanout, settings.write_timeout, settings.write_deadline
        )
        self.native = NativeIds(state / "native_ids.db" if state is not None else None)
        self.closed = False

    def ensure_open(self) -> None:
        """Raise `ClosedError` after `close`."""
        if self.closed:
            raise ClosedError("the stack is closed; open a new one")

    def scope(self, scope: Scope | None) -> Scope:
        """The scope to read with: the given one, else the stack's default."""
        chosen = self.default_scope if scope is None else scope
        if chosen is None:
            raise ScopeError("no scope: pass scope=Scope(user_id=...) or give the stack a default")
        if not isinstance(chosen, Scope):
            raise ScopeError(f"scope must be a Scope, not {type(chosen).__name__}")
        return chosen.require_readable()

    def retry(self, name: str) -> bool:
        """See `MemoryStack.retry`."""
        for place, mounted in enumerate(self.mounted):
            if mounted.name == name:
                self.fanout.reset(name)
                if isinstance(mounted.provider, Down):
                    self.mounted[place] = self._reopened(mounted)
                return self.mounted[place].down is None
        raise UsageError(f"no provider is called {name!r}")

    def close(self) -> tuple[Outcome, ...]:
        """See `MemoryStack.close`."""
        if self.closed:
            return ()
        self.closed = True
        requests = [self.request(m, "close", Accepted) for m in self.mounted if m.has("close")]
        answers = self.delivery.write("close", requests, lambda answer: None)
        self.fanout.close()
        self.native.close()
        return tuple(a.outcome for a in answers)

    def _reopened(self, mounted: Mounted) -> Mounted:
        """A provider that is down, opened and mounted in its place; down again where it fails."""
        down = mounted.provider
        assert isinstance(down, Down)
        if down.reopen is None:
            return mounted
        try:
            provider: object = down.reopen()
        except (Exception, SystemExit) as error:
            provider = Down(reason_of(error), down.reopen)
        wanted = Mount(
            provider,
            mounted.name,
            mounted.mode,
            mounted.weight,
            mounted.timeout,
            mounted.pinned,
        )
        self.manager.unregister(name=mounted.name)
        return mount_all(self.manager, [wanted])[0]

    def read(
        self, operation: Operation, requests: Sequence[Request], until: float | None = None
    ) -> list[Answer]:
        """Fan a read out under the read limits; `until` is an earlier read's deadline."""
        return self.fanout.run(
            operation,
            requests,
            timeout=self.settings.read_timeout,
            deadline=self.read_deadline() if until is None else until,
        )

    def read_deadline(self) -> float:
        """When a read that starts now has to end, by `time.monotonic`."""
        return time.monotonic() + self.settings.read_deadline

    def may_ask_again(self, until: float) -> bool:
        """Whether a read has the time for another round; too short a one would blame the sound."""
        whole = min(self.settings.read_timeout, self.settings.read_deadline)
        return until - time.monotonic() > whole / 4

    def request(
        self,
        mounted: Mounted,
        hook: str,
        accept: Callable[[Any], Accepted],
        skip: str | None = None,
        **arguments: Any,
    ) -> Request:
        """A request, skipped where memory is disabled."""
        return Request(mounted, hook, arguments, accept, self.disabled or skip)

    def guard(self, event: str, **arguments: Any) -> None:
        """Let every guard of an event look first.

        Raises:
            Refused: A guard raised.
        """
        caller = getattr(self.manager.hook, event)
        if not caller.get_hookimpls():
            return
        try:
            caller(**arguments)
        except Exception as error:
            raise Refused(f"{event} refused it: {reason_of(error)}") from error

    def listen(self, plugin: object) -> Callable[[], None]:
        """See `MemoryStack.listen`."""
        if self.manager.is_registered(plugin):
            return lambda: None
        listen(self.manager, [plugin])

        def stop() -> None:
            if self.manager.is_registered(plugin):
                self.manager.unregister(plugin)

        return stop

    def tell(self, event: str, **arguments: Any) -> tuple[Outcome, ...]:
        """Tell every listener of an event, each by itself; failures come back as outcomes."""
        failures = []
        for impl in getattr(self.manager.hook, event).get_hookimpls():
            try:
                impl.function(**{name: arguments[name] for name in impl.argnames})
            except (Exception, SystemExit) as error:
                reason = f"{event}: {reason_of(error)}"
                failures.append(
                    Outcome(impl.plugin_name, "event", Status.FAILED, reason, error=error)
                )
        return tuple(failures)


def check_id(record_id: object) -> str:
    """The id, or a refusal, so that a wrong argument is nobody's failure.

    Raises:
        InvalidQuery: It is not text.
    """
    if not isinstance(record_id, str):
        raise InvalidQuery(f"an id must be text, not {type(record_id).__name__}")
    return record_id


def check_count(value: object, name: str, default: int, most: int) -> int:
    """Read a limit: None is the default; anything but a whole number from 0 to `most` is refused.

    Raises:
        InvalidQuery: It is negative, too large, or not a whole number.
    """
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidQuery(f"{name} must be a whole number, not {type(value).__name__}")
    if not 0 <= value <= most:
        raise InvalidQuery(f"{name} must be from 0 to {most}")
    return value

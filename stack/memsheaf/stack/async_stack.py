"""The awaitable face of the stack."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .contract import Order
from .errors import ClosedError
from .filters import Filter
from .memory_stack import MemoryStack
from .records import MemoryRecord
from .relevance import Reranker
from .results import Blocks, ForgetReport, ImportReport, Outcome, Page, Receipt, SearchResult
from .scope import Scope
from .workers import Call, Workers

if TYPE_CHECKING:
    from .config import Config

__all__ = ["AsyncMemoryStack"]

T = TypeVar("T")
_CALLS_AT_ONCE = 32


class AsyncMemoryStack:
    """`MemoryStack` for coroutines: the same verbs, arguments and results, awaited.

    Nothing that touches a disk or a lock runs on the caller's loop, and nothing is tied to one
    loop: calls may come from several loops, one after the other or at once.

    Args:
        stack: The stack to face; or the arguments of `MemoryStack`.
    """

    def __init__(self, stack: MemoryStack | Iterable[object] = (), **arguments: Any) -> None:
        self._stack = stack if isinstance(stack, MemoryStack) else MemoryStack(stack, **arguments)
        self._workers = Workers("async", _CALLS_AT_ONCE)
        self._closed = False

    @classmethod
    async def from_config(cls, start: Path | str | Config | None = None, **overrides: Any) -> Self:
        """See `MemoryStack.from_config`."""
        return cls(await asyncio.to_thread(MemoryStack.from_config, start, **overrides))

    @property
    def sync(self) -> MemoryStack:
        """The stack behind this face."""
        return self._stack

    async def store(
        self, content: str | MemoryRecord, *, scope: Scope | None = None, **fields: Any
    ) -> Receipt:
        """See `MemoryStack.store`."""
        return await self._call(lambda: self._stack.store(content, scope=scope, **fields))

    async def store_many(
        self,
        contents: Iterable[str | MemoryRecord],
        *,
        scope: Scope | None = None,
        **fields: Any,
    ) -> list[Receipt]:
        """See `MemoryStack.store_many`."""
        return await self._call(lambda: self._stack.store_many(contents, scope=scope, **fields))

    async def search(
        self,
        text: str,
        scope: Scope | None = None,
        limit: int | None = None,
        filters: Filter | Mapping[str, object] | None = None,
        *,
        min_relevance: float = 0.0,
        rerank: str | Reranker | None = None,
    ) -> SearchResult:
        """See `MemoryStack.search`."""
        return await self._call(
            lambda: self._stack.search(
                text, scope, limit, filters, min_relevance=min_relevance, rerank=rerank
            )
        )

    async def prefetch(
        self,
        text: str,
        scope: Scope | None = None,
        limit: int | None = None,
        *,
        min_relevance: float = 0.0,
    ) -> SearchResult:
        """See `MemoryStack.prefetch`."""
        return await self._call(
            lambda: self._stack.prefetch(text, scope, limit, min_relevance=min_relevance)
        )

    async def forget(self, record_id: str, scope: Scope | None = None) -> ForgetReport:
        """See `MemoryStack.forget`."""
        return await self._call(lambda: self._stack.forget(record_id, scope))

    async def update(
        self,
        record_id: str,
        changes: Mapping[str, object],
        scope: Scope | None = None,
        *,
        at: datetime | None = None,
    ) -> Receipt:
        """See `MemoryStack.update`."""
        return await self._call(lambda: self._stack.update(record_id, changes, scope, at=at))

    async def get(self, record_id: str, scope: Scope | None = None) -> MemoryRecord | None:
        """See `MemoryStack.get`."""
        return await self._call(lambda: self._stack.get(record_id, scope))

    async def list(
        self,
        scope: Scope | None = None,
        limit: int | None = None,
        after: str | None = None,
        order: Order = "newest",
        filters: Filter | Mapping[str, object] | None = None,
    ) -> Page:
        """See `MemoryStack.list`."""
        return await self._call(lambda: self._stack.list(scope, limit, after, order, filters))

    async def touch(
        self, record_ids: Sequence[str], scope: Scope | None = None
    ) -> tuple[Outcome, ...]:
        """See `MemoryStack.touch`."""
        return await self._call(lambda: self._stack.touch(record_ids, scope))

    async def system_prompt(self, scope: Scope | None = None) -> Blocks:
        """See `MemoryStack.system_prompt`."""
        return await self._call(lambda: self._stack.system_prompt(scope))

    async def user_context(self, text: str = "", scope: Scope | None = None) -> Blocks:
        """See `MemoryStack.user_context`."""
        return await self._call(lambda: self._stack.user_context(text, scope))

    async def export(self, scope: Scope | None = None) -> AsyncIterator[str]:
        """See `MemoryStack.export`."""
        lines = self._stack.export(scope)
        while (line := await self._call(lambda: next(lines, None))) is not None:
            yield line

    async def import_(
        self, lines: Iterable[str | bytes], scope: Scope | None = None
    ) -> ImportReport:
        """See `MemoryStack.import_`."""
        return await self._call(lambda: self._stack.import_(lines, scope))

    async def check(self) -> tuple[Outcome, ...]:
        """See `MemoryStack.check`."""
        return await self._call(self._stack.check)

    async def retry(self, name: str) -> bool:
        """See `MemoryStack.retry`."""
        return await self._call(lambda: self._stack.retry(name))

    async def close(self) -> tuple[Outcome, ...]:
        """See `MemoryStack.close`."""
        if self._closed:
            return ()
        self._closed = True
        outcomes = await self._call(self._stack.close)
        self._workers.close()
        return outcomes

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _call(self, function: Callable[[], T]) -> T:
        """Run on a thread of ours; the stack's own deadlines bound how long."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(call: Call) -> None:
            if future.done():
                return
            if call.error is not None:
                future.set_exception(call.error)
            else:
                future.set_result(call.result)

        def ended(call: Call) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, call)

        try:
            call = self._workers.submit(function)
        except ClosedError as error:
            raise ClosedError("the stack is closed; open a new one") from error
        call.when_ended(ended)
        return await future

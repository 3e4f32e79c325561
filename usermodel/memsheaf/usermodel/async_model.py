"""The awaitable face of the user model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from memsheaf.models import ChatModel
from memsheaf.sessionsearch import Item

from .asking import Answer
from .batches import Handover
from .editing import Forgotten
from .model import MAX_TOKENS, UserModel
from .profile import Line, LineKind, Profile
from .profiles import Change
from .provider import UserModelProvider
from .status import QueueStatus

__all__ = ["AsyncUserModel"]


class AsyncUserModel:
    """`UserModel` for coroutines: the same methods, arguments and results, awaited.

    Nothing that touches a disk or a model runs on the caller's loop.

    Args:
        model: The user model to face, or None to make one.
        arguments: Those of `UserModel`, where one is made.
    """

    def __init__(self, model: UserModel | None = None, **arguments: Any) -> None:
        self._model = model or UserModel(**arguments)

    @property
    def sync(self) -> UserModel:
        """The user model behind this face."""
        return self._model

    async def observe(self, items: Item | Iterable[Item], *, user_id: str) -> Handover:
        """See `UserModel.observe`."""
        return await asyncio.to_thread(self._model.observe, items, user_id=user_id)

    async def end_session(self, user_id: str) -> None:
        """See `UserModel.end_session`."""
        await asyncio.to_thread(self._model.end_session, user_id)

    async def refresh(self, user_id: str, *, timeout: float = 60.0) -> Profile:
        """See `UserModel.refresh`."""
        return await asyncio.to_thread(self._model.refresh, user_id, timeout=timeout)

    async def flush(self, timeout: float = 60.0, *, user_id: str | None = None) -> bool:
        """See `UserModel.flush`."""
        return await asyncio.to_thread(self._model.flush, timeout, user_id=user_id)

    async def retry(self, user_id: str) -> int:
        """See `UserModel.retry`."""
        return await asyncio.to_thread(self._model.retry, user_id)

    async def profile(self, user_id: str) -> Profile:
        """See `UserModel.profile`."""
        return await asyncio.to_thread(self._model.profile, user_id)

    async def history(self, user_id: str) -> tuple[Change, ...]:
        """See `UserModel.history`."""
        return await asyncio.to_thread(self._model.history, user_id)

    async def correct(
        self, user_id: str, line_id: str | None, text: str, kind: LineKind | str | None = None
    ) -> Line:
        """See `UserModel.correct`."""
        return await asyncio.to_thread(self._model.correct, user_id, line_id, text, kind)

    async def forget(self, user_id: str, line_id: str | None = None) -> Forgotten:
        """See `UserModel.forget`."""
        return await asyncio.to_thread(self._model.forget, user_id, line_id)

    async def forget_sources(
        self,
        user_id: str,
        items: Iterable[Item | str] = (),
        *,
        conversations: Iterable[str] = (),
    ) -> Forgotten:
        """See `UserModel.forget_sources`."""
        return await asyncio.to_thread(
            self._model.forget_sources, user_id, items, conversations=conversations
        )

    async def forget_mark(self, user_id: str | None) -> str:
        """See `UserModel.forget_mark`."""
        return await asyncio.to_thread(self._model.forget_mark, user_id)

    async def export(self, user_id: str) -> dict[str, Any]:
        """See `UserModel.export`."""
        return await asyncio.to_thread(self._model.export, user_id)

    async def users(self) -> tuple[str, ...]:
        """See `UserModel.users`."""
        return await asyncio.to_thread(self._model.users)

    async def status(self, user_id: str | None = None, *, limit: int = 1_000) -> QueueStatus:
        """See `UserModel.status`."""
        return await asyncio.to_thread(self._model.status, user_id, limit=limit)

    async def build_user_context(
        self, user_id: str | None, text: str = "", max_tokens: int = MAX_TOKENS
    ) -> str | None:
        """See `UserModel.build_user_context`."""
        return await asyncio.to_thread(self._model.build_user_context, user_id, text, max_tokens)

    async def ask(self, user_id: str, question: str, model: ChatModel | None = None) -> Answer:
        """See `UserModel.ask`."""
        return await asyncio.to_thread(self._model.ask, user_id, question, model)

    def as_provider(
        self, *, namespace: str | None = None, max_tokens: int = MAX_TOKENS
    ) -> UserModelProvider:
        """See `UserModel.as_provider`."""
        return self._model.as_provider(namespace=namespace, max_tokens=max_tokens)

    async def close(self) -> None:
        """See `UserModel.close`."""
        await asyncio.to_thread(self._model.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

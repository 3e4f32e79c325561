"""The client that the three protocols share: both faces, retries, deadline, streaming."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from concurrent.futures import CancelledError, Future
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack
from urllib.parse import urlsplit

from ._http import (
    HttpSettings,
    bounded,
    checked_key,
    checked_url,
    decode,
    encode,
    library,
    lines,
    make_client,
    sse_data,
    status_error,
)
from ._portal import Portal
from ._wire import Growing, Wire
from .chat import ChatOptions, ChatReply, ChatRequest, Done, Message, StreamEvent
from .errors import (
    BadReply,
    BadRequest,
    ModelBusy,
    ModelCancelled,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
Emit = Callable[[StreamEvent], None]


class HttpModel:
    """A chat model behind HTTP; use it as a context manager or call `close`."""

    def __init__(
        self,
        wire: Wire,
        base_url: str,
        model: str,
        *,
        api_key: str | None,
        settings: HttpSettings | None,
    ) -> None:
        if not model:
            raise BadRequest("model is empty; pass the name that the server knows")
        self._wire = wire
        self._url = checked_url(base_url) + wire.path
        self._model = model
        self._api_key = checked_key(api_key)
        self._settings = chosen = settings or HttpSettings()
        self._plain = False
        self._name = f"{model} at {urlsplit(base_url).netloc}"
        self._portal = Portal(lambda: make_client(chosen), self._name)

    @property
    def name(self) -> str:
        """The model and its server."""
        return self._name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name}>"

    def complete(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> ChatReply:
        """Answer the messages.

        Raises:
            ModelError: One of the tree in `memsheaf.models.errors`.
        """
        request = ChatRequest.build(messages, **options)
        future = self._submit(request, None)
        try:
            return self._result(future)
        finally:
            future.cancel()

    async def acomplete(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> ChatReply:
        """Answer the messages; cancelling the task closes the connection."""
        request = ChatRequest.build(messages, **options)
        future = await self._start(request, None)
        return await self._awaited(future)

    def stream(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Generator[StreamEvent, None, None]:
        """Answer piece by piece; closing the iterator closes the connection.

        Raises:
            ModelError: As `complete`; after the first event no attempt is repeated.
        """
        return self._events(ChatRequest.build(messages, **options))

    def astream(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> AsyncGenerator[StreamEvent, None]:
        """Answer piece by piece, as `stream` does."""
        return self._async_events(ChatRequest.build(messages, **options))

    def close(self) -> None:
        """End running calls with `ModelCancelled`, close connections, stop the thread."""
        self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _events(self, request: ChatRequest) -> Generator[StreamEvent, None, None]:
        # Unbounded, but the reply's own limit bounds what can wait here.
        events: SimpleQueue[StreamEvent | None] = SimpleQueue()
        future = self._submit(request, events.put)
        future.add_done_callback(lambda _: events.put(None))
        try:
            while (event := events.get()) is not None:
                yield event
            yield Done(self._result(future))
        finally:
            future.cancel()

    async def _async_events(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[StreamEvent | None] = asyncio.Queue()

        def put(event: StreamEvent | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(events.put_nowait, event)

        future = await self._start(request, put)
        future.add_done_callback(lambda _: put(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield Done(await self._awaited(future))
        finally:
            future.cancel()

    def _submit(self, request: ChatRequest, emit: Emit | None) -> Future[ChatReply]:
        body = self._body(request, stream=emit is not None)
        return self._portal.submit(
            lambda client: self._call(client, request, body, emit), request.cancel
        )

    async def _start(self, request: ChatRequest, emit: Emit | None) -> Future[ChatReply]:
        """Submit without blocking the caller's loop: the first call builds a TLS context."""
        if not self._portal.running:
            await asyncio.to_thread(self._portal.start)
        return self._submit(request, emit)

    def _body(self, request: ChatRequest, *, stream: bool) -> bytes:
        return encode(self._wire.body(self._model, request, stream=stream, plain=self._plain))

    def _result(self, future: Future[T]) -> T:
        try:
            return future.result()
        except CancelledError:
            raise self._closed() from None

    async def _awaited(self, future: Future[T]) -> T:
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._portal.closed and task is not None and not task.cancelling():
                raise self._closed() from None
            raise

    def _closed(self) -> ModelCancelled:
        return ModelCancelled("the client is closed; make a new one", model=self._name)

    async def _call(
        self, client: httpx.AsyncClient, request: ChatRequest, body: bytes, emit: Emit | None
    ) -> ChatReply:
        """One call with its deadline and its retries; events end the right to retry."""
        stamina = library("stamina")
        settings = self._settings
        timeout = settings.timeout if request.timeout is None else request.timeout
        deadline = time.monotonic() + timeout
        emitted = False

        def forward(event: StreamEvent) -> None:
            nonlocal emitted
            emitted = True
            if emit is not None:
                emit(event)

        def backoff(error: Exception) -> bool | float:
            if emitted or not isinstance(error, ModelUnavailable):
                return False
            wait = error.retry_after if isinstance(error, ModelBusy) else None
            if wait is None:
                return True
            return wait if wait <= min(settings.wait_max, deadline - time.monotonic()) else False

        try:
            async with asyncio.timeout(timeout):
                async for attempt in stamina.retry_context(
                    on=backoff,
                    attempts=settings.attempts,
                    timeout=None,
                    wait_initial=settings.wait_initial,
                    wait_max=settings.wait_max,
                    wait_jitter=settings.wait_initial,
                ):
                    with attempt:
                        return await self._attempt(client, request, body, emit and forward)
        except TimeoutError as error:
            raise ModelTimeout(
                f"no whole reply within {timeout:g} s; raise timeout or lower max_tokens",
                model=self._name,
            ) from error
        raise AssertionError("stamina ends by returning or raising")

    async def _attempt(
        self, client: httpx.AsyncClient, request: ChatRequest, body: bytes, emit: Emit | None
    ) -> ChatReply:
        try:
            return await self._post(client, body, emit)
        except ModelRefused as refused:
            stream = emit is not None
            optional = self._wire.has_optional(request, stream=stream) and not self._plain
            if refused.status not in (400, 422) or not optional:
                raise
            plain = encode(self._wire.body(self._model, request, stream=stream, plain=True))
            reply = await self._post(client, plain, emit)
            self._plain = True
            return reply

    async def _post(self, client: httpx.AsyncClient, body: bytes, emit: Emit | None) -> ChatReply:
        httpx = library("httpx")
        headers = {"Content-Type": "application/json", **self._wire.headers(self._api_key)}
        try:
            async with client.stream("POST", self._url, content=body, headers=headers) as response:
                if response.status_code != 200:
                    raise await status_error(response, self._name, self._api_key)
                chunks = bounded(response, self._settings.max_bytes, self._name)
                if emit is None:
                    return await self._whole(chunks)
                return await self._streamed(chunks, emit)
        except httpx.DecodingError as error:
            raise BadReply("the reply's compression is broken", model=self._name) from error
        except httpx.TransportError as error:
            what = "connection lost" if isinstance(error, httpx.RemoteProtocolError) else "no link"
            raise ModelUnavailable(
                f"{what} ({type(error).__name__}); check that the server runs", model=self._name
            ) from error

    async def _whole(self, chunks: AsyncIterator[bytes]) -> ChatReply:
        payload = decode(b"".join([chunk async for chunk in chunks]), self._name)
        reply = Growing(self._name)
        self._wire.read(payload, reply)
        list(reply.flush())
        return reply.done()

    async def _streamed(self, chunks: AsyncIterator[bytes], emit: Emit) -> ChatReply:
        reply = Growing(self._name)
        source: AsyncIterator[bytes] = lines(chunks)
        async for data in sse_data(source) if self._wire.sse else source:
            if not data.strip():
                continue
            if data.strip() == b"[DONE]":
                break
            payload: dict[str, Any] = decode(data, self._name)
            for event in self._wire.feed(payload, reply):
                emit(event)
        if not reply.ended:
            raise ModelUnavailable("the stream broke off before its end", model=self._name)
        for event in reply.flush():
            emit(event)
        return reply.done()

"""Which model does a side job: named slot, then default auxiliary, then primary."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from typing import Unpack

from .chat import ChatModel, ChatOptions, ChatReply, ChatRequest, Message, StreamEvent
from .errors import AllModelsFailed, BadRequest, ModelCancelled, ModelError, NoModel


class ModelChain:
    """Models that stand in for each other: the next is asked when one fails.

    A `timeout` holds for each model, so that one which hangs does not take the others' time. A
    wrong call or a cancelled one ends the chain; a stream moves on only before its first event.
    The chain owns nothing: whoever made the models closes them.

    Args:
        models: In the order of asking; one that stands there twice is asked once.

    Raises:
        NoModel: There is none.

    >>> from memsheaf.models import ModelUnavailable, ScriptedModel
    >>> down = ScriptedModel([ModelUnavailable("down")], name="cheap")
    >>> chain = ModelChain([down, ScriptedModel(["hello"], name="main")])
    >>> chain.complete([{"role": "user", "content": "hi"}]).text
    'hello'
    """

    def __init__(self, models: Sequence[ChatModel]) -> None:
        flat: list[ChatModel] = []
        for model in models:
            for one in model.models if isinstance(model, ModelChain) else (model,):
                if not any(one is known for known in flat):
                    flat.append(one)
        if not flat:
            raise NoModel("the chain is empty; configure a primary model")
        self._models = tuple(flat)

    @property
    def models(self) -> tuple[ChatModel, ...]:
        """The models, each once, in the order of asking."""
        return self._models

    @property
    def name(self) -> str:
        """The models' names."""
        return " → ".join(model.name for model in self._models)

    def __repr__(self) -> str:
        return f"<ModelChain {self.name}>"

    def complete(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> ChatReply:
        """Answer by the first model that can.

        Raises:
            AllModelsFailed: None could; holds each one's error.
        """
        failures = _Failures.of(messages, options)
        for model in self._models:
            try:
                return model.complete(messages, **options)
            except ModelError as error:
                failures.add(model, error)
        raise failures.all() from failures.last

    async def acomplete(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> ChatReply:
        """Answer by the first model that can, as `complete` does."""
        failures = _Failures.of(messages, options)
        for model in self._models:
            try:
                return await model.acomplete(messages, **options)
            except ModelError as error:
                failures.add(model, error)
        raise failures.all() from failures.last

    def stream(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Generator[StreamEvent, None, None]:
        """Answer piece by piece by the first model that can."""
        return self._events(messages, options, _Failures.of(messages, options))

    def astream(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> AsyncGenerator[StreamEvent, None]:
        """Answer piece by piece, as `stream` does."""
        return self._async_events(messages, options, _Failures.of(messages, options))

    def _events(
        self, messages: Sequence[Message], options: ChatOptions, failures: _Failures
    ) -> Generator[StreamEvent, None, None]:
        for model in self._models:
            started = False
            events = model.stream(messages, **options)
            try:
                with closing(events):
                    for event in events:
                        started = True
                        yield event
                    return
            except ModelError as error:
                if started:
                    raise
                failures.add(model, error)
        raise failures.all() from failures.last

    async def _async_events(
        self, messages: Sequence[Message], options: ChatOptions, failures: _Failures
    ) -> AsyncGenerator[StreamEvent, None]:
        for model in self._models:
            started = False
            events = model.astream(messages, **options)
            try:
                async with aclosing(events):
                    async for event in events:
                        started = True
                        yield event
                    return
            except ModelError as error:
                if started:
                    raise
                failures.add(model, error)
        raise failures.all() from failures.last


def resolve(
    slot: str,
    *,
    slots: Mapping[str, ChatModel | None] | None = None,
    default: ChatModel | None = None,
    primary: ChatModel | None = None,
) -> ModelChain:
    """The chain for a side job: its own slot, then the default auxiliary, then the primary.

    Args:
        slot: Name of the job, for instance "user_model" or "reflection".
        slots: Models by job. A job that is not named here has no model of its own.
        default: Auxiliary model for all jobs.
        primary: The agent's own model, always last.

    Raises:
        NoModel: The slot is named but holds no model, or there is no model at all.

    >>> from memsheaf.models import ScriptedModel
    >>> cheap, main = ScriptedModel(name="cheap"), ScriptedModel(name="main")
    >>> resolve("reflection", slots={"reflection": cheap}, default=main, primary=main)
    <ModelChain cheap → main>
    """
    slots = slots or {}
    if slot in slots and slots[slot] is None:
        raise NoModel(f"slot {slot!r} is named but has no model; give it one or remove it")
    models = []
    for model in (slots.get(slot), default, primary):
        if model is not None:
            models.append(model)
        # The primary is the last resort, wherever it is named: nothing stands behind it.
        if model is primary and primary is not None:
            break
    if not models:
        raise NoModel(
            f"no model for slot {slot!r}; configure the slot, a default auxiliary or a primary"
        )
    return ModelChain(models)


class _Failures:
    """What went wrong so far in one call."""

    def __init__(self) -> None:
        self._seen: list[tuple[str, ModelError]] = []

    @classmethod
    def of(cls, messages: Sequence[Message], options: ChatOptions) -> _Failures:
        """Check the call first: a wrong call is no failure of a model."""
        ChatRequest.build(messages, **options)
        return cls()

    def add(self, model: ChatModel, error: ModelError) -> None:
        """Keep the error; a cancelled call or a wrong one ends the chain."""
        if isinstance(error, ModelCancelled | BadRequest):
            raise error
        self._seen.append((model.name, error))

    @property
    def last(self) -> ModelError:
        """The error that came last."""
        return self._seen[-1][1]

    def all(self) -> AllModelsFailed:
        """One error that names them all."""
        return AllModelsFailed(self._seen)

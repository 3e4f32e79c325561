"""The `llm` deriver: any chat model proposes, and only what the user's words support remains."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memsheaf.models import BadReply, ChatModel, Message
from memsheaf.sessionsearch import Item
from memsheaf.stack import ConfigError

from .llm_prompt import derive_messages, question_messages, repair_messages, words_of
from .llm_reply import MAX_REPLY, Words, read_operations, read_verdicts
from .operations import Operation
from .profile import Profile
from .said import said

__all__ = ["LlmDeriver"]


class LlmDeriver:
    """Asks a chat model for operations, and trusts no reply.

    The items are sent as fenced, escaped data, without code, quotations and pasted text, under
    handles instead of their ids. Of the reply only operations remain that have the right form, name
    current lines and items of the batch, quote these word for word, and whose telling words,
    names and numbers stand in them. A reply that is no JSON is asked for once more.

    Args:
        model: The model; for a chain see `memsheaf.models.resolve`.
        timeout: Seconds for each call; None: those of the model.
        max_tokens: The longest reply in tokens.

    Raises:
        ConfigError: There is no model.

    >>> from memsheaf.models import ScriptedModel
    >>> from memsheaf.sessionsearch import ItemOrigin
    >>> reply = '''{"operations": [{"op": "add", "kind": "preference", "text": "Likes oolong tea",
    ...   "confidence": 0.8, "items": ["i1"], "quote": "oolong tea is the best"}]}'''
    >>> item = Item("c", 0, "message", "To me oolong tea is the best", "user", ItemOrigin.USER)
    >>> deriver = LlmDeriver(ScriptedModel([reply]))
    >>> [operation.text for operation in deriver.derive(Profile("mira"), [item])]
    ['Likes oolong tea']
    """

    name = "llm"

    def __init__(
        self,
        model: ChatModel | None = None,
        *,
        timeout: float | None = 60.0,
        max_tokens: int = 2_000,
    ) -> None:
        if not isinstance(model, ChatModel):
            raise ConfigError("the llm deriver needs a chat model; pass model=")
        self._model = model
        self._timeout = timeout
        self._max_tokens = max_tokens

    def __repr__(self) -> str:
        return f"<LlmDeriver {self._model.name}>"

    def derive(self, profile: Profile, items: Sequence[Item]) -> Sequence[Operation]:
        """The operations that the model proposes and the items support.

        Raises:
            ModelError: The model failed, or its second reply was no JSON of the right form either.
        """
        words = _words(items)
        if not words.ids:
            return ()
        asked = derive_messages(profile, words.by_handle)
        return self._ask(asked, lambda reply: read_operations(reply, profile, words))

    def question(
        self, profile: Profile, operations: Sequence[Operation], items: Sequence[Item]
    ) -> Sequence[Operation]:
        """The operations that a second look at the cited words supports.

        A new line that contradicts a current one becomes its successor.

        Raises:
            ModelError: As `derive`.
        """
        if not operations:
            return ()
        words = _words(items)
        asked = question_messages(profile, operations, words.by_handle, words.handles)
        return self._ask(asked, lambda reply: read_verdicts(reply, profile, operations))

    def _ask(
        self, asked: list[Message], read: Callable[[str], tuple[Operation, ...]]
    ) -> tuple[Operation, ...]:
        reply = self._complete(asked)
        try:
            return read(reply)
        except BadReply as error:
            try:
                return read(self._complete(repair_messages(asked, reply, str(error))))
            except BadReply as again:
                raise BadReply(
                    f"no usable reply in two attempts: {again}", model=self._model.name
                ) from error

    def _complete(self, messages: list[Message]) -> str:
        reply = self._model.complete(
            messages,
            json_mode=True,
            temperature=0.0,
            max_tokens=self._max_tokens,
            timeout=self._timeout,
        )
        return reply.text[: MAX_REPLY + 1]


def _words(items: Sequence[Item]) -> Words:
    """The user's own speech in the items, by item id."""
    found = {item.id: words_of(said(item) or "") for item in items}
    return Words({item_id: words for item_id, words in found.items() if words})

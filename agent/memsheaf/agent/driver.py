"""A whole turn: record, recall, inject, model and tools, record, learn."""

from __future__ import annotations

import json
import uuid
from collections.abc import Container, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memsheaf.models import ChatReply, ModelCancelled, ToolCall, Usage
from memsheaf.sessionsearch import Item, NewItem
from memsheaf.sessionsearch.items import check_name
from memsheaf.stack import MemsheafError, NotFound, Outcome, UsageError
from memsheaf.stack.text import clean

from .context import failed
from .continuing import keyed
from .host_tools import Run, ToolOutcome, refused, runner
from .inject import Injection
from .memory import AgentMemory
from .policy import TurnOrigin
from .recording import items_of, messages_of, plain_messages
from .turn_log import Recorded
from .turn_types import Prompt, Step, TurnOptions, TurnResult, TurnState, TurnStatus

__all__ = ["AskModel", "RunTools", "Turn"]


@dataclass(frozen=True, slots=True)
class AskModel:
    """The turn needs the model's reply."""

    messages: list[Any]
    tools: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RunTools:
    """The turn needs the outcomes of tool calls."""

    calls: tuple[ToolCall, ...]


Steps = Generator[AskModel | RunTools, Any, TurnResult]

_MOST_CALLS = 32  # of tools, in one reply


class Turn:
    """The order of a turn, without the waiting: whoever drives it asks the model and runs tools.

    Args:
        prompt: The user's words, one message, or a whole list of messages whose last is the
            user's.
        memory: The agent's memory.
        conversation: Its id.
        options: How it runs.
    """

    def __init__(
        self, prompt: Prompt, memory: AgentMemory, conversation: str, options: TurnOptions
    ) -> None:
        check_name("a conversation's id", conversation)
        self._given = _messages(prompt)
        self._whole = not isinstance(prompt, str | Mapping)
        self._memory = memory
        self._conversation = conversation
        self._options = options
        self._origin = TurnOrigin(options.origin)
        self._tools = memory.tools(self._origin)
        self._own = runner(options.tools)
        self._check_names()
        self._response = f"turn-{uuid.uuid4().hex[:12]}"
        self._recorded = False
        self._iterations = 0
        self._usage = Usage()
        self._sent: list[Any] = []
        self._added: list[Any] = []
        self._text = ""
        self._heard = ""  # of a reply that has not ended
        self._reply: ChatReply | None = None
        self._injection = Injection([])
        self._items: tuple[Item, ...] = ()
        self._outcomes: tuple[Outcome, ...] = ()

    @property
    def issued(self) -> Container[str]:
        """The ids of blocks, for what scrubs the model's text."""
        return self._memory.ledger

    def find(self, name: str) -> Run | None:
        """What carries a tool call out."""
        if self._options.memory_tools and name in self._tools.names:
            return lambda call: self._tools.call(call.name, call.arguments)
        return self._own(name)

    def hear(self, text: str) -> None:
        """Take a piece of a reply that was shown, in case that its end never comes."""
        self._heard += text

    def steps(self) -> Steps:
        """The turn: yields what it needs and is sent it back, or thrown the model's error.

        Closed before its end, or ended from outside, it keeps what was said so far.
        """
        status: TurnStatus = "completed"
        error: Exception | None = None
        try:
            status = yield from self._answered()
        except ModelCancelled:
            status = "interrupted"
        except Exception as raised:
            status, error = "failed", raised
        except BaseException:
            self._record()
            self._learn(self._record_answer("interrupted", None))
            raise
        try:
            self._keep(status, error)
        except Exception as raised:
            status, error = "failed", error or raised
        return TurnResult(
            status,
            self._text,
            tuple(self._added),
            self._items,
            self._injection,
            self._iterations,
            self._usage,
            self._outcomes,
            error,
        )

    def _answered(self) -> Generator[AskModel | RunTools, Any, TurnStatus]:
        try:
            self._before(Step.RECORD)
            history = [] if self._whole else self._history()
        finally:
            self._record()
        self._after(Step.RECORD)
        system = [{"role": "system", "content": self._options.system}]
        self._sent = [*(system if self._options.system else []), *history, *self._given]
        self._before(Step.RECALL)
        self._injection = self._memory.before_request(
            self._sent, conversation=self._conversation, origin=self._origin
        )
        self._sent = list(self._injection.messages)
        self._after(Step.RECALL)
        schemas = [tool.to_schema() for tool in self._options.tools]
        if self._options.memory_tools:
            schemas = self._tools.schemas() + schemas
        while True:
            if self._interrupted():
                return "interrupted"
            if self._iterations >= self._options.max_iterations:
                return "max_iterations"
            self._before(Step.MODEL)
            self._iterations += 1
            reply: ChatReply = yield AskModel(list(self._sent), schemas)
            calls = self._take(reply)
            self._after(Step.MODEL)
            if not calls:
                return "completed"
            self._before(Step.TOOLS)
            outcomes: Sequence[ToolOutcome] = yield RunTools(calls[:_MOST_CALLS])
            for outcome in [*outcomes, *(refused(c, _MOST_CALLS) for c in calls[_MOST_CALLS:])]:
                self._say(_result(outcome))
            self._after(Step.TOOLS)

    def _take(self, reply: ChatReply) -> tuple[ToolCall, ...]:
        """Take a reply into the conversation; returns its calls, each with an id of its own."""
        self._heard = ""
        said, trouble = self._memory.own_words(
            [{"role": "assistant", "content": clean(reply.text or "")}]
        )
        self._outcomes += trouble
        text = said[0]["content"] if said else ""  # it may have been nothing but a block
        calls = _sound(reply.tool_calls, self._iterations)
        self._reply = replace(reply, text=text, tool_calls=calls)
        self._text = self._reply.text or self._text
        if reply.usage is not None:
            self._usage = Usage(
                self._usage.input_tokens + reply.usage.input_tokens,
                self._usage.output_tokens + reply.usage.output_tokens,
                self._usage.cached_tokens + reply.usage.cached_tokens,
            )
        self._say(self._reply.as_message())
        return calls

    def _say(self, message: Any) -> None:
        self._sent.append(message)
        self._added.append(message)

    def _history(self) -> list[dict[str, Any]]:
        memory = self._memory
        if memory.sessions is None or not memory.policy.access(self._origin).reads:
            return []
        assert memory.scope is not None
        limit = self._options.history
        try:
            newest = memory.sessions.log.items(
                self._conversation, memory.scope, limit=limit, order="desc", types="message"
            )
        except NotFound:
            return []
        except MemsheafError as error:  # a turn without its past is better than none
            self._outcomes += (failed("sessions", error),)
            return []
        return messages_of(_from_a_fixed_place(newest[::-1], limit))

    def _record(self) -> None:
        """Keep the user's message, once, before anything can fail."""
        if self._recorded:
            return
        own, trouble = self._memory.own_words(self._given)
        self._outcomes += trouble
        self._added = own[-1:]
        recorded = self._append(items_of(own if self._whole else self._added, origin=self._origin))
        self._recorded = True
        self._items += recorded.items
        self._outcomes += recorded.outcomes

    def _keep(self, status: TurnStatus, error: Exception | None) -> None:
        """Keep what the turn said, and hand it to what learns in the background."""
        try:
            self._before(Step.KEEP)
        finally:
            answer = self._record_answer(status, error)
        self._after(Step.KEEP)
        self._before(Step.LEARN)
        self._learn(answer)
        self._after(Step.LEARN)

    def _learn(self, answer: Sequence[NewItem]) -> None:
        own, trouble = self._memory.own_words(self._sent)
        learned = self._memory.learn(
            own,
            [*items_of(self._added[:1], origin=self._origin), *answer],
            Recorded(self._items),
            conversation=self._conversation,
            origin=self._origin,
        )
        self._outcomes += trouble + learned.outcomes

    def _record_answer(self, status: TurnStatus, error: Exception | None) -> list[NewItem]:
        """Append what came after the user's message to the log."""
        broken: list[NewItem] = []
        if self._heard.strip():  # shown to the user, so it was said
            self._text = self._heard
            message = {"role": "assistant", "content": self._heard}
            broken = [
                replace(item, status=status)
                for item in items_of([message], response_id=self._response)
            ]
        answer = items_of(self._added[1:], origin=self._origin, response_id=self._response)
        answer += broken
        if broken:
            self._say(message)
        if error is not None:
            answer.append(NewItem("error", type(error).__name__, status="failed"))
        if self._whole and self._items:
            answer = keyed(answer, self._items[-1].seq + 1)
        recorded = self._append(answer)
        self._items += recorded.items
        self._outcomes += recorded.outcomes
        return answer

    def _append(self, items: Sequence[NewItem]) -> Recorded:
        """Append to the log; of a whole list what it does not have."""
        if not self._memory.policy.access(self._origin).writes:
            return Recorded()
        log = self._memory.log
        append = log.append_new if self._whole and not self._recorded else log.append
        return append(items, self._conversation, title=self._options.title)

    def _check_names(self) -> None:
        names = [tool.name for tool in self._options.tools]
        if self._options.memory_tools:
            names += self._tools.names
        double = sorted({name for name in names if names.count(name) > 1})
        if double:
            raise UsageError(f"two tools have the same name: {', '.join(double)}; rename one")

    def _interrupted(self) -> bool:
        return self._options.cancel is not None and self._options.cancel.cancelled

    def _state(self) -> TurnState:
        return TurnState(
            self._conversation, self._origin, self._iterations, tuple(self._sent), self._reply
        )

    def _before(self, step: Step) -> None:
        self._options.hooks.before(step, self._state())

    def _after(self, step: Step) -> None:
        self._options.hooks.after(step, self._state())


def _messages(prompt: Prompt) -> list[Any]:
    if isinstance(prompt, str):
        made: list[Any] = [{"role": "user", "content": prompt}]
    elif isinstance(prompt, Mapping):
        made = [dict(prompt)]
    else:
        made = plain_messages(list(prompt))
    if not made or not isinstance(made[-1], Mapping) or made[-1].get("role") != "user":
        raise UsageError("the prompt must be text, or end with a message of the user")
    return made


def _sound(calls: Sequence[ToolCall], iteration: int) -> tuple[ToolCall, ...]:
    """Calls as a server accepts them back: text in every field, and an id of its own each."""
    sound: list[ToolCall] = []
    seen: set[str] = set()
    for number, call in enumerate(calls):
        id, arguments = clean(str(call.id or "")), call.arguments or ""
        if not id or id in seen:
            id = f"call-{iteration}-{number}"
        seen.add(id)
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, default=str)
        sound.append(ToolCall(id, clean(str(call.name or "")), clean(arguments)))
    return tuple(sound)


def _from_a_fixed_place(items: Sequence[Item], limit: int) -> Sequence[Item]:
    """The end of a long conversation, from a place that moves rarely.

    If it moved with every turn, no request would begin as the one before, and no cache would help.
    """
    step = limit // 2
    if len(items) < limit or step < 2:
        return items
    start = -(-items[0].seq // step) * step
    kept = [item for item in items if item.seq >= start]
    return kept if any(item.role == "user" for item in kept) else items


def _result(outcome: ToolOutcome) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": outcome.call.id,
        "name": outcome.call.name,
        "content": outcome.text,
    }

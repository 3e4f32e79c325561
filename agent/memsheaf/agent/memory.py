"""An agent's whole memory behind two calls: before a request, and after its answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from memsheaf.sessionsearch import Item, NewItem, SessionHit, SessionResult
from memsheaf.stack import (
    MemoryStack,
    MemsheafError,
    NotFound,
    Outcome,
    Scope,
    ScopeError,
    SearchResult,
    Status,
)
from memsheaf.stack.fanout import reason_of
from memsheaf.usermodel.owners import owner_of

from .continuing import needed, new_items
from .inject import Injection, inject, inject_system
from .ledger import BlockLedger
from .policy import Policy, TurnOrigin
from .recording import items_of, tool_calls
from .reflector import Reflector
from .scrub import strip_messages
from .tools import MemoryTools

if TYPE_CHECKING:
    from memsheaf.sessionsearch import SessionSearch
    from memsheaf.usermodel import UserModel

__all__ = ["AgentMemory", "MemoryContext", "Recorded"]

_TYPES = ("message", "tool_call", "tool_result")


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """What all parts of the memory know about a text, each part by its name.

    Attributes:
        facts: Memories of the stack.
        sessions: Items of past conversations; None without session search.
        profile: What is known of the user; None where nothing is, or without a user model.
        outcomes: What failed, and what each provider did.
    """

    facts: SearchResult
    sessions: SessionResult[SessionHit] | None = None
    profile: str | None = None
    outcomes: tuple[Outcome, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The parts as JSON, for a tool's answer or a prompt."""
        return {
            "facts": [
                {"id": hit.id, "kind": hit.record.kind.value, "text": hit.record.content}
                for hit in self.facts
            ],
            "sessions": [
                {"id": hit.id, "title": hit.title, "role": hit.item.role, "text": hit.snippet}
                for hit in self.sessions or ()
            ],
            "profile": self.profile or "",
        }


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was kept of a turn.

    Attributes:
        items: The items that are new in the log.
        reflecting: Whether a reflection follows.
        learning: Whether the user model was handed something.
        outcomes: What failed.
    """

    items: tuple[Item, ...] = ()
    reflecting: bool = False
    learning: bool = False
    outcomes: tuple[Outcome, ...] = ()


@dataclass(kw_only=True)
class AgentMemory:
    """Memories, past conversations and the user model of an agent, for any framework.

    What is not given is left out: with a stack alone, memories are injected and offered as tools.

    Args:
        stack: The memories.
        scope: Whose; the stack's default where not given.
        sessions: Past conversations; turns are recorded in its log.
        user_model: Learns from what the user says, and is injected with the memories.
        reflector: Keeps the stack up to date after runs.
        policy: What a run may do, by who started it.
        ledger: Remembers the blocks that were sent; one in memory where not given.
        injection: Options of `inject`, for instance ``{"limit": 8, "strategy": "first_only"}``.

    >>> from memsheaf.agent import AgentMemory
    >>> from memsheaf.providers.local import LocalStore
    >>> from memsheaf.stack import MemoryStack, Scope
    >>> with MemoryStack([LocalStore()], scope=Scope(user_id="mira")) as stack:
    ...     _ = stack.store("Mira plays the cello")
    ...     memory = AgentMemory(stack=stack)
    ...     sent = memory.before_request([{"role": "user", "content": "Who plays the cello?"}])
    >>> "Mira plays the cello" in sent.messages[0]["content"]
    True
    """

    stack: MemoryStack
    scope: Scope | None = None
    sessions: SessionSearch | None = None
    user_model: UserModel | None = None
    reflector: Reflector | None = None
    policy: Policy = field(default_factory=Policy)
    ledger: BlockLedger = field(default_factory=BlockLedger)
    injection: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._recording = threading.Lock()
        chosen = self.scope if self.scope is not None else self.stack.scope
        if chosen is None:
            raise ScopeError("no scope: pass scope=Scope(user_id=...) or give the stack a default")
        self.scope = chosen.require_writable()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def tools(self, origin: TurnOrigin | str = TurnOrigin.PRIMARY) -> MemoryTools:
        """The tools of a run, limited to what the policy allows its origin."""
        return MemoryTools(
            self.stack,
            scope=self.scope,
            sessions=self.sessions,
            user_model=self.user_model,
            access=self.policy.access(origin),
        )

    def before_request(
        self,
        messages: Sequence[Any],
        *,
        conversation: str | None = None,
        origin: TurnOrigin | str = TurnOrigin.PRIMARY,
    ) -> Injection:
        """Put what memory knows into a request.

        Static text of the providers goes after the system messages; memories and the user's
        profile after the user's last words; blocks that were sent before are put back.

        Args:
            messages: OpenAI-style or Anthropic-style messages; never changed.
            conversation: Its id; needed to put blocks back.
            origin: Who started the run; with access `off` the messages stay as they are.

        Returns:
            The messages to send, and what was done.
        """
        if not self.policy.access(origin).reads:
            return Injection(list(messages), reason="refused")
        with_static = inject_system(messages, self.stack, scope=self.scope)
        return inject(
            with_static,
            self.stack,
            scope=self.scope,
            ledger=self.ledger,
            conversation=conversation,
            contexts=self._profile,
            **self.injection,
        )

    def after_response(
        self,
        messages: Sequence[Any],
        *,
        conversation: str,
        origin: TurnOrigin | str = TurnOrigin.PRIMARY,
        title: str | None = None,
    ) -> Recorded:
        """Keep a conversation up to its newest answer, and learn from it in the background.

        Call it after each answer with the whole list: what the log has already is not kept twice.
        Blocks of memory are taken out first.

        Args:
            messages: The messages, the newest answer included.
            conversation: Its id.
            origin: Who started the run; only with full access is anything kept.
            title: Of the conversation.
        """
        if not self.policy.access(origin).writes:
            return Recorded()
        own = strip_messages(messages, self.ledger)
        items = items_of(own, origin=origin)
        if self.sessions is None:
            return self.learn(own, items, Recorded(), origin=origin)
        recorded = self.record_new(items, conversation, origin=origin, title=title)
        return self.learn(own, items, recorded, origin=origin) if recorded.items else recorded

    def record(
        self, items: Sequence[NewItem], conversation: str, *, title: str | None = None
    ) -> Recorded:
        """Append items to the log; a failure is in the outcomes."""
        if self.sessions is None or not items:
            return Recorded()
        assert self.scope is not None
        try:
            added = self.sessions.log.append(conversation, items, self.scope, title=title)
        except MemsheafError as error:
            return Recorded(outcomes=(self.failed("sessions", error),))
        return Recorded(added)

    def record_new(
        self,
        items: Sequence[NewItem],
        conversation: str,
        *,
        origin: TurnOrigin | str = TurnOrigin.PRIMARY,
        title: str | None = None,
    ) -> Recorded:
        """Append those of a conversation's items that the log does not have yet."""
        if self.sessions is None or not self.policy.access(origin).writes:
            return Recorded()
        assert self.scope is not None
        log = self.sessions.log
        with self._recording:
            limit = needed(items)
            try:
                newest = log.items(
                    conversation, self.scope, limit=limit, order="desc", types=_TYPES
                )
                last = log.conversation(conversation, self.scope).last_seq
            except NotFound:
                last = None
            except MemsheafError as error:
                return Recorded(outcomes=(self.failed("sessions", error),))
            next_seq = 0 if last is None else last + 1
            complete = len(newest) < limit
            fresh = new_items(items, newest[::-1], next_seq, complete=complete)
            return self.record(fresh, conversation, title=title)

    def learn(
        self,
        messages: Sequence[Any],
        items: Sequence[NewItem | Item],
        recorded: Recorded,
        *,
        origin: TurnOrigin | str,
    ) -> Recorded:
        """Hand a turn to reflection and to the user model, which work in the background.

        The user model learns from items of the log alone: each line names where it comes from.

        Args:
            messages: The conversation, without blocks of memory.
            items: Its items, or those of the turn.
            recorded: What of them is new in the log.
            origin: Who started the run.
        """
        assert self.scope is not None
        if not self.policy.access(origin).writes:
            return recorded
        reflecting = learning = False
        outcomes = recorded.outcomes
        if self.reflector is not None:
            calls, failed = tool_calls(items)
            reflecting = self.reflector.after_run(
                messages, self.scope, tool_calls=calls, failed=failed
            )
        owner = owner_of(self.scope)
        if self.user_model is not None and owner is not None and recorded.items:
            try:
                taken = self.user_model.observe(recorded.items, user_id=owner)
                learning = bool(taken.accepted)
            except MemsheafError as error:
                outcomes = (*outcomes, self.failed("user_model", error))
        return Recorded(recorded.items, reflecting, learning, outcomes)

    def context(self, text: str, *, limit: int = 5) -> MemoryContext:
        """What memories, past conversations and the profile say about a text, each apart."""
        assert self.scope is not None
        facts = self.stack.search(text, self.scope, limit)
        sessions, outcomes = None, facts.outcomes
        if self.sessions is not None:
            try:
                sessions = self.sessions.search(text, limit, scope=self.scope)
            except MemsheafError as error:
                outcomes = (*outcomes, self.failed("sessions", error))
        profiles = self._profile(text)
        return MemoryContext(facts, sessions, profiles[0][1] if profiles else None, outcomes)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait for the work in the background; False where that took longer."""
        done = self.reflector is None or self.reflector.flush(timeout)
        if self.user_model is not None:
            done = self.user_model.flush(timeout=60.0 if timeout is None else timeout) and done
        return done

    def close(self) -> None:
        """End the reflector and the ledger; stack, sessions and user model are the host's."""
        if self.reflector is not None:
            self.reflector.close()
        self.ledger.close()

    async def abefore_request(self, messages: Sequence[Any], **options: Any) -> Injection:
        """See `before_request`; runs off the caller's loop."""
        return await asyncio.to_thread(self.before_request, messages, **options)

    async def aafter_response(self, messages: Sequence[Any], **options: Any) -> Recorded:
        """See `after_response`; runs off the caller's loop."""
        return await asyncio.to_thread(self.after_response, messages, **options)

    async def acontext(self, text: str, *, limit: int = 5) -> MemoryContext:
        """See `context`; runs off the caller's loop."""
        return await asyncio.to_thread(self.context, text, limit=limit)

    def _profile(self, text: str) -> list[tuple[str, str]]:
        """The user model's block, as inject takes it."""
        if self.user_model is None or self.scope is None:
            return []
        block = self.user_model.build_user_context(owner_of(self.scope), text)
        return [("user_model", block)] if block else []

    @staticmethod
    def failed(part: str, error: Exception) -> Outcome:
        """The outcome of a part that failed beside a turn."""
        return Outcome(part, "event", Status.FAILED, reason_of(error), error=error)

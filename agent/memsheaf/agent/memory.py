"""An agent's whole memory behind two calls: before a request, and after its answer."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from memsheaf.sessionsearch import Item, NewItem
from memsheaf.sessionsearch.items import check_name
from memsheaf.stack import (
    ForgetReport,
    MemoryStack,
    MemsheafError,
    Outcome,
    Scope,
    ScopeError,
    hookimpl,
)
from memsheaf.usermodel.owners import owner_of

from .context import MemoryContext, context, failed, forget_mark_of, profile_of
from .inject import Injection, inject
from .ledger import BLOCKS, BlockLedger
from .policy import Policy, TurnOrigin
from .recording import items_of, plain_messages, tool_calls
from .reflector import Reflector
from .scrub import strip_messages
from .system import inject_system, inject_system_value
from .tools import MemoryTools
from .turn_log import Recorded, TurnLog

if TYPE_CHECKING:
    from memsheaf.sessionsearch import SessionSearch
    from memsheaf.usermodel import UserModel

__all__ = ["AgentMemory"]

_CLOSING = 10.0  # seconds that closing waits for reflections


class _OwnLedger(BlockLedger):
    """A ledger that an agent's memory made for itself, and closes."""


class _Forgetting:
    """Empties blocks that held a forgotten memory, as long as the ledger lives."""

    def __init__(self, ledger: BlockLedger) -> None:
        self._ledger = weakref.ref(ledger)

    @hookimpl
    def after_forget(self, report: ForgetReport) -> None:
        """Drop what a forgotten memory was in."""
        if (ledger := self._ledger()) is not None:
            ledger.after_forget(report)


class _AnyId:
    """Takes every block for an issued one, where the ledger cannot tell."""

    def __contains__(self, block_id: object) -> bool:
        return True


@dataclass(kw_only=True, eq=False)
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
        ledger: Remembers the blocks that were sent, and drops those that held a forgotten memory;
            where not given a file beside the log of `sessions`, or one in memory.
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
    ledger: BlockLedger = field(default_factory=_OwnLedger)
    injection: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chosen = self.scope if self.scope is not None else self.stack.scope
        if chosen is None:
            raise ScopeError("no scope: pass scope=Scope(user_id=...) or give the stack a default")
        self.scope = chosen.require_writable()
        self.log = TurnLog(None if self.sessions is None else self.sessions.log, self.scope)
        if isinstance(self.ledger, _OwnLedger):
            if self.sessions is not None:  # what was sent is known after a restart as well
                self.ledger.close()
                self.ledger = _OwnLedger(self.sessions.log.path.with_name(BLOCKS))
            self._stop = self.stack.listen(_Forgetting(self.ledger))
            # Hosts that make one of these a request may leave it to itself.
            weakref.finalize(self.ledger, self._stop).atexit = False
        else:
            self.stack.listen(self.ledger)

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
        static: bool = True,
    ) -> Injection:
        """Put what memory knows into a request.

        Static text of the providers goes after the system messages; memories and the user's
        profile after the user's last words; blocks that were sent before are put back.

        Args:
            messages: OpenAI-style or Anthropic-style messages; never changed.
            conversation: Its id; needed to put blocks back.
            origin: Who started the run; with access `off` the messages stay as they are.
            static: Whether the static text goes in as a system message. For an Anthropic-style
                request it goes into the separate value, see `system_value`.

        Returns:
            The messages to send, and what was done.
        """
        if not self.policy.access(origin).reads:
            return Injection(list(messages), reason="refused")
        if static:
            messages = inject_system(messages, self.stack, scope=self.scope)
        assert self.scope is not None
        troubles: list[Outcome] = []

        def profile(words: str) -> list[tuple[str, str]]:
            assert self.scope is not None
            block, trouble = profile_of(self.user_model, self.scope, words)
            troubles.extend(trouble)
            return [("user_model", block)] if block else []

        made = inject(
            messages,
            self.stack,
            scope=self.scope,
            ledger=self.ledger,
            conversation=conversation,
            contexts=profile,
            contexts_mark=forget_mark_of(self.user_model, self.stack, self.scope),
            **self.injection,
        )
        return replace(made, outcomes=(*made.outcomes, *troubles)) if troubles else made

    def system_value(
        self,
        system: str | Sequence[Any] | None = None,
        *,
        origin: TurnOrigin | str = TurnOrigin.PRIMARY,
    ) -> str | list[Any]:
        """The separate `system` value of an Anthropic-style request, with the static text.

        Args:
            system: A text, a list of text blocks, or None; never changed.
            origin: Who started the run.
        """
        if not self.policy.access(origin).reads:
            return system or "" if system is None or isinstance(system, str) else list(system)
        return inject_system_value(system, self.stack, scope=self.scope)

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

        Raises:
            InvalidRecord: The conversation's id is not 1 to 512 printable characters.
        """
        check_name("a conversation's id", conversation)
        if not self.policy.access(origin).writes:
            return Recorded()
        own, trouble = self.own_words(messages)
        items = items_of(own, origin=origin)
        recorded = self.log.append_new(items, conversation, title=title)
        recorded = replace(recorded, outcomes=trouble + recorded.outcomes)
        if self.sessions is not None and not recorded.items and not recorded.outcomes:
            return recorded  # a retry teaches nothing
        return self.learn(own, items, recorded, conversation=conversation, origin=origin)

    def own_words(self, messages: Sequence[Any]) -> tuple[list[Any], tuple[Outcome, ...]]:
        """Messages as mappings, without blocks of memory, and what failed.

        Where the ledger cannot tell which blocks were issued, whatever looks like one goes.
        """
        plain = plain_messages(messages)
        try:
            return strip_messages(plain, self.ledger), ()
        except MemsheafError as error:
            return strip_messages(plain, _AnyId()), (failed("ledger", error),)

    def learn(
        self,
        messages: Sequence[Any],
        items: Sequence[NewItem | Item],
        recorded: Recorded,
        *,
        conversation: str,
        origin: TurnOrigin | str,
    ) -> Recorded:
        """Hand a turn to reflection and to the user model, which work in the background.

        The user model learns from items of the log alone: each line names where it comes from.

        Args:
            messages: The conversation, without blocks of memory.
            items: Its items, or those of the turn.
            recorded: What of them is new in the log.
            conversation: Its id.
            origin: Who started the run.
        """
        assert self.scope is not None
        if not self.policy.access(origin).writes:
            return recorded
        reflecting = learning = False
        outcomes = recorded.outcomes
        if self.reflector is not None:
            calls, broken = tool_calls(items)
            reflecting = self.reflector.after_run(
                messages,
                self.scope,
                conversation=conversation,
                tool_calls=calls,
                failed=broken,
            )
        owner = owner_of(self.scope)
        if self.user_model is not None and owner is not None and recorded.items:
            try:
                taken = self.user_model.observe(recorded.items, user_id=owner)
                learning = bool(taken.accepted)
            except MemsheafError as error:
                outcomes = (*outcomes, failed("user_model", error))
        return Recorded(recorded.items, reflecting, learning, outcomes)

    def context(self, text: str, scope: Scope | None = None, *, limit: int = 5) -> MemoryContext:
        """What memories, past conversations and the profile say about a text; see `context`.

        Args:
            text: The question, in words.
            scope: Whose; this memory's where not given.
            limit: Memories, and items of conversations, at the most.
        """
        asked = self.scope if scope is None else scope
        assert asked is not None
        return context(
            text,
            asked,
            stack=self.stack,
            sessions=self.sessions,
            user_model=self.user_model,
            limit=limit,
        )

    def flush(self, timeout: float | None = None) -> bool:
        """Wait for the work in the background; False where that took longer."""
        done = self.reflector is None or self.reflector.flush(timeout)
        if self.user_model is not None:
            done = self.user_model.flush(timeout=60.0 if timeout is None else timeout) and done
        return done

    def close(self) -> None:
        """Let reflections end, and close the ledger unless it was given.

        Stack, sessions, user model and reflector are closed by whoever made them.
        """
        if self.reflector is not None:
            self.reflector.flush(_CLOSING)
        if isinstance(self.ledger, _OwnLedger):
            self._stop()
            self.ledger.close()

    async def abefore_request(self, messages: Sequence[Any], **options: Any) -> Injection:
        """See `before_request`; runs off the caller's loop."""
        return await asyncio.to_thread(self.before_request, messages, **options)

    async def aafter_response(self, messages: Sequence[Any], **options: Any) -> Recorded:
        """See `after_response`; runs off the caller's loop."""
        return await asyncio.to_thread(self.after_response, messages, **options)

    async def acontext(
        self, text: str, scope: Scope | None = None, *, limit: int = 5
    ) -> MemoryContext:
        """See `context`; runs off the caller's loop."""
        return await asyncio.to_thread(self.context, text, scope, limit=limit)

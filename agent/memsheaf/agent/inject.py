"""Injection: what memory knows goes into a request, and the prompt cache stays warm.

What stays the same goes into the system prompt; what changes goes into the last message that holds
the user's own words, after those words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from memsheaf.stack import (
    AsyncMemoryStack,
    Hit,
    InvalidQuery,
    MemoryStack,
    Outcome,
    ProviderError,
    Refused,
    Scope,
    ScopeError,
    Status,
    UsageError,
)
from memsheaf.stack.fanout import reason_of
from memsheaf.stack.text import clean

from .block import build_block, choose_block_id
from .budget import Sizes
from .gate import is_trivial
from .ledger import BlockLedger, Sent
from .messages import check_messages, is_own, last_own, texts, with_block
from .relevant import POOL, relevant_hits, words_of
from .tokens import Tokenizer
from .turns import Turns

__all__ = [
    "MIN_RELEVANCE",
    "Gate",
    "Injection",
    "Strategy",
    "ainject",
    "inject",
]

MIN_RELEVANCE = 0.3
"""Memories whose text matches the user's words less than this stay out."""
# Measured by benchmarks.injection, see docs/injection.md.


Strategy = Literal["first_only", "every_turn"]
"""Which of the user's messages get a block: the first that passes the gate, or each."""

Gate = Callable[[str], bool]
"""Says of the user's words that they ask for no memory."""


Reason = Literal[
    "no words",
    "carried",
    "put back",
    "trivial",
    "not the first",
    "nothing relevant",
    "refused",
    "ledger failed",
]
"""Why nothing new was injected."""


ContextSource = Callable[[str], Sequence[tuple[str, str]]]
"""More texts for the block, as (name, text), for the words of the user."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A request with memories, and what was done for it.

    Attributes:
        messages: The messages to send: a new list; equal to the input where nothing was injected.
        block: The block of the last words of the user, or None.
        block_id: The id in its fence, or None.
        hits: The memories in the block, best first; empty where it was put back.
        outcomes: What each provider did; also a guard that refused, and listeners that failed.
        restored: How many blocks that had been sent before were put back.
        reason: Why nothing new was injected; None where something was.
    """

    messages: list[Any]
    block: str | None = None
    block_id: str | None = None
    hits: tuple[Hit, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    restored: int = 0
    reason: Reason | None = None


def inject(
    messages: Sequence[Any],
    stack: MemoryStack,
    *,
    scope: Scope | None = None,
    query: str | None = None,
    limit: int = 5,
    min_relevance: float = MIN_RELEVANCE,
    max_characters: int | None = None,
    max_tokens: int | None = None,
    tokenizer: Tokenizer | None = None,
    block_id: str | None = None,
    strategy: Strategy = "every_turn",
    gate: Gate | None = is_trivial,
    ledger: BlockLedger | None = None,
    conversation: str | None = None,
    put_back: bool = True,
    contexts: ContextSource | None = None,
    contexts_mark: str | None = None,
) -> Injection:
    r"""Put recalled memories and the providers' context after the user's last words.

    Every other message is passed on as it is, but for the blocks that the ledger puts back. A
    message that carries a block gets no second one.

    Args:
        messages: OpenAI-style or Anthropic-style messages; never changed.
        stack: Where to recall from.
        scope: Whose memories; the stack's default where not given.
        query: What to search for; the user's last words where not given. Of a long one the end
            is used, see `StackSettings.query_limit`.
        limit: Memories at the most.
        min_relevance: Memories whose text matches less than this stay out, from 0 to 1. Of a
            long message they may also match a stretch, see `relevant_hits`.
        max_characters: Characters of the whole block at the most; 2,000 where neither size is
            given.
        max_tokens: Tokens of the whole block at the most; 500 where neither size is given.
        tokenizer: Counts the tokens of a text; `estimate_tokens` where not given.
        block_id: 8 to 64 hexadecimal digits for the fence; random where not given. The same state
            and the same id give the same bytes.
        strategy: ``every_turn``, or ``first_only``: only the conversation's first message of the
            user that passes the gate.
        gate: Messages of which it says True get nothing; None lets all pass. Not asked where a
            query is given.
        ledger: Remembers ids and blocks. With it only issued ids make a block.
        conversation: The conversation's name in the ledger; the scope's ``session_id`` where not
            given. Without either the ledger remembers ids only.
        put_back: Whether messages that were sent with a block, and came back without, get it
            again, byte for byte.
        contexts: Gives more texts of the host for the block, as (name, text), for the words of
            the user; asked only where the message gets a block.
        contexts_mark: What they may not outlive, for instance `UserModel.forget_mark`: blocks
            with such texts that were sent under another mark are emptied, and not put back.

    Returns:
        The messages to send. They are unchanged where there are no words of the user, nothing
        relevant is known, a guard refused, or no provider could answer; the outcomes tell.

    Raises:
        UsageError: An argument is outside its rules.
        ScopeError: There is no scope.
        ClosedError: The stack or the ledger is closed.

    >>> from memsheaf.agent import inject
    >>> from memsheaf.providers.local import LocalStore
    >>> from memsheaf.stack import MemoryStack, Scope
    >>> with MemoryStack([LocalStore()], scope=Scope(user_id="mira")) as stack:
    ...     receipt = stack.store("Mira plays the cello")
    ...     made = inject([{"role": "user", "content": "Who plays the cello?"}], stack)
    >>> [hit.record.content for hit in made.hits]
    ['Mira plays the cello']
    >>> made.messages[0]["content"].startswith("Who plays the cello?\n\n<memory-context-")
    True
    """
    check_messages(messages)
    if query is not None and not isinstance(query, str):
        raise UsageError("query must be text")
    if strategy not in get_args(Strategy):
        raise UsageError(f"strategy must be one of {', '.join(get_args(Strategy))}")
    if not (isinstance(min_relevance, int | float) and 0 <= min_relevance <= 1):
        raise InvalidQuery("min_relevance must be a number from 0 to 1")
    sizes = Sizes(max_characters, max_tokens, tokenizer)
    chosen_id = choose_block_id(block_id)
    asked = _scope_of(stack, scope)
    place = last_own(messages)
    if place is None:
        return Injection(list(messages), reason="no words")
    wanted = clean(_words(messages[place]) if query is None else query)
    wanted = wanted[-stack.settings.query_limit :]
    name = (conversation or asked.session_id) if put_back else None
    try:
        turns = Turns(messages, ledger, asked, name, contexts_mark or "")
        sent, restored = turns.put_back()
        reason = _reason(turns, messages, place, wanted, strategy, gate, query is None)
    except ProviderError as error:
        outcome = _failure("ledger", error)
        return Injection(list(messages), outcomes=(outcome,), reason="ledger failed")
    if reason is not None and not restored:
        return Injection(list(messages), reason=reason)
    long = words_of(wanted) if reason is None and limit > 0 else []
    try:
        stack.guard("before_inject", messages=list(messages), scope=asked)
        if reason is None:
            most, least = (max(limit, POOL), 0.0) if long else (limit, min_relevance)
            recalled = stack.prefetch(wanted, asked, most, min_relevance=least)
    except Refused as error:
        return Injection(list(messages), outcomes=(_refusal(error),), reason="refused")
    counts = turns.known(place) or Sent("", "")
    hits: tuple[Hit, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    if reason is None:
        theirs = stack.user_context(wanted, asked)
        outcomes = recalled.outcomes + theirs.outcomes
        ours: Sequence[tuple[str, str]] = ()
        try:
            ours = () if contexts is None else contexts(wanted)
        except Exception as error:  # the host's own, and no reason to send nothing
            outcomes += (_failure("contexts", error),)
        found = recalled.hits
        if long:
            found = relevant_hits(long, found, limit, min_relevance)
        block = build_block(found, [*theirs, *ours], chosen_id, sizes)
        try:
            if block is not None or not (recalled.partial or theirs.partial):
                counts = turns.keep(place, chosen_id, block, with_contexts=bool(theirs or ours))
        except ProviderError as error:
            outcomes += (_failure("ledger", error),)
            return Injection(list(messages), outcomes=outcomes, reason="ledger failed")
        if counts.text:
            sent[place] = with_block(sent[place], counts.text)
            hits = block.hits if block is not None and counts.text == block.text else ()
        else:
            reason = "nothing relevant"
    if restored or counts.text:
        outcomes += stack.tell("after_inject", messages=list(sent), scope=asked)
    return Injection(
        sent, counts.text or None, counts.block_id or None, hits, outcomes, restored, reason
    )


async def ainject(
    messages: Sequence[Any],
    stack: AsyncMemoryStack,
    *,
    scope: Scope | None = None,
    query: str | None = None,
    limit: int = 5,
    min_relevance: float = MIN_RELEVANCE,
    max_characters: int | None = None,
    max_tokens: int | None = None,
    tokenizer: Tokenizer | None = None,
    block_id: str | None = None,
    strategy: Strategy = "every_turn",
    gate: Gate | None = is_trivial,
    ledger: BlockLedger | None = None,
    conversation: str | None = None,
    put_back: bool = True,
    contexts: ContextSource | None = None,
    contexts_mark: str | None = None,
) -> Injection:
    """See `inject`; guards, listeners and providers run off the caller's loop."""
    return await asyncio.to_thread(
        inject,
        messages,
        stack.sync,
        scope=scope,
        query=query,
        limit=limit,
        min_relevance=min_relevance,
        max_characters=max_characters,
        max_tokens=max_tokens,
        tokenizer=tokenizer,
        block_id=block_id,
        strategy=strategy,
        gate=gate,
        ledger=ledger,
        conversation=conversation,
        put_back=put_back,
        contexts=contexts,
        contexts_mark=contexts_mark,
    )


def _words(message: Any) -> str:
    return "\n".join(texts(message))


def _reason(
    turns: Turns,
    messages: Sequence[Any],
    place: int,
    wanted: str,
    strategy: Strategy,
    gate: Gate | None,
    asks_gate: bool,
) -> Reason | None:
    """Why nothing is to be searched for."""
    known = turns.known(place)
    if turns.carries(place):
        return "carried"
    if known is not None:
        return "put back" if known.text else "nothing relevant"
    if not wanted.strip():
        return "no words"
    if asks_gate and gate is not None and gate(_words(messages[place])):
        return "trivial"
    if strategy == "first_only" and _comes_later(messages[:place], gate):
        return "not the first"
    return None


def _comes_later(earlier: Sequence[Any], gate: Gate | None) -> bool:
    """Whether an earlier message of the user was one that gets memories."""
    return any(is_own(m) and (gate is None or not gate(_words(m))) for m in earlier)


def _scope_of(stack: MemoryStack, scope: Scope | None) -> Scope:
    chosen = stack.scope if scope is None else scope
    if not isinstance(chosen, Scope):
        raise ScopeError("no scope: pass scope=Scope(user_id=...) or give the stack a default")
    return chosen.require_readable()


def _failure(part: str, error: Exception) -> Outcome:
    return Outcome(part, "event", Status.FAILED, reason_of(error), error=error)


def _refusal(error: Refused) -> Outcome:
    return Outcome("guard", "event", Status.SKIPPED, str(error), error=error)

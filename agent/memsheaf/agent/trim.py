"""Cutting a history where a provider accepts it: whole turns, and calls with their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memsheaf.stack import UsageError

from .messages import after_system, is_own, role_of
from .tokens import Tokenizer, count_tokens, estimate_tokens

__all__ = ["Trimmed", "trim_messages"]


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What is left of a history.

    Attributes:
        messages: The messages that are kept: a new list.
        tokens: Their size.
        dropped: How many messages were left out.
        fits: Whether they fit. False where what may not be left out is too large by itself: the
            system messages and the last words of the user.
    """

    messages: list[Any]
    tokens: int
    dropped: int
    fits: bool


def trim_messages(
    messages: Sequence[Any],
    *,
    keep_last: int | None = None,
    max_tokens: int | None = None,
    tokenizer: Tokenizer = estimate_tokens,
) -> Trimmed:
    """Leave out the oldest messages, and what belongs to them.

    The leading system messages and the user's last words always stay. What is kept begins with
    words of the user, and every tool result has its call, every call its results.

    Args:
        messages: OpenAI-style or Anthropic-style messages; never changed.
        keep_last: Messages at the most, without the leading system messages.
        max_tokens: Tokens at the most, system messages included; tool calls with their arguments,
            and tool results, are counted.
        tokenizer: Counts the tokens of a text.

    Raises:
        UsageError: A bound is below 0.

    >>> call = {"role": "assistant", "tool_calls": [{"id": "t1"}]}
    >>> result = {"role": "tool", "tool_call_id": "t1", "content": "42"}
    >>> one, two = {"role": "user", "content": "one"}, {"role": "user", "content": "two"}
    >>> trim_messages([one, call, result, two], keep_last=2).messages
    [{'role': 'user', 'content': 'two'}]
    """
    for name, bound in (("keep_last", keep_last), ("max_tokens", max_tokens)):
        if bound is not None and bound < 0:
            raise UsageError(f"{name} must be 0 or more")
    size = count_tokens(messages, tokenizer)
    end, _ = after_system(messages)
    if _fits(len(messages) - end, keep_last) and _fits(size, max_tokens):
        return Trimmed(list(messages), size, 0, True)
    system, rest = list(messages[:end]), list(messages[end:])
    turns = list(_turns(rest))
    fixed = turns[-1][:1] if turns else []
    count, size = len(fixed), count_tokens(system, tokenizer) + count_tokens(fixed, tokenizer)

    def has_room(more: int, tokens: int) -> bool:
        return _fits(count + more, keep_last) and _fits(size + tokens, max_tokens)

    fits = has_room(0, 0)
    kept: list[Any] = []
    for unit in reversed(list(_rounds(turns[-1][1:]))) if turns else ():
        tokens = count_tokens(unit, tokenizer)
        if not has_room(len(unit), tokens):
            break
        kept, count, size = unit + kept, count + len(unit), size + tokens
    kept = fixed + kept
    if turns and len(kept) == len(turns[-1]):  # only a whole turn may have others before it
        for turn in reversed(turns[:-1]):
            tokens = count_tokens(turn, tokenizer)
            if not has_room(len(turn), tokens):
                break
            kept, count, size = turn + kept, count + len(turn), size + tokens
    return Trimmed(system + kept, size, len(rest) - len(kept), fits)


def _fits(size: int, most: int | None) -> bool:
    return most is None or size <= most


def _turns(messages: Sequence[Any]) -> Iterator[list[Any]]:
    """Runs of messages, each from words of the user on; what stands before the first is none."""
    turn: list[Any] = []
    for message in messages:
        if is_own(message):
            if turn:
                yield turn
            turn = [message]
        elif turn:
            turn.append(message)
    if turn:
        yield turn


def _rounds(messages: Sequence[Any]) -> Iterator[list[Any]]:
    """What follows the user's words, each answer of the model with the results of its calls."""
    unit: list[Any] = []
    for message in messages:
        if unit and role_of(message) == "assistant":
            yield unit
            unit = []
        unit.append(message)
    if unit:
        yield unit

"""Which turn of a conversation a message is, so that its block goes back to it."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Container, Mapping, Sequence
from typing import Any

from memsheaf.stack import Scope

from .block import Block, carries_block
from .ledger import BlockLedger, Sent
from .messages import is_own, texts, with_block
from .scrub import strip_blocks

__all__ = ["Turns", "turn_keys"]

_REMEMBERED = 4  # a turn is told by this many messages of the user, itself the last
_SIZE = 16  # bytes of a key


def turn_keys(messages: Sequence[Any], issued: Container[str]) -> dict[int, str]:
    """Key the messages that hold the user's own words.

    A key is made of the user's words alone, in this message and the three before it, so that it
    stays when tool results are dropped, markers for the cache move, or old messages are cut off.
    Equal keys are numbered.

    Args:
        messages: The messages of a request, with or without blocks.
        issued: The ids of blocks, which are no words of the user.

    Returns:
        The key of each such message's place.
    """
    keys: dict[int, str] = {}
    recent: deque[bytes] = deque(maxlen=_REMEMBERED)
    seen: Counter[str] = Counter()
    for place, message in enumerate(messages):
        if is_own(message):
            stripped = [strip_blocks(text, issued) for text in texts(message)]
            words = "".join(f"{len(text)}:{text}" for text in stripped if text)
            encoded = words.encode("utf-8", "surrogatepass")
            recent.append(hashlib.blake2b(encoded, digest_size=_SIZE).digest())
            key = hashlib.blake2b(b"".join(recent), digest_size=_SIZE).hexdigest()
            seen[key] += 1
            keys[place] = f"{key}-{seen[key]}"
    return keys


class Turns:
    """The turns of a request's messages, beside what a ledger knows of their conversation.

    Args:
        messages: The messages of a request.
        ledger: Where blocks are remembered; None remembers nothing.
        scope: Whose conversation.
        conversation: Its name; None remembers ids only.
        mark: What the contexts of this request are kept under; blocks with contexts under another
            one are emptied.
    """

    def __init__(
        self,
        messages: Sequence[Any],
        ledger: BlockLedger | None,
        scope: Scope,
        conversation: str | None,
        mark: str = "",
    ) -> None:
        self._messages, self._ledger, self._scope = messages, ledger, scope
        self._conversation, self._mark, self._since = conversation, mark, 0
        self._keys: dict[int, str] = {}
        self._sent: Mapping[str, Sent] = {}
        if ledger is not None and conversation is not None:
            self._keys = turn_keys(messages, ledger)
            self._since = ledger.dropped()
            self._sent = ledger.sent(scope, conversation)
            if any(sent.mark not in ("", mark) for sent in self._sent.values()):
                ledger.outdate(scope, mark)
                self._sent = ledger.sent(scope, conversation)

    def known(self, place: int) -> Sent | None:
        """What the message at a place was sent, or None where the ledger does not know it."""
        return self._sent.get(self._keys.get(place, ""))

    def put_back(self) -> tuple[list[Any], int]:
        """The messages with the blocks that they were sent with, and how many were put back."""
        sent, count = list(self._messages), 0
        for place in self._keys:
            known = self.known(place)
            if known is not None and known.text and not self.carries(place):
                sent[place] = with_block(sent[place], known.text)
                count += 1
        return sent, count

    def carries(self, place: int) -> bool:
        """Whether a message carries a block; with a ledger only an issued one counts."""
        return any(carries_block(text, self._ledger) for text in texts(self._messages[place]))

    def keep(
        self, place: int, block_id: str, block: Block | None, *, with_contexts: bool = False
    ) -> Sent:
        """Remember a block; returns what counts, which another process may have kept before."""
        made = Sent(block_id, block.text) if block is not None else Sent("", "")
        if self._ledger is None:
            return made
        if self._conversation is not None:
            records = [hit.id for hit in block.hits] if block is not None else []
            key = self._keys[place]
            return self._ledger.keep(
                self._scope,
                self._conversation,
                key,
                made.block_id,
                made.text,
                records,
                mark=self._mark if with_contexts and made.text else "",
                since=self._since,
            )
        if block is not None:
            self._ledger.issue(block_id)
        return made

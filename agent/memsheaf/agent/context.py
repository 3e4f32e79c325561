"""One question to memories, past conversations and the profile; each answers under its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memsheaf.sessionsearch import SessionHit, SessionResult
from memsheaf.stack import MemoryStack, MemsheafError, Outcome, Scope, SearchResult, Status
from memsheaf.stack.fanout import reason_of
from memsheaf.usermodel.owners import owner_of
from memsheaf.usermodel.provider import UserModelProvider

if TYPE_CHECKING:
    from memsheaf.sessionsearch import SessionSearch
    from memsheaf.usermodel import UserModel

__all__ = ["MemoryContext", "context", "failed", "forget_mark_of", "profile_of"]


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """What all parts of the memory know about a text, each part by its name.

    Attributes:
        facts: Memories of the stack.
        sessions: Items of past conversations; None without session search, or where it failed.
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


def context(
    text: str,
    scope: Scope,
    *,
    stack: MemoryStack,
    sessions: SessionSearch | None = None,
    user_model: UserModel | None = None,
    limit: int = 5,
) -> MemoryContext:
    """What memories, past conversations and the profile of a scope say about a text.

    Args:
        text: The question, in words.
        scope: Whose.
        stack: The memories.
        sessions: Past conversations.
        user_model: What is known of users.
        limit: Memories, and items of conversations, at the most.

    Returns:
        Each part by itself; one that fails leaves the others alone and is named by an outcome.

    Raises:
        ScopeError: The scope has no field set.

    >>> from memsheaf.providers.local import LocalStore
    >>> mira = Scope(user_id="mira")
    >>> with MemoryStack([LocalStore()], scope=mira) as stack:
    ...     _ = stack.store("Mira plays the cello", id="m1", kind="fact")
    ...     context("cello", mira, stack=stack).to_json()["facts"]
    [{'id': 'm1', 'kind': 'fact', 'text': 'Mira plays the cello'}]
    """
    facts = stack.search(text, scope, limit)
    found, outcomes = None, facts.outcomes
    if sessions is not None:
        try:
            found = sessions.search(text, limit, scope=scope)
        except MemsheafError as error:
            outcomes = (*outcomes, failed("sessions", error))
    profile, trouble = profile_of(user_model, scope, text)
    return MemoryContext(facts, found, profile, outcomes + trouble)


def profile_of(
    user_model: UserModel | None, scope: Scope, text: str
) -> tuple[str | None, tuple[Outcome, ...]]:
    """The block about a scope's user, if there is one, and what failed."""
    if user_model is None:
        return None, ()
    try:
        return user_model.build_user_context(owner_of(scope), text), ()
    except MemsheafError as error:
        return None, (failed("user_model", error),)


def forget_mark_of(user_model: UserModel | None, stack: MemoryStack, scope: Scope) -> str:
    """What a block about a scope's user may not outlive; like no other where it cannot be told.

    Args:
        user_model: The agent's own.
        stack: Its providers may be user models, too.
        scope: Whose.
    """
    providers = [m.provider for m in stack.providers if isinstance(m.provider, UserModelProvider)]
    try:
        marks = [provider.forget_mark(scope) for provider in providers]
        if user_model is not None:
            marks.append(user_model.forget_mark(owner_of(scope)))
    except MemsheafError:  # asked for the profile itself, it fails again, and that is told
        return "unknown"
    return " ".join(marks)


def failed(part: str, error: Exception) -> Outcome:
    """The outcome of a part that failed beside a turn."""
    return Outcome(part, "event", Status.FAILED, reason_of(error), error=error)

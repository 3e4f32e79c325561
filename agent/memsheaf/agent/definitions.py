"""The five tools that an agent is offered, and the forms in which servers want them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memsheaf.stack import Kind, UsageError

from .parameters import Parameter, schema

__all__ = ["DEFINITIONS", "Definition", "SchemaForm"]

SchemaForm = Literal["openai", "anthropic", "json"]

_TEXT = ("q", "text", "query_text", "search")
_LIMIT = ("top_k", "k", "n", "max_results")


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool's name, what the model is told of it, and what it takes."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]

    def to_schema(self, form: SchemaForm = "openai") -> dict[str, Any]:
        """The tool as a server wants it.

        Args:
            form: `openai` (strict function), `anthropic`, or `json`: name, description and a
                plain JSON Schema under `parameters`.

        Raises:
            UsageError: There is no such form.
        """
        if form not in ("openai", "anthropic", "json"):
            raise UsageError("form must be openai, anthropic or json")
        taken = schema(self.parameters, strict=form == "openai")
        about = {"name": self.name, "description": self.description}
        if form == "anthropic":
            return {**about, "input_schema": taken}
        if form == "json":
            return {**about, "parameters": taken}
        return {"type": "function", "function": {**about, "strict": True, "parameters": taken}}


def _limit(default: int, highest: int) -> Parameter:
    about = f"How many at the most, 1 to {highest}; {default} where left out."
    return Parameter(
        "limit", "integer", about, aliases=_LIMIT, default=default, lowest=1, highest=highest
    )


_REMEMBER = Definition(
    "memory_remember",
    "Keep something worth knowing in later conversations: a fact, preference, decision or lesson. "
    "One statement a call, in words that will be clear without this conversation.",
    (
        Parameter(
            "content",
            "text",
            "The statement, complete in itself.",
            required=True,
            aliases=("text", "memory"),
        ),
        Parameter(
            "kind",
            "text",
            "What it is; note where left out.",
            aliases=("type",),
            choices=tuple(Kind),
        ),
        Parameter("tags", "texts", "Words to find it by.", default=()),
        Parameter(
            "importance",
            "number",
            "From 0 (trivial) to 1 (vital); 0.5 where left out.",
            default=0.5,
            lowest=0,
            highest=1,
        ),
        Parameter(
            "evergreen", "boolean", "Whether it stays true and must not fade.", default=False
        ),
        Parameter("metadata", "object", default={}, offered=False),
    ),
)

_RECALL = Definition(
    "memory_recall",
    "Find what was remembered before. Use it before you say that you do not know something about "
    "the user or their work.",
    (
        Parameter("query", "text", "What to look for, in words.", required=True, aliases=_TEXT),
        _limit(5, 50),
        Parameter(
            "kinds",
            "texts",
            "Only these kinds.",
            aliases=("kind", "type", "types"),
            choices=tuple(Kind),
            default=(),
        ),
        Parameter("tags", "texts", "Only memories with one of these tags.", default=()),
    ),
)

_FORGET = Definition(
    "memory_forget",
    "Delete one memory for good, by the id that recall or the memory block shows.",
    (Parameter("id", "text", "The memory's id.", required=True, aliases=("memory_id",)),),
)

_SESSIONS = Definition(
    "session_search",
    "Search the words of past conversations, also those that nobody chose to remember. Leave query "
    "out to see the latest conversations; give around to read what stands about a result.",
    (
        Parameter("query", "text", "What to look for, in words.", aliases=_TEXT),
        _limit(10, 50),
        Parameter(
            "conversation_id",
            "text",
            "Only this conversation.",
            aliases=("conversation", "session_id"),
        ),
        Parameter("around", "text", "The id of a result: shows what was said about it."),
    ),
)

_CONTEXT = Definition(
    "user_context",
    "What is known of the user: preferences, goals, habits and facts.",
    (Parameter("query", "text", "What it is needed for, in words.", aliases=_TEXT),),
)

DEFINITIONS: Sequence[Definition] = (_REMEMBER, _RECALL, _FORGET, _SESSIONS, _CONTEXT)
"""The tools in the order in which they are offered."""

"""What goes into a turn, what comes out of it, and what is told on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from memsheaf.models import CancelToken, ChatReply, TextDelta, ToolCall, Usage
from memsheaf.sessionsearch import Item
from memsheaf.stack import Outcome, UsageError

from .host_tools import HostTool, ToolOutcome
from .inject import Injection
from .policy import TurnOrigin

__all__ = [
    "Prompt",
    "Step",
    "ToolsDone",
    "TurnDone",
    "TurnEvent",
    "TurnHooks",
    "TurnOptions",
    "TurnResult",
    "TurnState",
    "TurnStatus",
]

Prompt = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
TurnStatus = Literal["completed", "interrupted", "failed", "max_iterations"]


class Step(StrEnum):
    """A step of a turn, in the order in which they come; model and tools repeat."""

    RECORD = "record"
    RECALL = "recall"
    MODEL = "model"
    TOOLS = "tools"
    KEEP = "keep"
    LEARN = "learn"


@dataclass(frozen=True, slots=True)
class TurnState:
    """What a hook sees of a turn.

    Attributes:
        conversation: Its id.
        origin: Who started it.
        iteration: How often the model was asked.
        messages: As they are sent.
        reply: The model's last reply.
    """

    conversation: str
    origin: TurnOrigin
    iteration: int
    messages: tuple[Any, ...]
    reply: ChatReply | None = None


class TurnHooks:
    """Called before and after each step; one that raises ends the turn as failed."""

    def before(self, step: Step, state: TurnState) -> None:
        """Called before a step."""

    def after(self, step: Step, state: TurnState) -> None:
        """Called after a step."""


@dataclass(frozen=True, slots=True)
class ToolsDone:
    """The tools of one reply have ended."""

    outcomes: tuple[ToolOutcome, ...]


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What came of a turn.

    Attributes:
        status: `completed`; `interrupted` by its token; `failed`, see `error`; or
            `max_iterations`: the model still wanted tools.
        text: What the model said last, without blocks of memory.
        messages: What the turn added, the user's message included, without blocks of memory.
        items: What is new in the log.
        injection: What was injected.
        iterations: How often the model was asked.
        usage: Tokens of all replies that told.
        outcomes: What failed beside the turn: recording, learning.
        error: Why it failed; the exception is the model's or a hook's own.
    """

    status: TurnStatus
    text: str
    messages: tuple[Any, ...]
    items: tuple[Item, ...]
    injection: Injection
    iterations: int
    usage: Usage
    outcomes: tuple[Outcome, ...] = ()
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class TurnDone:
    """The last event of a turn."""

    result: TurnResult


TurnEvent = TextDelta | ToolCall | ToolsDone | TurnDone
"""Text as it comes, tool calls that will run, their results, the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """How a turn runs.

    Args:
        system: The system prompt, the same from turn to turn.
        tools: The application's own tools; memory's come by themselves.
        memory_tools: Whether to offer those of memory.
        max_iterations: How often the model is asked at the most.
        history: Messages of the conversation so far that are sent again, from the log.
        tool_timeout: Seconds for the tools of one reply.
        model_options: Further options of the model, for instance ``{"temperature": 0}``.
        hooks: Called before and after each step.
        cancel: Interrupts the turn.
        origin: Who started it.
        title: Of the conversation.

    Raises:
        UsageError: A number is below its least.
    """

    system: str | None = None
    tools: Sequence[HostTool] = ()
    memory_tools: bool = True
    max_iterations: int = 10
    history: int = 50
    tool_timeout: float = 120.0
    model_options: Mapping[str, Any] = field(default_factory=dict)
    hooks: TurnHooks = field(default_factory=TurnHooks)
    cancel: CancelToken | None = None
    origin: TurnOrigin | str = TurnOrigin.PRIMARY
    title: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.max_iterations, int) or self.max_iterations < 1:
            raise UsageError("max_iterations must be a whole number above 0")
        if not isinstance(self.history, int) or self.history < 0:
            raise UsageError("history must be a whole number of at least 0")
        if not self.tool_timeout > 0:
            raise UsageError("tool_timeout must be a number of seconds above 0")
